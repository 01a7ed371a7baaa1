"""Pilots of which only their factory's queue or summary tells; see ``factory_jobs`` for the rules.

Units: times are microseconds since the epoch.

What such a pilot did:

============================ ===================================================================
its summary says that        validation failed
HTCondor did not run
it says that HTCondor ran,   it passed, and no job ran: ``decision_problem``
and no jobs
it says that jobs ran        HTCondor was busy for its duration less the idle part (0 ... 1000 of
                             1000; else for the jobs' time), right after the validation, with the
                             whole pilot: the time of jobs that ended by themselves
                             (``terminated``) first, as goodput, the rest unclassified; both with
                             the outcome ``summarised``
no summary, or one that      validation failed, if collectors were watched all the time and none
tells nothing (0, -1)        has shown it; else nothing tells: ``unclassified``
============================ ===================================================================

The runs that stand for the jobs of a summary are not counted as runs of jobs.
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.accounting.attempts import AttemptFact, Source, merge_each
from gwmond.accounting.endings import Ending
from gwmond.accounting.factory_jobs import FactoryJob
from gwmond.accounting.pilot_evidence import CompletedPilot
from gwmond.accounting.pilot_facts import Assumption, Interval, Resources, Step, Validation
from gwmond.book.joining import Joining
from gwmond.book.open_pilot import OpenPilot
from gwmond.book.rules import SECOND_US
from gwmond.ledger.pilot_model import Told

_PER_MILLE = 1000


class Busy(NamedTuple):
    """When jobs ran, by a summary: ``terminated`` ended by themselves, ``rest`` not, or unknown."""

    terminated: Interval
    rest: Interval


def verdict(line: CompletedPilot | None) -> Validation:
    """Return what a summary tells of the validation; one without output tells nothing of it."""
    if line is None or not line.duration_s or line.condor_started is None:
        return Validation.UNKNOWN
    return Validation.PASSED if line.ran else Validation.FAILED


def busy(line: CompletedPilot | None, life: Interval) -> Busy | None:
    """Return when jobs ran; None if the summary tells of none."""
    if line is None or verdict(line) is not Validation.PASSED or not line.jobs:
        return None
    condor_s, idle = line.condor_s or 0, line.idle
    if idle is not None and 0 <= idle <= _PER_MILLE:
        busy_s = condor_s * (_PER_MILLE - idle) // _PER_MILLE
    else:
        busy_s = min(condor_s, line.jobs_s if line.jobs_s is not None else condor_s)
    start = life[0] + (line.validation_s or 0) * SECOND_US
    good_s = min(busy_s, max(0, line.terminated_s or 0))
    middle, end = (min(start + seconds * SECOND_US, life[1]) for seconds in (good_s, busy_s))
    return Busy((start, middle), (middle, end)) if start < end else None


def shape(pilot: OpenPilot, job: FactoryJob, size: Resources, joining: Joining) -> None:
    """Make a pilot what the factory tells of it; all its attempts must be in memory.

    Raises ValueError if nothing tells when it ran.
    """
    life = job.life
    if life is None:
        raise ValueError("nothing tells when the pilot ran")
    start_us, end_us = life
    steps = (Step(start_us, size),)
    if (start_us, end_us, steps) != (pilot.start_us, pilot.end_us, pilot.steps):
        pilot.touch(min(start_us, pilot.start_us))
    pilot.start_us, pilot.end_us, pilot.contact_us, pilot.steps = start_us, end_us, end_us, steps
    pilot.ended, pilot.gone_us, pilot.dirty = "queue", end_us, True
    validation = verdict(job.line)
    by_others = Assumption.VALIDATION in pilot.assumed or pilot.failure  # guessed, or its ads say
    failed = pilot.validation is Validation.FAILED and by_others
    if validation is Validation.UNKNOWN and failed:
        validation = Validation.FAILED
    elif validation is not Validation.UNKNOWN:
        pilot.know(Assumption.VALIDATION)
    if validation is not pilot.validation:
        pilot.touch(start_us)
    pilot.validation = validation
    line = job.line
    validation_s = line.validation_s if line and validation is Validation.PASSED else None
    validated_us = None if validation_s is None else start_us + validation_s * SECOND_US
    pilot.validation_end_us = None if validated_us is None else min(validated_us, end_us)
    pilot.told = Told()
    pilot.assume(Assumption.NO_OUTPUT, *life)
    pilot.assume(Assumption.SIZE, *life)
    _tell(pilot, busy(line, life), joining)


def fail(pilot: OpenPilot) -> None:
    """Say that its validation failed, as no collector has ever shown it."""
    if pilot.validation is Validation.UNKNOWN:
        pilot.validation = Validation.FAILED
        pilot.touch(pilot.start_us)
        pilot.assume(Assumption.VALIDATION, pilot.start_us, pilot.until_us)


def forget(pilot: OpenPilot, joining: Joining) -> None:
    """A better source tells of the pilot: nothing of what the factory told stands any more."""
    if Assumption.NO_OUTPUT not in pilot.assumed:
        return
    _tell(pilot, None, joining)
    pilot.touch(pilot.start_us)
    pilot.know(*Assumption)
    pilot.end_us, pilot.ended, pilot.gone_us, pilot.steps = None, "", None, ()
    pilot.contact_us, pilot.validation = 0, Validation.UNKNOWN
    pilot.validation_end_us, pilot.told, pilot.dirty = None, None, True


def only_runs(pilot: OpenPilot, joining: Joining) -> None:
    """Take out what stood for jobs, as a better source tells of the pilot."""
    if Assumption.NO_OUTPUT not in pilot.assumed:
        _tell(pilot, None, joining)


def resize(pilot: OpenPilot, size: Resources) -> None:
    """Let the jobs of a summary have had the whole pilot, as large as it is now."""
    for attempt in pilot.attempts.values():
        if attempt.summarised:
            resized = [fact._replace(size=size) for fact in attempt.facts]
            ((attempt.merged, attempt.facts),) = merge_each(resized)
            attempt.dirty = True


def _tell(pilot: OpenPilot, of: Busy | None, joining: Joining) -> None:
    """Put runs that stand for the jobs of a summary in the place of those that are there."""
    wanted: set[AttemptFact] = set()
    if of is not None:
        for completed, (start, end) in ((True, of.terminated), (False, of.rest)):
            if start < end:
                wanted.add(_fact(pilot, completed=completed, start_us=start, end_us=end))
        pilot.assume(Assumption.JOBS, of.terminated[0], of.rest[1])
    else:
        pilot.know(Assumption.JOBS)
    by_job = {fact.job: fact for fact in wanted}
    for attempt in list(pilot.attempts.values()):
        if attempt.summarised:
            fact = by_job.pop(attempt.key.job, None)
            if fact is None:
                joining.remove(attempt)
            elif attempt.facts != (fact,):  # the same one, so that what is booked for it is known
                pilot.touch(min(attempt.start_us, fact.start_us or attempt.start_us))
                ((attempt.merged, attempt.facts),) = merge_each([fact])
                attempt.dirty = True
    for job, fact in sorted(by_job.items()):
        joining.add(job, [fact])


def _fact(pilot: OpenPilot, *, completed: bool, start_us: int, end_us: int) -> AttemptFact:
    word = "terminated" if completed else "rest"
    return AttemptFact(
        source=Source.SUMMARY,
        job=f"summary#{pilot.label}#{word}",
        run=1,
        written_us=end_us,
        pilot=pilot.label,
        start_us=start_us,
        end_us=end_us,
        size=pilot.steps[0].size,
        ending=Ending(over=True, completed=completed),
    )
