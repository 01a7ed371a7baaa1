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
    for tick in (clock.tick(), clock.next_tick(None)):
        assert set(tick[:3]) == {1_700_000_000}
        assert clock.position(tick) == (FIRST, 1_700_000_000 - FIRST)


def test_a_replay_waits_for_its_polls(machine: list[float]) -> None:
    """Each poll is one period after the one before, however long that took."""
    clock = ReplayClock(FIRST, LENGTH, 60, 300)
    before = clock.next_tick(None)
    machine[0] = 5000
    assert clock.tick() == before
    after = clock.next_tick(before)
    assert [b - a for a, b in zip(before[:3], after[:3], strict=True)] == [300, 300, 300]
    assert clock.position(after).time == FIRST + 300
    assert elapsed(before, after, 5 * 60) == (300_000, True, "")


def test_replay_is_repeated(machine: list[float]) -> None:
    """At its end the recording begins again, while the replay's time goes on."""
    clock = ReplayClock(FIRST, LENGTH, 60, 150)
    ticks = [clock.next_tick(None) for _ in range(6)]
    assert ticks[4].wall == 1_700_000_600
    assert clock.position(ticks[4]) == (FIRST, 1_700_000_600 - FIRST)
    assert clock.position(ticks[5]) == (FIRST + 150, 1_700_000_600 - FIRST)


def test_with_a_past_it_has_the_recorded_time(machine: list[float]) -> None:
    """It goes on after what is stored, as if it had never been stopped, and stands at the end."""
    clock = ReplayClock(FIRST, LENGTH, 60, 300, own_time=True)
    stored = Tick(FIRST - 300, FIRST - 300, FIRST - 300, clock.tick().boot_id)
    first = clock.next_tick(stored)
    assert (first.wall, clock.position(first)) == (FIRST, (FIRST, 0))
    assert elapsed(stored, first, 300) == (300_000, True, "")
    later = ReplayClock(FIRST, LENGTH, 60, 300, own_time=True).next_tick(first)
    assert elapsed(first, later, 300) == (300_000, True, "")
    end = [clock.next_tick(None).wall for _ in range(4)][2:]
    assert end == [FIRST + LENGTH - 1] * 2


def test_shift_is_the_same_within_a_pass(machine: list[float]) -> None:
    """What is added to epochs in ads is whole and constant, so that pilots keep their start."""
    clock = ReplayClock(FIRST + 0.25, LENGTH + 0.125, 7.3, 11.68)
    shifts = {clock.position(clock.next_tick(None)).shift for _ in range(50)}
    assert len(shifts) == 1
    assert all(shift == int(shift) for shift in shifts)


def test_two_replays_are_two_boots(machine: list[float]) -> None:
    """Time of one replay is never taken for that of another: it cannot be subtracted."""
    first = ReplayClock(FIRST, LENGTH, 60).tick()
    machine[0] = 100
    second = ReplayClock(FIRST, LENGTH, 60).tick()
    assert first.boot_id != second.boot_id
    assert elapsed(first, second, 60).reason == "reboot"
