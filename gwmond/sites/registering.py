"""Pilots that run by the factory's count, and never register with the pool.

Units: pilots are counted, times are whole seconds of one clock.

A pilot whose validation fails sleeps for about 1000 s.  It does not register, by default does not
advertise that it failed, and if it is removed it returns no output (facts page on GlideinWMS).  So
two counts show it: how many run by the factory's count, and how many the collectors know.  What is
less at every moment of the grace is no pilot that is about to register, nor a count that lags.

Where else that is so tells who can change it: an entry alone has a site, or settings, of its own;
all entries of one group have its frontend's scripts and credentials in common, and all entries the
factory's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from gwmond.model.entries.waiting import PendingHistory
from gwmond.model.facts import EntryKey, EntryTotals, Pilot, Reach, Unregistered

Histories: TypeAlias = Mapping[EntryKey, PendingHistory]

WIDE = 3
"""What is so at fewer entries may be chance."""


def watch(
    before: Histories,
    running: Mapping[EntryKey, int],
    registered: Counter[EntryKey],
    now_s: int,
    grace_s: int,
) -> dict[EntryKey, PendingHistory]:
    """Return how many pilots of each entry have not registered, with what is seen now.

    ``running``: by the factory's count; of an entry that is not there it is not known now, or not
    all registered pilots are surely seen, and its history is void.
    """
    return {
        key: before.get(key, PendingHistory()).add(now_s, max(number - registered[key], 0), grace_s)
        for key, number in running.items()
    }


def unregistered(
    histories: Histories,
    totals: Mapping[EntryKey, EntryTotals],
    pilots: Iterable[Pilot],
    now_s: int,
    grace_s: int,
) -> dict[EntryKey, Unregistered]:
    """Return the entries where pilots run and do not register.

    ``pilots``: those that registered, and those that only advertise that their validation failed.
    """
    registered: Counter[EntryKey] = Counter()
    tests: dict[EntryKey, Counter[str]] = {}
    for pilot in pilots:
        if not pilot.failed:
            registered[pilot.entry] += 1
        elif pilot.failure:
            tests.setdefault(pilot.entry, Counter())[pilot.failure] += 1
    found = {
        key: Unregistered(number, registered[key])
        for key, history in histories.items()
        if (number := history.least(now_s, grace_s)) > 0
    }
    failing = {key for key, of in found.items() if of.most}
    good = {key for key, number in registered.items() if number and key not in failing}
    return {
        key: of._replace(
            reach=_reach(key, failing, good, totals),
            test=tests[key].most_common(1)[0][0] if key in tests else "",
        )
        for key, of in found.items()
    }


def _reach(
    key: EntryKey,
    failing: set[EntryKey],
    good: set[EntryKey],
    totals: Mapping[EntryKey, EntryTotals],
) -> Reach:
    """Return where else pilots do not register: of its groups, then of all."""

    def groups(entries: Iterable[EntryKey]) -> set[str]:
        return {group for entry in entries if entry in totals for group in totals[entry].groups}

    ours = groups([key])
    if ours & groups(good):
        return "here"
    alike = [entry for entry in failing if ours & groups([entry])]
    if len(alike) < WIDE:
        return "not_known"
    return "group" if good else "everywhere"
