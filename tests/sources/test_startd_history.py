"""A startd's history is divided into its records, and each is read as a schedd's ads are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.sources.htcondor.histories import histories, startd_history
from gwmond.sources.htcondor.histories.startd_history import KIND
from tests.build.histories import load, rows
from tests.examples import examples

ROWS = rows("startd_history")
BANNER = "*** Offset = 0 ClusterId = 1 CompletionDate = 1\n"


def text(row: dict[str, str]) -> bytes:
    return ("".join(f"{name} = {value}\n" for name, value in row.items()) + BANNER).encode()


def test_recorded_histories_are_read_as_ads() -> None:
    """Those of real startds, in which jobs ended in every way."""
    expected = [histories.decode(KIND, ad) for _, ad in load(KIND)]
    assert startd_history.parse(b"".join(map(text, ROWS))) == (expected, [])


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (b"no line of an ad\n", "garbage"),
        (b"Other = 1\n", "garbage"),
        (b"ToE = [ broken\n", "garbage"),
        (b"A = " + b"x" * startd_history.RECORD_BYTES + b"\n**\nB = *** 1\n", "too_long"),
        (b'Owner = "a"\n', "no_job"),
    ],
)
def test_a_broken_record_costs_itself(lines: bytes, wrong: str) -> None:
    records, words = startd_history.parse(lines + BANNER.encode() + text(ROWS[0]) + lines)
    assert (len(records), words) == (1, [wrong])


def test_no_more_than_the_limit() -> None:
    """The rest is told to be missing."""
    records, wrong = startd_history.parse(text(ROWS[0]) * 5, 3)
    assert (len(records), wrong) == (3, ["too_many"])


LINES = [b"A = 1\n", b"*** x\n", b"*** ", b"**", b"* x", b"\n", b"B = 2", b" *** y\n"]


@settings(max_examples=examples(150))
@given(pieces=st.lists(st.sampled_from(LINES), max_size=30))
def test_a_record_ends_with_its_banner(pieces: list[bytes]) -> None:
    """What follows the last one is not complete."""
    data, bodies, lines = b"".join(pieces), list[bytes](), list[bytes]()
    for line in data.splitlines(keepends=True):
        if line.startswith(b"*** ") and line.endswith(b"\n"):
            bodies.append(b"".join(lines).removesuffix(b"\n"))
            lines = []
        else:
            lines.append(line)
    assert list(startd_history.divided(data)) == bodies
