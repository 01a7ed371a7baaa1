"""Pilots that never register: how many, where else, and which test fails."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.facts import EntryKey, EntryTotals, Pilot, Reach
from gwmond.sites.registering import Histories, unregistered, watch
from tests.build.facts import NOW, A, pilot, request, totals

KEYS = [EntryKey(f"Site{number}", f"e{number}") for number in range(6)]


def histories(**unregistered_there: int) -> Histories:
    """As if so many had not registered for an hour, by the name of the entry."""
    found: Histories = {}
    at = {EntryKey("Site" + name[1:], name): n for name, n in unregistered_there.items()}
    for time in range(NOW - 3600, NOW + 1, 60):
        found = watch(found, at, Counter(), time, 900)
    return found


def told(groups: dict[str, str]) -> dict[EntryKey, EntryTotals]:
    return totals(*(request(EntryKey("Site" + e[1:], e), group=g) for e, g in groups.items()))


@pytest.mark.parametrize(
    ("failing", "good", "groups", "reach"),
    [
        (("e0",), ("e1",), "mm", "here"),
        (("e0",), (), "mm", "not_known"),
        (("e0", "e1"), (), "mm", "not_known"),
        (("e0", "e1", "e2"), (), "mmm", "everywhere"),
        (("e0", "e1", "e2"), ("e3",), "mmmx", "group"),
        (("e0", "e1", "e2"), ("e3",), "mmmm", "here"),
        (("e0",), ("e3",), "mmmx", "not_known"),
    ],
)
def test_where_else_pilots_do_not_register(
    failing: tuple[str, ...], good: tuple[str, ...], groups: str, reach: Reach
) -> None:
    of = {f"e{number}": f"fe.{group}" for number, group in enumerate(groups)}
    seen = [pilot(EntryKey("Site" + e[1:], e), group=of[e]) for e in good]
    found = unregistered(histories(**dict.fromkeys(failing, 1)), told(of), seen)
    assert {(one.reach, one.test) for one in found.values()} == {(reach, "")}
    assert set(found) == {EntryKey("Site" + e[1:], e) for e in failing}


def test_the_test_that_fails_is_what_most_of_them_advertise() -> None:
    failed = [
        pilot(KEYS[0])._replace(failed=True, failure=test) for test in ("cvmfs", "disk", "disk")
    ]
    found = unregistered(histories(e0=3), told({"e0": "fe.m"}), failed)
    assert found[KEYS[0]].test == "disk"
    assert found[KEYS[0]].registered == 0


def test_counts_that_lag_are_no_sign() -> None:
    """Only what is there at every moment of the grace; and most of them, not a few."""
    once: Histories = {}
    seen: list[Pilot] = [pilot(A)] * 5
    for minute in range(60):
        running = {A: 8 if minute != 40 else 5}
        once = watch(once, running, Counter({A: 5}), NOW + 60 * minute, 900)
        found = unregistered(once, {}, seen)
        assert (A in found) is (15 <= minute < 40 or minute > 55), minute
    assert found[A].pilots == 3
    assert not found[A].most


@pytest.mark.parametrize(("registers", "last"), [(None, 30 + 4 * 15), (70, 69)])
def test_what_is_found_lasts_until_one_registers(registers: int | None, last: int) -> None:
    """The pilots that failed end after half an hour; those that come then do not last."""
    found: Histories = {}
    times = []
    for minute in range(180):
        there = int(registers is not None and minute >= registers)
        running = 2 if minute <= 30 else max((minute + 1) % 2, there)
        found = watch(found, {A: running}, Counter({A: there}), NOW + 60 * minute, 900)
        if unregistered(found, {}, [pilot(A)] * there):
            times.append(minute)
    assert times == list(range(15, 15 + len(times)))
    assert times[-1] == last


@pytest.mark.parametrize(("unknown_min", "kept"), [(14, True), (16, False)])
def test_a_poll_that_does_not_tell_changes_nothing(unknown_min: int, kept: bool) -> None:
    found = histories(e0=3)
    for minute in range(1, unknown_min + 1):
        found = watch(found, {}, Counter(), NOW + 60 * minute, 900)
    assert bool(unregistered(found, {}, [])) is kept


def test_what_is_seen_of_some_pilots_counts() -> None:
    """Two of three registered when not all could be seen."""
    found = watch(histories(e0=3), {KEYS[0]: 3}, Counter({KEYS[0]: 2}), NOW + 60, 900, KEYS)
    assert unregistered(found, {}, [])[KEYS[0]].pilots == 1
    found = watch(found, {KEYS[0]: 3}, Counter(), NOW + 120, 900)
    assert unregistered(found, {}, [])[KEYS[0]].pilots == 1
