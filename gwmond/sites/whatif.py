"""What if one thing of the pool were different: the same demand is judged again, with it.

Units: canonical units; jobs and pilots are counted, jobs in fractions where classes share room.

Source of the rules: ``site_time``, to which facts with the change are given.  Only these differ:

- ``memory``, ``cores``: the request of jobs, their need, and where they match;
- ``pilot``: pilots of an entry that wait, and those to come, have another size.  Those that run
  stay as they are.  Where the capacity is a number of pilots, there is room for as many as before;
- ``limit``: so many of our pilots may run at an entry.  A capacity that a peak or a pledge tells is
  the site's: a higher limit does not raise it;
- ``max-idle``: so many pilots wait at once.  It changes no capacity, but in how many rounds the
  pilots come that are needed;
- ``start``: pilots of a frontend group have another START, those that run as well;
- ``down``: no pilot starts at an entry, and its free slots take no job.  Running jobs stay.

Everything is an estimate: nobody has seen the pool with the change.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from gwmond.model.demand.what_if import WhatIf
from gwmond.model.entries.evaluation import SCALE, Capacity, EntryTime, Evaluation
from gwmond.model.facts import EntryKey, EntryTotals, Size
from gwmond.model.sizes import units_of_pilot
from gwmond.model.states import State
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.capacity import provisioned
from gwmond.sites.site_time import Facts, Settings, evaluate

_LEAST_JOBS = 0.05


class PlaceNow(NamedTuple):
    """An entry: its state, the units that jobs could use of its spare capacity, pilots for these.

    ``pilots``: None where the size of its pilots is not known.
    """

    state: State
    units: float
    gpus: float
    pilots: int | None


class PlaceMove(NamedTuple):
    """An entry before and after; ``busy``: the pilots that run there now.

    ``requested``: how many idle pilots are requested there now; None: not known.
    """

    entry: EntryKey
    before: PlaceNow
    after: PlaceNow
    running: int
    requested: int | None


class Prospects(NamedTuple):
    """Of idle jobs: how many free slots and pilots on their way take, more pilots, and nothing."""

    soon: float
    more_pilots: float
    nowhere: float


class JobsMove(NamedTuple):
    """The idle jobs of an accounting group before and after."""

    accounting_group: str
    jobs: int
    before: Prospects
    after: Prospects

    @property
    def gain(self) -> float:
        """By how many more of its jobs could run; below zero: fewer."""
        return self.before.nowhere - self.after.nowhere


class AllMoves(NamedTuple):
    """All that a change moves.

    ``places``: entries of the change, and those that differ; ``groups``: all with idle jobs.
    ``changed``: how many jobs, or kinds of pilots, are different.
    """

    places: tuple[PlaceMove, ...]
    groups: tuple[JobsMove, ...]
    changed: int


def applied(before: Facts, after: Facts, what: WhatIf, memory_per_unit_mib: int) -> Facts:
    """Return facts with a change; ``after`` has its jobs and empty pilots already."""
    keys = {key for key in before.all_entries if what.has_entry(key)}
    totals, sizes, then, running = before.totals, _sizes(before), _sizes(after), _running(before)
    capacities = dict(before.capacities)
    for resource in RESOURCES:
        used = provisioned(before.pilots or (), resource, memory_per_unit_mib)
        for key in keys & sizes.keys():
            at, units = (key, resource), used.get(key, 0)
            capacity = capacities.get(at, Capacity(0, "none"))
            old, new = (
                units_of_pilot(of[key], resource, memory_per_unit_mib) for of in (sizes, then)
            )
            if what.kind == "limit":
                room = max(what.number - running[key], 0)
                capacities[at] = _limited(capacity, units + room * old)
            elif what.kind == "pilot" and capacity.evidence == "limit" and old:
                pilots = max(capacity.units - units, 0) // old
                capacities[at] = capacity._replace(units=units + pilots * new)
    pilots_after = before.pilots
    if what.kind == "down" and pilots_after is not None:
        capacities = {
            at: Capacity(0, capacity.evidence) if at[0] in keys else capacity
            for at, capacity in capacities.items()
        }
        pilots_after = [
            p._replace(accepting=p.accepting and p.entry not in keys) for p in pilots_after
        ]
    return after._replace(
        totals=totals
        and {
            key: _total(total, what, then.get(key)) if key in keys else total
            for key, total in totals.items()
        },
        capacities=capacities,
        pilots=pilots_after,
    )


def _total(total: EntryTotals, what: WhatIf, size: Size | None) -> EntryTotals:
    """Return what is said of an entry with a change; ``size``: of its pilots then."""
    if what.kind == "down":
        return total._replace(down=True)
    if what.kind == "limit":
        others = total.others_running or 0
        return total._replace(max_pilots=what.number + others, others_running=others, limits=())
    return total._replace(pilot_size=size) if what.kind == "pilot" else total


def _limited(before: Capacity, units: int) -> Capacity:
    """Return a capacity where a limit leaves so many units."""
    if before.evidence in ("limit", "none") or units < before.units:
        return Capacity(units, "limit")
    return before


def _running(facts: Facts) -> Counter[EntryKey]:
    """Return how many of our pilots run, by the collectors or the factory: who knows of more."""
    seen = Counter(pilot.entry for pilot in facts.pilots or ())
    counted = {key: total.running or 0 for key, total in (facts.totals or {}).items()}
    return seen | Counter(counted)


def _sizes(facts: Facts) -> dict[EntryKey, Size]:
    """Return the size of each entry's pilots: of its empty pilots the largest, else as its ad."""
    sizes: dict[EntryKey, Size] = {}
    for key, total in (facts.totals or {}).items():
        if total.pilot_size is not None:
            sizes[key] = total.pilot_size
    seen: defaultdict[EntryKey, list[Size]] = defaultdict(list)
    for template in facts.templates:
        seen[template.entry].append(template.size)
    return sizes | {key: max(some) for key, some in seen.items()}


def judged(
    before: Facts, after: Facts, what: WhatIf, changed: int, now_s: int, settings: Settings
) -> tuple[AllMoves, int]:
    """Evaluate both, and return what moves, with the number of entries (a task of a child).

    Both are ``plain``.
    """
    evaluations = [evaluate(facts, now_s, settings) for facts in (before, after)]
    places = [
        _places(facts, evaluation, settings.memory_per_unit_mib)
        for facts, evaluation in zip((before, after), evaluations, strict=True)
    ]
    moves, running = [], _running(before)
    for key in before.all_entries:
        one, other = (of.get(key) for of in places)
        if one is None or other is None or (one == other and not what.has_entry(key)):
            continue
        total = (before.totals or {}).get(key)
        requested = None if total is None else total.requested_idle
        moves.append(PlaceMove(key, one, other, running[key], requested))
    prospects = [_prospects(evaluation) for evaluation in evaluations]
    jobs = Counter[str]()
    for group in before.groups:
        jobs[group.accounting_group] += group.jobs
    nothing = Prospects(0.0, 0.0, 0.0)
    groups = (
        JobsMove(name, n, *(prospect.get(name, nothing) for prospect in prospects))
        for name, n in sorted(jobs.items())
        if n > 0
    )
    return AllMoves(tuple(moves), tuple(groups), changed), len(moves)


def plain(facts: Facts) -> Facts:
    """Return facts without what only others need: the texts of ads, and the time before."""
    small: dict[str, Any] = {
        name: dict(value) for name, value in facts._asdict().items() if isinstance(value, Mapping)
    }
    return facts._replace(**small)._replace(
        groups=[group._replace(ad="") for group in facts.groups],
        templates=[template._replace(ad="", start="", query="") for template in facts.templates],
        pilots=facts.pilots and [pilot._replace(shown=()) for pilot in facts.pilots],
        taken={},
        resting=None,
    )


def _places(
    facts: Facts, evaluation: Evaluation, memory_per_unit_mib: int
) -> dict[EntryKey, PlaceNow]:
    sizes = _sizes(facts)

    def pilots(key: EntryKey, units: Mapping[Resource, float]) -> int | None:
        if not any(units.values()):
            return 0
        if (size := sizes.get(key)) is None:
            return None
        each = {r: max(1, units_of_pilot(size, r, memory_per_unit_mib)) for r in units}
        return max(math.ceil(amount / each[r]) for r, amount in units.items())

    places = {}
    for key in facts.all_entries:
        rows = {r: row for r in RESOURCES if (row := evaluation.rows.get((key, r))) is not None}
        if "cpu" in rows:
            units = {resource: _bottleneck(row) for resource, row in rows.items()}
            state = rows["cpu"].state
            places[key] = PlaceNow(state, units["cpu"], units.get("gpu", 0.0), pilots(key, units))
    return places


def _bottleneck(row: EntryTime) -> float:
    """Return the units that jobs could use of what is spare."""
    parts = (part.amount for part in row.parts if part.state is State.PROVISIONING_BOTTLENECK)
    return sum(parts) / SCALE


def _prospects(evaluation: Evaluation) -> dict[str, Prospects]:
    """Return what becomes of the idle jobs of each accounting group."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for idle in evaluation.idle:
        shares = idle.absorbed, idle.assigned, max(1 - idle.absorbed - idle.assigned, 0)
        for at, share in enumerate(shares):
            sums[idle.group.accounting_group][at] += share * idle.group.jobs
    return {
        name: Prospects(*(round(jobs, 3) if jobs >= _LEAST_JOBS else 0.0 for jobs in of))
        for name, of in sums.items()
    }
