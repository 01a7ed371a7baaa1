"""The parts of a stored pilot's life: what it did while its cores had no job.  Pure.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

from gwmond.model.pilot_life import Category, Interval, Kind, Measure
from gwmond.model.shares import apportion
from gwmond.model.units import Resource
from gwmond.pilots.life.partition import is_settled, own_category
from gwmond.pilots.life.rules import FAR_US
from gwmond.pilots.life.segments import Segment, cut, kinds, parts
from gwmond.reports.render.categories import Sums
from gwmond.reports.render.formats import UNKNOWN as NOT_KNOWN
from gwmond.reports.stored.stored_pilot import StoredPilot


class LifePart(StrEnum):
    """A part of a pilot's life, in their order; ``UNKNOWN``: it is not known which.

    ``START``: HTCondor starts, with the validation where nobody says when that ended.  ``ASLEEP``:
    the deliberate sleep after a validation that failed.  ``FIRST_JOB``: until the first job, also
    where none came; with the start of HTCondor where no collector has shown the pilot.
    ``BESIDE_JOBS``: cores and memory that its jobs left.  ``TAIL``: after its last job.
    ``RETIREMENT``: after GLIDEIN_ToRetire, which a collector has shown, all that no job has.
    """

    VALIDATION = "validation"
    ASLEEP = "asleep"
    START = "start"
    FIRST_JOB = "first_job"
    BETWEEN_JOBS = "between_jobs"
    BESIDE_JOBS = "beside_jobs"
    TAIL = "tail"
    RETIREMENT = "retirement"
    JOBS = "jobs"
    UNKNOWN = NOT_KNOWN


_WHILE_JOBS_COME = {LifePart.FIRST_JOB, LifePart.BETWEEN_JOBS, LifePart.TAIL}


def by_part(pilot: StoredPilot) -> Mapping[LifePart, Sums]:
    """Return what is settled of a pilot that ended, by part; they sum up to the whole.

    Its own time is divided in proportion to what it had idle in each part.
    """
    found: defaultdict[LifePart, Counter[tuple[Resource, Measure, Category]]] = defaultdict(Counter)
    weights = _weights(pilot)
    for (resource, measure, category, outcome), micros in pilot.row.settled.items():
        idle = weights.get((resource, measure)) or Counter({LifePart.UNKNOWN: 1})
        of_part = Counter({LifePart.JOBS: 1}) if outcome else idle
        shares = apportion(micros, [*of_part.values()])
        for part, share in zip(of_part, shares, strict=True):
            found[part][resource, measure, category] += share
    return found


def _weights(pilot: StoredPilot) -> dict[Kind, Counter[LifePart]]:
    """Return what a pilot had idle in each part, by kind; nothing where it had none.

    Only time that is settled counts, as that is what is divided.
    """
    weights: dict[Kind, Counter[LifePart]] = {}
    bounds, category = _bounds(pilot), own_category(pilot.life)
    for segment in cut(pilot.life):
        if not is_settled(segment, category):
            continue
        for part, interval in _pieces(segment, bounds):
            for kind in kinds(segment):
                own = parts(segment, interval, *kind, pilot.unit_mib).own
                if own:
                    weights.setdefault(kind, Counter())[part] += own
    return weights


def _pieces(
    segment: Segment, bounds: Sequence[tuple[int, LifePart]]
) -> Iterator[tuple[LifePart, Interval]]:
    """Yield the pieces of a segment that lie in one part each."""
    for (begin, part), (end, _) in pairwise([*bounds, (segment.end_us, LifePart.UNKNOWN)]):
        first, last = max(begin, segment.start_us), min(end, segment.end_us)
        if first < last:
            busy = segment.running and part in _WHILE_JOBS_COME
            yield LifePart.BESIDE_JOBS if busy else part, (first, last)


def _bounds(pilot: StoredPilot) -> list[tuple[int, LifePart]]:
    """Return when each part of a pilot's life begins, in order; ``BESIDE_JOBS`` is left out."""
    row, ads, jobs = pilot.row, pilot.row.facts.ads, pilot.jobs
    validated_us = row.validation_end_us or row.start_us
    bounds = [(row.start_us, LifePart.VALIDATION)]
    if pilot.failed:
        return [
            *bounds,
            (validated_us, LifePart.ASLEEP if row.validation_end_us else LifePart.UNKNOWN),
        ]
    began_us = (ads and ads.began_us) or validated_us
    begin_known = ads is not None or row.validation_end_us or row.identity.origin != "files"
    first = LifePart.FIRST_JOB if begin_known else LifePart.UNKNOWN
    bounds += [(validated_us, LifePart.START), (began_us, first)]
    if jobs.number is None or row.runs_pruned:
        return _ordered([*bounds, (began_us, LifePart.UNKNOWN)], FAR_US)
    until = [run.as_run.held_until_us or FAR_US for run in jobs.runs]
    if until:
        bounds.append((min(run.start_us for run in jobs.runs), LifePart.BETWEEN_JOBS))
        bounds.append((max(until), LifePart.TAIL))
    retire_us = row.retire_us or FAR_US
    return _ordered([*bounds, (retire_us, LifePart.RETIREMENT)], retire_us)


def _ordered(bounds: Iterable[tuple[int, LifePart]], last_us: int) -> list[tuple[int, LifePart]]:
    """Return when parts begin, none before one that precedes it, none after ``last_us``."""
    ordered: list[tuple[int, LifePart]] = []
    for begin, part in bounds:
        before = ordered[-1][0] if ordered else begin
        ordered.append((min(max(begin, before), last_us), part))
    return ordered
