from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.elapsed import REASONS, Elapsed, Tick, elapsed

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
