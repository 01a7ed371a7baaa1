from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.elapsed import REASONS, Elapsed, Tick, elapsed
from gwmond.model.shares import accrued, apportion, cascade, milli

START = Tick(wall=1_700_000_000.25, mono=5_000.5, boot=6_000.5, boot_id="one")


def later(seconds: float, *, wall: float = 0.0, asleep: float = 0.0, boot_id: str = "one") -> Tick:
    """``wall`` is by how much the wall clock was stepped, ``asleep`` how long the machine was."""
    return Tick(
        START.wall + seconds + wall, START.mono + seconds - asleep, START.boot + seconds, boot_id
    )


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (later(60), Elapsed(60_000, True, "")),
        (later(0), Elapsed(0, True, "")),
        (later(120), Elapsed(120_000, True, "")),
        (later(120.0625), Elapsed(120_062, False, "missed_poll")),
        (later(60, asleep=0.5), Elapsed(60_000, True, "")),
        (later(60, asleep=30), Elapsed(60_000, False, "suspended")),
        (later(6000, asleep=5940), Elapsed(6_000_000, False, "suspended")),
        (later(60, wall=0.5), Elapsed(60_000, True, "")),
        (later(60, wall=-0.5), Elapsed(60_000, True, "")),
        (later(60, wall=3600), Elapsed(60_000, False, "clock_step")),
        (later(60, wall=-3600), Elapsed(60_000, False, "clock_step")),
        (later(300, wall=-3600), Elapsed(300_000, False, "clock_step")),
        (later(60, boot_id="two"), Elapsed(60_000, False, "reboot")),
        (later(60, wall=-3600, boot_id="two"), Elapsed(0, False, "reboot")),
    ],
)
def test_an_interval_is_known_or_says_why_not(now: Tick, expected: Elapsed) -> None:
    """Elapsed time is boot time, and unknown after a gap, a sleep, a step or a reboot."""
    assert elapsed(START, now, 60) == expected


def test_the_first_poll_measures_nothing() -> None:
    """Without an earlier tick nothing has elapsed, and the interval is not known."""
    assert elapsed(None, START, 60) == Elapsed(0, False, "first_poll")


def test_a_restart_of_the_process_loses_no_time() -> None:
    """Boot time counts on while the process is down, so a quick restart is a known interval."""
    assert elapsed(START, later(90.5), 60) == Elapsed(90_500, True, "")


def test_reboot_is_by_wall_clock() -> None:
    """Clocks that count from boot are not compared with those of another boot."""
    after = Tick(START.wall + 600, 12.0, 12.0, "two")
    assert elapsed(START, after, 60) == Elapsed(600_000, False, "reboot")


moments = st.floats(0, 1e7, allow_nan=False, allow_infinity=False)


@given(st.lists(moments, min_size=2, max_size=20))
def test_cutting_an_interval_changes_nothing(times: list[float]) -> None:
    """The milliseconds of consecutive intervals sum to those of the whole."""
    ticks = [Tick(1.7e9 + t, t, t, "one") for t in sorted(times)]
    parts = [elapsed(a, b, 60).ms for a, b in pairwise(ticks)]
    assert sum(parts) == elapsed(ticks[0], ticks[-1], 60).ms
    assert all(ms >= 0 for ms in parts)


@given(moments, moments, moments, moments, st.sampled_from(["one", "two"]))
def test_every_reason_is_in_the_vocabulary(
    wall: float, mono: float, boot: float, period: float, boot_id: str
) -> None:
    """Whatever the clocks say, time is not negative and a reason is told exactly if unknown."""
    found = elapsed(START, Tick(wall, mono, boot, boot_id), period)
    assert found.ms >= 0
    assert found.known == (found.reason == "")
    assert found.known or found.reason in REASONS


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
