"""The parts of the simulated pool: jobs, their runs, pilots, queues of pilots, requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tests.simulator.story import What
from tests.simulator.world import DOMAIN, KINDS, Entry, Kind

LEASE_S = 2400
"""A job of a pilot that was lost is idle again after this."""


class How(StrEnum):
    """How a run ends."""

    EXIT = "exit"  # whatever its code
    SIGNAL = "signal"
    STAGE_IN = "stage_in"
    REMOVED = "removed"
    HELD_BY_USER = "held_by_user"
    HELD_FOR_MEMORY = "held_for_memory"
    EVICTED = "evicted"
    LOST = "lost"


HELD = (How.STAGE_IN, How.HELD_BY_USER, How.HELD_FOR_MEMORY)


@dataclass(eq=False, slots=True)
class Job:
    """One job; ``first`` and ``last`` are the starts of its first run and the one before this.

    ``since``: idle again since then; 0 before its first run.
    """

    index: int
    schedd: str
    cluster: int
    proc: int
    queued: int
    starts: int = 0
    first: int = 0
    last: int = 0
    since: int = 0

    @property
    def kind(self) -> Kind:
        """What it is like."""
        return KINDS[self.index]

    @property
    def id(self) -> str:
        """Its GlobalJobId."""
        return f"{self.schedd}#{self.cluster}.{self.proc}#{self.queued}"


class Plan(NamedTuple):
    """How a run is going to end if its pilot lasts: after so many seconds, why, with which code."""

    how: How
    seconds: int
    code: int = 0
    cause: What | None = None


@dataclass(eq=False, slots=True)
class Run:
    """A run of a job in a slot of a pilot; the last four are known when it has ended."""

    job: Job
    number: int
    slot: int
    claim: int
    start: int
    first: int
    last: int
    plan: Plan
    how: How | None = None
    end: int = 0
    written: int = 0

    @property
    def ends(self) -> int:
        """When it ends if its pilot lasts."""
        return self.start + self.plan.seconds


@dataclass(eq=False, slots=True)
class Pilot:
    """One pilot.  ``started``: on the node; ``ready``: validated, or not (``fails``).

    ``end`` is 0 while it lasts; ``heard`` is when a collector heard of it last, if it was killed.
    """

    serial: int
    entry: Entry
    group: str
    submitted: int
    started: int
    ready: int
    retires: int
    dies: int
    node: str
    fails: bool
    cores: int
    memory_mib: int
    gpus: int
    jobs: list[Run] = field(default_factory=list)
    past: list[Run] = field(default_factory=list)
    claims: int = 0
    idle_since: int = 0
    end: int = 0
    heard: int = 0

    @property
    def name(self) -> str:
        """The name of its startd."""
        number = f"{self.serial}_{self.serial % 1000}" if self.fails else self.serial
        return f"glidein_{number}@{self.node}.{DOMAIN}"

    def registered(self, now: int) -> bool:
        """Whether a collector knows its startd."""
        return self.ready <= now and not self.fails


class Waiting(NamedTuple):
    """A pilot in a site's queue, which starts no sooner than ``least_s`` after its submission."""

    submitted: int
    least_s: int


class Left(NamedTuple):
    """A job that left the queue, at a time, and its last run; ``held``: from being held."""

    last: Run
    pilot: Pilot
    at: int
    removed: bool
    held: bool


@dataclass(slots=True)
class Queue:
    """Pilots of a group that the factory has submitted at an entry and that do not run."""

    waiting: list[Waiting] = field(default_factory=list)
    held: list[Waiting] = field(default_factory=list)


@dataclass(slots=True)
class Request:
    """What a frontend group counts at an entry, and how many waiting pilots it wants there."""

    matching: int = 0
    proportional: float = 0.0
    unique: int = 0
    effective: int = 0
    slots_idle: int = 0
    slots_running: int = 0
    idle: int = 0
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
