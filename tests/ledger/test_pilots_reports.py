"""What reports ask for is what a filter over all rows gives."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from sqlalchemy import event, text

from gwmond.ledger.database.errors import LedgerCorrupt, LedgerError
from gwmond.ledger.reading.failed import NOT_JUDGED, ended_within
from gwmond.ledger.reading.reader import LedgerReader, Order
from gwmond.ledger.reading.recent_waits import past_waits
from gwmond.ledger.store import Ledger
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.facts import EntryKey, Gap, Place, Size
from gwmond.model.pilot_life import Assumption, Category, SizeStep
from gwmond.model.pilots.file_facts import PilotName, QueueEvent, QueueState
from gwmond.model.pilots.pilot_facts import AdFacts, OutputFacts, PilotFacts, ReportedSize
from gwmond.model.pilots.stored_pilots import (
    Doing,
    DoingNow,
    PilotFilter,
    PilotKind,
    PilotRow,
    RunFilter,
    RunRow,
)
from gwmond.model.poll.batch import Batch
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.runs.endings import EARLY_US
from gwmond.model.times import ALWAYS, SECOND_US, Period
from gwmond.pilots.early.comparison import Result, Trial
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot
from tests.build.pilot_ledger import BASE, write
from tests.build.trace_backlog import PILOT, commit_jobs
from tests.build.waiting import waiting_job
from tests.ledger.pilot_batches import (
    BLAMED,
    HOUR,
    NOTHING,
    ORIGIN,
    batch,
    identity,
    now_us,
    pilots_at,
)

BATCHES = 24
Holds: TypeAlias = Callable[[Any], bool]


@pytest.fixture
def reader(url: str) -> Iterator[LedgerReader]:
    with Ledger.open(url) as ledger:
        for number in range(1, BATCHES + 1):
            ledger.commit(batch(number))
        with LedgerReader.open(url) as reader:
            yield reader


def _pilots() -> list[PilotRow]:
    return [rows.row for rows in pilots_at(BATCHES).values()]


def _runs() -> list[RunRow]:
    return [run for rows in pilots_at(BATCHES).values() for run in rows.runs]


def _every(row: object) -> bool:
    return True


MIDDLE = ORIGIN + 5 * HOUR
DAY = Period(MIDDLE, MIDDLE + 3 * HOUR)
NOW = now_us(BATCHES)
SILENT = NOW - 1
DOING: tuple[DoingNow, ...] = ("running", "idle", "retiring", "silent")


def _in_day(time_us: int | None) -> bool:
    return time_us is not None and DAY.since_us <= time_us < DAY.until_us


def _has(category: Category) -> Holds:
    return lambda row: any(key[2] is category for key in row.settled)


def _does(state: DoingNow) -> Holds:
    """What the list of pilots says of them; none is silent, as all were heard of just now."""

    def holds(row: PilotRow) -> bool:
        return (
            StoredPilot(row, pilots_at(BATCHES)[row.id].runs, AsOf(NOW, 2000, SILENT)).state
            == state
        )

    return holds


def test_pilots(reader: LedgerReader) -> None:
    every = _pilots()
    cases: list[tuple[PilotFilter, Holds]] = [
        (PilotFilter(), _every),
        (PilotFilter(since_us=MIDDLE), lambda row: row.end_us is None or row.end_us >= MIDDLE),
        (PilotFilter(until_us=MIDDLE), lambda row: row.start_us < MIDDLE),
        (PilotFilter(running=True), lambda row: row.end_us is None),
        (PilotFilter(running=False), lambda row: row.end_us is not None),
        (PilotFilter(place=Place("Site-1")), lambda row: row.identity.key.site == "Site-1"),
        (
            PilotFilter(place=Place(entry="entry-2")),
            lambda row: row.identity.key.entry == "entry-2",
        ),
        (PilotFilter(place=Place(group="group-1")), lambda row: row.identity.group == "group-1"),
        (PilotFilter(name="IN_1"), lambda row: "in_1" in row.identity.name),
        (PilotFilter(name="n%1"), lambda row: not _every(row)),
        (PilotFilter(id=7), lambda row: row.id == 7),
        (PilotFilter(ended=DAY), lambda row: _in_day(row.end_us)),
        (PilotFilter(node="Node3"), lambda row: row.identity.node == "node3"),
        (PilotFilter(node="*de3"), lambda row: row.identity.node == "node3"),
        (PilotFilter(node="node_"), lambda row: not _every(row)),
        (PilotFilter(failed=False), _every),
        (PilotFilter(failed=True), lambda row: not _every(row)),
        *((PilotFilter(category=one), _has(one)) for one in Category),
        *((PilotFilter(doing=Doing(state, NOW, SILENT)), _does(state)) for state in DOING),
        (
            PilotFilter(user="user2", running=True),
            lambda row: (
                row.end_us is None
                and any(a.user == "user2" for a in pilots_at(BATCHES)[row.id].runs)
            ),
        ),
    ]
    for wanted, holds in cases:
        found = reader.pilot_rows(wanted)
        assert found == [row for row in every if holds(row)], wanted
    assert len(reader.pilot_rows(PilotFilter(user="user2"))) > 5


@pytest.mark.parametrize("order", ["start", "end", "contact", "name", "id"])
def test_orders(reader: LedgerReader, order: Order) -> None:
    keys: dict[str, Callable[[PilotRow], Any]] = {
        "start": lambda row: row.start_us,
        "end": lambda row: row.end_us or 10**17,
        "contact": lambda row: row.posted_last_heard_us,
        "name": lambda row: row.identity.name,
        "id": lambda row: row.id,
    }
    wanted = sorted(_pilots(), key=lambda row: (keys[order](row), row.id))
    assert reader.pilot_rows(order=order) == wanted
    assert reader.pilot_rows(order=order, descending=True) == wanted[::-1]
    assert reader.pilot_rows(order=order, limit=3) == wanted[:3]


@pytest.mark.parametrize("which", [PilotFilter(running=False), PilotFilter(running=True)])
def test_pages_are_the_whole(reader: LedgerReader, which: PilotFilter) -> None:
    """Each begins after the last of the page before, and none is twice or missing."""
    order: Order = "start" if which.running else "end"
    found: list[PilotRow] = []
    after = None
    while page := reader.pilot_rows(which, order=order, descending=True, limit=4, after=after):
        found += page
        last = page[-1]
        time_us = last.start_us if which.running else last.end_us
        assert time_us is not None
        after = time_us, last.id
    assert found == reader.pilot_rows(which, order=order, descending=True)
    assert len(found) > 8


def test_what_ended_is_counted(reader: LedgerReader) -> None:
    """Pilots and runs by place; runs that a comparison blames, and those that are not judged."""
    found = ended_within(reader, PilotFilter(ended=DAY), 10)
    pilots = [row for row in _pilots() if _in_day(row.end_us)]
    places = Counter((*row.identity.key, row.identity.node) for row in pilots)
    assert {place[:3]: place.pilots for place in found.pilots} == places
    assert (found.failed, sum(place.unknown for place in found.pilots)) == ([], 0)
    runs: Counter[tuple[str, ...]] = Counter()
    for run in _runs():
        if _in_day(run.end_us):
            key, outcome = identity(run.pilot), ""
            if run.outcome == BLAMED:
                outcome = BLAMED.label
            elif run.outcome is None and run.result == Result.FAILED_EARLY:
                outcome = NOT_JUDGED
            runs[*key.key, key.node, outcome] += 1
    assert {place[:4]: place.runs for place in found.runs} == runs
    assert {place.outcome for place in found.runs} >= {"", BLAMED.label}
    entry = ended_within(reader, PilotFilter(ended=DAY, place=Place(entry="entry-1")), 10)
    assert entry.runs == [place for place in found.runs if place.entry == "entry-1"]


def test_a_statement_that_takes_too_long_is_ended(reader: LedgerReader) -> None:
    """The reader can be asked again then."""
    reader.end_within(0.2)
    with pytest.raises(LedgerError), reader.transaction() as connection:
        connection.exec_driver_sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) "
            "SELECT count(*) FROM n"
        )
    reader.end_within(60)
    assert reader.pilot_rows(limit=1)


def test_runs(reader: LedgerReader, monkeypatch: pytest.MonkeyPatch) -> None:
    every = sorted(_runs(), key=lambda a: (a.pilot, a.key))
    identities = {row.id: row.identity for row in _pilots()}
    far = ALWAYS.until_us
    cases: list[tuple[tuple[Period, Place], Holds]] = [
        ((ALWAYS, Place()), _every),
        ((Period(MIDDLE, far), Place()), lambda a: a.end_us is None or a.end_us >= MIDDLE),
        ((Period(0, MIDDLE), Place()), lambda a: a.start_us < MIDDLE),
        (
            (ALWAYS, Place("Site-1", "entry-1", "group-1")),
            lambda a: a.pilot % 3 == 1 and a.pilot % 2 == 1,
        ),
    ]
    for at_once, (wanted, holds) in itertools.product((1, 4, 1000), cases):
        monkeypatch.setattr("gwmond.ledger.reading.reader.PILOTS_AT_ONCE", at_once)
        rows = [(a, identities[a.pilot]) for a in every if holds(a)]
        assert rows
        assert list(reader.run_rows(*wanted)) == rows


def test_whoever_reads_runs_keeps_nobody_waiting(url: str) -> None:
    """Between two runs the ledger can be written, by whoever reads."""
    with Ledger.open(url) as ledger:
        for number in range(1, 5):
            ledger.commit(batch(number))
        rows = ledger.run_rows()
        next(rows)
        ledger.commit(batch(5))
        assert list(rows)


def _known(row: RunRow, known_us: int) -> Trial | None:
    """Return a run as a trial, as it was at a moment; None if it says nothing."""
    result, end_us = row.result, row.end_us
    if end_us is None or end_us > known_us:
        begun = row.start_us < known_us - EARLY_US
        result, end_us = ("lasted" if begun else ""), known_us
    key = identity(row.pilot)
    places = str(row.pilot), key.node, key.key.entry, key.key.site
    return (
        Trial(*row.key, row.job_group, *places, row.start_us, end_us, Result(result))
        if result
        else None
    )


def test_trials(reader: LedgerReader) -> None:
    """Runs by when they began, as they were at a moment; of many those nearest to the middle."""
    late = 10**17
    rows = sorted(_runs(), key=lambda row: row.start_us)
    first, last = rows[0].start_us, rows[-1].start_us
    for known_us in (late, MIDDLE):
        every = {trial for row in rows if (trial := _known(row, known_us)) is not None}
        assert set(reader.trials(first, last, known_us)) == every
        assert {trial.result for trial in every} >= {Result.LASTED, Result.SUCCEEDED}
        users = {row.user for row in rows}
        assert set(reader.trials(first, last, known_us, users)) == every
        many = [*users, *(f"x{n}" for n in range(2000))]
        assert set(reader.trials(first, last, known_us, many)) == every
        user1 = {trial for trial in every if trial.group == "group1"}
        assert set(reader.trials(first, last, known_us, ["user1", "none"])) == user1
    assert reader.trials(first, last, late, []) == []
    inner = {trial for row in rows if (trial := _known(row, late)) is not None}
    inner = {trial for trial in inner if first < trial.start_us < last}
    assert set(reader.trials(first + 1, last - 1, late)) == inner
    nearest = reader.trials(first, last, late, limit=4)
    middle = (first + last) // 2
    assert len([trial for trial in nearest if trial.start_us >= middle]) == 2
    for trial in inner - set(nearest):
        side = [it for it in nearest if (it.start_us >= middle) is (trial.start_us >= middle)]
        assert all(abs(it.start_us - middle) <= abs(trial.start_us - middle) for it in side)


def test_gaps_corrections_and_cursors(reader: LedgerReader) -> None:
    gaps = [Gap("schedd", "history", None, now_us(n), f"gap {n}") for n in (20, 15, 10, 5)]
    assert list(reader.stats().gaps) == gaps
    made = [c for n in range(1, BATCHES + 1) for c in batch(n).corrections]
    found = reader.corrections(limit=10**6)
    assert sorted(found) == sorted(made)
    assert [c.time_us for c in found] == sorted((c.time_us for c in made), reverse=True)
    assert reader.corrections(made[-1].time_us) == [
        c for c in found if c.time_us == found[0].time_us
    ]
    assert {key: cursor.complete_us for key, cursor in reader.cursors().items()} == {
        ("schedd", "history"): now_us(BATCHES),
        ("ce", "log"): None,
    }


def test_hours(reader: LedgerReader) -> None:
    every = reader.pilot_hours(0, 10**7)
    assert [row.hour for row in every] == sorted(row.hour for row in every)
    first, last = every[0].hour + 1, every[-1].hour - 1
    assert reader.pilot_hours(first, last) == [r for r in every if first <= r.hour <= last]


def test_gaps_are_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gwmond.ledger.rows.writes.GAPS_KEPT", 10)
    gaps = tuple(Gap("s", "k", n, n, str(n)) for n in range(25))
    with Ledger.open(str(file)) as ledger:
        ledger.commit(Batch(0, 0, gaps=gaps[:7]))
        ledger.commit(Batch(1, 0, gaps=gaps[7:]))
        assert ledger.stats().gaps == gaps[:14:-1]


def test_look_ups_use_indexes(file: Path) -> None:
    """None of the daemon's look-ups reads all pilots or all runs."""
    with Ledger.open(str(file)) as ledger:
        ledger.commit(batch(1))
        with ledger.transaction() as connection:
            pass
        look_ups: list[tuple[str, Callable[[], object]]] = [
            ("ix_pilots_open", ledger.load),
            ("ix_pilots_name", lambda: ledger.fetch(PilotKeys(startds={"a", "b"}))),
            ("sqlite_autoindex_runs_1", lambda: ledger.find_runs(["a", "b"])),
            ("ix_runs_pilot", lambda: ledger.runs_of([1, 2])),
            ("ix_runs_start_us", lambda: ledger.trials(5, 9, 99, ["a"])),
            ("ix_pilots_factory_job", lambda: ledger.fetch(PilotKeys(factory_jobs={"a#1.0"}))),
            ("ix_pilots_end_us", lambda: ledger.prune(ORIGIN / 1e6, NOTHING)),
        ]
        for index, look_up in look_ups:
            asked: list[tuple[str, Any]] = []

            def ask(_: object, __: object, statement: str, values: Any, *___: object) -> None:
                asked.append((statement, values))  # noqa: B023

            event.listen(connection, "before_cursor_execute", ask)
            look_up()
            event.remove(connection, "before_cursor_execute", ask)
            plans = []
            for statement, values in asked:
                if "FROM pilots" in statement or "FROM runs" in statement:
                    explain = f"EXPLAIN QUERY PLAN {statement}"
                    with ledger.transaction():
                        plans += [r[3] for r in connection.exec_driver_sql(explain, values)]
            assert any(index in plan for plan in plans), (index, plans)
            scans = [p for p in plans if p.startswith("SCAN") and "_open" not in p]
            assert not scans, (index, plans)


JOB = f"schedd.example.org#1.0#{BASE}"


def test_jobs_by_their_number(url: str) -> None:
    write(url)
    with LedgerReader.open(url) as ledger:
        for schedd in ("", "schedd.example.org"):
            assert ledger.jobs_numbered("1.0", schedd, 5) == [JOB]
            assert ledger.jobs_numbered("0", schedd, 5) == []
            assert ledger.jobs_numbered("%", schedd, 5) == []
        for other in ("schedd", "schedd_example.org", "%"):
            assert ledger.jobs_numbered("1.0", other, 5) == []


def _place(number: int, entry: str, *events: tuple[QueueState, int]) -> QueueRecord:
    made = [QueueEvent("", PilotName(), state, at * SECOND_US) for state, at in events]
    return QueueRecord(entry, f"{number}.0", tuple(made))


def test_recent_waits(url: str) -> None:
    """Jobs wait a minute; a pilot waits since its last submission, until it first begins."""
    entry = identity(PILOT).key.entry
    places = (
        _place(1, entry, (QueueState.SUBMITTED, 10), (QueueState.STARTED, 70)),
        _place(
            *(2, entry, (QueueState.SUBMITTED, 0), (QueueState.EVICTED, 50)),
            *((QueueState.SUBMITTED, 60), (QueueState.PENDING, 65), (QueueState.STARTED, 90)),
        ),
        _place(3, entry, (QueueState.SUBMITTED, 10)),
        _place(4, "other", (QueueState.SUBMITTED, 10), (QueueState.STARTED, 70)),
    )
    with Ledger.open(url) as ledger:
        commit_jobs(ledger, 1, 3)
        ledger.commit(Batch(before=ledger.load_sites().batches, now_us=1, places=places))
    with LedgerReader.open(url) as ledger:
        (row, _), *_ = ledger.runs_begun(RunFilter(ALWAYS), None)
        job = waiting_job(schedd=row.key.job.partition("#")[0], user=row.user)
        found = past_waits(ledger, job, {entry, "nowhere"})
        assert [one.start_s - one.queued_s for one in found.jobs[row.user]] == [60.0] * 3
        assert {name: sorted(waits) for name, waits in found.pilots.items()} == {entry: [30, 60]}
        assert past_waits(ledger, job._replace(schedd="other"), {entry}).jobs == {}
        planned = job._replace(schedd="", accounting_group="group", size=Size(1, 1000, 0))
        assert len(past_waits(ledger, planned, {entry}).jobs[""]) == 3
        for other in (
            planned._replace(accounting_group="others"),
            planned._replace(size=Size(2, 1000, 0)),
        ):
            assert past_waits(ledger, other, {entry}).jobs == {}


LIFE = (ORIGIN, ORIGIN + 1000)


def rows() -> list[PilotRow]:
    """Pilots of two entries: some alike; some that no change can be made to."""
    like = pilots_at(9)[1].row
    entry = like.identity._replace(key=EntryKey("S", "e"))
    step = SizeStep(ORIGIN, Size(8, 16000))
    part = PilotFacts(output=OutputFacts(0, 0, cores=8, gpus=0, site=True))
    guess = {Assumption.SIZE: LIFE, Assumption.GPUS: LIFE}
    shown = PilotFacts(ads=AdFacts(0, sizes=(step,)))
    one = like._replace(
        facts=shown, identity=entry, steps=(SizeStep(0, Size(1, 1)), step), assumed={}
    )
    of_jobs = one._replace(identity=entry._replace(origin="jobs"))
    elsewhere = one._replace(identity=entry._replace(key=EntryKey("S", "other")))
    lives = [
        one,
        one._replace(start_us=ORIGIN - 5, end_us=None),
        one._replace(assumed=guess, facts=PilotFacts()),
        one._replace(facts=part),
        one._replace(steps=()),
        of_jobs,
        elsewhere,
    ]
    return [key._replace(id=number) for number, key in enumerate(lives, 1)]


def test_kinds(url: str) -> None:
    """Those that are alike come together; pilots of other entries do not."""
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(0, ORIGIN, tuple(rows())))
        key = identity(1)
        site = key.origin == "collector"
        size, who = Size(8, 16000), ("S", key.factory, key.group, key.origin)
        assert ledger.pilots_by_kind("e") == {
            PilotKind(ReportedSize(*size, site=True), size, frozenset(), *who): [1, 2],
            PilotKind(
                ReportedSize(site=site), size, frozenset({Assumption.SIZE, Assumption.GPUS}), *who
            ): [3],
            PilotKind(ReportedSize(8, None, 0, site=True), size, frozenset(), *who): [4],
        }
        assert ledger.pilots_by_kind("nowhere") == {}
        with ledger.transaction() as connection:
            connection.execute(text("UPDATE pilots SET runs_pruned = 1 WHERE id = 1"))
        left = [number for ids in ledger.pilots_by_kind("e").values() for number in ids]
        assert sorted(left) == [2, 3, 4]


@pytest.mark.parametrize("facts", ["[1", '{"output":{"first_us":"one"}}', "3"])
def test_what_cannot_be_read_is_damage(url: str, facts: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(0, ORIGIN, tuple(rows())))
        with ledger.transaction() as connection:
            connection.execute(
                text("UPDATE pilots SET facts = :facts WHERE id = 4"), {"facts": facts}
            )
        with pytest.raises(LedgerCorrupt, match="pilot 4"):
            ledger.pilots_by_kind("e")
    with Ledger.open(url) as ledger, pytest.raises(LedgerCorrupt, match="pilot 4"):
        ledger.pilots_by_id([4])


def test_pilots_that_never_were(url: str) -> None:
    """They and their runs are gone, others stay, and their numbers are not given again."""
    with Ledger.open(url) as ledger:
        for number in range(1, 8):
            ledger.commit(batch(number))
        before = ledger.load()
        last = max(before.pilots, key=lambda row: row.id)
        runs = ledger.runs_of([last.id]).get(last.id, [])
        moved = tuple((run.pilot, run.key) for run in runs)
        gone = Batch(before.batches, ORIGIN, moved=moved, withdrawn=(last.id, 10**6))
        ledger.commit(gone)
        after = ledger.load()
        assert after.next_id == before.next_id
        assert after.pilots == tuple(row for row in before.pilots if row.id != last.id)
        assert ledger.pilots_by_id([last.id]) == {}
