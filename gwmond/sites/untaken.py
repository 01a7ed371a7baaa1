"""Free slots that no matching job takes, for minutes, not for a moment.

Units: amounts are in 1/``SCALE`` canonical unit, times are seconds.

Source of the rule: design page, section 4.  Jobs that free slots would take count as absorbed: more
pilots would not help them.  If the slots still stay free (user priorities, quotas, limits, a
slow negotiator), there are both demand and capacity, and no lack of pilots.  The *untaken* units of
an entry are the lesser of

- what jobs would have taken of free slots and pending pilots, of each frontend group, at every
  moment of the last grace;
- the free slots of pilots on which nothing has begun or ended for as long.

Entries with only possible matches do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from gwmond.model.entries.evaluation import SCALE, Taken
from gwmond.model.entries.waiting import PendingHistory
from gwmond.model.facts import Berth, EntryKey, Pilot
from gwmond.model.sizes import units_of
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource


def note(
    before: Taken, taken: Mapping[tuple[Berth, Resource], int], now_s: int, grace_s: int
) -> Taken:
    """Return the histories with what jobs would take now; a history ends when that is nothing.

    After a gap of half a grace between two polls they begin anew: the time between is unknown.
    """
    histories = {}
    for at, amount in taken.items():
        history = before.get(at, PendingHistory())
        if history.samples and history.samples[-1].time < now_s - grace_s / 2:
            history = PendingHistory()
        if amount > 0:
            histories[at] = history.add(now_s, amount, grace_s)
    return histories


def untaken(
    taken: Taken,
    resting: Iterable[Pilot],
    uncertain: Collection[EntryKey],
    now_s: int,
    grace_s: int,
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> dict[tuple[EntryKey, Resource], int]:
    """Return the untaken part of each entry's free slots; entries without any are left out.

    On ``resting`` pilots, which accept jobs, nothing has begun or ended for a grace.
    """
    free: Counter[tuple[Berth, Resource]] = Counter()
    for pilot in resting:
        berth = Berth(pilot.entry, pilot.group)
        for size in pilot.free:
            free[berth, "cpu"] += max(1, units_of(size, "cpu", memory_per_unit_mib)) * SCALE
            free[berth, "gpu"] += units_of(size, "gpu", memory_per_unit_mib) * SCALE
    amounts: Counter[tuple[EntryKey, Resource]] = Counter()
    for (berth, resource), history in taken.items():
        if berth.entry not in uncertain:
            least = min(history.least(now_s, grace_s), free[berth, resource])
            amounts[berth.entry, resource] += least
    return {at: amount for at, amount in amounts.items() if amount > 0}
