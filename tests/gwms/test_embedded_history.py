"""The history inside a stderr is read as a startd's file is, attribute by attribute."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.records import JobRecord
from gwmond.sources.gwms import embedded_history
from gwmond.sources.htcondor import history_files
from tests.build.histories import RECORDINGS
from tests.examples import examples
from tests.gwms import generate, simulated

ROWS = json.loads((RECORDINGS / "startd_history.json").read_text())


def text(row: dict[str, str]) -> str:
    lines = [f"{name} = {value}" for name, value in row.items()]
    return "\n".join([*lines, "*** Offset = 0 ClusterId = 1 CompletionDate = 1", ""])


def slow(data: bytes) -> tuple[list[JobRecord], list[str]]:
    """As history_files reads."""
    found = list(history_files.decoded(io.BytesIO(data)))
    records = [one for one in found if isinstance(one, JobRecord)]
    return records, [one for one in found if isinstance(one, str)]


def test_recorded_histories_are_read_the_same() -> None:
    """Those of real startds, in which jobs ended in every way."""
    data = "".join(text(row) for row in ROWS).encode()
    assert embedded_history.parse(data) == slow(data)
    assert len(embedded_history.parse(data)[0]) == len(ROWS)


def test_most_records_are_read_without_classads() -> None:
    """Else the quick way would be none; but a policy such as max_retries is an expression."""
    rows = [row for row in ROWS if row.get("OnExitRemove", "true") in {"true", "false"}]
    plain = [embedded_history._plain(text(row).partition("\n***")[0].encode()) for row in rows]
    assert sum(one is not None for one in plain) >= 0.9 * len(rows) > 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Owner", '"a\\"b"'),
        ("Owner", '"a" + "b"'),
        ("Owner", '"é"'),
        ("ExitCode", "1 + 2"),
        ("ExitCode", "undefined"),
        ("ExitCode", "error"),
        ("ExitCode", "0x10"),
        ("ExitCode", "1e3"),
        ("ExitCode", "007"),
        ("ExitCode", "99999999999999999999999"),
        ("MemoryProvisioned", 'real("NaN")'),
        ("ExitBySignal", "True"),
        ("ToE", "[ ExitCode = x; x = 3 ]"),
        ("ToE", "[ broken"),
        ("ToE", "[ ExitCode = 3 ]*** "),
        ("ToE", "[ ExitCode = 3 ] ]"),
        ("ToE", '[ Who = "]"; ExitCode = 3 ]'),
        ("GlobalJobId", '"  "'),
        ("JobUniverse", "7"),
        ("CompletionDate", "-1"),
        ("CpusProvisioned", "1.50"),
        ("exitcode", "5"),
        ("ExitCode", ""),
    ],
)
def test_odd_values_are_read_the_same(name: str, value: str) -> None:
    """What is not plain is given to the ClassAd library."""
    row = {**ROWS[0], name: value}
    data = (text(row) + text(ROWS[1])).encode()
    assert embedded_history.parse(data) == slow(data)


@settings(max_examples=examples(150))
@given(data=st.data())
def test_damaged_records_are_read_the_same(data: st.DataObject) -> None:
    """Wherever a few bytes are others."""
    raw = bytearray("".join(text(row) for row in ROWS[:3]).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from(
                [b"", b"\n", b"=", b" = ", b'"', b"x", b"*** ", b"\n*** ", b"\0", b"\xe9"]
            )
        )
    fast, wrong = embedded_history.parse(bytes(raw))
    expected, words = slow(bytes(raw))
    assert (fast, wrong) == (expected, words)


def test_generated_histories_are_read_the_same() -> None:
    """The generator writes what startds write."""
    for pilot in simulated.pilots(11, 30):
        data = generate.history(pilot).encode()
        assert embedded_history.parse(data) == slow(data)


def test_no_more_than_the_limit() -> None:
    """The rest is told to be missing."""
    data = text(ROWS[0]).encode() * 5
    records, wrong = embedded_history.parse(data, 3)
    assert (len(records), wrong) == (3, ["too_many"])
