"""Pilots as jobs of their factory: from the events of a queue to what ran, and when.

Units: times are microseconds since the epoch.

The events of one directory (instance and user) and one number are of one job up to the next
submission, or until nothing was reported for ``AGE_US``.  A job of which no end is recorded by then
has left the queue at an unknown time: a schedd that is set up anew counts from 1 again, and its log
has no end of what was there.  Within a job:

- Each start is one execution, hence one pilot: a job that was evicted, or held and released, runs
  glidein_startup.sh anew, on whatever node, and its stdout replaces that of before.
- An execution lasts up to the first end after its start.  A hold is an end, as the pilot is no
  longer looked after; if the job is released and ends without another start, that end counts.
- One of which no end is recorded may run for ``AGE_US``; after that it is not known when it ended.
- The submission is that of the first execution; those after it begin with their start.

Source: facts page on GlideinWMS, section 1; HTCondor's manual, "Job Event Log Codes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from gwmond.model.factory.jobs import AGE_US, FactoryJob
from gwmond.model.pilots.file_facts import QueueEvent, QueueState

_S = QueueState
_ENDS = frozenset({_S.ENDED, _S.KILLED, _S.EVICTED, _S.REMOVED, _S.FAILED, _S.HELD})


def queue_jobs(events: Sequence[QueueEvent]) -> Iterable[FactoryJob]:
    """Yield the executions in the events of a directory, which are sorted by time."""
    for of_job, then in pairwise([*_split(events), []]):
        again = bool(then) and then[0].state is _S.SUBMITTED
        yield from _executions(of_job, then[0].at_us if again else None)


def _split(events: Sequence[QueueEvent]) -> list[list[QueueEvent]]:
    """Divide a directory's events at each submission, and after long times without any."""
    parts: list[list[QueueEvent]] = []
    for event in events:
        last = parts[-1] if parts else []
        again = event.state is _S.SUBMITTED and {before.state for before in last} != {_S.SUBMITTED}
        if not last or again or event.at_us - last[-1].at_us > AGE_US:
            parts.append([])
        parts[-1].append(event)
    return parts


def _executions(events: Sequence[QueueEvent], next_us: int | None) -> Iterable[FactoryJob]:
    name, client = events[-1].name, max(event.name.frontend for event in events)
    job = FactoryJob(name.instance, name.user, client, first_us=events[0].at_us)
    state: QueueState | None = None
    for event in events:
        started, ended = job.started_us, job.ended_us
        if event.state is _S.SUBMITTED:
            if job.submitted_us is None:
                job = job._replace(submitted_us=event.at_us)
        elif event.state is _S.STARTED:
            if started is not None and ended is not None:
                yield job._replace(over=True)
                job = job._replace(submitted_us=None)
            if started is None or ended is not None:
                job = job._replace(started_us=event.at_us, ended_us=None, killed=False)
        elif event.state in _ENDS and (ended is None or state is _S.RELEASED):
            job = job._replace(ended_us=event.at_us, killed=event.state is _S.KILLED)
        state = event.state
    held = state in {_S.HELD, _S.RELEASED}  # while it waits: it may start yet
    over = job.ended_us is not None and not (held and job.started_us is None)
    yield job._replace(over=over, next_us=None if over else next_us)
