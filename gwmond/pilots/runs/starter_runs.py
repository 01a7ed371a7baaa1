"""Runs that only a pilot's own logs have, beside those that a better source has.

Units: times are microseconds since the epoch.

A starter's log has ``cluster.proc`` of a job and when its program began, a pilot's stdout that
without the submitter; histories and slots have the GlobalJobId, so that their keys are others.
A run of a log is the run of that number on the same pilot within which it began, or about the
same time as that; then it is not distinguished.  Whatever is read first, the result is the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Interval, union
from gwmond.model.pilots.file_facts import StarterRun
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.pilots.life.merged_runs import tells_exit
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun

_NAMELESS, _NAMED, _BETTER = 0, 1, 2


class Better:
    """The runs of a pilot by ``cluster.proc``, to ask which of them a better source has."""

    def __init__(self, runs: Iterable[OpenRun], guard_us: int) -> None:
        self._runs: defaultdict[tuple[str, int], list[OpenRun]] = defaultdict(list)
        spans: defaultdict[tuple[str, int], list[Interval]] = defaultdict(list)
        for run in runs:
            number = number_of(run.key.job)
            for rank in range(_rank(run)) if number else ():
                self._runs[number, rank].append(run)
                spans[number, rank] += _spans(run, guard_us)
        self._spans = {job: union(intervals) for job, intervals in spans.items()}

    def knows(self, job: str, start_us: int) -> bool:
        """Return whether a better source has a run of a log."""
        spans = self._spans.get((number_of(job), _rank_of(job)), ())
        at = bisect_right(spans, start_us, key=lambda span: span[0]) - 1
        return at >= 0 and start_us < spans[at][1]

    def nearest(self, run: OpenRun) -> OpenRun:
        """Return the run, by a better source, that began nearest to one of a log."""
        job = run.key.job
        runs = self._runs[number_of(job), _rank_of(job)]
        return min(runs, key=lambda better: (abs(better.start_us - run.start_us), better.key))


def is_of_log(run: OpenRun) -> bool:
    """Return whether only a pilot's own logs, and what followed from them, have a run."""
    return Source.STARTER_LOG in run.merged.sources


def known_better(runs: Iterable[OpenRun], guard_us: int) -> Iterator[tuple[OpenRun, OpenRun]]:
    """Yield each run of a log on one pilot that a better source has, and the run that it is."""
    of_pilot = list(runs)
    of_logs = [run for run in of_pilot if is_of_log(run)]
    better = Better(of_pilot, guard_us) if of_logs else None
    for run in of_logs if better is not None else ():
        starts = (fact.start_us for fact in run.facts if fact.source is Source.STARTER_LOG)
        if better and any(at is not None and better.knows(run.key.job, at) for at in starts):
            yield run, better.nearest(run)


def moved_lines(run: OpenRun, better: OpenRun) -> list[RunFact]:
    """Return what central logs had on a run of a log, as facts of the run that it is."""
    if any(tells_exit(fact) for fact in better.facts):
        return []
    return [
        fact._replace(
            job=better.key.job,
            shadow_start=better.key.shadow_start,
            start_us=better.merged.start_us,
        )
        for fact in run.facts
        if fact.source is Source.CENTRAL_LOG
    ]


def job_of(run: StarterRun) -> str:
    """Return a job as a starter's log knows it."""
    return f"{run.submitter}#{run.job}#"


def fact_of(run: StarterRun, pilot: OpenPilot, memory_per_unit_mib: int) -> RunFact:
    """Return what a log reports of a run on a pilot: it counts one canonical unit."""
    ending = run.ending if run.end_us is None else run.ending._replace(over=True)
    ending = ending._replace(unsent=run.unsent or None)
    return RunFact(
        source=Source.STARTER_LOG,
        job=job_of(run) if run.job else f"{job_of(run)}{pilot.label}",
        shadow_start=None,
        written_us=run.end_us if run.end_us is not None else run.start_us,
        pilot=pilot.label,
        start_us=run.start_us,
        end_us=run.end_us,
        size=Size(1, memory_per_unit_mib),
        ending=ending,
        executing_us=run.start_us if run.ending.began else None,
    )


def number_of(job: str) -> str:
    """Return ``cluster.proc`` of a GlobalJobId, or of how a run of a log is named."""
    parts = job.split("#")
    return parts[1] if len(parts) > 1 else ""


def _rank(run: OpenRun) -> int:
    if is_of_log(run):
        return _rank_of(run.key.job)
    return _NAMELESS if run.summarised else _BETTER


def _rank_of(job: str) -> int:
    """Return how well a run of a log is known, by whether its submitter is."""
    return _NAMELESS if job.startswith("#") else _NAMED


def _spans(run: OpenRun, guard_us: int) -> Iterator[Interval]:
    """Yield the spans in which a run of a log may have begun if it is this run.

    Each fact gives a span, whatever it is merged to, so that no other fact makes it shorter.
    """
    for fact in run.facts:
        start_us = fact.start_us
        if start_us is not None and fact.source is not Source.CENTRAL_LOG:
            yield start_us - guard_us, max(start_us + guard_us, fact.end_us or start_us) + 1
