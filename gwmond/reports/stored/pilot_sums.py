"""Sums over stored pilots that ended, in core-time with all categories.

Units: times are microseconds, amounts are micros.  As good counts the time of jobs that exited 0;
of jobs that only a summary has, what is goodput: the time of jobs that ended by themselves,
whatever their exit status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Self, TypeAlias

from gwmond.model.pilot_life import Category, Kind, Measure
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.model.units import Resource
from gwmond.reports.render.categories import CORES, CPU
from gwmond.reports.render.formats import ratio
from gwmond.reports.stored.stored_pilot import KnownJobs, StoredPilot

Settled: TypeAlias = Mapping[tuple[Resource, Measure, Category, str], int]
"""Amounts by resource, measure, category and outcome; pilots' own time has no outcome."""

_ZERO = "exit_zero"


class CoreTime(NamedTuple):
    """Core-micros: all, of it those in which jobs ran (``used``), and of jobs that exited 0.

    The rest is of pilots whose validation failed, ``idle`` (overhead of pilots that ran jobs, and
    all of those whose validation passed and that never ran one), or not known.
    """

    time: int = 0
    used: int = 0
    good: int = 0
    failed_validation: int = 0
    idle: int = 0
    unknown: int = 0

    @property
    def waste(self) -> int:
        """Time in which no job ran."""
        return self.time - self.used

    @property
    def badput(self) -> int:
        """Time of no job that exited 0."""
        return self.time - self.good


def core_time(settled: Settled) -> CoreTime:
    sums: Counter[str] = Counter()
    for (resource, measure, category, outcome), micros in settled.items():
        if (resource, measure) != CORES:
            continue
        sums["time"] += micros
        if outcome:
            sums["used"] += micros
            sums["good"] += micros if is_good(category, outcome) else 0
        elif category is Category.VALIDATION_FAILS:
            sums["failed_validation"] += micros
        elif category in {Category.PILOT_OVERHEAD, Category.DECISION_PROBLEM}:
            sums["idle"] += micros
        else:
            sums["unknown"] += micros
    return CoreTime(**sums)


def is_good(category: Category, outcome: str) -> bool:
    """Return whether time counts as that of jobs that exited 0; of a summary, as goodput."""
    return outcome == _ZERO or (outcome == SUMMARISED and category is Category.GOODPUT)


@dataclass(slots=True)
class KnownJobCounts:
    """Counts over pilots that ended, of what is known of their jobs.

    - ``failed``: pilots in which HTCondor never started, ``known_started``: of how many that is
      known; ``without_jobs``, ``known_jobs``: the same of jobs that ran.
    - ``jobs``: runs of jobs on the pilots of which is known how many (``numbered``).
    - ``lengths_us``: the wall-clock time of so many runs (``known_lengths``).
    - ``by_statistics``: pilots whose jobs are known from statistics only.
    """

    pilots: int = 0
    jobs: int = 0
    numbered: int = 0
    failed: int = 0
    known_started: int = 0
    without_jobs: int = 0
    known_jobs: int = 0
    lengths_us: int = 0
    known_lengths: int = 0
    by_statistics: int = 0

    def count(self, jobs: KnownJobs, lengths_us: Sequence[int]) -> None:
        """Count a pilot, with the lengths of its runs."""
        self.pilots += 1
        self.jobs += jobs.number or 0
        self.numbered += jobs.number is not None
        self.failed += jobs.started is False
        self.known_started += jobs.started is not None
        self.without_jobs += jobs.ran is False
        self.known_jobs += jobs.ran is not None
        self.lengths_us += sum(lengths_us)
        self.known_lengths += len(lengths_us)
        self.by_statistics += jobs.by_statistics

    def add_up(self, others: Iterable[Self]) -> Self:
        for other in others:
            for part in fields(self):
                mine, theirs = getattr(self, part.name), getattr(other, part.name)
                if isinstance(mine, Counter):
                    mine.update(theirs)
                else:
                    setattr(self, part.name, mine + theirs)
        return self

    @property
    def average_job_us(self) -> float | None:
        """How long a run lasted."""
        return ratio(self.lengths_us, self.known_lengths)

    def known_json(self) -> dict[str, int]:
        """Return of how many pilots what is known."""
        return {
            "pilots_with_known_start": self.known_started,
            "pilots_with_known_jobs": self.known_jobs,
            "pilots_with_known_number_of_jobs": self.numbered,
            "pilots_with_jobs_by_statistics": self.by_statistics,
        }


@dataclass(slots=True)
class PilotSums(KnownJobCounts):
    """Sums over pilots that ended, each with its whole life.

    - ``settled``: what is posted of them; ``settled_by_statistics``: of those of whose jobs only
      statistics tell.
    - ``timed``: of how many pilots whose validation failed it is known when that was;
      ``validating`` and ``asleep``: time of these, ``phases_estimated``: how much is estimated.
    """

    settled: Counter[tuple[Resource, Measure, Category, str]] = field(default_factory=Counter)
    settled_by_statistics: Counter[tuple[Resource, Measure, Category, str]] = field(
        default_factory=Counter
    )
    timed: int = 0
    validating: Counter[Kind] = field(default_factory=Counter)
    asleep: Counter[Kind] = field(default_factory=Counter)
    phases_estimated: Counter[Kind] = field(default_factory=Counter)

    def add(self, pilot: StoredPilot) -> None:
        """Count a pilot; a run has a length if its end is known."""
        runs = pilot.jobs.runs
        self.count(
            pilot.jobs, [run.end_us - run.start_us for run in runs if run.end_us is not None]
        )
        self.settled.update(pilot.row.settled)
        if pilot.jobs.by_statistics:
            self.settled_by_statistics.update(pilot.row.settled)
        if pilot.failed:
            self._add_phases(pilot)

    def _add_phases(self, pilot: StoredPilot) -> None:
        """Add how long a pilot validated and slept; what is settled of it is from its start on."""
        row = pilot.row
        end_us = row.start_us if row.end_us is None else row.end_us
        until_us = end_us if row.closed else min(end_us, row.settled_until_us)
        phases, length_us = pilot.phases(until_us), until_us - row.start_us
        if phases is None or length_us <= 0:
            return
        self.timed += 1
        for kind, micros in of_kinds(row.settled).items():
            validating = micros * phases.validating_us // length_us
            self.validating[kind] += validating
            self.asleep[kind] += micros - validating
            self.phases_estimated[kind] += micros * phases.estimated_us // length_us

    @property
    def core(self) -> CoreTime:
        return core_time(self.settled)

    @property
    def time(self) -> Counter[Kind]:
        return of_kinds(self.settled)

    def not_known(self, kind: Kind) -> int:
        """Time of pilots whose end of validation is not known."""
        return self.time[kind] - self.validating[kind] - self.asleep[kind]

    def phase(self, amounts: Counter[Kind]) -> Counter[Kind] | None:
        """Return amounts of phases; None if they are known of no pilot."""
        return None if self.pilots and not self.timed else amounts

    @property
    def phases_estimated_share(self) -> float | None:
        """How much of the time of phases is estimated."""
        return ratio(self.phases_estimated[CPU], self.validating[CPU] + self.asleep[CPU])


def of_kinds(settled: Settled) -> Counter[Kind]:
    """Return all that is settled, by resource and measure."""
    sums: Counter[Kind] = Counter()
    for (resource, measure, _, _), micros in settled.items():
        sums[resource, measure] += micros
    return sums
