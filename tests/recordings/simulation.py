"""A simple model of a GlideinWMS pool: schedds, negotiator, frontends, factories and sites.

A step is five minutes.  What the model leaves out (priorities of users, files) no ad of the demo
would show.  Which job runs where, and how that ends, is in ``runs``.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sin, tau

from tests.recordings import scenario
from tests.recordings.frontend import Frontends
from tests.recordings.kinds import DAY_H, Kind
from tests.recordings.runs import Ended, How, Run, Runs
from tests.recordings.world import SEED, Entry

STEP_S = 300
IDLE_STEPS = 4  # GLIDEIN_Max_Idle of 20 minutes
MAX_A_CYCLE = 10  # pilots which a factory submits at one entry for one group in a step
MAX_HELD = 12
LONGEST_S = 22 * 3600
LAST_JOBS_S = 10 * 3600
GHOST_S = 900  # CLASSAD_LIFETIME
FIRST_STEP = 4  # of the day at which a simulation has run warm


@dataclass(eq=False, slots=True)
class Pilot:
    """One running pilot, the runs of jobs on it, and those that have ended there.

    ``heard`` is when a collector heard of it last, if it was killed.  It retires when a step
    begins, so that between two steps no pilot changes by itself.
    """

    serial: int
    entry: Entry
    group: str
    started: int
    retires: int
    dies: int
    cores: int
    memory_mib: int
    gpus: int
    jobs: list[Run] = field(default_factory=list)
    past: list[Ended] = field(default_factory=list)
    job_starts: int = 0
    idle_since: int = 0
    heard: int | None = None


@dataclass(slots=True)
class Queue:
    """Pilots of one group that the factory has submitted at one entry, and what was asked."""

    waiting: list[int] = field(default_factory=list)  # steps in which they were submitted
    held: list[int] = field(default_factory=list)


class Simulation:
    """The pool; ``step`` advances it by five minutes."""

    def __init__(
        self, entries: tuple[Entry, ...], kinds: tuple[Kind, ...], begins: int, warm_up: int
    ) -> None:
        """Run ``warm_up`` steps; ``begins`` is when the first hour of the day begins (epoch)."""
        self.entries, self.kinds = entries, kinds
        self.number = FIRST_STEP - warm_up
        self.pilots: dict[Entry, list[Pilot]] = {entry: [] for entry in entries}
        self.queues = {(e, g): Queue() for e in entries for g in e.groups}
        self.idle: list[float] = [0.0] * len(kinds)
        self.running: list[int] = [0] * len(kinds)
        self.frontends = Frontends(entries, kinds)
        self.runs = Runs(kinds)
        self.ghosts: list[Pilot] = []
        self._begins = begins
        self._draw = random.Random(SEED + 1)
        self._serial = 10_000
        self._kinds_at = {
            entry: [i for i, kind in enumerate(kinds) if kind.runs_at(entry)] for entry in entries
        }
        self._phase = {entry: (self._draw.random(), self._draw.uniform(3, 9)) for entry in entries}
        for _ in range(warm_up):
            self.step()

    @property
    def now(self) -> int:
        """Epoch of the present step."""
        return self._begins + self.number * STEP_S

    @property
    def hour(self) -> float:
        """Hour of the day."""
        return self.number * STEP_S / 3600 % DAY_H

    def all_pilots(self) -> Iterator[Pilot]:
        """Every running pilot, by entry."""
        for pilots in self.pilots.values():
            yield from pilots

    def step(self) -> None:
        """Go on by one step."""
        self.number += 1
        self._arrive()
        for kind in self.runs.later(self.now):
            self.idle[kind] += 1
        self.ghosts = [ghost for ghost in self.ghosts if (ghost.heard or 0) + GHOST_S > self.now]
        for entry in self.entries:
            self._end(entry)
        self._start()
        self._dispatch()
        self.frontends.ask(self)
        self._submit()

    def forget_before(self, time: int) -> None:
        """Let no pilot have begun much before: else what ran on all of them had to be told.

        Nor may one last until its namesake of the next pass begins.
        """
        for pilot in self.all_pilots():
            pilot.dies = min(pilot.dies, time + LONGEST_S)
            retires = min(pilot.retires, pilot.dies - LAST_JOBS_S)
            pilot.retires = -(-retires // STEP_S) * STEP_S  # when a step begins
            if pilot.started < time:
                pilot.started = self.runs.moment(time) - 60
                pilot.past = [done for done in pilot.past if done.end > time]
                for run in (*pilot.jobs, *(done.run for done in pilot.past)):
                    run.begin_after(time)

    def _arrive(self) -> None:
        until = self.hour or DAY_H
        for index, kind in enumerate(self.kinds):
            for ahead in (0.0, DAY_H):
                span = until - STEP_S / 3600 + ahead, until + ahead
                self.idle[index] += sum(wave.arriving(*span) for wave in kind.waves)
            if until - STEP_S / 3600 < kind.removed_h <= until:
                self.idle[index] = 0.0
                self.runs.forget(index)

    # -- pilots end

    def _end(self, entry: Entry) -> None:
        lost = entry.site in scenario.LOST and scenario.any_holds(scenario.DOWN, entry, self.hour)
        preempts = scenario.PREEMPTS.get(entry.site, 0.0)
        kept = []
        for pilot in self.pilots[entry]:
            for run in [run for run in pilot.jobs if run.ends <= self.number]:
                self._free(pilot, run, run.plan.how, self.runs.moment(self.now))
            killed = lost or self.runs.chance(scenario.DIES)
            gone = killed or pilot.dies <= self.now or self.runs.chance(preempts)
            useless = not pilot.jobs and (
                pilot.retires <= self.now or self.number - pilot.idle_since >= IDLE_STEPS
            )
            if gone:
                self._cut_off(pilot, killed=killed)
            elif not useless:
                kept.append(pilot)
        self.pilots[entry] = kept

    def _cut_off(self, pilot: Pilot, *, killed: bool) -> None:
        """End a pilot with all that runs; of one that is killed the ads stay for a while."""
        jobs = list(pilot.jobs)
        at = min(pilot.dies, self.now - 150) if pilot.dies <= self.now else self.now - 150
        for run in jobs:
            self._free(pilot, run, How.LOST if killed else How.EVICTED, at)
        if killed:
            pilot.jobs, pilot.heard = jobs, at - 60
            self.ghosts.append(pilot)

    def _free(self, pilot: Pilot, run: Run, how: How, at: int) -> None:
        kind = self.kinds[run.kind]
        pilot.jobs.remove(run)
        pilot.cores += kind.cores
        pilot.memory_mib += kind.memory_mib
        pilot.gpus += kind.gpus
        pilot.idle_since = self.number
        self.running[run.kind] -= 1
        self.idle[run.kind] += self.runs.end(run, pilot, how, at)

    # -- pilots start

    def room(self, entry: Entry) -> int:
        """How many pilots the site runs for us now: others come and go."""
        phase, period_h = self._phase[entry]
        tide = 1 + 0.2 * sin(tau * (phase + self.number * STEP_S / 3600 / period_h))
        return round(entry.max_pilots * min(entry.room * tide, 1.0))

    def _start(self) -> None:
        for entry in self.entries:
            if scenario.any_holds(scenario.DOWN, entry, self.hour):
                continue
            rate = 2 + entry.max_pilots // 8
            self._start_at(entry, min(rate, self.room(entry) - len(self.pilots[entry])), 1)

    def _start_at(self, entry: Entry, most: int, least_wait: int) -> None:
        waiting = sorted(
            (submitted, group)
            for group in entry.groups
            for submitted in self.queues[entry, group].waiting
            if self.number - submitted >= least_wait + 2 * entry.slow_to_acknowledge
        )
        for submitted, group in waiting[: max(most, 0)]:
            self.queues[entry, group].waiting.remove(submitted)
            self._serial += 1
            started = self.now - 10 * self._draw.randint(13, 29)
            self.pilots[entry].append(
                Pilot(self._serial, entry, group, started, self.now + entry.retires_after_s,
                      started + entry.walltime_s, entry.cores, entry.memory_mib, entry.gpus,
                      idle_since=self.number)
            )  # fmt: skip

    # -- jobs start

    def _dispatch(self) -> None:
        for entry in self.entries:
            for pilot in self.pilots[entry]:
                if pilot.cores > 0 and pilot.retires > self.now:
                    self._fill(pilot)

    def _fill(self, pilot: Pilot) -> None:
        left = pilot.dies - self.now
        for index in self._kinds_at[pilot.entry]:
            kind = self.kinds[index]
            if kind.hours * 3600 > left:
                continue
            while (
                self.idle[index] >= 1
                and kind.cores <= pilot.cores
                and kind.memory_mib <= pilot.memory_mib
                and kind.gpus <= pilot.gpus
            ):
                length = kind.hours * 12 * self._draw.uniform(0.35, 0.95)
                steps = max(2, round(length))
                run = self.runs.start(index, pilot, self.now, self.number, steps)
                pilot.jobs.append(run)
                pilot.cores -= kind.cores
                pilot.memory_mib -= kind.memory_mib
                pilot.gpus -= kind.gpus
                pilot.job_starts += 1
                self.idle[index] -= 1
                self.running[index] += 1
            if pilot.cores == 0:
                return

    # -- the factory

    def acknowledged(self, entry: Entry, submitted: int) -> bool:
        """Whether the site reports a pilot that waits since then."""
        return self.number - submitted >= 2 * entry.slow_to_acknowledge

    def existing(self, entry: Entry) -> int:
        """Pilots that count against the entry's limit."""
        queued = (self.queues[entry, group] for group in entry.groups)
        return len(self.pilots[entry]) + sum(len(q.waiting) + len(q.held) for q in queued)

    def _submit(self) -> None:
        for (entry, group), queue in self.queues.items():
            held = scenario.any_holds(scenario.HELD, entry, self.hour)
            if held:
                queue.held += queue.waiting
                queue.waiting = []
            elif queue.held and self.number % 6 == 0:
                queue.held = queue.held[4:]
            if any(
                scenario.any_holds(times, entry, self.hour)
                for times in (scenario.DOWN, scenario.STUCK, scenario.SILENT)
            ):
                if scenario.any_holds(scenario.DOWN, entry, self.hour):
                    queue.waiting = []
                continue
            asked = self.frontends.requests[entry, group].idle
            wanted = asked - len(queue.waiting) - len(queue.held)
            allowed = min(entry.max_pilots - self.existing(entry), self._left(entry, group))
            if queue.held:
                allowed = min(allowed, MAX_HELD - len(queue.held))
            count = max(0, min(wanted, allowed, MAX_A_CYCLE))
            (queue.held if held else queue.waiting).extend([self.number] * count)
            if entry.at_once:
                self._start_at(entry, self.room(entry) - len(self.pilots[entry]), 0)

    def _left(self, entry: Entry, group: str) -> int:
        """How many more pilots of the group's frontend the factory's limit allows."""
        if entry.name not in scenario.PER_FRONTEND:
            return entry.max_pilots
        return scenario.PER_FRONTEND[entry.name] - self.of_frontend(entry, group)

    def of_frontend(self, entry: Entry, group: str) -> int:
        """Pilots of a group's frontend at an entry."""
        frontend = group.partition(".")[0]
        queued = sum(
            len(self.queues[entry, other].waiting) + len(self.queues[entry, other].held)
            for other in entry.groups
            if other.partition(".")[0] == frontend
        )
        running = sum(p.group.partition(".")[0] == frontend for p in self.pilots[entry])
        return queued + running

    # -- sums

    def running_by(self) -> dict[tuple[int, str, str], int]:
        """Running jobs by schedd, accounting group and owner."""
        sums: defaultdict[tuple[int, str, str], int] = defaultdict(int)
        for kind, count in zip(self.kinds, self.running, strict=True):
            sums[kind.schedd, kind.accounting_group, kind.owner] += count
        return dict(sums)

    def groups_of(self, entry: Entry) -> Counter[str]:
        """Running pilots of each group at an entry."""
        return Counter(pilot.group for pilot in self.pilots[entry])
