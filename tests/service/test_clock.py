"""The clocks of the daemon."""

from __future__ import annotations

import time

import pytest

from gwmond.model.elapsed import Tick, elapsed
from gwmond.service.host.clock import ReplayClock, SystemClock

FIRST, LENGTH = 1_600_000_000.0, 600.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed on this machine, as the test says."""
    passed = [0.0]

    def tick(_self: SystemClock) -> Tick:
        at = passed[0]
        return Tick(1_700_000_000 + at, 100 + at, 200 + at, "boot")

    monkeypatch.setattr(SystemClock, "tick", tick)
    return passed


def test_system_clock() -> None:
    """The machine's own clocks are read, within one boot."""
    clock = SystemClock()
    before, after = clock.tick(), clock.tick()
    assert abs(before.wall - time.time()) < 5
    assert before.mono <= after.mono
    assert before.boot >= before.mono
    assert before.boot_id == after.boot_id != ""
    assert clock.speed == 1


def test_replay_begins_now(machine: list[float]) -> None:
    """A replay starts at the machine's time, at the first frame."""
    clock = ReplayClock(FIRST, LENGTH, 60)
    tick = clock.tick()
    assert (tick.wall, tick.mono, tick.boot) == (1_700_000_000, 200, 200)
    assert clock.position(tick) == (FIRST, 1_700_000_000 - FIRST)


def test_replay_runs_faster(machine: list[float]) -> None:
    """All clocks of a replay run at its speed."""
    clock = ReplayClock(FIRST, LENGTH, 60)
    before = clock.tick()
    machine[0] = 5
    after = clock.tick()
    assert [b - a for a, b in zip(before[:3], after[:3], strict=True)] == [300, 300, 300]
    assert clock.position(after).time == FIRST + 300


def test_replayed_time_is_accounted_like_real_time(machine: list[float]) -> None:
    """To the accounting an accelerated interval is as good as a real one."""
    clock = ReplayClock(FIRST, LENGTH, 60)
    before = clock.tick()
    machine[0] = 5
    assert elapsed(before, clock.tick(), 5 * 60) == (300_000, True, "")


def test_replay_is_repeated(machine: list[float]) -> None:
    """At its end the recording begins again, while the replay's time goes on."""
    clock = ReplayClock(FIRST, LENGTH, 60)
    machine[0] = 10
    again = clock.tick()
    assert again.wall == 1_700_000_600
    assert clock.position(again) == (FIRST, 1_700_000_600 - FIRST)
    machine[0] = 12.5
    assert clock.position(clock.tick()) == (FIRST + 150, 1_700_000_600 - FIRST)


def test_shift_is_the_same_within_a_pass(machine: list[float]) -> None:
    """What is added to epochs in ads is whole and constant, so that pilots keep their start."""
    clock = ReplayClock(FIRST + 0.25, LENGTH + 0.125, 7.3)
    shifts = set()
    for _ in range(50):
        machine[0] += 1.6
        shifts.add(clock.position(clock.tick()).shift)
    assert len(shifts) == 1
    assert all(shift == int(shift) for shift in shifts)


def test_two_replays_are_two_boots(machine: list[float]) -> None:
    """Time of one replay is never taken for that of another: it cannot be subtracted."""
    first = ReplayClock(FIRST, LENGTH, 60).tick()
    machine[0] = 100
    second = ReplayClock(FIRST, LENGTH, 60).tick()
    assert first.boot_id != second.boot_id
    assert elapsed(first, second, 60).reason == "reboot"
