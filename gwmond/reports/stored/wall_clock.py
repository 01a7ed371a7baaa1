"""A stored pilot's wall-clock time, as analyze_entries counts it, exact.  Pure.

Units: microseconds of a pilot's wall-clock time, whatever its size, as in the original: a pilot of
eight cores counts as one, and a job on one of its cores uses an eighth of its time.

================= =============================================================================
life              from the pilot's start to its end ("Lasted", "time")
used              time in which jobs ran: at each moment the cores that jobs hold / the pilot's
                  cores, never more than 1 ("JobsLasted", "time used")
good              the same of jobs that exited 0 of their own accord ("JobsGoodput")
validation        up to the end of the validation; of a pilot in which HTCondor never started, all
                  of its life.  None if it is not known when the validation ended
lengths           of the runs of jobs that are kept, each whole
================= =============================================================================

Of a pilot whose jobs only statistics have, ``used`` is how long it was busy by them, and ``good``
what is goodput of that: both are estimated (``by_statistics``).

Where retention took out single runs, ``used`` and ``good`` are from the pilot's totals, in which
cores that a job blocks by its memory count as used; such pilots are counted (``pruned``).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from gwmond.model.pilot_life import Assumption, PilotLife
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.shares import milli
from gwmond.pilots.life.segments import cut
from gwmond.reports.stored.pilot_sums import KnownJobCounts, core_time, is_good
from gwmond.reports.stored.stored_pilot import KnownJobs, StoredPilot


class WallClock(NamedTuple):
    """One pilot that ended; what is None is not known.

    ``size_assumed``: its cores rest on a rule, and so does ``used``.
    """

    frontend: str
    entry: str
    life_us: int
    used_us: int
    good_us: int
    validation_us: int | None
    jobs: KnownJobs
    lengths_us: tuple[int, ...]
    settled: bool
    pruned: bool
    size_assumed: bool


def wall_clock(pilot: StoredPilot) -> WallClock:
    row, life, jobs = pilot.row, pilot.life, pilot.jobs
    if row.end_us is None:
        raise ValueError(f"pilot {row.id} has not ended")
    life_us = life.effective_end_us - life.start_us
    used_us, good_us = _from_totals(row, life_us) if row.runs_pruned else _from_runs(life)
    validation_us = None
    if jobs.started is False:
        validation_us = life_us
    elif jobs.started and row.validation_end_us is not None:
        validation_us = min(max(0, row.validation_end_us - row.start_us), life_us)
    lengths = tuple(
        max(0, (life.effective_end_us if run.end_us is None else run.end_us) - run.start_us)
        for run in jobs.runs
    )
    return WallClock(
        frontend=row.identity.group,
        entry=row.identity.key.entry,
        life_us=life_us,
        used_us=used_us,
        good_us=good_us,
        validation_us=validation_us,
        jobs=jobs,
        lengths_us=lengths,
        settled=row.closed or row.settled_until_us >= life.effective_end_us,
        pruned=row.runs_pruned > 0,
        size_assumed=Assumption.SIZE in row.assumed,
    )


def _from_runs(life: PilotLife) -> tuple[int, int]:
    """Return used and good time from the runs' intervals and cores.

    A pilot without cores counts as used whole while a job runs.
    """
    used: Counter[int] = Counter()
    good: Counter[int] = Counter()
    for segment in cut(life):
        if not segment.running:
            continue
        held = [milli(run.size.cores) for run in segment.running]
        zero = sum(
            cores
            for cores, run in zip(held, segment.running, strict=True)
            if run.outcome is not None and is_good(run.outcome.category, run.outcome.label)
        )
        length = segment.end_us - segment.start_us
        there = milli(segment.size.cores)
        if not there or sum(held) > there:
            of_all = sum(held) or 1
            used[1] += length
            good[of_all] += length * zero
        else:
            used[there] += length * sum(held)
            good[there] += length * zero
    used_us, good_us = (
        sum(_rounded(number, by) for by, number in shares.items()) for shares in (used, good)
    )
    return used_us, good_us


def _rounded(number: int, by: int) -> int:
    return (2 * number + by) // (2 * by)


def _from_totals(row: PilotRow, life_us: int) -> tuple[int, int]:
    """Return used and good time by what is posted."""
    posted = core_time(row.settled)
    if not posted.time:
        return 0, 0
    return (
        _rounded(life_us * posted.used, posted.time),
        _rounded(life_us * posted.good, posted.time),
    )


@dataclass(slots=True)
class WallClockSums(KnownJobCounts):
    """Sums of pilots' wall-clock time.

    ``failed_us``: life of pilots in which HTCondor never started, ``started_us``: of those of which
    it is known whether it did; ``validated_us``: of those of which it is known when the validation
    ended (``known_validation`` pilots), with their ``validating_us`` and ``idle_us``.
    """

    time: int = 0
    used: int = 0
    good: int = 0
    used_by_statistics: int = 0
    good_by_statistics: int = 0
    failed_us: int = 0
    started_us: int = 0
    validated_us: int = 0
    validating_us: int = 0
    idle_us: int = 0
    known_validation: int = 0
    settled: int = 0
    pruned: int = 0
    size_assumed: int = 0

    def add(self, pilot: WallClock) -> None:
        jobs = pilot.jobs
        self.count(jobs, pilot.lengths_us)
        self.time += pilot.life_us
        self.used += pilot.used_us
        self.good += pilot.good_us
        self.used_by_statistics += pilot.used_us if jobs.by_statistics else 0
        self.good_by_statistics += pilot.good_us if jobs.by_statistics else 0
        self.failed_us += pilot.life_us if jobs.started is False else 0
        self.started_us += pilot.life_us if jobs.started is not None else 0
        if pilot.validation_us is not None:
            self.validated_us += pilot.life_us
            self.known_validation += 1
            self.validating_us += pilot.validation_us
            self.idle_us += max(0, pilot.life_us - pilot.validation_us - pilot.used_us)
        self.settled += pilot.settled
        self.pruned += pilot.pruned
        self.size_assumed += pilot.size_assumed

    @property
    def validation(self) -> int | None:
        """Time up to the end of the validation; None: known of no pilot."""
        return None if self.pilots and not self.known_validation else self.validating_us

    @property
    def idle(self) -> int | None:
        """Time after it in which no job ran; None: known of no pilot."""
        return None if self.pilots and not self.known_validation else self.idle_us

    @property
    def not_known(self) -> int | None:
        """Time without jobs of pilots whose end of validation is not known; None: of none."""
        if self.validated_us >= self.time:
            return None
        return max(0, self.waste - self.validating_us - self.idle_us)

    @property
    def waste(self) -> int:
        """Time in which no job ran: validation, idle and what is not known."""
        return self.time - self.used

    @property
    def badput(self) -> int:
        """Time of no job that exited 0."""
        return self.time - self.good

    @property
    def nosuccess(self) -> int:
        """Time of jobs that did not exit 0."""
        return self.used - self.good
