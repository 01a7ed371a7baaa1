"""What is true of the simulated pool, and how far gwmond's verdicts and partition are from it.

A verdict's truth is an experiment, as in docs/truth.md: does an empty pilot that starts at the
entry now get a job?  Units: canonical units, and canonical seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from gwmond.model.entries.evaluation import SCALE
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.poll.snapshot import Overhead, Snapshot
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from tests.simulator.parts import How, Pilot, Run
from tests.simulator.pool import REGISTERS_S, Pool
from tests.simulator.story import What
from tests.simulator.world import ENTRIES, KINDS, Entry

BOTTLENECK, INSUFFICIENT = State.PROVISIONING_BOTTLENECK, State.INSUFFICIENT_DEMAND
_LARGEST = sorted(range(len(KINDS)), key=lambda i: (-KINDS[i].cores, -KINDS[i].memory_mib))


class Agreement:
    """How far two amounts of several things overlap: of what we say, and of what is true."""

    def __init__(self) -> None:
        self.ours: Counter[str] = Counter()
        self.true: Counter[str] = Counter()
        self.both: Counter[str] = Counter()

    def add(self, ours: Mapping[str, float], true: Mapping[str, float]) -> None:
        """Add the amounts of one thing, such as a pilot's canonical seconds by category."""
        for name in ours.keys() | true.keys():
            mine, real = ours.get(name, 0.0), true.get(name, 0.0)
            self.ours[name] += mine  # type: ignore[assignment]
            self.true[name] += real  # type: ignore[assignment]
            self.both[name] += min(mine, real)  # type: ignore[assignment]

    def f1(self, name: str = "") -> float:
        """Return the F1 of one name, or of all; 1 where there is nothing."""
        counts = (self.ours, self.true, self.both)
        ours, true, both = (c[name] if name else c.total() for c in counts)
        return 2 * both / (ours + true) if ours + true else 1.0

    def table(self) -> str:
        """Return a line for each name: amounts, F1."""
        lines = [
            f"| {name} | {self.true[name] / 3600:.1f} | {self.ours[name] / 3600:.1f} "
            f"| {self.both[name] / 3600:.1f} | {self.f1(name):.3f} |"
            for name in sorted(self.ours.keys() | self.true.keys())
        ]
        total = (c.total() / 3600 for c in (self.true, self.ours, self.both))
        all_ = " | ".join(f"{one:.1f}" for one in total)
        return "\n".join([*lines, f"| all | {all_} | {self.f1():.3f} |"])


# -- verdicts


def _fill(entry: Entry, group: str, idle: list[int]) -> float:
    """Let an empty pilot take idle jobs, the largest first; return the canonical units it took."""
    cores, memory, gpus, units = entry.cores, entry.memory_mib, entry.gpus, 0.0
    for index in _LARGEST:
        kind = KINDS[index]
        if not kind.runs_at(entry, group):
            continue
        fits = min(cores // kind.cores, memory // kind.memory_mib)
        jobs = min(idle[index], fits, gpus // kind.gpus if kind.gpus else fits)
        whole = min(entry.cores // kind.cores, entry.memory_mib // kind.memory_mib)
        units += jobs * entry.units / whole
        idle[index] -= jobs
        cores -= jobs * kind.cores
        memory -= jobs * kind.memory_mib
        gpus -= jobs * kind.gpus
    return min(units, float(entry.units))


def left_over(pool: Pool) -> list[int]:
    """Return the idle jobs by kind that pilots on their way do not take."""
    idle = [len(jobs) for jobs in pool.idle]
    for entry, pilots in pool.pilots.items():
        for pilot in pilots:
            if pilot.ready > pool.now - REGISTERS_S and not pilot.fails:
                _fill(entry, pilot.group, idle)
        room = max(0, pool.room(entry) - len(pilots))
        queued = [g for g in entry.groups for _ in pool.queues[entry, g].waiting]
        for group in queued[:room]:
            _fill(entry, group, idle)
    return idle


class Judged(NamedTuple):
    """A poll's verdict on an entry's spare units: ours, and what empty pilots would have got.

    ``true`` is of as many pilots as we say that there is room for; ``given`` of those to which the
    site would give cores.
    """

    entry: Entry
    bottleneck: float
    spare: float
    true: float
    given: float
    reason: str


def judged(pool: Pool, snapshot: Snapshot) -> list[Judged]:
    """Return what a poll says of each entry that it judges, beside the truth."""
    idle = left_over(pool)
    rows = {key.entry: row for (key, of), row in snapshot.evaluation.rows.items() if of == "cpu"}
    found = []
    for entry in ENTRIES:
        row = rows.get(entry.name)
        if row is None or row.state not in (BOTTLENECK, INSUFFICIENT):
            continue
        parts = Counter[State]()
        for part in row.parts:
            parts[part.state] += part.amount
        spare = (parts[BOTTLENECK] + parts[INSUFFICIENT]) / SCALE
        pilots = -(-int(spare) // entry.units)
        true, given = (
            max(_alone(entry, group, number, idle) for group in entry.groups)
            for number in (pilots, free_pilots(pool, entry))
        )
        ours = parts[BOTTLENECK] / SCALE
        found.append(Judged(entry, ours, spare, min(true, spare), given, row.reason))
    return found


def free_pilots(pool: Pool, entry: Entry) -> int:
    """Return how many more pilots the site would run for us now, whatever any limit is."""
    return max(0, pool.room(entry) - len(pool.pilots[entry]))


def _alone(entry: Entry, group: str, pilots: int, idle: Iterable[int]) -> float:
    left = list(idle)
    return sum(_fill(entry, group, left) for _ in range(pilots))


def verdicts_agree(agreement: Agreement, found: Iterable[Judged], seconds: float) -> None:
    """Add verdicts, each with the spare canonical seconds of which it is."""
    for one in found:
        ours, true = (
            {(BOTTLENECK if units > 0 else INSUFFICIENT).value: one.spare * seconds}
            for units in (one.bottleneck, one.true)
        )
        agreement.add(ours, true)


class Room:
    """Capacity, spare and bottleneck in unit seconds, beside what the site would give: by evidence.

    A simulated site has no more cores for us than the factory's limit allows pilots.  So where that
    limit is hit, and we say that there is room for one pilot more, we are wrong by construction.
    """

    def __init__(self) -> None:
        self.of = {name: Agreement() for name in ("capacity", "spare", "bottleneck")}

    def add(self, pool: Pool, snapshot: Snapshot, found: Iterable[Judged], seconds: float) -> None:
        """Add a poll's known entries, and its verdicts."""
        of_entry = {one.entry.name: one for one in found}
        rows = {
            key.entry: row for (key, of), row in snapshot.evaluation.rows.items() if of == "cpu"
        }
        for entry in ENTRIES:
            row = rows.get(entry.name)
            if row is None or row.state is State.UNKNOWN:
                continue
            ours, evidence = row.capacity
            name = f"{evidence}, hit" if ours > entry.limit * entry.units else str(evidence)
            amounts: list[tuple[str, float, float]] = [
                ("capacity", ours, pool.room(entry) * entry.units)
            ]
            if one := of_entry.get(entry.name):
                amounts.append(("spare", one.spare, free_pilots(pool, entry) * entry.units))
                amounts.append(("bottleneck", one.bottleneck, one.given))
            for what, said, true in amounts:
                self.of[what].add({name: said * seconds}, {name: true * seconds})

    def table(self) -> str:
        """Return a line for each amount and evidence: true, said, both, F1."""
        return "\n".join(
            line.replace("| ", f"| {what}: ", 1)
            for what, agreement in self.of.items()
            for line in agreement.table().splitlines()
        )


# -- the partition of pilots' time


def category(run: Run) -> str:
    """Return what a run's time was, by its cause."""
    if run.plan.cause is What.BLACK_HOLE and run.how is run.plan.how:
        return "misconfiguration_badput"
    match run.how:
        case How.EXIT | How.SIGNAL:
            return "goodput"
        case How.STAGE_IN:
            return "misconfiguration_badput"
        case How.EVICTED | How.LOST:
            return "preemption_badput"
        case _:
            return "unclassified"


class Spent(NamedTuple):
    """Canonical seconds of a pilot, their category, and when it was decided."""

    at: int
    category: str
    units_s: float


def spent(pilot: Pilot) -> Iterator[Spent]:
    """Yield a pilot's time so far, by its own runs: decided as the last run beside it ends."""
    units = pilot.entry.units
    if pilot.fails or not (pilot.past or pilot.jobs):
        since = pilot.started if pilot.fails else pilot.ready
        what = "validation_fails" if pilot.fails else "decision_problem"
        if pilot.end:
            yield Spent(pilot.end, what, units * float(pilot.end - since))
        return
    until = pilot.end or min((run.start for run in pilot.jobs), default=pilot.idle_since)
    times = {pilot.ready, until, *(t for run in pilot.past for t in (run.start, run.end))}
    for begin, end in pairwise(sorted(time for time in times if pilot.end or time <= until)):
        runs = [run for run in pilot.past if run.start <= begin and run.end >= end]
        cores = pilot.entry.cores - sum(run.job.kind.cores for run in runs)
        memory = pilot.entry.memory_mib - sum(run.job.kind.memory_mib for run in runs)
        idle = min(units, max(0, min(cores, memory // 2000))) if runs else units
        at = max((run.end for run in runs), default=end)
        yield Spent(at, "pilot_overhead", float(idle * (end - begin)))
        busy = sum(run.job.kind.cores for run in runs)
        for run in runs:
            part = (units - idle) * (end - begin) * run.job.kind.cores / busy
            yield Spent(at, category(run), part)


def idle(pilot: Pilot, now: int) -> Counter[Overhead]:
    """Return the canonical seconds in which no job had a pilot's units, up to now, by part."""
    found, end = Counter[Overhead](), pilot.end or now
    runs = [(run.start, run.end or end, run.job.kind) for run in (*pilot.past, *pilot.jobs)]
    edges = {pilot.ready, pilot.retires, end, *(at for run in runs for at in run[:2])}
    for begin, stop in pairwise(sorted(at for at in edges if pilot.ready <= at <= end)):
        kinds = [kind for since, until, kind in runs if since <= begin and until >= stop]
        cores = pilot.entry.cores - sum(kind.cores for kind in kinds)
        memory = pilot.entry.memory_mib - sum(kind.memory_mib for kind in kinds)
        part: Overhead = "beside_jobs" if kinds else "between_jobs"
        if begin >= pilot.retires:
            part = "retirement"
        elif all(since > begin for since, *_ in runs):
            part = "first_job"
        units = max(0, min(cores, memory // 2000)) if kinds else pilot.entry.units
        found[part] += units * (stop - begin)
    return Counter() if pilot.fails else found


def partition(pilot: Pilot) -> dict[str, float]:
    """Return the canonical seconds of a pilot that has ended, by category."""
    found = Counter[str]()
    for one in spent(pilot):
        found[one.category] += one.units_s  # type: ignore[assignment]
    return dict(found)


def stored(row: PilotRow) -> dict[str, float]:
    """Return the canonical CPU seconds of a pilot in the ledger, by category."""
    found = Counter[str]()
    for (resource, measure, name, _), micros in row.settled.items():
        if resource == "cpu" and measure == "canonical":
            found[name] += micros / SECOND_US  # type: ignore[assignment]
    return dict(found)
