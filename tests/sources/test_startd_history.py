"""A startd's history is read the same with the ClassAd library and without it."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.runs.records import JobRecord
from gwmond.sources.htcondor.histories import histories, startd_history
from tests.build.gwms import generate, simulated
from tests.build.histories import RECORDINGS
from tests.examples import examples

ROWS = json.loads((RECORDINGS / "startd_history.json").read_text())


def text(row: dict[str, str]) -> str:
    lines = [f"{name} = {value}" for name, value in row.items()]
    return "\n".join([*lines, "*** Offset = 0 ClusterId = 1 CompletionDate = 1", ""])


def slow(data: bytes) -> tuple[list[JobRecord], list[str]]:
    """Read each record with the ClassAd library."""
    ads = [startd_history.parsed(body or b"") for body, _ in startd_history.divided(BytesIO(data))]
    found = ["garbage" if ad is None else histories.decode(startd_history.KIND, ad) for ad in ads]
    records = [one for one in found if isinstance(one, JobRecord)]
    return records, [one for one in found if isinstance(one, str)]


def test_recorded_histories_are_read_the_same() -> None:
    """Those of real startds, in which jobs ended in every way."""
    data = "".join(text(row) for row in ROWS).encode()
    assert startd_history.parse(data) == slow(data)
    assert len(startd_history.parse(data)[0]) == len(ROWS)


def test_most_records_are_read_without_classads() -> None:
    """Else the quick way would be none; but a policy such as max_retries is an expression."""
    rows = [row for row in ROWS if row.get("OnExitRemove", "true") in {"true", "false"}]
    plain = [startd_history.plain(text(row).partition("\n***")[0].encode()) for row in rows]
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
    assert startd_history.parse(data) == slow(data)


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
    fast, wrong = startd_history.parse(bytes(raw))
    expected, words = slow(bytes(raw))
    assert (fast, wrong) == (expected, words)


def test_generated_histories_are_read_the_same() -> None:
    """The generator writes what startds write."""
    for pilot in simulated.pilots(11, 30):
        data = generate.history(pilot).encode()
        assert startd_history.parse(data) == slow(data)


def test_no_more_than_the_limit() -> None:
    """The rest is told to be missing."""
    data = text(ROWS[0]).encode() * 5
    records, wrong = startd_history.parse(data, 3)
    assert (len(records), wrong) == (3, ["too_many"])


class Short(BytesIO):
    """A stream of which each read gives a few bytes."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self._size if size is None or size < 0 else min(size, self._size))


LINES = [b"A = 1\n", b"*** x\n", b"*** ", b"**", b"* x", b"\n", b"B = 2", b" *** y\n"]


@settings(max_examples=examples(150))
@given(pieces=st.lists(st.sampled_from(LINES), max_size=30), size=st.integers(1, 12))
def test_records_are_divided_wherever_a_read_ends(pieces: list[bytes], size: int) -> None:
    """Each ends with its banner's line."""
    data = b"".join(pieces)
    divided = list(startd_history.divided(BytesIO(data)))
    assert list(startd_history.divided(Short(data, size))) == divided
    begin = 0
    for body, end in divided:
        lines = data[begin:end].splitlines(keepends=True)
        assert [line.startswith(b"*** ") for line in lines] == [False] * (len(lines) - 1) + [True]
        assert body == b"".join(lines[:-1]).removesuffix(b"\n")
        begin = end
    assert not any(line.startswith(b"*** ") for line in data[begin:].splitlines()[:-1])


@pytest.mark.parametrize("size", [1000, 1 << 16, 1 << 20])
def test_what_follows_a_record_that_is_too_long_is_read(size: int) -> None:
    """Also if its banner is divided by reads, or a line of it begins nearly as a banner."""
    long = b"A = " + b"x" * (startd_history.RECORD_BYTES + 3 * size) + b"\n**\nB = *** 1\n*** x\n"
    data = long + b"C = 3\n*** x\n"
    found = list(startd_history.divided(Short(data, size)))
    assert found == [(None, len(long)), (b"C = 3", len(data))]
