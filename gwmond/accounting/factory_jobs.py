"""What a factory's queue and its summary tell of a pilot, as a job of the factory.

Units: times are microseconds since the epoch.

Facts come by ``Place``: an entry's name and ``cluster.proc``.  Numbers of jobs come again: another
schedd of the factory counts its own, and one that was set up anew begins from 1.  So the facts of
a place may be of several jobs; directory and time tell them apart:

- Events of one directory (instance and user) are of one job up to the next submission, or until
  nothing was told for ``AGE_US``.
- Within a job the last start counts (a job that was evicted starts again, as another pilot does),
  up to the first end after it.  A hold is an end, as the pilot is no longer looked after; if the
  job is released and ends without another start, that end counts.
- A line of the summary tells entry and user.  It is of the latest job of that user that had been
  submitted when it was written; of two lines of one job the later counts.

Invariant: the order in which facts come, and how often, does not matter.

Source: facts page on GlideinWMS, section 1; HTCondor's manual, "Job Event Log Codes".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

from gwmond.accounting.pilot_evidence import (
    CompletedPilot,
    PilotName,
    PilotOutput,
    QueueEvent,
    QueueState,
)

SECOND_US = 1_000_000
AGE_US = 60 * 86400 * SECOND_US
GUARD_US = 3600 * SECOND_US
"""Clocks of a factory and of nodes differ by less, and a summary's rounding is below that."""

ZONES_US = 86400 * SECOND_US
"""Two clocks whose zones are not told differ by less."""

MOST = 200
_CLIENT = re.compile(r"condor_activity_\d{8}_([^/]+)\.log$")
_S = QueueState
_ENDS = frozenset({_S.ENDED, _S.EVICTED, _S.REMOVED, _S.FAILED, _S.HELD})
_ORDER = (_S.SUBMITTED, _S.RELEASED, _S.STARTED, _S.HELD, _S.EVICTED, _S.ENDED, _S.REMOVED)


PlaceFact: TypeAlias = QueueEvent | CompletedPilot | PilotOutput
_F = TypeVar("_F", QueueEvent, CompletedPilot)


class Place(NamedTuple):
    """All that was told of jobs with one number at one entry.

    ``number`` is ``cluster.proc``; events and lines are sorted, each once, without their paths.
    ``checked`` are contradictions that were counted.  ``open``: more may follow from it.
    ``outputs``: of pilots whose output came when each began, None of one that told nothing, and
    by what time the output was counted (its pilot's end, else when it was written).
    """

    entry: str
    number: str
    events: tuple[QueueEvent, ...] = ()
    lines: tuple[CompletedPilot, ...] = ()
    checked: tuple[str, ...] = ()
    open: bool = True
    outputs: tuple[tuple[int | None, int], ...] = ()

    @property
    def name(self) -> str:
        """How it is found."""
        return place_name(self.entry, self.number)

    @property
    def last_us(self) -> int:
        """The latest time that is told."""
        told = [of.at_us for of in self.events] + [of.written_us or 0 for of in self.lines]
        return max([*told, *(at_us for _, at_us in self.outputs)], default=0)

    def told(self, facts: Iterable[PlaceFact]) -> Place:
        """Return it with more facts; of very many the oldest are left out."""
        events, lines, outputs = set(self.events), set(self.lines), list(self.outputs)
        for fact in facts:
            if isinstance(fact, PilotOutput):
                if not _has_come(fact.start_us, outputs):
                    outputs.append((fact.start_us, fact.at_us or 0))
            elif isinstance(bare := _bare(fact), QueueEvent):
                events.add(bare)
            else:
                lines.add(bare)
        return self._replace(
            events=tuple(sorted(_fullest(events), key=_by_time)[-MOST:]),
            lines=tuple(sorted(_fullest(lines), key=_by_writing)[-MOST:]),
            outputs=tuple(outputs[:MOST]),
        )

    def new(self, facts: Iterable[PlaceFact], after: Place) -> list[PlaceFact]:
        """Return which facts it was not told before, each once; ``after`` was told them."""
        known: defaultdict[object, list[PilotName]] = defaultdict(list)
        for of in chain[QueueEvent | CompletedPilot](self.events, self.lines):
            known[_what(of)].append(of.name)
        kept = {_what(of) for of in chain[QueueEvent | CompletedPilot](after.events, after.lines)}
        fresh, found = list(after.outputs[len(self.outputs) :]), list[PlaceFact]()
        for fact in facts:
            if isinstance(fact, PilotOutput):
                if fresh and fresh[0] == (fact.start_us, fact.at_us or 0):
                    found.append(fact)
                    fresh.pop(0)
                continue
            bare = _bare(fact)
            names = known[_what(bare)]
            if not any(_within(bare.name, of) or _within(of, bare.name) for of in names):
                found += [fact] if _what(bare) in kept else []
                names.append(bare.name)
        return found


class FactoryJob(NamedTuple):
    """A pilot as a job of its factory; ``client``: for whom (frontend.group, by the log's name).

    ``written_us``: when each of its lines was written; ``line`` is the last.
    """

    instance: str
    user: str
    client: str
    submitted_us: int | None = None
    started_us: int | None = None
    ended_us: int | None = None
    over: bool = False
    line: CompletedPilot | None = None
    written_us: tuple[int, ...] = ()

    @property
    def duration_us(self) -> int | None:
        """How long its summary says that it lasted; None where that says nothing (0 and -1)."""
        duration = self.line.duration_s if self.line is not None else None
        return duration * SECOND_US if duration else None

    @property
    def life(self) -> tuple[int, int] | None:
        """From when to when it ran: by the queue, else by its summary; None if nothing tells."""
        start, end = self.started_us, self.ended_us
        if end is None and self.line is not None:
            end = self.line.written_us
        if start is None and end is not None and self.duration_us is not None:
            start = end - self.duration_us
        return (start, end) if start is not None and end is not None and start < end else None

    @property
    def settled_us(self) -> int | None:
        """When it was over; None as long as it is not, or nothing tells."""
        if self.over:
            return self.ended_us
        return self.line.written_us if self.line is not None else None

    def fits(self, start_us: int, guard_us: int = GUARD_US) -> bool:
        """Return whether a pilot that began then may be this job."""
        told = [of for of in (self.submitted_us, self.started_us) if of is not None]
        last = self.settled_us
        if not told and last is not None:
            # A factory that was down writes later.
            lasted = AGE_US if self.duration_us is None else self.duration_us + ZONES_US
            told = [last - lasted]
        first = min(told, default=start_us)
        return first - guard_us <= start_us and (last is None or start_us <= last + guard_us)


def place_name(entry: str, number: str) -> str:
    """Return the name of a place."""
    return f"{entry}#{number}"


def jobs(place: Place) -> list[FactoryJob]:
    """Return the jobs that the facts of a place are of, by their first time."""
    by_directory: defaultdict[tuple[str, str], list[QueueEvent]] = defaultdict(list)
    for event in place.events:
        if event.state is _S.PENDING:
            continue
        by_directory[event.name.instance, event.name.user].append(event)
    found = [_job(some) for events in by_directory.values() for some in _split(events)]
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
    return sorted(found, key=lambda of: (of.submitted_us or of.settled_us or 0, of.instance))


def _bare(fact: QueueEvent | CompletedPilot) -> QueueEvent | CompletedPilot:
    """Return a fact without where it was read, and what is of no use here."""
    client = _CLIENT.search(fact.path) if isinstance(fact, QueueEvent) else None
    name = PilotName(
        instance=fact.name.instance,
        user=fact.name.user,
        frontend=client[1] if client else fact.name.frontend,
    )
    if isinstance(fact, CompletedPilot):
        return fact._replace(path="", name=name)
    return QueueEvent("", name, fact.state, fact.at_us)


def _what(fact: QueueEvent | CompletedPilot) -> tuple[object, ...]:
    """Return what is told, without of whom."""
    return fact[2:4] if isinstance(fact, QueueEvent) else fact[2:]


def _within(name: PilotName, other: PilotName) -> bool:
    """Return whether a name tells nothing that the other does not."""
    pairs = zip(name, other, strict=True)
    return all(mine in {None, "", theirs} for mine, theirs in pairs)


def _fullest(facts: set[_F]) -> Iterable[_F]:
    """Return facts without those that another tells too, and more of whose it is.

    A copy of a log at another path tells less of that, or as much.
    """
    same: defaultdict[tuple[object, ...], list[_F]] = defaultdict(list)
    for fact in facts:
        same[_what(fact)].append(fact)
    if len(same) == len(facts):
        return facts
    return [
        fact
        for some in same.values()
        for fact in some
        if not any(of is not fact and _within(fact.name, of.name) for of in some)
    ]


def _has_come(start_us: int | None, outputs: Iterable[tuple[int | None, int]]) -> bool:
    """Return whether outputs are of a pilot that began then; one that is empty is of any."""
    return any(None in {of, start_us} or of == start_us for of, _ in outputs)


def _by_time(event: QueueEvent) -> tuple[object, ...]:
    rank = _ORDER.index(event.state) if event.state in _ORDER else len(_ORDER)
    return event.at_us, rank, event.name


def _by_writing(line: CompletedPilot) -> tuple[object, ...]:
    return line.written_us or 0, repr(line)


def _with(job: FactoryJob, line: CompletedPilot) -> FactoryJob:
    return job._replace(line=line, written_us=(*job.written_us, line.written_us or 0))


def _age(one: CompletedPilot, later: CompletedPilot) -> int:
    return (later.written_us or 0) - (one.written_us or 0)


def _split(events: Sequence[QueueEvent]) -> Iterable[list[QueueEvent]]:
    """Divide the events of a directory into those of each job."""
    some: list[QueueEvent] = []
    for event in events:
        again = event.state is _S.SUBMITTED and any(of.state is not _S.SUBMITTED for of in some)
        if some and (again or event.at_us - some[-1].at_us > AGE_US):
            yield some
            some = []
        some.append(event)
    if some:
        yield some


def _job(events: Sequence[QueueEvent]) -> FactoryJob:
    submitted = started = ended = None
    state: QueueState | None = None
    for event in events:
        if event.state is _S.SUBMITTED:
            submitted = event.at_us if submitted is None else submitted
        elif event.state is _S.STARTED:
            if started is None or ended is not None:
                started, ended = event.at_us, None
        elif event.state in _ENDS and (ended is None or state is _S.RELEASED):
            ended = event.at_us
        state = event.state
    name, client = events[-1].name, max(of.name.frontend for of in events)
    over = state in _ENDS and state is not _S.HELD
    return FactoryJob(name.instance, name.user, client, submitted, started, ended, over)


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
