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
from gwmond.sites.demand import Match, job_counts
from gwmond.sites.flow import Assignment, Share
from gwmond.sites.need import footprint
from gwmond.sites.program import DemandClass


def demand_totals(
    matches: Iterable[Match], found: Assignment, known: bool
) -> dict[tuple[str, Resource], DemandTotals]:
    """Return the fate of each schedd's demand; only its amount if pilots are not ``known``.

    A placed job counts as its need there, any other as its least need.
    """
    sums: defaultdict[tuple[str, Resource], list[Share]] = defaultdict(list)
    for item in matches:
        for resource in RESOURCES:
            if share := found.classes.get((item.key, resource)):
                if not known:
                    units = item.group.jobs * item.own.units(resource)
                    share = Share(0, 0, round(units * SCALE))
                sums[item.group.schedd, resource].append(share)
    totals: dict[tuple[str, Resource], DemandTotals] = {}
    for key, shares in sorted(sums.items()):
        absorbed, assigned, unmatched = (sum(parts) for parts in zip(*shares, strict=True))
        idle = absorbed + assigned + unmatched
        whole = DemandTotals(idle, absorbed, assigned, unmatched)
        totals[key] = whole if known else DemandTotals(idle, None, None, None)
    return totals


def idle_jobs(
    matches: Iterable[Match],
    classes: Sequence[DemandClass],
    found: Assignment,
    free: Places,
) -> tuple[IdleJobs, ...]:
    """Return where each group could run; ``free``: the free slots that there are now."""
    sizes = {berth: {place.size for place in free_places} for berth, free_places in free.items()}

    @cache
    def holds(berth: Berth, size: Size) -> bool:
        wanted = footprint(size)
        return any(all(map(ge, slot, wanted)) and slot.cores > 0 for slot in sizes.get(berth, ()))

    idle = []
    kinds: dict[int, tuple[MatchedKind, ...]] = {}  # groups that match alike have the same offers
    for item, wanted in zip(matches, classes, strict=True):
        share = found.classes[item.key, "cpu"]  # every job takes some of it
        size, jobs = item.group.size, item.group.jobs
        absorbed = share.absorbed / (sum(share) or 1)
        slots = absorbed > 0 and any(holds(berth, size) for berth in wanted.free)
        units = jobs * item.own.cpu, jobs * item.own.gpu
        if (known := kinds.get(id(item.offers))) is None:
            offers = item.offers
            known = tuple(MatchedKind(o.template.entry, o.template.group, o.sure) for o in offers)
            kinds[id(offers)] = known
        idle.append(IdleJobs(item.group, *units, item.entries, absorbed, slots, known))
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
