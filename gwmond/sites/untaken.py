"""Free slots beside jobs that match them, which nobody takes: for minutes, not for a moment.

Units: amounts are in 1/``SCALE`` canonical unit, times are seconds.

Source of the rule: design page, section 4.  Jobs that free slots would take count as absorbed: more
pilots would not help them.  If the slots stay free all the same (user priorities, quotas, limits,
a negotiator that does not come round) the demand is there and the capacity is, and it is no lack of
pilots.  What is *untaken* of an entry is the less of

- what jobs would have taken of free slots and pending pilots, of each frontend group, at every
  moment of the last grace;
- the free slots of pilots on which nothing has begun or ended for as long.

Entries where it is only possible that jobs match do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from gwmond.model.evaluation import SCALE, Taken
from gwmond.model.facts import Berth, EntryKey, Pilot
from gwmond.model.sizes import units_of
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource
from gwmond.model.waiting import PendingHistory


def note(
    before: Taken, taken: Mapping[tuple[Berth, Resource], int], now_s: int, grace_s: int
) -> Taken:
    """Return the histories after what jobs would take now; where that is nothing they end.

    Of what was between two polls half a grace apart nothing is known: they begin anew.
    """
    found = {}
    for at, amount in taken.items():
        history = before.get(at, PendingHistory())
        if history.samples and history.samples[-1].time < now_s - grace_s / 2:
            history = PendingHistory()
        if amount > 0:
            found[at] = history.add(now_s, amount, grace_s)
    return found


def untaken(
    taken: Taken,
    resting: Iterable[Pilot],
    uncertain: Collection[EntryKey],
    now_s: int,
    grace_s: int,
    q: int = DEFAULT_MEMORY_MIB,
) -> dict[tuple[EntryKey, Resource], int]:
    """Return what of each entry's free slots is untaken; nothing is 0.

    On ``resting`` pilots, which accept jobs, nothing has begun or ended for a grace.
    """
    free: Counter[tuple[Berth, Resource]] = Counter()
    for pilot in resting:
        berth = Berth(pilot.entry, pilot.group)
        for size in pilot.free:
            free[berth, "cpu"] += max(1, units_of(size, "cpu", q)) * SCALE
            free[berth, "gpu"] += units_of(size, "gpu", q) * SCALE
    found: Counter[tuple[EntryKey, Resource]] = Counter()
    for (berth, resource), history in taken.items():
        if berth.entry not in uncertain:
            least = min(history.least(now_s, grace_s), free[berth, resource])
            found[berth.entry, resource] += least
    return {at: amount for at, amount in found.items() if amount > 0}
