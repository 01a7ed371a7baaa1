"""In which unit a factory's summary, or a pilot's statistics, say how long jobs ran.

Units: whole seconds; what is returned is time of the whole pilot: on 8 cores eight jobs of one core
that ran for 4000 s at once make 4000 s, and one such job makes 500 s.

GlideinWMS divides the times of jobs by the pilot's cores (GLIDEIN_CPUS), as if each job had one.
Which times, a line of completed_jobs does not say:

=============== ===============================================================================
divided         before v3.10.12: all of them
mixed           since then: those of jobs that ended by themselves (``goodput``, ``terminated``);
                ``duration`` is the real sum, and ``idle`` is made with it, so that it may be
                negative, and says nothing
=============== ===============================================================================

A line shows it by itself, so that it does not matter what else is known by then.  A divided time,
times the cores, is at most the real sum: a line in which that is so is read as mixed, any other
as divided.  (It may be divided, too, if of all the time of jobs only so small a part was that of
jobs which ended by themselves.  Then their time is reported too small: estimated.)

A number far above HTCondor's time, by ``EXTRA``, is no divided one.  Beside a smaller one that it
is too small for, it is a real sum on another number of cores: then the smaller one alone counts.

Source: facts page on GlideinWMS, section 1 (FM:1069-1158, parse_starterlog.awk).
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.model.pilots.file_facts import CompletedPilot, JobStatistics

EXTRA = 1.5
"""Slots beyond the cores (GLIDEIN_Resource_Slots) let divided times be above HTCondor's by less."""

_PER_MILLE = 1000


class Sums(NamedTuple):
    """For how long the whole pilot was busy, None if not known; ``good_s``: ended by themselves."""

    busy_s: int | None
    good_s: int


def tells_jobs(line: CompletedPilot) -> bool | None:
    """Return whether a line says that jobs ran, or that none did; None if it says neither.

    >>> from gwmond.model.pilots.file_facts import PilotName
    >>> tells_jobs(CompletedPilot("", PilotName(), 0, 90, True, 80, None, None, 9, 9, 0, 0, 0, 0))
    True
    """
    if any(number and number > 0 for number in (line.jobs, line.jobs_s, line.goodput_s)):
        return True
    if line.terminated_s is not None and line.terminated_s > 0:
        return True
    if line.jobs is not None or line.jobs_s is not None:
        return False
    return True if line.idle is not None and line.idle < _PER_MILLE else None


def of_line(line: CompletedPilot, cores: float) -> Sums:
    """Return what a line of completed_jobs reports of a pilot with so many cores."""
    condor_s, idle = line.condor_s or 0, line.idle
    by_idle = condor_s * (_PER_MILLE - idle) // _PER_MILLE if idle is not None else None
    good = line.terminated_s if line.terminated_s is not None else line.goodput_s
    good_s, total_s = max(0, good or 0), by_idle if line.jobs_s is None else line.jobs_s
    if cores > 1 and total_s is not None:
        if good_s > EXTRA * condor_s:
            return _divided(total_s, good_s, cores)
        if good_s * cores <= total_s:
            return Sums(max(good_s, int(total_s // cores)), good_s)
        if total_s > EXTRA * condor_s:
            return Sums(good_s, good_s)
    if by_idle is not None and 0 <= by_idle <= condor_s:
        total_s = by_idle
    return Sums(total_s, good_s)


def of_statistics(job_statistics: JobStatistics, condor_s: int, cores: float) -> Sums:
    """Return what a pilot's own statistics say; all of their times are in one unit."""
    kinds = (job_statistics.good_zero, job_statistics.good_nonzero)
    total_s, good_s = (
        job_statistics.total.time_s,
        sum(kind.time_s for kind in kinds if kind is not None),
    )
    if job_statistics.factor in {None, 1} and cores > 1 and total_s > EXTRA * condor_s:
        return _divided(total_s, good_s, cores)
    return Sums(total_s, good_s)


def _divided(total_s: int, good_s: int, cores: float) -> Sums:
    return Sums(int(total_s // cores), int(good_s // cores))
