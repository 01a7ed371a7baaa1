"""The identities of the model's jobs: which job runs where, in which run, and how that ends.

All that ends in a step ends in its first half, and all that begins does so in its second: so slots
are free before they are used again.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from tests.recordings import scenario
from tests.recordings.kinds import Kind
from tests.recordings.world import DOMAIN, SEED, Entry

if TYPE_CHECKING:
    from tests.recordings.simulation import Pilot

PROCS = 500  # jobs of a cluster
STEP_S = 300
LEASE_S = 2400
NODES = 89


class How(StrEnum):
    """How a run ends."""

    EXIT = "exit"  # whatever its code
    SIGNAL = "signal"
    RETRIED = "retried"  # it fails at once, and its user has it run again
    STAGE_IN = "stage_in"
    CONTAINER = "container"
    REMOVED = "removed"
    HELD_BY_USER = "held_by_user"
    HELD_FOR_MEMORY = "held_for_memory"
    NO_OUTPUT = "no_output"
    EVICTED = "evicted"
    LOST = "lost"


HELD = (How.STAGE_IN, How.CONTAINER, How.HELD_BY_USER, How.HELD_FOR_MEMORY, How.NO_OUTPUT)


@dataclass(eq=False, slots=True)
class Job:
    """One job; ``first`` and ``last`` are the starts of its first run and the one before this."""

    kind: int
    schedd: str
    cluster: int
    proc: int
    queued: int
    starts: int = 0
    first: int = 0
    last: int = 0

    @property
    def id(self) -> str:
        """Its GlobalJobId."""
        return f"{self.schedd}#{self.cluster}.{self.proc}#{self.queued}"


class Plan(NamedTuple):
    """How a run is going to end if its pilot lasts: after so many steps, with which code."""

    how: How
    steps: int
    code: int = 0


@dataclass(eq=False, slots=True)
class Run:
    """A run of a job in a slot of a pilot; ``ends`` is the step before which it ends."""

    kind: int
    ends: int
    job: Job
    number: int
    slot: int
    claim: int
    start: int
    first: int
    last: int
    plan: Plan

    def begin_after(self, time: int) -> None:
        """Let it begin later than it did."""
        self.start = max(self.start, time)
        self.first = max(self.first, time - (self.number - 1) * STEP_S)
        self.last = min(self.last, self.start)


class Ended(NamedTuple):
    """A run that is over; ``written`` is when its shadow said so.  ``left``: the job's last."""

    run: Run
    pilot: Pilot
    how: How
    end: int
    written: int


class Left(NamedTuple):
    """A job that left the queue, at a time, and its last run; ``held``: from being held."""

    last: Ended
    at: int
    removed: bool
    held: bool


@dataclass(slots=True)
class Told:
    """What schedds have written since it was last taken."""

    epochs: list[Ended] = field(default_factory=list)
    history: list[Left] = field(default_factory=list)


class Runs:
    """Jobs that have an identity, by kind; ``told`` is what is new in the histories."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self._kinds = kinds
        self._draw = random.Random(SEED + 2)
        self._again: defaultdict[int, deque[Job]] = defaultdict(deque)
        self._cluster = [1000 * (1 + number) for number in range(len(kinds))]
        self._proc = [0] * len(kinds)
        self._queued = [0] * len(kinds)
        self._later: list[tuple[int, Ended]] = []
        self.told = Told()

    def start(self, index: int, pilot: Pilot, now: int, number: int, steps: int) -> Run:
        """Start a job of a kind on a pilot, just before the step ``number``, which is now."""
        job = self._again[index].popleft() if self._again[index] else self._new(index, now)
        plan = self._plan(index, pilot, steps, (number % 288) / 12)
        start = now - self._draw.randint(20, 110)
        used = {run.slot for run in pilot.jobs}
        slot = next(n for n in range(1, len(used) + 2) if n not in used)
        job.starts += 1
        job.first = job.first or start
        run = Run(
            index, number + plan.steps, job, job.starts, slot, pilot.job_starts + 1, start,
            job.first, job.last, plan,
        )  # fmt: skip
        job.last = start
        return run

    def _new(self, index: int, now: int) -> Job:
        if self._proc[index] % PROCS == 0:
            self._cluster[index] += 1
            self._queued[index] = now - 600
        proc = self._proc[index] % PROCS
        self._proc[index] += 1
        schedd = f"schedd{self._kinds[index].schedd + 1}@{DOMAIN}"
        return Job(index, schedd, self._cluster[index], proc, self._queued[index])

    def _plan(self, index: int, pilot: Pilot, steps: int, hour: float) -> Plan:
        """Decide how a run ends."""
        draw = self._draw
        found = self._failure(self._kinds[index], pilot, hour)
        if found is not None:
            return found
        chance = draw.random()
        sooner = max(1, round(steps * draw.uniform(0.1, 0.9)))
        for share, how, code in scenario.ENDINGS:
            if chance < share:
                return Plan(How(how), sooner, code)
            chance -= share
        if draw.random() < scenario.OVERLONG:
            return Plan(How.EXIT, round(steps * draw.uniform(1.5, 3)))
        return Plan(How.EXIT, steps)

    def _failure(self, kind: Kind, pilot: Pilot, hour: float) -> Plan | None:
        """Return how a run fails at its beginning, None if it does not."""
        draw, entry = self._draw, pilot.entry
        if sick(pilot, hour) and draw.random() < 0.8:
            again = not kind.name.startswith("analysis")
            return Plan(How.RETRIED if again else How.EXIT, 1, 1)
        if _among(draw, scenario.NO_STAGE_IN, entry, hour):
            return Plan(How.STAGE_IN, 1)
        if _among(draw, scenario.NO_CONTAINER, entry, hour):
            return Plan(How.CONTAINER, 1)
        if kind.name in scenario.BROKEN and draw.random() < 0.15:
            return Plan(How.EXIT, 1, 2)
        return None

    def end(self, run: Run, pilot: Pilot, how: How, end: int) -> bool:
        """End a run; return whether its job is idle again at once."""
        if how is How.LOST:
            self._later.append((end + LEASE_S, Ended(run, pilot, how, end, end + LEASE_S)))
            return False
        done = Ended(run, pilot, how, end, end)
        self._write(done)
        if how in HELD:
            after = self._draw.choice((12, 18, 24)) * STEP_S
            self._later.append((end + after, done))
        elif how in (How.EXIT, How.SIGNAL, How.REMOVED):
            self.told.history.append(Left(done, end, how is How.REMOVED, held=False))
        else:
            self._again[run.kind].append(run.job)
            return True
        return False

    def _write(self, done: Ended) -> None:
        self.told.epochs.append(done)
        done.pilot.past.append(done)

    def later(self, now: int) -> list[int]:
        """Go on with what was held or lost; return the kinds of which a job is idle again."""
        due = [of for of in self._later if of[0] <= now]
        self._later = [of for of in self._later if of[0] > now]
        idle = []
        for at, done in due:
            if done.how is How.LOST:
                self._write(done)
            elif self._draw.random() < 0.4:
                self.told.history.append(Left(done, at, removed=True, held=True))
                continue
            self._again[done.run.kind].append(done.run.job)
            idle.append(done.run.kind)
        return idle

    def forget(self, index: int) -> None:
        """The user removes the idle jobs of a kind."""
        self._again[index].clear()

    def moment(self, now: int) -> int:
        """Return a time in the first half of the step that ends now."""
        return now - STEP_S + self._draw.randint(10, 140)

    def chance(self, an_hour: float) -> bool:
        """Draw for what happens that often an hour, once a step."""
        return self._draw.random() < an_hour / 12


def node(pilot: Pilot) -> str:
    """The worker node on which a pilot runs."""
    return f"wn{pilot.serial % NODES:02}.{pilot.entry.site.lower()}.{DOMAIN}"


def sick(pilot: Pilot, hour: float) -> bool:
    """Whether a pilot's node breaks what runs there."""
    some = pilot.serial % NODES % scenario.SICK_NODES == 1
    return some and scenario.any_holds(scenario.SICK, pilot.entry, hour)


def _among(
    draw: random.Random, of: tuple[tuple[scenario.Times, float], ...], entry: Entry, hour: float
) -> bool:
    share = sum(part for times, part in of if times.holds(entry, hour))
    return share > 0 and draw.random() < share
