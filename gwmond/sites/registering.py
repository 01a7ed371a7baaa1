"""Pilots that run by the factory's count, and never register with the pool.

Units: pilots are counted, times are whole seconds of one clock.

A pilot whose validation fails sleeps for about 1000 s.  It does not register, by default does not
advertise that it failed, and if it is removed it returns no output (facts page on GlideinWMS).  So
two counts show it: how many run by the factory's count, and how many the collectors know.  What is
less at every moment of the grace is no pilot that is about to register, nor a count that lags.
After their 1000 s the next ones start, so what was found lasts until a pilot registers there.

Where else that is so tells who can change it: an entry alone has a site, or settings, of its own;
all entries of one group have its frontend's scripts and credentials in common, and all entries the
factory's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from gwmond.model.entries.waiting import PendingHistory
from gwmond.model.facts import EntryKey, EntryTotals, Pilot, Reach, Unregistered

WIDE = 3
"""What is so at fewer entries may be chance."""
LASTING = 4
"""So many graces what was found lasts while none registers, though others run there, or none."""


class NotRegistered(NamedTuple):
    """How many pilots of one entry have not registered; ``pilots``: as last found, at ``at``."""

    history: PendingHistory = PendingHistory()
    at: int = 0
    pilots: int = 0

    def add(self, now_s: int, running: int, registered: int, grace_s: int) -> NotRegistered:
        """Return it with what is seen now."""
        history = self.history.add(now_s, max(running - registered, 0), grace_s)
        if number := history.least(now_s, grace_s):
            return NotRegistered(history, now_s, number)
        lasts = not registered and 0 <= now_s - self.at <= LASTING * grace_s
        return NotRegistered(history, self.at, self.pilots) if lasts else NotRegistered(history)

    def at_most(self, number: int) -> NotRegistered:
        """Return it after a poll at which surely no more than so many had not registered."""
        history = self.history.at_most(number)
        return NotRegistered(history, self.at, min(self.pilots, number))


Histories: TypeAlias = Mapping[EntryKey, NotRegistered]


def watch(
    before: Histories,
    running: Mapping[EntryKey, int],
    registered: Counter[EntryKey],
    now_s: int,
    grace_s: int,
    doubtful: Collection[EntryKey] = (),
) -> dict[EntryKey, NotRegistered]:
    """Return how many pilots of each entry have not registered, with what is seen now.

    ``running``: by the factory's count, where it is known.  At ``doubtful`` entries more pilots may
    have registered than are seen.  What was seen before stays for a grace there.
    """
    watched = {
        key: before.get(key, NotRegistered()).add(now_s, number, registered[key], grace_s)
        for key, number in running.items()
        if key not in doubtful
    }
    for key, missing in before.items():
        if key not in watched and missing.history.is_within(now_s, grace_s):
            most = max(running.get(key, 0) - registered[key], 0)
            watched[key] = missing.at_most(most) if registered[key] else missing
    return watched


def coming(
    histories: Histories,
    running: Mapping[EntryKey, int],
    registered: Counter[EntryKey],
    now_s: int,
    grace_s: int,
) -> dict[EntryKey, int]:
    """Return how many pilots of each entry run and are about to register.

    ``histories``: of ``watch``, with what is seen now.  Those that have not registered at any
    moment of the grace are not about to.  ``registered``: with pilots that have ended lately, which
    the factory may still count.
    """
    numbers = {
        key: running[key] - registered[key] - missing.history.least(now_s, grace_s)
        for key, missing in histories.items()
        if key in running
    }
    return {key: number for key, number in numbers.items() if number > 0}


def unregistered(
    histories: Histories, totals: Mapping[EntryKey, EntryTotals], pilots: Iterable[Pilot]
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
    entries = {
        key: Unregistered(n.pilots, registered[key]) for key, n in histories.items() if n.pilots
    }
    failing = {key for key, counts in entries.items() if counts.most}
    good = {key for key, number in registered.items() if number and key not in failing}
    return {
        key: counts._replace(
            reach=_reach(key, failing, good, totals),
            test=tests[key].most_common(1)[0][0] if key in tests else "",
        )
        for key, counts in entries.items()
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
