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

The original counts a job from when its program began: without the transfer of its input, and not
at all if the program never began.  Where that time is not known, ``finished`` has it from the start
of the run (``from_start``).

Where retention took out single runs, ``used`` and ``good`` are from the pilot's totals, in which
cores that a job blocks by its memory count as used; such pilots are counted (``pruned``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from gwmond.model.pilot_facts import Assumption, PilotLife
from gwmond.model.shares import MILLI, milli
from gwmond.model.stored_pilots import PilotRow, RunRow
from gwmond.model.units import MICRO
from gwmond.pilots.merged_runs import executing, merge
from gwmond.pilots.pilot_segments import cut
from gwmond.reports.analyze_rounding import Finished, divided
from gwmond.reports.pilot_sums import core_time, is_good
from gwmond.reports.stored_pilot import KnownJobs, StoredPilot


class WallClock(NamedTuple):
    """One pilot that ended; what is None is not known.

    ``size_assumed``: its cores rest on a rule, and so does ``used``.  ``from_start``: of some runs
    it is not known when their program began.  ``finished`` is the same pilot as the factory's own
    log parser would hand it on.
    """

    frontend: str
    entry: str
    ended_us: int
    life_us: int
    used_us: int
    good_us: int
    validation_us: int | None
    jobs: KnownJobs
    lengths_us: tuple[int, ...]
    settled: bool
    pruned: bool
    size_assumed: bool
    finished: Finished
    from_start: bool = False


def wall_clock(pilot: StoredPilot) -> WallClock:
    row, life, jobs = pilot.row, pilot.life, pilot.jobs
    if row.end_us is None:
        raise ValueError(f"pilot {row.id} has not ended")
    life_us = life.effective_end_us - life.start_us
    size_assumed = Assumption.SIZE in row.assumed
    if row.runs_pruned:
        runs = _from_totals(row, life_us)
    else:
        runs = _from_runs(life, at_least=size_assumed)
    validation_us = None
    if jobs.started is False:
        validation_us = life_us
    elif jobs.started and row.validation_end_us is not None:
        validation_us = min(max(0, row.validation_end_us - row.start_us), life_us)
    lengths = tuple(
        max(0, (life.effective_end_us if run.end_us is None else run.end_us) - run.start_us)
        for run in jobs.runs
    )
    programs = _programs(jobs.runs, lengths)
    return WallClock(
        frontend=row.identity.group,
        entry=row.identity.key.entry,
        ended_us=row.end_us,
        life_us=life_us,
        used_us=runs.used_us,
        good_us=runs.good_us,
        validation_us=validation_us,
        jobs=jobs,
        lengths_us=lengths,
        settled=row.closed or row.settled_until_us >= life.effective_end_us,
        pruned=row.runs_pruned > 0,
        size_assumed=size_assumed,
        finished=_finished(row, jobs, programs, runs)._replace(
            duration_s=life_us // MICRO,
            started=jobs.started is True,
            validation_s=None if validation_us is None else validation_us // MICRO,
        ),
        from_start=any(program.from_start for program in programs)
        or (row.runs_pruned > 0 and not jobs.by_statistics),
    )


class _RunTime(NamedTuple):
    """Wall-clock time used, and the pilot's cores."""

    used_us: int
    good_us: int
    cores: float


class _Program(NamedTuple):
    """How long the program of a run ran, and whether its exit status was 0.

    ``from_start``: when it began is not known; then ``length_us`` is that of the run.
    """

    length_us: int
    exited_zero: bool
    from_start: bool


def _programs(runs: Sequence[RunRow], lengths: Sequence[int]) -> list[_Program]:
    """Return the programs of runs, each with its length; those that never began are left out.

    An exit status of 0 is one also if the program was told to end.
    """
    found = []
    for run, length_us in zip(runs, lengths, strict=True):
        endings = [merged.ending for merged in merge(run.facts)]
        began_us = executing(run.facts)
        if began_us is None and endings and all(ending.began is False for ending in endings):
            continue
        before_us = 0 if began_us is None else max(0, began_us - run.start_us)
        zero = any(ending.exit_code == 0 for ending in endings)
        found.append(_Program(max(0, length_us - before_us), zero, began_us is None))
    return found


def _finished(
    row: PilotRow, known_jobs: KnownJobs, programs: Sequence[_Program], runs: _RunTime
) -> Finished:
    """Return the jobs as the factory has them: each counts with the time of its program.

    Where runs are not known one by one, the time used is that of the cores that they held.
    """
    if known_jobs.by_statistics or row.runs_pruned:
        jobs = None if known_jobs.by_statistics else known_jobs.number or 0
        used_s = int(runs.used_us * max(1, round(runs.cores)) // MICRO)
        return Finished(0, True, None, jobs, used_s, runs.good_us // MICRO)
    every_us = sum(program.length_us for program in programs)
    zero_us = sum(program.length_us for program in programs if program.exited_zero)
    in_zero = divided(zero_us / MICRO, runs.cores)
    return Finished(0, True, None, len(programs), every_us // MICRO, in_zero)


def _from_runs(life: PilotLife, *, at_least: bool) -> _RunTime:
    """Return used and good time from the runs' intervals and cores.

    A pilot without cores counts as used whole while a job runs.  ``at_least``: it has the cores
    that its jobs held at once, whatever is assumed of it.
    """
    used: Counter[int] = Counter()
    good: Counter[int] = Counter()
    most = max((milli(step.size.cores) for step in life.steps), default=0)
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
        if at_least:
            most = max(most, sum(held))
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
    return _RunTime(used_us, good_us, most / MILLI)


def _rounded(number: int, by: int) -> int:
    return (2 * number + by) // (2 * by)


def _from_totals(row: PilotRow, life_us: int) -> _RunTime:
    posted = core_time(row.settled)
    cores = row.steps[0].size.cores if row.steps else 1
    if not posted.time:
        return _RunTime(0, 0, cores)
    used, good = (_rounded(life_us * part, posted.time) for part in (posted.used, posted.good))
    return _RunTime(used, good, cores)
