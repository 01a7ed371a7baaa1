"""The fate of the idle demand: totals of each schedd, and jobs of each entry.

Units: canonical units in 1/``SCALE``; jobs are counted; assigned ones may be fractional.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from operator import ge

from gwmond.model.entries.evaluation import (
    SCALE,
    DemandTotals,
    EntryJobs,
    IdleJobs,
    JobCounts,
    MatchedKind,
)
from gwmond.model.facts import Berth, EntryKey, EntryTotals, Size
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.absorb import Places
from gwmond.sites.demand import Match, Offer, job_counts
from gwmond.sites.flow import NOWHERE, Assignment, Share
from gwmond.sites.need import footprint
from gwmond.sites.program import DemandClass


def demand_totals(
    matches: Iterable[Match], flow: Assignment, pilots_known: bool
) -> dict[tuple[str, Resource], DemandTotals]:
    """Return the fate of each schedd's demand; only its amount unless ``pilots_known``.

    A placed job counts as its need there, any other as its least need.
    """
    sums: defaultdict[tuple[str, Resource], list[Share]] = defaultdict(list)
    for item in matches:
        for resource in RESOURCES:
            if share := flow.classes.get((item.key, resource)):
                if not pilots_known:
                    units = item.group.jobs * item.own.units(resource)
                    share = Share(0, 0, round(units * SCALE))
                sums[item.group.schedd, resource].append(share)
    totals: dict[tuple[str, Resource], DemandTotals] = {}
    for key, shares in sorted(sums.items()):
        absorbed, assigned, unmatched = (sum(parts) for parts in zip(*shares, strict=True))
        idle = absorbed + assigned + unmatched
        whole = DemandTotals(idle, absorbed, assigned, unmatched)
        totals[key] = whole if pilots_known else DemandTotals(idle, None, None, None)
    return totals


def idle_jobs(
    matches: Iterable[Match],
    classes: Sequence[DemandClass],
    flow: Assignment,
    free: Places,
) -> tuple[IdleJobs, ...]:
    """Return where each group could run; ``free``: the free slots that there are now."""
    sizes = {berth: {place.size for place in free_places} for berth, free_places in free.items()}

    @cache
    def holds(berth: Berth, size: Size) -> bool:
        need = footprint(size)
        return any(all(map(ge, slot, need)) and slot.cores > 0 for slot in sizes.get(berth, ()))

    made: dict[int, MatchedKind] = {}

    def matched_kind(offer: Offer) -> MatchedKind:
        if (kind := made.get(id(offer))) is None:
            template, _, sure = offer
            kind = made[id(offer)] = MatchedKind(template.entry, template.group, sure)
        return kind

    idle = []
    kinds: dict[int, tuple[MatchedKind, ...]] = {}  # groups that match alike have the same offers
    for item, demand_class in zip(matches, classes, strict=True):
        size, jobs = item.group.size, item.group.jobs
        placed = flow.placed.get(item.key, NOWHERE)
        absorbed, assigned = placed.absorbed / jobs, placed.assigned / jobs
        slots = absorbed > 0 and any(holds(berth, size) for berth in demand_class.free)
        units = jobs * item.own.cpu, jobs * item.own.gpu
        if (matched := kinds.get(id(item.offers))) is None:
            matched = kinds[id(item.offers)] = tuple(map(matched_kind, item.offers))
        idle.append(IdleJobs(item.group, *units, item.entries, absorbed, slots, matched, assigned))
    return tuple(idle)


def entry_jobs(
    entries: Iterable[EntryKey],
    matches: Collection[Match],
    assigned: Mapping[EntryKey, float] | None,
    totals: Mapping[EntryKey, EntryTotals],
    complete: bool,
    offered: Collection[EntryKey],
) -> dict[EntryKey, EntryJobs]:
    """Return our counts of each entry's idle jobs, next to the frontend's (``totals``).

    A part of our jobs cannot be compared with all of theirs, so only a ``complete`` demand is.
    ``offered``: entries with a template.
    """

    def excess(ours: int, total: int | None) -> int | None:
        return None if total is None or not complete else ours - total

    counts = job_counts(matches)
    jobs: dict[EntryKey, EntryJobs] = {}
    for key in entries:
        ours = counts.get(key, JobCounts(0, 0, 0))
        total = totals.get(key)
        jobs[key] = EntryJobs(
            ours,
            None if assigned is None else assigned.get(key, 0.0),
            excess(ours.matching, total.jobs_matching if total else None),
            excess(ours.proportional, total.jobs_proportional if total else None),
            excess(ours.unique, total.jobs_unique if total else None),
            complete and (key in offered or not matches),
        )
    return jobs
