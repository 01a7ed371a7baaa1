"""A pilot as a job of its factory.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, TypeAlias

from gwmond.model.pilots.file_facts import CompletedPilot, QueueEvent
from gwmond.model.pilots.pilot_facts import QueueFacts
from gwmond.model.times import SECOND_US

AGE_US = 60 * 86400 * SECOND_US
"""A pilot's job lasts at most this long; a started one without further events has ended by then."""

MOST = 200
"""At most this many events, and lines, are kept of one place; the oldest are left out."""

GUARD_US = 3600 * SECOND_US
"""Clocks of a factory and of nodes differ by less, and a summary's rounding is below that."""

ZONES_US = 86400 * SECOND_US
"""Two clocks whose time zones are not known differ by less."""

Output: TypeAlias = tuple[int | None, int]
"""When a pilot began (None: unknown), and when its output was last written."""


class FactoryJob(NamedTuple):
    """A pilot as a job of its factory; ``client``: for whom (frontend.group, by the log's name).

    - ``written_us``: when each of its lines was written; ``line`` is the last.
    - ``first_us``: the first record of the job, the same for all of its executions.
    - ``killed``: it ended by a signal.
    - ``next_us``: when another job with its number was submitted, which ends it.
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
    next_us: int | None = None
    killed: bool = False

    @property
    def duration_us(self) -> int | None:
        """How long its summary says that it lasted; None where that says nothing (0 and -1)."""
        duration = self.line.duration_s if self.line is not None else None
        return duration * SECOND_US if duration else None

    @property
    def life(self) -> tuple[int, int] | None:
        """When it ran: by the queue, else by its summary; None if not known."""
        return self.facts.life

    @property
    def facts(self) -> QueueFacts:
        """Its times, as facts of the pilot that it is."""
        written_us = self.line.written_us if self.line is not None else None
        times = self.started_us, self.ended_us, written_us, self.duration_us
        return QueueFacts(*times, self.killed)

    @property
    def settled_us(self) -> int | None:
        """When it was over, at the latest; None if it is not over, or not known."""
        if self.over:
            return self.ended_us
        return self.line.written_us if self.line is not None else self.next_us

    @property
    def runs(self) -> bool:
        """Whether the queue recorded its start, and no source its end."""
        return self.started_us is not None and self.ended_us is None and self.settled_us is None

    def due_us(self, read_us: int, quiet_us: int) -> int | None:
        """When gwmond stops waiting for more (``read_us``: the last reading); None: not over."""
        if self.runs and self.started_us is not None:
            return self.started_us + AGE_US
        return None if self.settled_us is None else max(read_us, self.settled_us) + quiet_us

    def fits(self, start_us: int, guard_us: int = GUARD_US) -> bool:
        """Return whether a pilot that began then may be this job."""
        first, last = self.start_within_us(guard_us)
        return first <= start_us <= last

    def start_within_us(self, guard_us: int = GUARD_US) -> tuple[float, float]:
        """Return when a pilot that is this job may have begun: infinite where nothing says so."""
        times = [time_us for time_us in (self.submitted_us, self.started_us) if time_us is not None]
        last = self.settled_us
        if not times and last is not None:
            # A factory that was down writes later.
            lasted = AGE_US if self.duration_us is None else self.duration_us + ZONES_US
            times = [last - lasted]
        if last is not None and last != self.next_us:
            last += guard_us  # those after the next submission are of that
        return min(times, default=-inf) - guard_us, inf if last is None else last


class QueueRecord(NamedTuple):
    """All records of jobs with one number at one entry.

    ``number`` is ``cluster.proc``; events and lines are sorted, each once, without their paths.
    ``checked`` are contradictions that were counted.  ``open``: more may follow from it.
    ``outputs`` are those of pilots that came (see ``pilots.factory.records``).
    """

    entry: str
    number: str
    events: tuple[QueueEvent, ...] = ()
    lines: tuple[CompletedPilot, ...] = ()
    checked: tuple[str, ...] = ()
    open: bool = True
    outputs: tuple[Output, ...] = ()

    @property
    def name(self) -> str:
        """How it is found."""
        return place_name(self.entry, self.number)

    @property
    def last_us(self) -> int:
        """The latest time in the records."""
        times = [event.at_us for event in self.events] + [
            line.written_us or 0 for line in self.lines
        ]
        return max([*times, *(at_us for _, at_us in self.outputs)], default=0)

    @property
    def cut_us(self) -> int:
        """Records before this may have been left out; 0 if none were."""
        first = [event.at_us for event in self.events[:1] if len(self.events) >= MOST]
        first += [line.written_us or 0 for line in self.lines[:1] if len(self.lines) >= MOST]
        return max(first, default=0)

    def written_us(self, start_us: int) -> int | None:
        """When the output of the pilot that began then was last written, if that is known."""
        written = dict(self.outputs)
        return written.get(start_us, written.get(None)) or None


def place_name(entry: str, number: str) -> str:
    """Return the name of a place."""
    return f"{entry}#{number}"
