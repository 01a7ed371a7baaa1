"""Batches of pilots that follow from their number alone, as the accounting would make them.

Every half hour is a batch.  A pilot begins every 20 minutes, runs three jobs on eight cores and
is gone after some three hours.  An outcome is known ten minutes after the end, one in three is
revised three hours later, and a pilot is closed four hours after its end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from gwmond.ledger.reading.pilot_check import life_of, posted
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.model.entries.experiments import CHECKED, Experiment, PilotResult, SiteVerdict
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.facts import Cursor, EntryKey, Gap, Problem, Size
from gwmond.model.pilot_life import Assumption, Category, Outcome, RunKey, SizeStep, Validation
from gwmond.model.pilots.file_facts import CompletedPilot, PilotName, QueueEvent, QueueState
from gwmond.model.pilots.stored_pilots import (
    CountKey,
    PilotCorrection,
    PilotIdentity,
    PilotRow,
    PilotSeries,
    RunRow,
)
from gwmond.model.poll.batch import Batch, TimedProblem
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.pilots.factory.records import add
from gwmond.pilots.life.partition import Row, advance, partition
from tests.build.site_sums import by_hour
from tests.ledger import batches

MINUTE = 60_000_000
HOUR = 60 * MINUTE
ORIGIN = 1_700_000_000_000_000
STEP = 30 * MINUTE
BETWEEN = 20 * MINUTE
NOTHING = Retention(0, 0, 0, 0)
"""All that can go goes."""
GOOD = Outcome(Category.GOODPUT, "exit_zero")
FAILED = Outcome(Category.GOODPUT, "exit_nonzero")
BLAMED = Outcome(Category.MISCONFIGURATION_BADPUT, "early_failure")


class Pilot(NamedTuple):
    """Rows of one pilot at one moment."""

    row: PilotRow
    runs: tuple[RunRow, ...]


def now_us(number: int) -> int:
    return ORIGIN + number * STEP


def identity(pilot: int) -> PilotIdentity:
    site = pilot % 3
    return PilotIdentity(
        name=f"glidein_{pilot}@node{pilot % 7}",
        started=(ORIGIN + pilot * BETWEEN) // 1_000_000,
        factory_job=f"factory#{pilot}.0",
        factory="factory",
        key=EntryKey(f"Site-{site}", f"entry-{site}"),
        group=f"group-{pilot % 2}",
        node=f"node{pilot % 7}",
    )


def pilot_at(pilot: int, now: int) -> Pilot | None:
    """A pilot's rows at a moment; None before it begins."""
    start = ORIGIN + pilot * BETWEEN
    if start > now:
        return None
    until = start + 180 * MINUTE + pilot * 1_234_567
    end = until if until <= now else None
    gpus = 2 if pilot % 4 == 0 else 0
    runs = tuple(
        run for number in range(3) if (run := _run(pilot, number, start, until, now)) is not None
    )
    row = PilotRow(
        id=pilot,
        identity=identity(pilot),
        start_us=start,
        end_us=end,
        posted_last_heard_us=min(now, until),
        steps=(SizeStep(start, Size(8, 16000.5, gpus)), SizeStep(start + HOUR, Size(7.5, 15000))),
        validation=Validation.PASSED,
        assumed={Assumption.END: (until - 5 * MINUTE, until)} if end and pilot % 2 else {},
        end_source="" if end is None else "shutdown",
        retire_us=start + 2 * HOUR,
        die_us=None,
        known_until_us=None if now >= until + 2 * HOUR else max(start, now - 10 * MINUTE),
        settled_until_us=start,
        ran_jobs=bool(runs),
        closed=now >= until + 4 * HOUR,
        settled={},
    )
    found = posted(partition(life_of(row, runs)).settled)
    settled = (a._replace(settled=found.runs.get(a.key, {})) for a in runs)
    return Pilot(row._replace(settled=found.pilot), tuple(settled))


def _run(pilot: int, run: int, start: int, until: int, now: int) -> RunRow | None:
    begin = start + (7 + run * 40) * MINUTE + pilot * 1_001
    end = min(until, begin + (50 + run) * MINUTE + 333)
    if begin > now:
        return None
    over = end <= now
    outcome = None
    if over and now >= end + 10 * MINUTE:
        outcome = GOOD if run else FAILED
        if not run and pilot % 3 == 0 and now >= end + 3 * HOUR:
            outcome = BLAMED
    job, user, group = f"schedd.example.org#{pilot}.{run}#17", f"user{run}", f"group{run}"
    size = Size(3, 5000, int(pilot % 4 == 0))
    told = (f"name{pilot}", begin, end if over else None, size, user, group)
    facts = [RunFact(Source.LIVE_SLOT, job, None, begin + 1, *told[:2])]
    if over:
        ending = Ending(over=True, completed=True, exit_code=0 if run else 1, began=True)
        facts.append(RunFact(Source.STARTD_HISTORY, job, 1, end, *told, ending))
    return RunRow(
        pilot=pilot,
        key=RunKey(job, 1),
        start_us=begin,
        end_us=end if over else None,
        size=size,
        user=user,
        job_group=group,
        outcome=outcome,
        result="" if not over else "succeeded" if run else "failed_early",
        open=now < end + 3 * HOUR,
        settled={},
        facts=tuple(facts),
    )


@cache
def pilots_at(number: int) -> dict[int, Pilot]:
    """All pilots after that many batches."""
    now = now_us(number)
    last = (now - ORIGIN) // BETWEEN
    found = {pilot: pilot_at(pilot, now) for pilot in range(1, last + 1)}
    return {pilot: rows for pilot, rows in found.items() if rows is not None}


def series_of(pilot: int, row: Row) -> PilotSeries:
    key = identity(pilot)
    return PilotSeries(
        *(row.resource, row.measure, row.category, row.outcome, *key.key, key.group, row.evidence)
    )


@cache
def batch(number: int) -> Batch:
    """The batch that takes a ledger from ``number - 1`` to ``number``."""
    before, after, now = pilots_at(number - 1), pilots_at(number), now_us(number)
    changed = {i: rows for i, rows in after.items() if before.get(i) != rows}
    increments: defaultdict[PilotSeries, Counter[int]] = defaultdict(Counter)
    corrections = []
    counts: Counter[CountKey] = Counter()
    for pilot, rows in changed.items():
        old = before.get(pilot)
        delta = advance(old and life_of(*old), life_of(*rows))
        for row, micros in by_hour(delta.increments).items():
            increments[series_of(pilot, row)][row.hour] += micros
        corrections += [
            PilotCorrection(
                now,
                pilot,
                correction.row.hour,
                series_of(pilot, correction.row),
                correction.micros,
                correction.cause,
            )
            for correction in delta.corrections
        ]
        counts.update(_counted(rows))
        if old is not None:
            counts.subtract(_counted(old))
    checked = experiments(number)
    counts.update(_verdicts(checked))
    return Batch(
        before=number - 1,
        now_us=now,
        pilots=tuple(rows.row for rows in changed.values()),
        runs=tuple(a for rows in changed.values() for a in rows.runs),
        increments=dict(increments),
        corrections=tuple(corrections),
        counts={key: n for key, n in counts.items() if n},
        cursors=(Cursor("schedd", "history", f"at {number}", now), Cursor("ce", "log", "", None)),
        gaps=(Gap("schedd", "history", None, now, f"gap {number}"),) if number % 5 == 0 else (),
        problems=(
            TimedProblem(now / 1e6, Problem("schedd", ProblemName.TIMEOUT, f"batch {number}")),
        ),
        factory=factory_numbers(number),
        places=places(number),
        experiments=checked,
    )


def poll(number: int) -> Batch:
    """What a poll stores of sites and of pilots."""
    return batch(number).with_sites(batches.batch(number))


def experiments(number: int) -> tuple[Experiment, ...]:
    """One pilot that registers, and what became of the one of the batch before."""

    def of(pilot: int, result: PilotResult = PilotResult.OPEN) -> Experiment:
        verdict = SiteVerdict(CHECKED[pilot % 2], "held_pilots" if pilot % 2 else "", "measured")
        who = identity(pilot)
        return Experiment(pilot, who.key, who.group, verdict, now_us(pilot), now_us(pilot), result)

    results = PilotResult.RAN, PilotResult.IDLE, PilotResult.VOID, PilotResult.RAN
    before = (of(number - 1, results[number % 4]),) if number > 1 else ()
    return (*before, of(number))


def _verdicts(checked: Iterable[Experiment]) -> Counter[CountKey]:
    return Counter(
        CountKey("verdicts", key.verdict.state, str(key.agreed).lower(), *key.entry, key.group)
        for key in checked
        if key.agreed is not None
    )


def places(number: int) -> tuple[QueueRecord, ...]:
    """What a factory's queue reported of a job of its; every third waits for more."""
    at = now_us(number)
    name = PilotName(instance="instance", user="fe", cluster=number, proc=0)
    states = [state for state in QueueState if state is not QueueState.KILLED]  # of releases
    told = [QueueEvent("", name, state, at + n) for n, state in enumerate(states)]
    line = CompletedPilot("", name, at + 9, 100, True, 90, 1, 50, 40, 45, 100, 400, 0, 900)
    place = QueueRecord("entry", f"{number}.0", checked=("ambiguous",), open=number % 3 == 0)
    return (add(place, [*told, line]).place,)


def factory_numbers(number: int) -> dict[FactoryKey, int]:
    """What a batch reports of a factory: of its own hour, and late of one before."""
    hour = now_us(number) // HOUR
    return {
        FactoryKey(hour, "entry-1", "fe.main", FactoryKind.QUEUE_STARTED): 1,
        FactoryKey(hour - 2, f"entry-{number % 3}", "fe", FactoryKind.SUMMARY_SECONDS): number * 7,
    }


def expected_factory(number: int) -> dict[FactoryKey, int]:
    """What a factory has in each hour after that many batches."""
    return dict(sum((Counter(factory_numbers(n)) for n in range(1, number + 1)), Counter()))


def _counted(rows: Pilot) -> Counter[CountKey]:
    key = rows.row.identity
    return Counter(
        CountKey("runs", *a.outcome[:2], *key.key, key.group)
        for a in rows.runs
        if a.outcome is not None
    )


@cache
def expected_hours(number: int) -> dict[tuple[int, PilotSeries], int]:
    """What each series has in each hour after that many batches."""
    hours: Counter[tuple[int, PilotSeries]] = Counter()
    for pilot, rows in pilots_at(number).items():
        for row, micros in partition(life_of(*rows)).settled.items():
            hours[row.hour, series_of(pilot, row)] += micros
    return dict(+hours)


def prove_polls(ledger: LedgerReader, least: int = 0, most: int | None = None) -> int:
    """Assert that all that a ledger holds follows from its number of polls."""
    return batches.prove(ledger, *[prove_pilots(ledger, least, most)] * 2)


def prove_pilots(ledger: LedgerReader, least: int = 0, most: int | None = None) -> int:
    """Assert that all that a ledger holds of pilots follows from its number of batches."""
    state = ledger.load()
    number = state.batches
    assert least <= number <= (number if most is None else most)
    wanted = pilots_at(number)
    running = {i: rows for i, rows in wanted.items() if not rows.row.closed}
    assert {row.id: row for row in state.pilots} == {i: rows.row for i, rows in running.items()}
    assert ledger.runs_of(wanted) == {
        i: sorted(rows.runs, key=lambda a: a.key) for i, rows in wanted.items() if rows.runs
    }
    assert state.next_id == len(wanted) + 1
    assert all(residual.micros == 0 for residual in ledger.check())
    hours = {(row.hour, row.series): row.micros for row in ledger.pilot_hours(0, 10**7)}
    assert {at: micros for at, micros in hours.items() if micros} == expected_hours(number)
    assert ledger.factory_hours(0, 10**7) == expected_factory(number)
    every = {place.name: place for n in range(1, number + 1) for place in places(n)}
    assert ledger.fetch(PilotKeys(places=set(every))).places == every
    assert {place.name: place for place in state.places} == {
        k: of for k, of in every.items() if of.open
    }
    checked = {
        experiment.pilot: experiment for n in range(1, number + 1) for experiment in experiments(n)
    }
    assert ledger.experiments(0, 10**17) == tuple(checked[pilot] for pilot in sorted(checked))
    assert state.experiments == tuple(key for key in checked.values() if not key.result)
    counts = state.totals.counts
    counted = {key: total.net for key, total in counts.items() if key.what == "verdicts"}
    assert counted == _verdicts(checked.values())
    if number:
        assert state.cursors["schedd", "history"].state == f"at {number}"
        assert f"batch {number}" in {seen.problem.detail for seen in ledger.problems(2)}
    return number
