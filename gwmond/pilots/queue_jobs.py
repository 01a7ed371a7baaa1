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

Two factories may have directories of one name, with the same number in use at the same time.
That shows where one job cannot explain what is reported: after a submission more jobs end than were
submitted (or one that never started), while an end of one before is missing; or a job that ends
twice (within ``GUARD_US`` two copies of a log may differ).  Then it is not known what is whose,
and all of it is one job that is ``mixed``.

Source: facts page on GlideinWMS, section 1; HTCondor's manual, "Job Event Log Codes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

from gwmond.model.factory_jobs import AGE_US, GUARD_US, FactoryJob
from gwmond.model.pilot_evidence import QueueEvent, QueueState
from gwmond.model.times import SECOND_US

COPY_US = 60 * SECOND_US
"""Two ends that are nearer may be the same, from two copies of a log."""


_S = QueueState
_TERMINATED = frozenset({_S.ENDED, _S.KILLED})
_ENDS = frozenset({*_TERMINATED, _S.EVICTED, _S.REMOVED, _S.FAILED, _S.HELD})
_LEFT = frozenset({*_TERMINATED, _S.REMOVED})


def queue_jobs(events: Sequence[QueueEvent]) -> Iterable[FactoryJob]:
    """Yield the executions in the events of a directory, which are sorted by time."""
    jobs = _joined(_split(events))
    for of_job, then in pairwise([*jobs, []]):
        again = bool(then) and then[0][0].state is _S.SUBMITTED
        yield from _executions(of_job, then[0][0].at_us if again else None)


def _split(events: Sequence[QueueEvent]) -> list[list[QueueEvent]]:
    """Divide a directory's events at each submission, and after long times without any."""
    parts: list[list[QueueEvent]] = []
    for event in events:
        last = parts[-1] if parts else []
        again = event.state is _S.SUBMITTED and {pilot_name.state for pilot_name in last} != {
            _S.SUBMITTED
        }
        if not last or again or event.at_us - last[-1].at_us > AGE_US:
            parts.append([])
        parts[-1].append(event)
    return parts


def _joined(parts: list[list[QueueEvent]]) -> list[list[list[QueueEvent]]]:
    """Return the parts of each job: several where an end is of a job before.

    From the last: what has too many ends has that of the latest job before it without an end.
    """
    parts, found = list(parts), []
    while parts:
        job = [parts.pop()]
        while sum(map(_ends, job)) > sum(map(_submissions, job)):
            first = _unended(parts, job[0][0].at_us)
            if first is None:
                break
            job = [*parts[first:], *job]
            del parts[first:]
        found.append(job)
    return found[::-1]


def _unended(parts: Sequence[list[QueueEvent]], at_us: int) -> int | None:
    """Return the latest part with a job that may still have been there at a time."""
    for index in reversed(range(len(parts))):
        if at_us - parts[index][-1].at_us > AGE_US:
            return None
        if _ends(parts[index]) < _submissions(parts[index]):
            return index
        at_us = parts[index][0].at_us
    return None


def _submissions(part: Sequence[QueueEvent]) -> int:
    """Return how many jobs began with a part; one at least, as its first events may be lost."""
    return max(1, sum(pilot_name.state is _S.SUBMITTED for pilot_name in part))


def _ends(part: Sequence[QueueEvent]) -> int:
    """Return how many jobs left the queue; one that ended without a start counts twice."""
    number, last = 0, None
    states = [pilot_name.state for pilot_name in part]
    for event in part:
        if event.state not in _LEFT:
            continue
        # What has ended may be removed later.
        same = last is not None and event.state is _S.REMOVED and last.state is _S.ENDED
        if not same and (last is None or event.at_us - last.at_us > COPY_US):
            number += 1
        last = event
    return number + (_S.ENDED in states and _S.STARTED not in states)


def _mixed(job: Sequence[Sequence[QueueEvent]]) -> bool:
    """Return whether events of several jobs are among these, of which any has started."""
    events = list(chain(*job))
    if all(event.state is not _S.STARTED for event in events):
        return False
    ends = [event.at_us for event in events if event.state in _TERMINATED]
    submitted = sum(event.state is _S.SUBMITTED for event in events)
    several = len(job) > 1 or (submitted > 1 and sum(map(_ends, job)) > 1)
    return several or (bool(ends) and ends[-1] - ends[0] > GUARD_US)


def _executions(parts: Sequence[Sequence[QueueEvent]], next_us: int | None) -> Iterable[FactoryJob]:
    mixed, events = _mixed(parts), list(chain(*parts))
    name, client = events[-1].name, max(event.name.frontend for event in events)
    job = FactoryJob(name.instance, name.user, client, first_us=events[0].at_us, mixed=mixed)
    state: QueueState | None = None
    for event in events:
        started, ended = job.started_us, job.ended_us
        if event.state is _S.SUBMITTED:
            if job.submitted_us is None:
                job = job._replace(submitted_us=event.at_us)
        elif event.state is _S.STARTED:
            if started is not None and ended is not None and not mixed:
                yield job._replace(over=True)
                job = job._replace(submitted_us=None)
            if started is None or (ended is not None and not mixed):
                job = job._replace(started_us=event.at_us, ended_us=None, killed=False)
        elif event.state in _ENDS and (ended is None or state is _S.RELEASED or mixed):
            job = job._replace(ended_us=event.at_us, killed=event.state is _S.KILLED)
        state = event.state
    held = state in {_S.HELD, _S.RELEASED}  # while it waits: it may start yet
    over = job.ended_us is not None and not (held and job.started_us is None)
    yield job._replace(over=over, next_us=None if over else next_us)
