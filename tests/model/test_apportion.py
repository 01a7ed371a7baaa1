from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.apportion import apportion


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
