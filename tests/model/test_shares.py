from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.shares import accrued, apportion, cascade, milli

WEIGHTS = st.lists(st.integers(0, 10**5), min_size=1, max_size=9).filter(any)
TIMES = st.integers(0, 2 * 10**15)


def divide(rate_milli: int, weights: list[int], start_us: int, end_us: int) -> list[int]:
    """Return the shares of a rate over [start, end): what cascades grow by."""
    before = cascade(accrued(rate_milli, start_us), weights)
    after = cascade(accrued(rate_milli, end_us), weights)
    return [late - early for early, late in zip(before, after, strict=True)]


@pytest.mark.parametrize(
    ("total", "weights", "shares"),
    [
        (0, [3, 4], [0, 0]),
        (7, [5], [7]),
        (10, [1, 1, 1], [3, 3, 4]),
        (7, [3, 0, 4], [3, 0, 4]),
        (7, [0, 7, 0], [0, 7, 0]),
        (100, [90, 10], [90, 10]),
        (3, [1, 10**12], [0, 3]),
    ],
)
def test_shares_are_in_proportion(total: int, weights: list[int], shares: list[int]) -> None:
    assert cascade(total, weights) == shares


@pytest.mark.parametrize("weights", [[], [0], [0, 0]])
def test_there_must_be_a_proportion(weights: list[int]) -> None:
    with pytest.raises(ValueError, match="in proportion"):
        cascade(5, weights)


@given(st.integers(0, 10**9), WEIGHTS)
def test_one_more_raises_exactly_one_share(total: int, weights: list[int]) -> None:
    """No share falls when the total grows, as shares by largest remainder can."""
    before, after = cascade(total, weights), cascade(total + 1, weights)
    assert sum(before) == total
    growth = [late - early for early, late in zip(before, after, strict=True)]
    assert sorted(growth) == [0] * (len(weights) - 1) + [1]


def test_largest_remainders_would_take_something_back() -> None:
    """The reason why these shares are not apportioned: the Alabama paradox."""
    weights = [6, 6, 2]
    assert apportion(10, weights)[2] > apportion(11, weights)[2]


@given(st.integers(0, 10**5), WEIGHTS, st.lists(TIMES, min_size=2, max_size=6))
def test_wherever_an_interval_is_cut_the_shares_are_the_same(
    rate: int, weights: list[int], times: list[int]
) -> None:
    times = sorted(times)
    whole = divide(rate, weights, times[0], times[-1])
    pieces = [divide(rate, weights, start, end) for start, end in pairwise(times)]
    assert [sum(of) for of in zip(*pieces, strict=True)] == whole
    assert sum(whole) == accrued(rate, times[-1]) - accrued(rate, times[0])
    assert min(whole) >= 0


@given(st.integers(0, 10**5), WEIGHTS, TIMES, st.integers(0, 10**12))
def test_each_share_is_its_proportion_to_a_few_micros(
    rate: int, weights: list[int], start: int, length: int
) -> None:
    for share, weight in zip(divide(rate, weights, start, start + length), weights, strict=True):
        exact = Fraction(rate * length * weight, 1000 * sum(weights))
        assert abs(share - exact) <= len(weights)


@given(st.integers(0, 10**5), st.integers(0, 500), TIMES)
def test_whole_units_accrue_exactly(rate: int, units: int, time: int) -> None:
    assert accrued(rate + 1000 * units, time) == accrued(rate, time) + units * time


def test_thousandths_are_exact_where_floats_are_not() -> None:
    assert 0.1 + 0.2 != 0.3
    assert milli(0.1) + milli(0.2) == milli(0.3) == 300
    assert milli(1.001) == 1001
    assert milli(-0.5) == 0


@pytest.mark.parametrize(
    ("total", "weights", "shares"),
    [
        (10, [], []),
        (0, [3, 4], [0, 0]),
        (10, [1, 1, 1], [4, 3, 3]),
        (5, [0, 0], [3, 2]),
        (7, [3, 0, 4], [3, 0, 4]),
        (100, [90, 10], [90, 10]),
        (3, [1, 10**12], [0, 3]),
    ],
)
def test_shares_are_by_largest_remainder(total: int, weights: list[int], shares: list[int]) -> None:
    """A whole number is divided in proportion, what is left goes to the largest remainders."""
    assert apportion(total, weights) == shares


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_nothing_is_lost_and_each_share_is_its_proportion(total: int, weights: list[int]) -> None:
    """Shares sum to the total and are within one of the exact proportion."""
    shares = apportion(total, weights)
    assert sum(shares) == total
    if any(weights):
        for share, weight in zip(shares, weights, strict=True):
            assert abs(share - Fraction(total * weight, sum(weights))) < 1
            assert total > sum(weights) or share <= weight
