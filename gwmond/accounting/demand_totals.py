"""What became of the idle demand: totals of each schedd, and jobs of each entry.

Units: canonical units in 1/``SCALE``; jobs are counted; assigned ones may be fractional.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from gwmond.accounting.demand import JobCounts, Match, job_counts
from gwmond.accounting.entries import EntryTotals
from gwmond.accounting.evaluation import DemandTotals, EntryJobs
from gwmond.accounting.flow import SCALE, Assignment
from gwmond.accounting.resources import need_of
from gwmond.facts import EntryKey
from gwmond.units import Resource


def demand_totals(
    matches: Iterable[Match], resource: Resource, flow: Assignment, known: bool, q: int
) -> dict[tuple[str, Resource], DemandTotals]:
    """Return what became of each schedd's demand; only its amount if pilots are not ``known``."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in matches:
        units = item.group.jobs * need_of(item.group.size, resource, q)
        if units > 0:
            share = flow.classes[item.key]
            sums[item.group.schedd].update(
                idle=units * SCALE, absorbed=share.absorbed, assigned=share.assigned
            )
    return {
        (schedd, resource): DemandTotals(
            of["idle"], of["absorbed"], of["assigned"], of["idle"] - of["absorbed"] - of["assigned"]
        )
        if known
        else DemandTotals(of["idle"], None, None, None)
        for schedd, of in sorted(sums.items())
    }


def entry_jobs(
    entries: Iterable[EntryKey],
    matches: Collection[Match],
    assigned: Mapping[EntryKey, float] | None,
    totals: Mapping[EntryKey, EntryTotals],
    complete: bool,
    offered: Collection[EntryKey],
) -> dict[EntryKey, EntryJobs]:
    """Return our counts of each entry's idle jobs, next to the frontend's (``totals``).

    Part of our jobs can not be compared with all of theirs: only a ``complete`` demand is.
    ``offered`` are entries of which a template tells what could run there.
    """

    def excess(ours: int, theirs: int | None) -> int | None:
        return None if theirs is None or not complete else ours - theirs

    counts = job_counts(matches)
    jobs: dict[EntryKey, EntryJobs] = {}
    for key in entries:
        ours = counts.get(key, JobCounts(0, 0, 0))
        theirs = totals.get(key)
        jobs[key] = EntryJobs(
            ours,
            None if assigned is None else assigned.get(key, 0.0),
            excess(ours.matching, theirs.jobs_matching if theirs else None),
            excess(ours.proportional, theirs.jobs_proportional if theirs else None),
            excess(ours.unique, theirs.jobs_unique if theirs else None),
            complete and (key in offered or not matches),
        )
    return jobs
