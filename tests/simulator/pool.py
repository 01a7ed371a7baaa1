"""The simulated pool: users, schedds, negotiator, frontend, factory and sites, minute by minute.

What ends in a minute ends before the negotiator's cycle at its end, and what it matches begins
then.  Units: epoch seconds, MiB.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from math import ceil, exp, sin, tau

from tests.simulator import story
from tests.simulator.parts import (
    HELD,
    LEASE_S,
    How,
    Job,
    Left,
    Pilot,
    Plan,
    Queue,
    Request,
    Run,
    Waiting,
)
from tests.simulator.story import EVENTS, Event, What, holding
from tests.simulator.world import BEGINS, ENTRIES, KINDS, SCHEDDS, SEED, STARTS, Entry

STEP_S = 60
ASKS_S = 300
CYCLE_S = 3
"""The negotiator's cycle ends so long after what ends in a minute."""
REGISTERS_S = 15
"""The negotiator sees a startd so long after it is ready."""
MAX_IDLE_S, MAX_TAIL_S = 1200, 400
MAX_A_CYCLE, MAX_HELD = 10, 12
AD_LIFETIME_S = 900
HALF_LIFE_S = 86400.0
NODES = 9


class Pool:
    """The pool; ``step`` advances it by a minute.  ``ended`` are all pilots that are over."""

    def __init__(self, seed: int = SEED, events: Iterable[Event] = EVENTS) -> None:
        self.now = BEGINS
        self.events = tuple(events)
        self.pilots: dict[Entry, list[Pilot]] = {entry: [] for entry in ENTRIES}
        self.queues = {(e, g): Queue() for e in ENTRIES for g in e.groups}
        self.requests = {berth: Request() for berth in self.queues}
        self.idle: list[deque[Job]] = [deque() for _ in KINDS]
        self.ended: list[Pilot] = []
        self.ghosts: list[Pilot] = []
        self.epochs: list[tuple[Run, Pilot]] = []
        self.history: list[Left] = []
        self._draw = random.Random(seed)
        self._serial, self._cluster = 10_000, 1000
        self._due = [0.0] * len(KINDS)  # jobs to be submitted
        self.later: list[tuple[int, Run, Pilot]] = []
        self._tide, self._begun = dict.fromkeys(ENTRIES, 0.0), dict.fromkeys(ENTRIES, 0)
        self.running: defaultdict[str, int] = defaultdict(int)  # cores by owner
        self.usage: defaultdict[str, float] = defaultdict(lambda: 1.0)
        self.berths = [
            [(e, g) for e in ENTRIES for g in e.groups if kind.runs_at(e, g)] for kind in KINDS
        ]

    @property
    def hour(self) -> float:
        """Hours since the beginning."""
        return (self.now - BEGINS) / 3600

    def _holding(self, what: What) -> dict[str, float]:
        """Return where something holds now, and its share."""
        return holding(self.events, what, self.hour)

    def all_pilots(self) -> Iterator[Pilot]:
        """Every pilot on a node, by entry."""
        for pilots in self.pilots.values():
            yield from pilots

    def step(self) -> None:
        """Go on by a minute."""
        self.now += STEP_S
        self._submit_jobs()
        self._go_on()
        self.ghosts = [g for g in self.ghosts if g.heard + AD_LIFETIME_S > self.now]
        for entry in ENTRIES:
            self._drift(entry)
            self._end(entry)
            self._start(entry)
        self._negotiate()
        if self.now % ASKS_S == 60:
            self._ask()
        if self.now % ASKS_S == 120:
            self._submit_pilots()

    # -- users

    def _submit_jobs(self) -> None:
        until = self.hour
        since = until - STEP_S / 3600
        for index, kind in enumerate(KINDS):
            for wave in kind.waves:
                common = min(until, wave.ends_h) - max(since, wave.begins_h)
                if common > 0:
                    self._due[index] += wave.jobs * common / (wave.ends_h - wave.begins_h)
            if self._due[index] >= 1 and self._draw.random() < 0.1:
                self._cluster += 1
                queued = self.now - self._draw.randint(5, 50)
                for proc in range(int(self._due[index])):
                    job = Job(index, SCHEDDS[kind.schedd], self._cluster, proc, queued)
                    self.idle[index].append(job)
                self._due[index] %= 1

    def _go_on(self) -> None:
        """Go on with what was held or lost."""
        due = [of for of in self.later if of[0] <= self.now]
        self.later = [of for of in self.later if of[0] > self.now]
        for at, run, pilot in due:
            if run.how is How.LOST:
                run.written = at
                self.epochs.append((run, pilot))
            elif self._draw.random() < 0.3:
                self.history.append(Left(run, pilot, at, removed=True, held=True))
                continue
            run.job.since = at
            self.idle[run.job.index].append(run.job)

    # -- sites

    def _drift(self, entry: Entry) -> None:
        self._tide[entry] = 0.995 * self._tide[entry] + self._draw.gauss(0, 0.05)

    def room(self, entry: Entry) -> int:
        """How many pilots the site runs for us now: other users come and go."""
        if self.is_down(entry):
            return 0
        phase = ENTRIES.index(entry) / len(ENTRIES)
        tide = sin(tau * (self.hour / 24 + phase)) + self._tide[entry]
        share = 1 - entry.others - entry.swing * tide
        return min(entry.limit, max(0, round(entry.limit * share)))

    def is_down(self, entry: Entry) -> bool:
        """Whether the entry is in downtime."""
        return entry.site in self._holding(What.DOWNTIME)

    def _start(self, entry: Entry) -> None:
        queued = sorted(
            (waiting, group)
            for group in entry.groups
            for waiting in self.queues[entry, group].waiting
            if self.now - waiting.submitted >= waiting.least_s
        )
        most = min(2 + entry.limit // 8, self.room(entry) - len(self.pilots[entry]))
        for waiting, group in queued[: max(most, 0)]:
            self.queues[entry, group].waiting.remove(waiting)
            self.pilots[entry].append(self._new_pilot(entry, group, waiting))

    def _new_pilot(self, entry: Entry, group: str, waiting: Waiting) -> Pilot:
        draw = self._draw
        self._serial += 1
        self._begun[entry] += 1
        node = f"wn{self._begun[entry] % NODES + 1:02}.{entry.site.lower()}"
        fails = draw.random() < self._holding(What.VALIDATION).get(entry.site, 0.002)
        started = self.now - draw.randint(2, 50)
        ready = started + draw.randint(70, 260)
        dies = ready + entry.walltime_h * 3600
        retires = dies - min(10, entry.walltime_h // 2) * 3600
        retires -= retires % ASKS_S  # at a poll: between two nothing changes by itself
        if fails:
            dies = ready + 1200
        return Pilot(
            *(self._serial, entry, group, waiting.submitted, started, ready, retires, dies),
            *(node, fails, entry.cores, entry.memory_mib, entry.gpus),
            idle_since=ready,
        )

    def _end(self, entry: Entry) -> None:
        done = self.now - CYCLE_S
        lost = self.is_down(entry)
        for pilot in list(self.pilots[entry]):
            for run in [run for run in pilot.jobs if run.ends <= min(done, pilot.dies)]:
                self._free(pilot, run, run.plan.how, run.ends)
            killed = lost or self._chance(story.DIES)
            preempted = self._chance(entry.preempts)
            longest = MAX_TAIL_S if pilot.claims else MAX_IDLE_S
            useless = not pilot.jobs and (
                pilot.retires <= done or done - pilot.idle_since >= longest
            )
            if pilot.dies <= done or killed or preempted:
                self._finish(pilot, min(pilot.dies, done), killed=killed)
            elif useless and not pilot.fails and pilot.ready <= done:
                since = min(max(pilot.retires, pilot.idle_since), pilot.idle_since + longest)
                self._finish(pilot, since, killed=False)

    def _finish(self, pilot: Pilot, at: int, *, killed: bool) -> None:
        """End a pilot with all that runs; of one that is killed the ads stay for a while."""
        jobs, free = list(pilot.jobs), (pilot.cores, pilot.memory_mib, pilot.gpus)
        for run in jobs:
            self._free(pilot, run, How.LOST if killed else How.EVICTED, at)
        pilot.end = at
        self.pilots[pilot.entry].remove(pilot)
        self.ended.append(pilot)
        if killed and pilot.registered(at):
            pilot.jobs, pilot.heard = jobs, at - self._draw.randint(5, 290)
            pilot.cores, pilot.memory_mib, pilot.gpus = free
            pilot.heard = max(pilot.heard, pilot.ready)
            self.ghosts.append(pilot)

    def _free(self, pilot: Pilot, run: Run, how: How, at: int) -> None:
        """End a run."""
        kind = run.job.kind
        pilot.jobs.remove(run)
        pilot.cores += kind.cores
        pilot.memory_mib += kind.memory_mib
        pilot.gpus += kind.gpus
        pilot.idle_since = at
        pilot.past.append(run)
        self.running[kind.owner] -= kind.cores
        run.how, run.end, run.written = how, at, at
        if how is How.LOST:
            self.later.append((at + LEASE_S, run, pilot))
            return
        self.epochs.append((run, pilot))
        if how in HELD:
            self.later.append((at + self._draw.choice((30, 60, 120)) * 60, run, pilot))
        elif how is How.EVICTED:
            run.job.since = at
            self.idle[run.job.index].appendleft(run.job)
        else:
            self.history.append(Left(run, pilot, at, how is How.REMOVED, held=False))

    # -- the negotiator

    def _negotiate(self) -> None:
        """Match jobs and pilots: the submitter with the least of its fair share goes first."""
        decay = exp(-STEP_S / HALF_LIFE_S)
        for owner in {kind.owner for kind in KINDS}:
            self.usage[owner] = max(
                1.0, self.usage[owner] * decay + (1 - decay) * self.running[owner]
            )
        free: dict[tuple[Entry, str], list[Pilot]] = defaultdict(list)
        for pilot in self.all_pilots():
            registered = pilot.registered(self.now - REGISTERS_S)
            if pilot.cores and registered and pilot.retires > self.now:
                free[pilot.entry, pilot.group].append(pilot)
        wanted: dict[str, list[int]] = defaultdict(list)
        for index, jobs in enumerate(self.idle):
            if jobs and any(berth in free for berth in self.berths[index]):
                wanted[KINDS[index].owner].append(index)
        while wanted:
            owner = min(wanted, key=lambda one: (self.running[one] * self.usage[one], one))
            index = min(wanted[owner], key=lambda one: self.idle[one][0].queued)
            found = self._fitting(index, free)
            if found is not None:
                self._begin(self.idle[index].popleft(), found)
            if found is None or not self.idle[index]:
                wanted[owner].remove(index)
                if not wanted[owner]:
                    del wanted[owner]

    def _fitting(self, index: int, free: dict[tuple[Entry, str], list[Pilot]]) -> Pilot | None:
        """Return the pilot with the least free cores into which a job fits."""
        kind = KINDS[index]
        fitting = [
            pilot
            for berth in self.berths[index]
            for pilot in free.get(berth, ())
            if kind.cores <= pilot.cores
            and kind.memory_mib <= pilot.memory_mib
            and kind.gpus <= pilot.gpus
        ]
        return min(fitting, key=lambda pilot: (pilot.cores, pilot.serial), default=None)

    def _begin(self, job: Job, pilot: Pilot) -> None:
        kind, start = job.kind, self.now - CYCLE_S + 1
        used = {run.slot for run in pilot.jobs}
        job.starts += 1
        job.first = job.first or start
        pilot.claims += 1
        slot = next(n for n in range(1, len(used) + 2) if n not in used)
        plan = self._plan(job, pilot)
        pilot.jobs.append(
            Run(job, job.starts, slot, pilot.claims, start, job.first, job.last, plan)
        )
        job.last = start
        pilot.cores -= kind.cores
        pilot.memory_mib -= kind.memory_mib
        pilot.gpus -= kind.gpus
        self.running[kind.owner] += kind.cores

    def _plan(self, job: Job, pilot: Pilot) -> Plan:
        """Decide how a run ends."""
        draw, kind = self._draw, job.kind
        if pilot.node in self._holding(What.BLACK_HOLE):
            return Plan(How.EXIT, draw.randint(25, 80), 1, What.BLACK_HOLE)
        if draw.random() < self._holding(What.STORAGE).get(pilot.entry.site, 0.003):
            return Plan(How.STAGE_IN, draw.randint(120, 900), 0, What.STORAGE)
        if draw.random() < self._holding(What.RELEASE).get(kind.name, 0.0):
            return Plan(How.EXIT, draw.randint(40, 160), 2, What.RELEASE)
        whole = round(kind.hours * 3600 * draw.uniform(0.3, 0.95))
        if draw.random() < 0.02:  # it takes longer than its user thought
            whole = round(kind.hours * 3600 * draw.uniform(1.2, 2.5))
        part = round(whole * draw.uniform(0.1, 0.9))
        chance = draw.random()
        for share, how, code in (
            (story.REMOVED, How.REMOVED, 0),
            (story.HELD_BY_USER, How.HELD_BY_USER, 0),
            (story.HELD_FOR_MEMORY, How.HELD_FOR_MEMORY, 0),
            (story.EXIT_ONE, How.EXIT, 1),
            (story.SIGNAL, How.SIGNAL, 11),
        ):
            if chance < share:
                return Plan(how, part, code)
            chance -= share
        return Plan(How.EXIT, whole)

    def _chance(self, an_hour: float) -> bool:
        return self._draw.random() < an_hour * STEP_S / 3600

    # -- the frontend

    def _ask(self) -> None:
        """Count jobs, and decide what to ask for: as GlideinWMS does, by cores only.

        Free cores of pilots that retire count as available.
        """
        self.requests = {berth: Request() for berth in self.queues}
        blind = self._holding(What.MISCONFIGURED)
        cores: defaultdict[tuple[Entry, str], float] = defaultdict(float)
        for index, kind in enumerate(KINDS):
            jobs = len(self.idle[index])
            seen = [
                (e, g) for e, g in self.berths[index] if e.name not in blind and not self.is_down(e)
            ]
            for berth in seen if jobs else ():
                request = self.requests[berth]
                request.matching += jobs
                request.proportional += jobs / len(seen)
                request.unique += jobs if len(seen) == 1 else 0
                cores[berth] += jobs * kind.cores / len(seen)
        for berth, request in self.requests.items():
            self._decide(*berth, request, cores[berth])

    def _decide(self, entry: Entry, group: str, request: Request, cores: float) -> None:
        registered = [p for p in self.pilots[entry] if p.group == group and p.ready <= self.now]
        free = sum(p.cores for p in registered if not p.fails)
        request.slots_idle = sum(p.cores > 0 and not p.fails for p in registered)
        request.slots_running = sum(len(p.jobs) for p in registered)
        missing = max(0.0, cores - free)
        request.effective = ceil(request.proportional * missing / cores) if missing else 0
        request.idle = min(3 + entry.limit // 6, ceil(missing / entry.cores / 2))
        queue = self.queues[entry, group]
        running = sum(pilot.group == group for pilot in self.pilots[entry])
        count = running + len(queue.waiting) + len(queue.held)
        limit = self._holding(What.LIMIT).get(f"{group} {entry.name}")
        if limit is not None:
            request.idle = max(0, min(request.idle, int(limit) - count))
            if count >= limit:  # told whether more is wanted or not
                request.limits["TotalGlideinsPerEntry"] = count, int(limit)

    # -- the factory

    def existing(self, entry: Entry) -> int:
        """Pilots that count against the entry's limit."""
        queued = (self.queues[entry, group] for group in entry.groups)
        return len(self.pilots[entry]) + sum(len(q.waiting) + len(q.held) for q in queued)

    def _submit_pilots(self) -> None:
        held, stuck = self._holding(What.HELD), self._holding(What.STUCK)
        for (entry, group), queue in self.queues.items():
            if entry.name in held:
                queue.held += queue.waiting
                queue.waiting = []
            elif queue.held and self.now % 1800 == 120:
                queue.held = queue.held[4:]
            if self.is_down(entry):
                queue.waiting = []
                continue
            if entry.name in stuck:
                continue
            asked = self.requests[entry, group].idle
            wanted = asked - len(queue.waiting) - len(queue.held)
            allowed = entry.limit - self.existing(entry)
            if queue.held:
                allowed = min(allowed, MAX_HELD - len(queue.held))
            for _ in range(max(0, min(wanted, allowed, MAX_A_CYCLE))):
                least_s = round(entry.delay_s * self._draw.uniform(0.5, 1.5))
                to = queue.held if entry.name in held else queue.waiting
                to.append(Waiting(self.now, least_s))


assert set(STARTS) == {group for entry in ENTRIES for group in entry.groups}
