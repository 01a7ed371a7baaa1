"""Pilots as jobs of their factory: from the events of a queue to what ran, and when.

Units: times are microseconds since the epoch.

The events of one directory (instance and user) and one number are of one job up to the next
submission, or until nothing was told for ``AGE_US``.  Within a job:

- Each start is one execution, hence one pilot: a job that was evicted, or held and released, runs
  glidein_startup.sh anew, on whatever node, and its stdout replaces that of before.
- An execution lasts up to the first end after its start.  A hold is an end, as the pilot is no
  longer looked after; if the job is released and ends without another start, that end counts.
- The submission is that of the first execution; those after it begin with their start.

Two factories may have directories of one name, with the same number in use at the same time.
That shows: a submission while a job that has started goes on, or a job that ends twice (within
``GUARD_US`` two copies of a log may differ).  Then it cannot be told what is whose, and all of it
is one job that is ``mixed``.

Source: facts page on GlideinWMS, section 1; HTCondor's manual, "Job Event Log Codes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gwmond.accounting.pilot_evidence import CompletedPilot, QueueEvent, QueueState

SECOND_US = 1_000_000
AGE_US = 60 * 86400 * SECOND_US
GUARD_US = 3600 * SECOND_US
"""Clocks of a factory and of nodes differ by less, and a summary's rounding is below that."""

ZONES_US = 86400 * SECOND_US
"""Two clocks whose zones are not told differ by less."""

_S = QueueState
_ENDS = frozenset({_S.ENDED, _S.EVICTED, _S.REMOVED, _S.FAILED, _S.HELD})
_LEFT = frozenset({_S.ENDED, _S.REMOVED})


class FactoryJob(NamedTuple):
    """A pilot as a job of its factory; ``client``: for whom (frontend.group, by the log's name).

    - ``written_us``: when each of its lines was written; ``line`` is the last.
    - ``first_us``: when the job was told of first, the same for all of its executions.
    - ``mixed``: events of several jobs, which cannot be told apart.
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
    first_us: int | None = None
    mixed: bool = False

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

    @property
    def runs(self) -> bool:
        """Whether the queue tells that it has started, and nothing that it ended."""
        return self.started_us is not None and self.ended_us is None and self.line is None

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


def queue_jobs(events: Sequence[QueueEvent]) -> Iterable[FactoryJob]:
    """Yield the executions that the events of a directory tell of, which are sorted by time."""
    for some in _split(events):
        yield from _executions(some)


def _split(events: Sequence[QueueEvent]) -> Iterable[list[QueueEvent]]:
    """Divide the events of a directory into those of each job."""
    some: list[QueueEvent] = []
    for event in events:
        again = event.state is _S.SUBMITTED and not _goes_on(some)
        if some and (again or event.at_us - some[-1].at_us > AGE_US):
            yield some
            some = []
        some.append(event)
    if some:
        yield some


def _goes_on(some: Sequence[QueueEvent]) -> bool:
    """Return whether jobs that these events tell of had not ended with the last of them."""
    states = [of.state for of in some]
    left = sum(state in _LEFT for state in states)
    if states.count(_S.SUBMITTED) > max(1, left) or set(states) == {_S.SUBMITTED}:
        return True
    turns = [state for state in states if state is _S.STARTED or state in _ENDS]
    return turns[-1:] == [_S.STARTED]


def _mixed(some: Sequence[QueueEvent]) -> bool:
    """Return whether events of several jobs are among these, of which any has started."""
    states = [of.state for of in some]
    if _S.STARTED not in states:
        return False
    ends = [of.at_us for of in some if of.state is _S.ENDED]
    return _S.SUBMITTED in states[1:] or (bool(ends) and ends[-1] - ends[0] > GUARD_US)


def _executions(events: Sequence[QueueEvent]) -> Iterable[FactoryJob]:
    mixed = _mixed(events)
    name, client = events[-1].name, max(of.name.frontend for of in events)
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
                job = job._replace(started_us=event.at_us, ended_us=None)
        elif event.state in _ENDS and (ended is None or state is _S.RELEASED or mixed):
            job = job._replace(ended_us=event.at_us)
        state = event.state
    yield job._replace(over=state in _ENDS and state is not _S.HELD)
