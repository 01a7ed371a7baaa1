"""Random histories of pilots and jobs, told to two keepers of which one is stopped and killed.

A history is all that a pool's daemons would tell, with when: pilots with one or many jobs at once,
jobs that run several times on the same and on other pilots, slots' claims, records in any order and
hours late, outputs and queues of factories, early failures, lost ads, runs of length 0.

Both keepers are told the same in the same polls.  One of them goes on all the time.  The other one
is stopped and started, or is killed in the middle of a poll: then that poll is one that both did
not see, and what it told comes again in the next, as from a cursor.

Times are seconds from T0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from gwmond.config.settings import Config
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.model.facts import EntryKey, Pilot, Size
from gwmond.model.packed import Packed
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import FileFact, PilotName, PilotOutput, QueueEvent, QueueState
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from tests.build.kept import Kept, kept

T0 = 1_700_000_400
POLL_S = 60
DELAY_S = 120
UNIT_MIB = 2000
FACTORY = ("factory", "instance")

ENDINGS = (
    Ending(over=True, exit_code=0, own_accord=True, began=True, early=False),
    Ending(over=True, exit_code=0, own_accord=True, began=True, early=True),
    Ending(over=True, exit_code=3, own_accord=True, began=True, early=False),
    Ending(over=True, exit_code=1, own_accord=True, began=True, early=True),
    Ending(over=True, exit_code=1, own_accord=True, began=True, early=True),
    Ending(over=True, vacate_code=1005, began=True),
    Ending(over=True, vacate_code=1008, began=True),
    Ending(over=True, hold_code=13, began=False),
    Ending(over=True),
)
SOURCES = (
    (Source.EPOCH_HISTORY,),
    (Source.EPOCH_HISTORY,),
    (Source.EPOCH_HISTORY, Source.SCHEDD_HISTORY),
    (Source.STARTD_HISTORY, Source.EPOCH_HISTORY),
    (Source.STARTD_HISTORY,),
    (),
)


class Glidein(NamedTuple):
    """A pilot; ``visible``: collectors show it; ``lost_s``: its ads stay so long after its end."""

    number: int
    start_s: int
    end_s: int
    cores: int
    memory_mib: int
    entry: str
    visible: bool
    named: bool  # its ads have its factory's job
    lost_s: int
    update_s: int
    output_s: int | None  # when its output is read
    queue_s: int | None  # by how much later its factory's queue is read

    @property
    def name(self) -> str:
        """Its startd's name."""
        return f"glidein_{self.number}@node{self.number % 2}"

    @property
    def job(self) -> PilotName:
        """Its factory's job."""
        return PilotName(
            *(*FACTORY, self.entry, 7, self.number, "factory", "frontend", "main"),
            site="Site",
            node=f"node{self.number % 2}",
        )


class Execution(NamedTuple):
    """A run of a job; ``shown``: slots show it; ``told``: sources of records, and when each is."""

    job: int
    number: int
    on: Glidein
    start_s: int
    end_s: int
    cores: int
    ending: Ending
    shown: bool
    told: tuple[tuple[Source, int], ...]
    knows_start: bool


class Step(NamedTuple):
    """What happens between two polls: ``restart``, ``kill`` in the poll, ``prune``; ``unit``."""

    at_s: int
    complete: bool = True
    restart: bool = False
    kill: str = ""
    prune: bool = False
    unit_mib: int = UNIT_MIB
    hidden: frozenset[str] = frozenset()  # pilots whose ads are lost


@dataclass(frozen=True)
class History:
    """All of it; ``same``: nothing makes the two keepers differ by design."""

    seed: int
    pilots: tuple[Glidein, ...]
    runs: tuple[Execution, ...]
    steps: tuple[Step, ...]

    @property
    def units_change(self) -> bool:
        """Whether the unit of memory is changed at a restart, which the first step may have."""
        return any(step.unit_mib != UNIT_MIB for step in self.steps)


def history(seed: int) -> History:
    """Make the history of a seed."""
    random = Random(seed)
    sizes = {f"entry{number}": _size(random) for number in range(2)}
    pilots = tuple(
        _pilot(random, number, sizes) for number in range(random.choice((1, 1, 2, 2, 3)))
    )
    runs = tuple(_runs(random, pilots))
    return History(seed, pilots, runs, tuple(_steps(random, pilots, runs)))


def _size(random: Random) -> tuple[int, int]:
    """The size of an entry's pilots: that which is assumed of some rests on others known then."""
    cores = random.choice((1, 1, 2, 4, 8))
    return cores, cores * random.choice((1000, 2000, 2000, 2500))


def _pilot(random: Random, number: int, sizes: Mapping[str, tuple[int, int]]) -> Glidein:
    start = random.randrange(0, 1500)
    entry = random.choice(sorted(sizes))
    end = start + random.choice((random.randrange(60, 900), random.randrange(900, 7200)))
    visible = random.random() < 0.85
    files = random.random() < 0.5
    return Glidein(
        number,
        start,
        end,
        *sizes[entry],
        entry,
        visible,
        named=random.random() < 0.6,
        lost_s=random.choice((0, 0, 900)),
        update_s=random.choice((60, 300)),
        output_s=end + _late(random) if files and random.random() < 0.7 else None,
        queue_s=_late(random) if files and random.random() < 0.5 else None,
    )


def _late(random: Random) -> int:
    return random.choice((0, 0, 30, 90, 200, random.randrange(0, 8000)))


def _runs(random: Random, pilots: tuple[Glidein, ...]) -> Iterator[Execution]:
    numbers: Counter[int] = Counter()
    for on in pilots:
        for _ in range(on.cores if random.random() < 0.3 else 1):
            at = on.start_s + random.choice((60, random.randrange(0, 1500)))
            for _ in range(random.choice((0, 1, 1, 2, 3))):
                length = random.choice((0, random.randrange(300), random.randrange(4000)))
                end = at + length
                if random.random() < 0.9:
                    end = min(end, on.end_s)
                if end < at:
                    break
                job = random.randrange(4)
                numbers[job] += 1
                late = _late(random)
                told = tuple(
                    (source, end + late + number * _late(random))
                    for number, source in enumerate(random.choice(SOURCES))
                )
                yield Execution(
                    job,
                    0,
                    on,
                    at,
                    end,
                    random.choice((1, 1, 1, on.cores)),
                    random.choice(ENDINGS),
                    random.random() < 0.8,
                    told,
                    random.random() < 0.9,
                )
                at = end + random.choice((0, 1, 5, 30, 90, random.randrange(1500)))


def _steps(
    random: Random, pilots: tuple[Glidein, ...], runs: tuple[Execution, ...]
) -> Iterator[Step]:
    last = max([*(p.end_s + p.lost_s for p in pilots), *(run.end_s for run in runs)]) + 300
    told = [at for run in runs for _, at in run.told] + [p.output_s or 0 for p in pilots]
    told += [p.end_s + p.queue_s for p in pilots if p.queue_s is not None]
    times, at = [], random.randrange(0, 300)
    slow = random.choice((1, 1, 2, 5))
    while at < last:
        times.append(at)
        at += POLL_S * random.choice((1, 1, 1, slow, slow if random.random() < 0.9 else 20))
    later = sorted({*(at + random.randrange(1, 60) for at in told if at > last)})
    times += later
    rest = max(times[-1], last)
    times += [rest + 600 * n for n in range(1, 5)]
    times += [rest + 3600 * n for n in range(1, 10)]
    times += [rest + 86400 + 3600 * n for n in range(1, 4)]
    often = random.choice((0.02, 0.1, 0.4))
    unit, prunes = UNIT_MIB, random.random() < 0.15
    changes = random.random() < 0.1
    for at in times:
        restart = random.random() < often
        if restart and changes and random.random() < 0.3:
            unit = random.choice((1000, 2000, 4000))
        kill = (
            random.choice(("", "", "ads", "records", "settled")) if random.random() < often else ""
        )
        yield Step(
            at,
            complete=random.random() < 0.95,
            restart=restart,
            kill=kill if at < rest else "",
            prune=prunes and random.random() < 0.2,
            unit_mib=unit,
            hidden=frozenset(p.name for p in pilots if random.random() < 0.02),
        )


def _numbered(runs: tuple[Execution, ...]) -> list[Execution]:
    """Number the runs of each job by when they began."""
    numbers: Counter[int] = Counter()
    found = []
    for run in sorted(runs, key=lambda run: run.start_s):
        numbers[run.job] += 1
        found.append(run._replace(number=numbers[run.job]))
    return found


def us(at_s: float) -> int:
    """Microseconds since the epoch of a time since T0."""
    return round((T0 + at_s) * SECOND_US)


def _fact(run: Execution, source: Source, written_s: int, **more: object) -> RunFact:
    fact = RunFact(
        source,
        f"schedd#{run.job}.0#{T0}",
        run.number,
        us(written_s),
        None,
        us(run.start_s),
        us(run.end_s),
        Size(run.cores, run.cores * 1000),
        "user",
        f"user {run.job % 2}",
        run.ending,
    )
    return fact._replace(**more)  # type: ignore[arg-type]


class _Told(NamedTuple):
    """What one poll is told."""

    shown: tuple[Pilot, ...]
    claims: tuple[JobRecord, ...]
    records: tuple[JobRecord, ...]
    files: tuple[FileFact, ...]


def _shown(history: History, step: Step) -> tuple[Pilot, ...]:
    found = []
    for pilot in history.pilots:
        there = pilot.start_s <= step.at_s < pilot.end_s + pilot.lost_s
        if not pilot.visible or not there or pilot.name in step.hidden:
            continue
        alive_s = min(step.at_s, pilot.end_s) - pilot.start_s
        heard_s = pilot.start_s + alive_s // pilot.update_s * pilot.update_s
        found.append(
            Pilot(
                name=pilot.name,
                started=T0 + pilot.start_s,
                entry=EntryKey("Site", pilot.entry),
                group="frontend.main",
                factory="factory",
                size=Size(pilot.cores, pilot.memory_mib),
                free=(),
                jobs=(),
                accepting=True,
                remaining_s=None,
                last_heard=T0 + heard_s,
                node=f"node{pilot.number % 2}",
                factory_job=f"factory#7.{pilot.number}" if pilot.named else "",
            )
        )
    return tuple(found)


def _claims(runs: list[Execution], step: Step) -> tuple[JobRecord, ...]:
    found = []
    for run in runs:
        if not run.shown or run.on.name in step.hidden:
            continue
        if run.start_s <= step.at_s < min(run.end_s, run.on.end_s):
            fact = RunFact(
                Source.LIVE_SLOT,
                f"schedd#{run.job}.0#{T0}",
                None,
                us(step.at_s),
                None,
                us(run.start_s + 2),
                None,
                Size(run.cores, run.cores * 1000),
            )
            found.append(JobRecord(fact, run.on.name, T0 + run.on.start_s))
    return tuple(found)


def _records(runs: list[Execution]) -> list[tuple[int, JobRecord]]:
    found = []
    for run in runs:
        for source, at in run.told:
            delay = {"end_us": us(run.end_s) + 1000} if source is Source.SCHEDD_HISTORY else {}
            started = T0 + run.on.start_s if run.knows_start else None
            found.append(
                (at, JobRecord(_fact(run, source, run.end_s, **delay), run.on.name, started))
            )
    return found


def _files(history: History) -> list[tuple[int, FileFact]]:
    """Return what files tell, and when.

    Of a pilot that only its factory's queue has, site, factory and size are assumed as they are
    known then.  So an earlier pilot of its entry is told before all else.
    """
    alone = [p for p in history.pilots if p.output_s is None and not (p.visible and p.named)]
    found: list[tuple[int, FileFact]] = [
        (-600, _output(pilot._replace(number=100 + pilot.number, start_s=-4200, end_s=-600)))
        for pilot in {p.entry: p for p in alone if p.queue_s is not None}.values()
    ]
    for pilot in history.pilots:
        if pilot.output_s is not None:
            found.append((pilot.output_s, _output(pilot)))
        if pilot.queue_s is not None:
            for state, at in (
                (QueueState.SUBMITTED, pilot.start_s - 300),
                (QueueState.STARTED, pilot.start_s - 40),
                (QueueState.ENDED, pilot.end_s + 30),
            ):
                path = "/x/condor_activity_20231114_fe.main.log"
                fact = QueueEvent(path, pilot.job, state, us(at))
                found.append((pilot.end_s + pilot.queue_s, fact))
    return found


def _output(pilot: Glidein) -> PilotOutput:
    return PilotOutput(
        f"job.7.{pilot.number}.out",
        pilot.job,
        us(pilot.start_s - 30),
        us(pilot.end_s + 20),
        validation=Validation.PASSED,
        cores=pilot.cores,
        memory_mib=pilot.memory_mib,
        logs=("MasterLog", "StartdLog"),
    )


@dataclass
class _Daemon:
    """A keeper with its ledger, which can be stopped and killed."""

    stored: Kept = field(default_factory=kept)
    unit_mib: int = UNIT_MIB
    keeper: LedgerKeeper = field(init=False)

    def __post_init__(self) -> None:
        self.start(self.unit_mib)

    def start(self, unit_mib: int) -> None:
        """Start with nothing but what is stored."""
        config = Config.model_validate({"canonical": {"memory_mib": unit_mib}})
        self.unit_mib, self.keeper = unit_mib, LedgerKeeper(config)
        self.keeper.use(self.stored)

    def tell(self, step: Step, told: _Told, until: str = "") -> None:
        """One poll, as far as it comes."""
        now_us = us(step.at_s)
        with self.keeper.steps() as steps:
            steps.run(
                steps.accounting.add_ads(
                    now_us, POLL_S * SECOND_US, told.shown, complete=step.complete
                )
            )
            steps.run(
                steps.accounting.add_claims(now_us, Packed(told.claims), complete=step.complete)
            )
        if until == "ads":
            return
        self.keeper.add_records(told.records, None, None)
        if told.files:
            self.keeper.add_facts(told.files, None)
        if until == "records":
            return
        self.keeper.settle(now_us, now_us - DELAY_S * SECOND_US, (), store=not until)


@dataclass
class Played:
    """What came of a history: what differs, what is wrong; how often it was restarted, killed."""

    wrong: list[str] = field(default_factory=list)
    restarts: int = 0
    kills: int = 0


def play(history: History, *, often: bool = False) -> Played:
    """Tell a history to both keepers; prove after each restart, or ``often``: after each poll."""
    played = Played()
    still, restless = _Daemon(), _Daemon()
    runs = _numbered(history.runs)
    records, files = _records(runs), _files(history)
    told_s = -1_000_000
    seen: dict[object, int] = {}
    for step in history.steps:
        told = _Told(
            _shown(history, step),
            _claims(runs, step),
            tuple(record for at, record in records if told_s < at <= step.at_s),
            tuple(fact for at, fact in files if told_s < at <= step.at_s),
        )
        if step.kill:
            restless.tell(step, told, until=step.kill)
            restless.start(step.unit_mib)
            played.kills += 1
            continue
        if step.restart:
            restless.start(step.unit_mib)
            played.restarts += 1
        told_s = step.at_s
        for daemon in (still, restless):
            daemon.tell(step, told)
        if step.prune:
            for daemon in (still, restless):
                daemon.stored.prune(T0 + step.at_s, Retention(runs_s=14_400, pilots_s=80_000))
        if often or step.restart:
            _prove(restless, step, seen, played)
    _prove(restless, history.steps[-1], seen, played)
    for row in restless.stored.pilots.values():
        if not row.closed:
            played.wrong.append(f"never closed: {row.identity.name}")
    if not history.units_change:
        played.wrong += [f"differs: {what}" for what in _differences(still, restless)]
    return played


def _prove(daemon: _Daemon, step: Step, seen: dict[object, int], played: Played) -> None:
    """Note what is wrong: an inexact partition, a counter that fell, a residual."""
    for found in daemon.stored.check(memory_mib=daemon.unit_mib):
        if found.micros:
            played.wrong.append(f"{step.at_s}: check {found.what} {found.micros} {found.worst[:2]}")
    totals = daemon.keeper.totals
    for kind in (totals.pilots, totals.counts):
        for key, total in kind.items():
            if total.micros < seen.get(key, 0):
                played.wrong.append(f"{step.at_s}: fell {key}")
            seen[key] = total.micros
    residual = daemon.keeper.accounting.settlement.residual
    if any(residual.values()):
        played.wrong.append(f"{step.at_s}: residual {dict(residual)}")


def _differences(one: _Daemon, other: _Daemon) -> Iterator[str]:
    before, after = _summary(one.stored), _summary(other.stored)
    for what in before:
        for key in sorted({*before[what], *after[what]}, key=repr):
            was, now = before[what].get(key), after[what].get(key)
            if was != now:
                yield f"{what} {key}: never stopped {was}, restarted {now}"


def _summary(stored: Kept) -> Mapping[str, dict[object, object]]:
    """All that is known in the end, without what depends on the order of pilots."""
    pilots = stored.pilots
    names = {number: (row.identity.name, row.identity.started) for number, row in pilots.items()}
    return {
        "pilot": {
            names[number]: (
                row.identity,
                (row.start_us - us(0)) / 1e6,
                row.end_us and (row.end_us - us(0)) / 1e6,
                row.end_source,
                row.steps,
                row.validation,
                dict(row.assumed),
                row.closed,
                {key: n for key, n in row.settled.items() if n},
            )
            for number, row in pilots.items()
        },
        "run": {
            (names[number], key): (
                (row.start_us - us(0)) / 1e6,
                row.end_us and (row.end_us - us(0)) / 1e6,
                row.size,
                row.outcome,
                row.result,
                row.open,
                {kind: n for kind, n in row.settled.items() if n},
            )
            for (number, key), row in stored.runs.items()
        },
        "hours": {key: n for key, n in stored.posted.items() if n},
        "counts": {key: n for key, n in stored.counts.items() if n},
    }
