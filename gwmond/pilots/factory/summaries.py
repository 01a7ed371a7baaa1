"""Job time of pilots whose runs are not known: by a summary, or by their own statistics.

See ``factory.files`` for pilots known from their factory's queue or summary only.

Units: times are microseconds since the epoch.

What such a pilot did:

============================ ===================================================================
its summary says that        validation failed
HTCondor did not run
it says that HTCondor ran,   it passed, and no job ran: ``decision_problem``
and no jobs
it says that jobs ran        HTCondor was busy for its duration less the idle part, or for the
                             jobs' time over the cores (see ``job_sums``), right after the
                             validation, with the whole pilot: the time of jobs that ended by
                             themselves (``terminated``) first, as goodput, the rest unclassified;
                             both with the outcome ``summarised``
neither their number nor     ``unclassified``
their time can be read
no summary, or one that      validation failed, if collectors were watched all the time and none
says nothing (0, -1)        has shown it; else it is not known: ``unclassified``
============================ ===================================================================

Where the pilot's own output is there, and neither its logs nor anything else has a run:

============================ ===================================================================
its statistics tell of jobs  the same by their numbers, from HTCondor's start on; where they have
                             no time, all of HTCondor's time is unclassified
they tell of none, and no    the same by the factory's summary, if that tells of jobs
log is there
no jobs are known        ``unclassified``, rule ``validation`` (see ``ran_jobs``)
============================ ===================================================================

The runs that stand for the jobs of a summary are not counted as runs of jobs; real ones, whenever
they become known, take their place.
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.model.factory.jobs import FactoryJob
from gwmond.model.facts import Size
from gwmond.model.pilot_life import Assumption, Interval, Validation
from gwmond.model.pilots.file_facts import CompletedPilot, PilotOutput
from gwmond.model.pilots.pilot_facts import DefaultSize, SummaryFacts, replace
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.factory import job_sums
from gwmond.pilots.life.merged_runs import merge_each
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.runs.matcher import RunMatcher

LINE, _STATISTICS = "summary#", "statistics#"


class Busy(NamedTuple):
    """When jobs ran, by a summary: ``terminated`` ended by themselves, ``rest`` not, or unknown."""

    terminated: Interval
    rest: Interval


def verdict(line: CompletedPilot | None) -> Validation:
    """Return what a summary reports of the validation; unknown without an output."""
    if line is None or not line.duration_s or line.condor_started is None:
        return Validation.UNKNOWN
    if line.condor_started and line.condor_s is None:
        return Validation.UNKNOWN
    if not line.ran:
        return Validation.FAILED
    return Validation.STARTED if job_sums.tells_jobs(line) is None else Validation.PASSED


def jobs_ran(line: CompletedPilot | None) -> bool:
    """Return whether a summary says that jobs ran."""
    passed = verdict(line) is Validation.PASSED
    return passed and line is not None and job_sums.tells_jobs(line) is True


def busy(line: CompletedPilot | None, life: Interval, cores: float) -> Busy | None:
    """Return when jobs ran on a pilot with so many cores; None if the summary has none."""
    if line is None or not jobs_ran(line):
        return None
    start = life[0] + (line.validation_s or 0) * SECOND_US
    within = start, min(start + (line.condor_s or 0) * SECOND_US, life[1])
    return _busy(within, *job_sums.of_line(line, cores))


def _busy(within: Interval, busy_s: int | None, good_s: int = 0) -> Busy | None:
    """Return when jobs ran while HTCondor did; as long as it if it is not known how long.

    They took a second at least, as the numbers are cut.
    """
    start, last = within
    busy_s = (last - start) // SECOND_US if busy_s is None else max(1, busy_s)
    seconds = min(busy_s, good_s), busy_s
    middle, end = (min(start + second * SECOND_US, last) for second in seconds)
    return Busy((start, middle), (middle, end)) if start < end else None


def ran_jobs(output: PilotOutput) -> bool | None:
    """Return whether an output says that jobs ran, or that none did; None if it says neither.

    Only a whole output can show that no job ran: by its statistics or HTCondor's logs.
    """
    total = output.jobs.total.jobs if output.jobs is not None else None
    numbers = [number for number in (total, output.activations) if number is not None]
    if output.records or output.runs or any(numbers):
        return True
    logs = numbers or any(name.endswith("Log") or "Log." in name for name in output.logs)
    return False if output.end_us is not None and logs else None


def tell_statistics(pilot: OpenPilot, output: PilotOutput, matcher: RunMatcher) -> None:
    """Give a pilot the busy time of its own statistics, if no run is known.

    All its runs must be in memory.
    """
    if any(not run.summarised for run in pilot.runs.values()) or not ran_jobs(output):
        return
    starts = output.condor_start_us, output.validation_end_us, output.start_us, pilot.start_us
    ends = output.condor_end_us, output.end_us, pilot.effective_end_us
    within = _first(*starts), _first(*ends)
    total = output.jobs.total if output.jobs is not None else None
    if output.jobs is not None and total is not None and total.jobs:
        condor_s = (within[1] - within[0]) // SECOND_US
        sums = job_sums.of_statistics(output.jobs, condor_s, output.cores or 1)
        _tell(pilot, _busy(within, *sums), matcher, _STATISTICS, within)
    else:
        _tell(pilot, _busy(within, None), matcher, _STATISTICS, within)


def tells_more(pilot: OpenPilot, line: CompletedPilot | None) -> bool:
    """Return whether a summary may say what a pilot did that better sources know."""
    if Assumption.JOBS in pilot.assumed:
        return True
    return jobs_ran(line) and not (pilot.ran_jobs or pilot.known_from_jobs_only or says_none(pilot))


def tell_line(pilot: OpenPilot, line: CompletedPilot | None, matcher: RunMatcher) -> None:
    """Give a pilot the busy time of its summary, if no better source has its jobs.

    None takes back what a summary said.  All its runs must be in memory.
    """
    there = pilot.runs.values()
    if any(not run.summarised or run.key.job.startswith(_STATISTICS) for run in there):
        return
    start, end = pilot.start_us, pilot.start_us + (line.duration_s or 0 if line else 0) * SECOND_US
    jobs = None if says_none(pilot) else busy(line, (start, end), pilot.steps[0].size.cores)
    _tell(pilot, jobs, matcher, LINE, (jobs.terminated[0], end) if jobs is not None else None)


def says_none(pilot: OpenPilot) -> bool:
    """Return whether its own output says that no job ran."""
    if pilot.validation is Validation.FAILED:
        return True
    passed = pilot.validation is Validation.PASSED and pilot.has_output
    return passed and all(run.summarised for run in pilot.runs.values())


def _first(*times: int | None) -> int:
    return next(time for time in times if time is not None)


def shape(pilot: OpenPilot, job: FactoryJob, default: DefaultSize, matcher: RunMatcher) -> None:
    """Make a pilot what the factory has of it; all its runs must be in memory.

    Raises ValueError if nothing says when it ran.
    """
    if job.life is None:
        raise ValueError("nothing says when the pilot ran")
    line, before = job.line, pilot.facts.summary
    summary = SummaryFacts(
        verdict(line),
        line.validation_s if line is not None else None,
        before.jobs_us if before is not None else None,
    )
    facts = replace(pilot.facts, queue=job.facts, summary=summary)
    pilot.learn(replace(facts, decisions=replace(facts.decisions, size=default)))
    _tell(pilot, busy(line, job.life, pilot.steps[0].size.cores), matcher)


def withdraw_jobs(pilot: OpenPilot, matcher: RunMatcher) -> None:
    """Take out what stood for the jobs of a pilot that only its factory had."""
    if pilot.no_output:
        _tell(pilot, None, matcher)


def only_runs(pilot: OpenPilot, matcher: RunMatcher) -> None:
    """Take out what stood for jobs, as a better source has the pilot."""
    if not (pilot.no_output or Assumption.JOBS in pilot.assumed):
        _tell(pilot, None, matcher)


def resize(pilot: OpenPilot, size: Size) -> None:
    """Give the jobs of a summary the whole pilot, with its size of now."""
    for run in pilot.runs.values():
        if run.summarised:
            resized = [fact._replace(size=size) for fact in run.facts]
            run.replace(*merge_each(resized)[0])


def _tell(
    pilot: OpenPilot,
    jobs: Busy | None,
    matcher: RunMatcher,
    word: str = LINE,
    within: Interval | None = None,
) -> None:
    """Put runs that stand for the jobs of a summary in the place of those that are there.

    ``within``: when that is an estimate, as long as they ran if not given.
    """
    facts: set[RunFact] = set()
    if jobs is not None:
        for completed, (start, end) in ((True, jobs.terminated), (False, jobs.rest)):
            if start < end:
                made = _fact(pilot, completed=completed, start_us=start, end_us=end)
                facts.add(made._replace(job=f"{word}{made.job}"))
        within = within or (jobs.terminated[0], jobs.rest[1])
    summary = replace(pilot.facts.summary or SummaryFacts(), jobs_us=within if jobs else None)
    if summary != (pilot.facts.summary or SummaryFacts()):
        pilot.learn(replace(pilot.facts, summary=summary))
    by_job = {fact.job: fact for fact in facts}
    for run in list(pilot.runs.values()):
        if run.summarised:
            fact = by_job.pop(run.key.job, None)
            if fact is None:
                matcher.remove(run)
            elif run.facts != (fact,):
                run.replace(*merge_each([fact])[0])
    for job, fact in sorted(by_job.items()):
        matcher.add(job, [fact])


def _fact(pilot: OpenPilot, *, completed: bool, start_us: int, end_us: int) -> RunFact:
    word = "terminated" if completed else "rest"
    return RunFact(
        source=Source.SUMMARY,
        job=f"{pilot.label}#{word}",
        shadow_start=1,
        written_us=end_us,
        pilot=pilot.label,
        start_us=start_us,
        end_us=end_us,
        size=pilot.steps[0].size,
        ending=Ending(over=True, completed=completed),
    )


def contradictions(pilot: OpenPilot, job: FactoryJob) -> list[str]:
    """Return on what a summary differs from what better sources have of its pilot."""
    line, words = job.line, []
    if line is None or pilot.end_source != "pilot_output" or job.duration_us is None:
        return []
    known_us = pilot.effective_end_us - pilot.start_us
    if abs(job.duration_us - known_us) > known_us // 10 + 60 * SECOND_US:
        words.append("summary_duration")
    outcome = verdict(line)
    started = pilot.validation in {Validation.PASSED, Validation.STARTED}
    passed = started or bool(pilot.runs) or pilot.ran_jobs
    failed = pilot.validation is Validation.FAILED and Assumption.VALIDATION not in pilot.assumed
    if (outcome is Validation.FAILED and passed) or (
        outcome in {Validation.PASSED, Validation.STARTED} and failed
    ):
        words.append("summary_condor_started")
    if _jobs(pilot, line):
        words.append("summary_jobs")
    return words


def _jobs(pilot: OpenPilot, line: CompletedPilot) -> bool:
    """Return whether a summary and better sources differ on whether jobs ran on a valid pilot."""
    if verdict(line) is not Validation.PASSED:
        return False
    ran = pilot.ran_jobs or any(not run.job.startswith(LINE) for run in pilot.runs)
    if ran:
        return not jobs_ran(line)
    return jobs_ran(line) and pilot.validation is Validation.PASSED and says_none(pilot)
