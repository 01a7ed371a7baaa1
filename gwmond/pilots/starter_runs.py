"""Runs that only a pilot's own logs tell of, beside those that something better tells of.

Units: times are microseconds since the epoch.

A starter's log has ``cluster.proc`` of a job and when its program began, a pilot's stdout that
without the submitter; histories and slots have the GlobalJobId, so that their keys are others.
A run of a log is the run of that number on the same pilot within which it began, or about the
same time as that; then it is not told apart.  Whatever is told first, the result is the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from gwmond.model.attempts import AttemptFact, Source
from gwmond.model.pilot_evidence import StarterRun
from gwmond.model.pilot_facts import Interval, Resources, union
from gwmond.pilots.attempt_facts import tells_exit
from gwmond.pilots.open_attempt import OpenAttempt
from gwmond.pilots.open_pilot import OpenPilot

_NAMELESS, _NAMED, _BETTER = 0, 1, 2


class Better:
    """The runs of a pilot by ``cluster.proc``, to ask which of them are told of better."""

    def __init__(self, attempts: Iterable[OpenAttempt], guard_us: int) -> None:
        self._runs: defaultdict[tuple[str, int], list[OpenAttempt]] = defaultdict(list)
        spans: defaultdict[tuple[str, int], list[Interval]] = defaultdict(list)
        for attempt in attempts:
            number = number_of(attempt.key.job)
            for rank in range(_rank(attempt)) if number else ():
                self._runs[number, rank].append(attempt)
                spans[number, rank] += _spans(attempt, guard_us)
        self._spans = {job: union(intervals) for job, intervals in spans.items()}

    def knows(self, job: str, start_us: int) -> bool:
        """Return whether something better tells of a run of a log."""
        spans = self._spans.get((number_of(job), _rank_of(job)), ())
        at = bisect_right(spans, start_us, key=lambda span: span[0]) - 1
        return at >= 0 and start_us < spans[at][1]

    def nearest(self, attempt: OpenAttempt) -> OpenAttempt:
        """Return the run, told better, that began nearest to one of a log."""
        job = attempt.key.job
        runs = self._runs[number_of(job), _rank_of(job)]
        return min(runs, key=lambda run: (abs(run.start_us - attempt.start_us), run.key))


def is_of_log(attempt: OpenAttempt) -> bool:
    """Return whether only a pilot's own logs, and what followed from them, tell of a run."""
    return Source.STARTER_LOG in attempt.merged.sources


def known_better(
    attempts: Iterable[OpenAttempt], guard_us: int
) -> Iterator[tuple[OpenAttempt, OpenAttempt]]:
    """Yield each run of a log on one pilot that is told of better, and the run that it is."""
    of_pilot = list(attempts)
    of_logs = [attempt for attempt in of_pilot if is_of_log(attempt)]
    better = Better(of_pilot, guard_us) if of_logs else None
    for attempt in of_logs if better is not None else ():
        starts = (fact.start_us for fact in attempt.facts if fact.source is Source.STARTER_LOG)
        if better and any(at is not None and better.knows(attempt.key.job, at) for at in starts):
            yield attempt, better.nearest(attempt)


def moved_lines(attempt: OpenAttempt, better: OpenAttempt) -> list[AttemptFact]:
    """Return what central logs told of a run of a log, as told of the run that it is."""
    if any(tells_exit(fact) for fact in better.facts):
        return []
    return [
        fact._replace(
            job=better.key.job,
            run=better.key.number,
            start_us=better.merged.start_us,
        )
        for fact in attempt.facts
        if fact.source is Source.CENTRAL_LOG
    ]


def job_of(run: StarterRun) -> str:
    """Return a job as a starter's log knows it."""
    return f"{run.submitter}#{run.job}#"


def fact_of(run: StarterRun, pilot: OpenPilot, q: int) -> AttemptFact:
    """Return what a log tells of a run on a pilot: it counts one unit of ``q`` MiB."""
    ending = run.ending if run.end_us is None else run.ending._replace(over=True)
    ending = ending._replace(unsent=run.unsent or None)
    return AttemptFact(
        source=Source.STARTER_LOG,
        job=job_of(run) if run.job else f"{job_of(run)}{pilot.label}",
        run=None,
        written_us=run.end_us if run.end_us is not None else run.start_us,
        pilot=pilot.label,
        start_us=run.start_us,
        end_us=run.end_us,
        size=Resources(1, q),
        ending=ending,
        executing_us=run.start_us if run.ending.began else None,
    )


def number_of(job: str) -> str:
    """Return ``cluster.proc`` of a GlobalJobId, or of how a run of a log is named."""
    parts = job.split("#")
    return parts[1] if len(parts) > 1 else ""


def _rank(attempt: OpenAttempt) -> int:
    if is_of_log(attempt):
        return _rank_of(attempt.key.job)
    return _NAMELESS if attempt.summarised else _BETTER


def _rank_of(job: str) -> int:
    """Return how well a run of a log is told, by whether its submitter is."""
    return _NAMELESS if job.startswith("#") else _NAMED


def _spans(attempt: OpenAttempt, guard_us: int) -> Iterator[Interval]:
    """Yield when a run of a log that is this one may have begun.

    Each fact gives one, whatever it is merged to, so that no other fact makes it shorter.
    """
    for fact in attempt.facts:
        start_us = fact.start_us
        if start_us is not None and fact.source is not Source.CENTRAL_LOG:
            yield start_us - guard_us, max(start_us + guard_us, fact.end_us or start_us) + 1
