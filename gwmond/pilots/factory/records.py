"""What a factory's queue and its summary report of a pilot, as a job of the factory.

Units: times are microseconds since the epoch.

Facts come by ``QueueRecord``: an entry's name and ``cluster.proc``.  Numbers of jobs come again:
another schedd of the factory counts its own, and one that was set up anew begins from 1.  So the
facts of a record may be of several jobs; directory and time distinguish them:

- Events of one directory (instance and user) are divided into jobs, and each execution of these is
  a pilot (see ``queue_jobs``).
- A line of the summary has entry and user.  It is of the latest job of that user that had been
  submitted when it was written, and of its last execution that had begun; of two lines of one job
  the later counts.

Invariant: the order in which facts come, and how often, does not matter.

Source: facts page on GlideinWMS, section 1; HTCondor's manual, "Job Event Log Codes".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

from gwmond.model.factory.jobs import AGE_US, MOST, FactoryJob, QueueRecord
from gwmond.model.pilots.file_facts import (
    CompletedPilot,
    PilotName,
    PilotOutput,
    QueueEvent,
    QueueState,
)
from gwmond.pilots.factory import returned_outputs
from gwmond.pilots.factory.queue_jobs import queue_jobs

_S = QueueState
_ORDER = (
    *(_S.SUBMITTED, _S.RELEASED, _S.STARTED, _S.HELD, _S.EVICTED, _S.ENDED, _S.KILLED, _S.REMOVED),
)


PlaceFact: TypeAlias = QueueEvent | CompletedPilot | PilotOutput
NewFact: TypeAlias = PlaceFact | returned_outputs.OutputNoLongerEmpty
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
    written = sorted(chain.from_iterable(lines.values()), key=_by_writing)
    outputs, new_outputs = returned_outputs.taken(before.outputs, came)
    place = before._replace(
        events=tuple(all_events[-MOST:]), lines=tuple(written[-MOST:]), outputs=outputs
    )
    both = chain[QueueEvent | CompletedPilot](place.events, place.lines)
    kept = {_what(fact) for fact in both}
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
    found = [job for events in by_directory.values() for job in queue_jobs(events)]
    alone: defaultdict[str, list[CompletedPilot]] = defaultdict(list)
    for line in place.lines:
        index = _job_of(line, found)
        if index is None:
            alone[line.name.user].append(line)
        else:
            found[index] = _with(found[index], line)
    for user, lines in alone.items():
        job = FactoryJob("", user, "")
        for line in lines:
            if job.line is not None and _age(job.line, line) > AGE_US:
                found.append(job)
                job = FactoryJob("", user, "")
            job = _with(job, line)
        found.append(job)
    return sorted(found, key=_by_begin)


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
    known: _Known[_F] = defaultdict(list)
    for fact in facts:
        known[_what(fact)].append(fact)
    return known


def _keep(known: _Known[_F], fact: _F) -> bool:
    """Keep a fact unless another has it, and as much of whose it is; return whether it is new.

    It takes the place of those that say less of that: a copy of a log at another path does.
    """
    same = known[_what(fact)]
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


def _by_writing(line: CompletedPilot) -> tuple[object, ...]:
    return line.written_us or 0, repr(line)


def _with(job: FactoryJob, line: CompletedPilot) -> FactoryJob:
    return job._replace(line=line, written_us=(*job.written_us, line.written_us or 0))


def _by_begin(job: FactoryJob) -> tuple[object, ...]:
    return job.submitted_us or job.started_us or job.settled_us or 0, job.instance


def _age(earlier: CompletedPilot, later: CompletedPilot) -> int:
    return (later.written_us or 0) - (earlier.written_us or 0)


def _job_of(line: CompletedPilot, found: Sequence[FactoryJob]) -> int | None:
    """Return which job a line is of; of several the one that was submitted last."""
    if line.written_us is None:
        return None
    fitting = [
        (first, index)
        for index, job in enumerate(found)
        if job.user == line.name.user or not (job.user and line.name.user)
        if (first := job.submitted_us or job.started_us or job.ended_us or 0) <= line.written_us
        if line.written_us - first <= 2 * AGE_US
    ]
    return max(fitting)[1] if fitting else None
