"""Users' jobs on nodes, with known truth: whose fault each failed run is.

Units: seconds since the simulation's begin, in trials microseconds since the epoch.

What makes this hard is simulated as HTCondor does it: a slot that a fast failure frees keeps its
claim for ``WORKLIFE`` and takes the next idle job of the same user and cluster; a failed job that
is tried again keeps its place at the head of its user's queue.  So the failures of one user cluster
on few slots by themselves.  Everything is drawn from one seed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.runs.run_facts import group_name
from gwmond.pilots.early.comparison import Result, Trial

BEGIN_US = 1_795_000_000_000_000
WORKLIFE = 1200.0
"""CLAIM_WORKLIFE: how long a claim takes new jobs, seconds."""
CYCLE = 60.0
"""How often the negotiator comes round, seconds."""
EARLY = 300.0
FAILURES = frozenset({Result.FAILED_EARLY, Result.FAILED_LATE})
NO_SPEEDS: Mapping[str, float] = MappingProxyType({})

Fault: TypeAlias = Literal["site", "user", "both"]


class Slot(NamedTuple):
    """One core of a pilot."""

    pilot: str
    node: str
    entry: str
    site: str


class Broken(NamedTuple):
    """A slot's, node's, entry's or site's fault from ``since`` to ``until``.

    ``share`` of the runs that begin there fail, or exit with 0 at once (``empty``).
    """

    places: frozenset[str]
    since: float = 0
    until: float = 1e9
    share: float = 1
    empty: bool = False
    seconds: tuple[float, float] = (2, 20)

    def hits(self, slot: Slot, at: float) -> bool:
        """Return whether a run that begins on this slot now may be hit."""
        return self.since <= at < self.until and not self.places.isdisjoint(slot)


@dataclass(slots=True)
class Work:
    """One submission of a user: ``jobs`` procs of one cluster, or a cluster each (``apart``).

    ``bad``: procs that always fail; ``down``: when all that begin fail; ``share``: the random part
    that fails; ``retries``: as max_retries; ``seconds``: how long a good run lasts, from and to,
    and ``crash`` one that fails by itself, both on a node of speed 1.
    """

    user: str
    program: str
    jobs: int
    at: float = 0
    seconds: tuple[float, float] = (1800, 7200)
    bad: Collection[int] = range(0)
    down: tuple[float, float] = (0, 0)
    share: float = 0
    retries: int = 0
    cores: int = 1
    apart: bool = False
    dag: str = ""
    where: frozenset[str] = frozenset()
    """The only sites that it may run at; empty: all."""
    programs: bool = False
    """Each job has a program of its own."""
    crash: tuple[float, float] = (2, 60)
    waits: float = 0
    """A run that fails by itself waits so long besides, on any node, as for a client's timeout."""
    expires: float = 1e9
    """All that runs then fails within a minute, and all that begins until ``down`` is over."""
    removed: float = 1e9
    """The user removes all that runs then, or waits."""
    cut: float = 0
    """The share of runs that somebody else ends, at any time."""
    last: bool = False
    """A job that failed is tried again after all others (a cool-down), not at once."""
    cluster: int = 0

    def fails(self, proc: int, at: float, random: Random) -> bool:
        """Return whether a run of a job that begins now fails by itself."""
        down = self.down[0] <= at < self.down[1]
        return proc in self.bad or down or random.random() < self.share

    def result(self, at: float, seconds: float, *, failed: bool, random: Random) -> _Ended:
        """Return how a run ends that begins now and would last so long: also by other means."""
        end = at + seconds
        if at < self.expires < end:
            end, failed = self.expires + random.uniform(0, 60), True
        cut = self.removed if at < self.removed < end else end
        if self.cut and random.random() < self.cut:
            cut = at + random.uniform(0, seconds)
        if cut < end:
            return _Ended(cut, Result.LASTED if cut - at > EARLY else None)
        late = Result.FAILED_LATE if end - at > EARLY else Result.FAILED_EARLY
        return _Ended(end, late if failed else Result.SUCCEEDED)


class _Ended(NamedTuple):
    """When a run ended, and what that says; None: nothing, as it was ended at once."""

    at: float
    result: Result | None


class Run(NamedTuple):
    """A run with the truth: whose fault it is that it failed early; None if it did not."""

    trial: Trial
    fault: Fault | None
    core_seconds: float


@dataclass(slots=True)
class Claim:
    """A slot, and whose jobs it takes next until ``until``."""

    slot: Slot
    work: Work | None = None
    until: float = 0


def pool(
    sites: int = 4, entries: int = 2, nodes: int = 20, pilots: int = 2, slots: int = 4
) -> list[Slot]:
    """Return the slots of a pool: so many entries a site, nodes an entry, pilots a node."""
    return [
        Slot(f"pilot{s}.{e}.{n}.{p}", f"node{s}.{e}.{n}", f"entry{s}.{e}", f"site{s}")
        for s in range(sites)
        for e in range(entries)
        for n in range(nodes)
        for p in range(pilots)
        for _ in range(slots)
    ]


@dataclass(slots=True)
class _Queue:
    """The idle jobs of one submission, the lowest number first."""

    work: Work
    idle: list[tuple[int, int, int]] = field(default_factory=list)


def simulate(
    slots: Sequence[Slot],
    works: Sequence[Work],
    broken: Sequence[Broken] = (),
    *,
    seed: int,
    hours: float = 8,
    speed: Mapping[str, float] = NO_SPEEDS,
) -> list[Run]:
    """Return the runs that began within so many hours and say something, by start.

    ``speed``: of nodes, or of sites; 1 where none is given.
    """
    random = Random(seed)
    queues = _queues(works)
    claims = [Claim(slot) for slot in slots]
    free = [(random.uniform(0, 2 * CYCLE), i) for i in range(len(slots))]
    heapq.heapify(free)
    runs: list[Run] = []
    while free:
        at, number = heapq.heappop(free)
        if at >= hours * 3600:
            continue
        claim = claims[number]
        queue = _next(queues, claim, at, random)
        if queue is None:
            heapq.heappush(free, (at + CYCLE * random.uniform(0.5, 1.5), number))
            continue
        _, proc, tried = heapq.heappop(queue.idle)
        faster = speed.get(claim.slot.node, speed.get(claim.slot.site, 1))
        end, run = _run(queue.work, proc, tried, claim.slot, at, random, broken, faster)
        if run is not None:
            runs.append(run)
        failed = run is not None and run.trial.result in FAILURES
        if failed and tried < queue.work.retries:
            place = queue.work.jobs * (tried + 1) if queue.work.last else 0
            heapq.heappush(queue.idle, (place, proc, tried + 1))
        heapq.heappush(free, (max(end, at) + random.uniform(1, 4), number))
    return sorted(runs, key=lambda run: (run.trial.start_us, run.trial))


def _queues(works: Sequence[Work]) -> list[_Queue]:
    for number, work in enumerate(works, 1):
        work.cluster = number * 100_000
    return [_Queue(work, [(0, proc, 0) for proc in range(work.jobs)]) for work in works]


def _next(queues: Sequence[_Queue], claim: Claim, at: float, random: Random) -> _Queue | None:
    """Return the queue of the claim, else one that the negotiator draws by user."""
    waiting = [
        queue
        for queue in queues
        if queue.idle
        and queue.work.at <= at < queue.work.removed
        and (not queue.work.where or claim.slot.site in queue.work.where)
    ]
    if not waiting:
        return None
    if claim.work is not None and at < claim.until:
        same = [queue for queue in waiting if queue.work.user == claim.work.user]
        same = [queue for queue in same if queue.work is claim.work] or same
        if same:
            return same[0]
    user = random.choice(sorted({queue.work.user for queue in waiting}))
    queue = random.choice([queue for queue in waiting if queue.work.user == user])
    claim.work, claim.until = queue.work, at + WORKLIFE
    return queue


def _run(
    work: Work,
    proc: int,
    tried: int,
    slot: Slot,
    at: float,
    random: Random,
    broken: Sequence[Broken],
    speed: float,
) -> tuple[float, Run | None]:
    """Return when a run ends that begins now, and the run if it says something."""
    faults = [of for of in broken if of.hits(slot, at) and random.random() < of.share]
    user = work.fails(proc, at, random)
    failing = any(not fault.empty for fault in faults)
    seconds = random.uniform(*work.seconds) / speed
    if faults:
        seconds = random.uniform(*faults[0].seconds)
    elif user:
        seconds = work.waits + random.uniform(*work.crash) / speed
    began = at + random.uniform(3, 20)
    failed = failing or (user and not faults)
    end, result = work.result(began, seconds, failed=failed, random=random)
    if result is None:
        return end, None
    fault: Fault | None = None
    if result is Result.FAILED_EARLY:
        fault = ("both" if user else "site") if failing else "user"
    number = f"{work.cluster + proc}.0" if work.apart else f"{work.cluster}.{proc}"
    trial = Trial(
        job=f"ap#{number}#1",
        number=tried + 1,
        group=group_name(work.user, f"{work.program}{proc if work.programs else ''}", work.dag),
        pilot=slot.pilot,
        node=slot.node,
        entry=slot.entry,
        site=slot.site,
        start_us=BEGIN_US + round(at * 1e6),
        end_us=BEGIN_US + round(end * 1e6),
        result=result,
    )
    return end, Run(trial, fault, work.cores * (end - at))


class Score(NamedTuple):
    """How verdicts compare with the truth, in runs and core-seconds."""

    right: float
    wrong: float
    missed: float
    users: float

    @property
    def precision(self) -> float:
        """Of what was blamed on a place, so much was its fault."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Of what was the fault of a place, so much was blamed on it."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def false_share(self) -> float:
        """Of the failures that were the user's, so much was blamed on a place."""
        return self.wrong / self.users if self.users else 0.0

    def __add__(self, other: object) -> Score:
        """Return two scores together."""
        assert isinstance(other, Score)
        return Score(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def score(runs: Sequence[Run], blamed: Callable[[Trial], bool]) -> tuple[Score, Score]:
    """Return the score in runs and in core-seconds; what is both's fault is no one's mistake."""
    return _score(runs, blamed, lambda _: 1), _score(runs, blamed, lambda run: run.core_seconds)


def _score(
    runs: Sequence[Run], blamed: Callable[[Trial], bool], weight: Callable[[Run], float]
) -> Score:
    sums = {(fault, found): 0.0 for fault in ("site", "user") for found in (True, False)}
    for run in runs:
        if run.fault in {"site", "user"}:
            sums[run.fault, blamed(run.trial)] += weight(run)
    right, missed = sums["site", True], sums["site", False]
    wrong = sums["user", True]
    return Score(right, wrong, missed, wrong + sums["user", False])


def names(slots: Sequence[Slot], kind: str) -> list[str]:
    """Return the pilots, nodes, entries or sites of a pool."""
    return sorted({getattr(slot, kind) for slot in slots})
