"""What a factory's queue and its summary report of a pilot, as a job of the factory.

Units: times are microseconds since the epoch.

Facts come by ``QueueRecord``: an entry's name and ``cluster.proc``.  Numbers of jobs come again:
another schedd of the factory counts its own, and one that was set up anew begins from 1.  So the
facts of a record may be of several jobs; directory and time distinguish them:

- Events of one directory (instance and user) and one number are of one job up to the next
  submission, or until nothing was reported for ``AGE_US``.  A job of which no end is recorded by
  then has left the queue at an unknown time: a schedd that is set up anew counts from 1 again, and
  its log has no end of what was there.
- Each start is one execution of a job, hence one pilot: a job that was evicted, or held and
  released, runs glidein_startup.sh anew, on whatever node, and its stdout replaces that of before.
- An execution lasts up to the first end after its start.  A hold is an end, as the pilot is no
  longer looked after; if the job is released and ends without another start, that end counts.  One
  of which no end is recorded may run for ``AGE_US``; after that it is not known when it ended.
- The submission is that of the first execution; those after it begin with their start.
- A line of the summary has entry and user.  It is of the latest job of that user that had been
  submitted when it was written, and of its last execution that had begun; of two lines of one job
  the later counts.

Invariant: the order in which facts come, and how often, does not matter.

Source: facts page on GlideinWMS, section 1; HTCondor's manual, "Job Event Log Codes".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from gwmond.model.factory.jobs import AGE_US, MOST, FactoryJob, Output, QueueRecord
from gwmond.model.pilots.file_facts import (
    CompletedPilot,
    PilotName,
    PilotOutput,
    QueueEvent,
    QueueState,
)

_S = QueueState
_ORDER = (
    *(_S.SUBMITTED, _S.RELEASED, _S.STARTED, _S.HELD, _S.EVICTED, _S.ENDED, _S.KILLED, _S.REMOVED),
)
_ENDS = frozenset({_S.ENDED, _S.KILLED, _S.EVICTED, _S.REMOVED, _S.FAILED, _S.HELD})


PlaceFact: TypeAlias = QueueEvent | CompletedPilot | PilotOutput


class OutputNoLongerEmpty(NamedTuple):
    """An output that says something now, and said nothing when it was first taken in."""

    output: PilotOutput


NewFact: TypeAlias = PlaceFact | OutputNoLongerEmpty
_F = TypeVar("_F", QueueEvent, CompletedPilot)
_Known: TypeAlias = defaultdict[tuple[object, ...], list[_F]]


class Added(NamedTuple):
    """A place with more facts, and which of these it did not know before, each once.

    ``cut``: there were more than are kept; what is left out is not among the new ones.
    """

    place: QueueRecord
    new: list[NewFact]
    cut: bool


def add(before: QueueRecord, facts: Iterable[PlaceFact]) -> Added:
    """Return a place with more facts; of very many the oldest are left out."""
    events, lines = _by_what(before.events), _by_what(before.lines)
    came, new = list[PilotOutput](), list[QueueEvent | CompletedPilot]()
    for fact in facts:
        if isinstance(fact, PilotOutput):
            came.append(fact)
            continue
        bare = _bare(fact)
        if _keep(events, bare) if isinstance(bare, QueueEvent) else _keep(lines, bare):
            new.append(fact)
    all_events = sorted(chain.from_iterable(events.values()), key=_by_time)
    written = sorted(
        chain.from_iterable(lines.values()), key=lambda line: (line.written_us or 0, repr(line))
    )
    outputs, new_outputs = taken(before.outputs, came)
    place = before._replace(
        events=tuple(all_events[-MOST:]), lines=tuple(written[-MOST:]), outputs=outputs
    )
    left = chain[QueueEvent | CompletedPilot](place.events, place.lines)
    kept = {_what(fact) for fact in left}
    return Added(
        place,
        new=[*new_outputs, *(fact for fact in new if _what(fact) in kept)],
        cut=max(len(all_events), len(written)) > MOST,
    )


def jobs(place: QueueRecord) -> list[FactoryJob]:
    """Return the jobs that the facts of a place are of, by their first time."""
    by_directory: defaultdict[tuple[str, str], list[QueueEvent]] = defaultdict(list)
    for event in place.events:
        if event.state is _S.PENDING:
            continue
        by_directory[event.name.instance, event.name.user].append(event)
    queued = [job for events in by_directory.values() for job in queue_jobs(events)]
    alone: defaultdict[str, list[CompletedPilot]] = defaultdict(list)
    for line in place.lines:
        index = _job_of(line, queued)
        if index is None:
            alone[line.name.user].append(line)
        else:
            queued[index] = _with(queued[index], line)
    for user, lines in alone.items():
        job = FactoryJob("", user, "")
        for line in lines:
            if job.line and (line.written_us or 0) - (job.line.written_us or 0) > AGE_US:
                queued.append(job)
                job = FactoryJob("", user, "")
            job = _with(job, line)
        queued.append(job)
    return sorted(
        queued,
        key=lambda job: (job.submitted_us or job.started_us or job.settled_us or 0, job.instance),
    )


def _bare(fact: QueueEvent | CompletedPilot) -> QueueEvent | CompletedPilot:
    """Return a fact without where it was read, and what is of no use here."""
    client = fact.client if isinstance(fact, QueueEvent) else ""
    name = PilotName(
        instance=fact.name.instance,
        user=fact.name.user,
        frontend=client or fact.name.frontend,
    )
    if isinstance(fact, CompletedPilot):
        return fact._replace(path="", name=name)
    return QueueEvent("", name, fact.state, fact.at_us)


def _what(fact: QueueEvent | CompletedPilot) -> tuple[object, ...]:
    """Return the fact, without of whom."""
    return fact[2:4] if isinstance(fact, QueueEvent) else fact[2:]


def _within(name: PilotName, other: PilotName) -> bool:
    """Return whether a name says nothing that the other does not."""
    pairs = zip(name, other, strict=True)
    return all(mine in {None, "", theirs} for mine, theirs in pairs)


def _by_what(facts: Iterable[_F]) -> _Known[_F]:
    """Return facts by what they say."""
    by_what: _Known[_F] = defaultdict(list)
    for fact in facts:
        by_what[_what(fact)].append(fact)
    return by_what


def _keep(facts: _Known[_F], fact: _F) -> bool:
    """Keep a fact unless another has it, and as much of whose it is; return whether it is new.

    It takes the place of those that say less of that: a copy of a log at another path does.
    """
    same = facts[_what(fact)]
    if any(_within(fact.name, other.name) for other in same):
        return False
    less = [other for other in same if _within(other.name, fact.name)]
    for other in less:
        same.remove(other)
    same.append(fact)
    return not less


def _by_time(event: QueueEvent) -> tuple[object, ...]:
    rank = _ORDER.index(event.state) if event.state in _ORDER else len(_ORDER)
    return event.at_us, rank, event.state, event.name


def _with(job: FactoryJob, line: CompletedPilot) -> FactoryJob:
    return job._replace(line=line, written_us=(*job.written_us, line.written_us or 0))


def _job_of(line: CompletedPilot, jobs: Sequence[FactoryJob]) -> int | None:
    """Return which job a line is of; of several the one that was submitted last."""
    if line.written_us is None:
        return None
    fitting = [
        (first, index)
        for index, job in enumerate(jobs)
        if job.user == line.name.user or not (job.user and line.name.user)
        if (first := job.submitted_us or job.started_us or job.ended_us or 0) <= line.written_us
        if line.written_us - first <= 2 * AGE_US
    ]
    return max(fitting)[1] if fitting else None


def taken(
    outputs: Sequence[Output], facts: Iterable[PilotOutput]
) -> tuple[tuple[Output, ...], list[PilotOutput | OutputNoLongerEmpty]]:
    """Return outputs with these, the first of very many, and which are new or fill an empty one.

    An output is identified by when its pilot began, None if it does not say, and by what time it
    counts (its pilot's end, else when it was written; the latest that was read; microseconds since
    the epoch).  An empty one may be of any pilot: the next that says something takes its place; of
    what comes together that is taken first.  Copies are not distinguished.
    """
    by_start, new = dict(outputs), list[PilotOutput | OutputNoLongerEmpty]()
    for fact in sorted(facts, key=lambda fact: fact.start_us is None):
        start_us, at_us = fact.start_us, fact.at_us or 0
        if start_us in by_start:
            by_start[start_us] = max(at_us, by_start[start_us])
        elif None in by_start:
            del by_start[None]
            by_start[start_us] = at_us
            new.append(OutputNoLongerEmpty(fact))
        elif len(by_start) < MOST and (start_us is not None or not by_start):
            by_start[start_us] = at_us
            new.append(fact)
    return tuple(by_start.items()), new


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
