"""Division of an amount among hours."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.hours import from_columns, split_hours, to_columns
from gwmond.model.times import HOUR_S
from gwmond.model.units import MICRO
from tests.examples import examples

bounded = settings(max_examples=examples(200))
HOUR_US = HOUR_S * MICRO
amounts = st.integers(0, 10**20)
starts = st.integers(0, 2 * 10**9 * MICRO)
lengths = st.one_of(st.integers(0, 100), st.integers(0, 50 * HOUR_US))


@bounded
@given(amounts, starts, lengths)
def test_nothing_is_lost_or_made(micros: int, start: int, length: int) -> None:
    """The shares sum to the amount, whatever the interval."""
    assert sum(share for _, share in split_hours(micros, start, start + length)) == micros


@bounded
@given(amounts, starts, lengths)
def test_shares_are_proportional(micros: int, start: int, length: int) -> None:
    """Each share is within one micro of its hour's exact part, and belongs to a touched hour."""
    shares = dict(split_hours(micros, start, start + length))
    assert list(shares) == sorted(shares)
    for hour, share in shares.items():
        low, high = max(start, hour * HOUR_US), min(start + length, (hour + 1) * HOUR_US)
        exact = Fraction(micros * (high - low), length) if length else Fraction(micros)
        assert share > 0
        assert abs(share - exact) < 1
        assert hour == start // HOUR_US or low < high


@pytest.mark.parametrize(
    ("micros", "start_s", "end_s", "shares"),
    [
        (60, 0, 60, [(0, 60)]),
        (60, 3600, 3600, [(1, 60)]),
        (60, 3540, 3600, [(0, 60)]),
        (1, 3599, 3601, [(1, 1)]),
        (7, 0, 3 * 3600, [(0, 2), (1, 2), (2, 3)]),
        (0, 0, 7200, []),
    ],
)
def test_table(micros: int, start_s: int, end_s: int, shares: list[tuple[int, int]]) -> None:
    """An end on the hour gives nothing to the next; what rounding leaves goes to the later hour."""
    assert list(split_hours(micros, start_s * MICRO, end_s * MICRO)) == shares


@pytest.mark.parametrize(("micros", "start", "end"), [(-1, 0, 1), (1, 2, 1)])
def test_nonsense_is_refused(micros: int, start: int, end: int) -> None:
    """A negative amount or an end before the start is an error, not a guess."""
    with pytest.raises(ValueError, match="cannot divide"):
        list(split_hours(micros, start, end))


@bounded
@given(st.integers(0, 10**30))
def test_columns_hold_any_amount(micros: int) -> None:
    """Whole seconds and micros are the amount, and the micros are less than a second."""
    whole, rest = to_columns(micros)
    assert 0 <= rest < MICRO
    assert from_columns(whole, rest) == micros
