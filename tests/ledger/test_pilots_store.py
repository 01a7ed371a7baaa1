"""What a ledger keeps of pilots, on both databases."""

from __future__ import annotations

from math import inf, nan
from typing import Any, cast

import pytest

from gwmond.ledger.database.errors import LedgerConflict, LedgerRefused
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.facts import Cursor, EntryKey, Gap, Problem, Size
from gwmond.model.pilot_life import Category, RunKey
from gwmond.model.pilots.stored_pilots import CountKey, PilotCorrection, PilotSeries
from gwmond.model.poll.batch import Batch, EntryState, LedgerState, Peak, TimedProblem
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.problem_names import ProblemName
from gwmond.model.totals import SiteKey, Total
from tests.ledger import batches
from tests.ledger.pilot_batches import (
    ORIGIN,
    expected_hours,
    identity,
    pilots_at,
    poll,
    prove_polls,
)

SERIES = PilotSeries("cpu", "canonical", Category.GOODPUT, "exit_zero", "S", "e", "g", "measured")
COUNT = CountKey("runs", Category.GOODPUT, "exit_zero", "S", "e", "g")
HOUR = ORIGIN // 3_600_000_000
NOW = ORIGIN


def _empty(before: int = 0) -> Batch:
    return Batch(before, NOW + before)


def _correction(micros: int, hour: int = HOUR, series: PilotSeries = SERIES) -> PilotCorrection:
    return PilotCorrection(NOW, 1, hour, series, micros, "revised")


def test_a_new_ledger_has_no_pilots(url: str) -> None:
    with Ledger.open(url) as ledger:
        assert all(check_pilot.micros == 0 for check_pilot in ledger.check())
        assert ledger.runs_of([1]) == {}
        assert ledger.fetch(PilotKeys(startds={"x"})).pilots == ()
        assert ledger.find_runs([]) == {}


def test_what_was_committed_is_loaded(url: str) -> None:
    """Rows, hours, totals, entries, cursors come back equal, by writer, reader and restart."""
    with Ledger.open(url) as ledger:
        for number in range(1, 25):
            ledger.commit(poll(number))
        prove_polls(ledger, 24)
        with LedgerReader.open(url) as reader:
            prove_polls(reader, 24)
    with Ledger.open(url) as ledger:
        prove_polls(ledger, 24)
        for number in range(25, 29):
            ledger.commit(poll(number))
            prove_polls(ledger, number)
        state = ledger.load()
        wanted = pilots_at(28)
        named = PilotKeys(startds={*(identity(n).name for n in wanted), "nobody"})
        assert {row.id: row for row in ledger.fetch(named).pilots} == {
            i: rows.row for i, rows in wanted.items()
        }
        assert ledger.pilots_by_id([1, 10**6]) == {1: wanted[1].row}
        jobs = {a.key.job for rows in wanted.values() for a in rows.runs}
        runs = ledger.find_runs(jobs)
        assert runs.keys() == jobs
        assert {a.key for run in runs.values() for a in run} == {
            a.key for rows in wanted.values() for a in rows.runs
        }
        totals: dict[PilotSeries, int] = {}
        for (_, series), micros in expected_hours(28).items():
            totals[series] = totals.get(series, 0) + micros
        stored = state.totals.pilots
        assert {series: total.net for series, total in stored.items() if total.net} == totals
        # A counter never falls, so it is above a total that was corrected.
        assert {total.below > 0 for total in stored.values()} == {True, False}
        assert ledger.corrections(limit=10**6)
        assert {total.created for total in state.totals.site.values()} == {
            batches.batch(1).site_since
        }
        assert state.entries == poll(28).entries
        assert state.peaks == poll(28).peaks
        assert {row.runs_pruned for row in state.pilots} == {0}


def test_only_what_is_open_is_loaded(url: str) -> None:
    """Closed pilots are not loaded, nor runs that are settled and ended before the mark."""
    one, two = (pilots_at(40)[n].row for n in (1, 2))
    first = pilots_at(40)[2].runs
    mark = first[0].end_us
    assert mark is not None
    rows = (
        first[0]._replace(open=False),
        first[1]._replace(open=False, end_us=mark + 1),
        first[2]._replace(open=False, end_us=None),
        first[0]._replace(key=RunKey("another", 1), open=True),
    )
    with Ledger.open(url) as ledger:
        given = (one._replace(closed=True), two._replace(closed=False, settled_until_us=mark))
        ledger.commit(_empty()._replace(pilots=given, runs=rows))
        state = ledger.load()
        assert state.pilots == (given[1],)
        assert sorted(a.key for a in state.runs) == sorted(a.key for a in rows[1:])


def test_site_time_and_pilots_are_stored_both_or_neither(url: str) -> None:
    """What refuses one of them refuses the other, also where the tables do."""
    sound = poll(1)
    absurd = {next(iter(sound.site_time)): -1}
    with Ledger.open(url) as ledger:
        for senseless in (
            sound._replace(corrections=(_correction(-1),)),
            sound._replace(site_time=absurd),
            sound._replace(increments={SERIES: {HOUR: -1}}),
            sound._replace(before=7),
        ):
            with pytest.raises((LedgerRefused, LedgerConflict)):
                ledger.commit(senseless)
            assert ledger.load() == LedgerState()
            assert ledger.pilot_hours(0, 10**7) == []
        ledger.commit(sound)
        batches.prove(ledger, 1, 1)


def test_corrections_lower_the_total_and_not_the_counter(url: str) -> None:
    """The total falls with a correction, the counter stands until the total is higher again."""
    with Ledger.open(url) as ledger:

        def step(more: int, correction: int) -> int:
            before = ledger.load().batches
            corrections = (_correction(correction),) if correction else ()
            increments = {SERIES: {HOUR: more, HOUR + 1: 0}}
            changed = ledger.commit(
                Batch(before, NOW, increments=increments, corrections=corrections)
            )
            assert changed == ledger.load().totals
            assert changed.pilots[SERIES].created == ORIGIN / 1e6
            return changed.pilots[SERIES].micros

        big = 9 * 10**18 + 999_999
        step(5 * 10**18, 0)
        assert step(4 * 10**18 + 999_999, 0) == big
        assert step(5, -6) == big
        assert step(0, -1_000_000) == big
        (row,) = ledger.pilot_hours(0, 10**7)
        assert row.micros == big - 1_000_001
        assert step(1_000_001, 0) == big
        assert step(1, 0) == big + 1
        assert [correction.micros for correction in ledger.corrections()] == [-1_000_000, -6]
        assert ledger.corrections(limit=1)[0] == _correction(-1_000_000)
        (hours, *_) = ledger.check()
        assert hours.micros == 0


def test_counts_fall_and_the_counters_do_not(url: str) -> None:
    with Ledger.open(url) as ledger:
        for number, change in enumerate((3, -2, 1, 5)):
            changed = ledger.commit(_empty(number)._replace(counts={COUNT: change}))
            highest, net = ((3, 3), (3, 1), (3, 2), (7, 7))[number]
            assert changed.counts == {COUNT: Total(highest, ORIGIN / 1e6, highest - net)}
            assert changed == ledger.load().totals


def _refused() -> list[dict[str, Any]]:
    pilot = pilots_at(3)[1].row
    run = pilots_at(3)[1].runs[0]
    site, entry = SiteKey("cpu", "full", "", "S", "e"), EntryKey("S", "e")
    amounts: list[Any] = [-1, 1.0, True, 10**22, nan]
    inexact: Any = {"cpu": 1.5}
    return [
        *({"site_time": {(1, site): amount}} for amount in amounts),
        {"site_time": {(-1, site): 1}},
        {"site_time": {(10**7 + 1, site): 1}},
        {"site_since": nan, "site_time": {(1, site): 1}},
        {"before": -1},
        {"tick": Tick(inf, 60.2, 1e-9, "boot")},
        {"entries": {entry: EntryState(nan, None, {})}},
        {"entries": {entry: EntryState(1.0, None, inexact)}},
        {"peaks": {entry: (Peak("cpu", 1, -1),)}},
        {"problems": (TimedProblem(nan, Problem("a", ProblemName.FAILED, "c")),)},
        {"increments": {SERIES: {HOUR: -1}}},
        {"increments": {SERIES: {HOUR: 1.0}}},
        {"increments": {SERIES: {HOUR: 2**63}}},
        {"increments": {SERIES: {-1: 1}}},
        {"increments": {SERIES: {10**7 + 1: 1}}},
        {"corrections": (_correction(-1),)},
        {"corrections": (_correction(True),)},
        {"corrections": (_correction(-1, HOUR + 1), _correction(2))},
        {"corrections": (_correction(-1, HOUR + 9),), "increments": {SERIES: {HOUR: 5}}},
        {"counts": {COUNT: -1}},
        {"counts": {COUNT: 1.5}},
        {"now_us": -1},
        {"now_us": 1.7e15},
        {"pilots": (pilot._replace(id=-1),)},
        {"pilots": (pilot._replace(start_us=10**18),)},
        {"pilots": (pilot._replace(settled={next(iter(pilot.settled)): -1}),)},
        {"runs": (run._replace(end_us=cast(int, 1.5)),)},
        {"runs": (run._replace(size=Size(nan, 1, 1)),)},
        {"runs": (run._replace(settled={("cpu", "resource"): -1}),)},
        {"runs": (run._replace(settled=cast(Any, {("tpu", "resource"): 1})),)},
        {"cursors": (Cursor("s", "k", "a\0b", None),)},
        {"cursors": (Cursor("s", "k", "", -1),)},
        {"gaps": (Gap("s", "k", 1, nan, ""),)},  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("wrong", _refused(), ids=lambda wrong: repr(wrong)[:60])
def test_a_senseless_batch_is_refused(url: str, wrong: dict[str, Any]) -> None:
    """Amounts that are negative, inexact or taken from nothing, and times that are none."""
    sound = _empty()._replace(pilots=(pilots_at(3)[1].row,), tick=Tick(NOW / 1e6, 1, 1, "boot"))
    with Ledger.open(url) as ledger:
        with pytest.raises(LedgerRefused, match="refused a batch") as error:
            ledger.commit(sound._replace(**wrong))
        assert not error.value.reopen
        assert ledger.load() == LedgerState()
        ledger.commit(_empty())


def test_any_name_can_be_stored(url: str) -> None:
    """Names with NUL, broken UTF-8 or of a megabyte stop nothing; long job ids stay apart."""
    names = ["a\0b", "x\udcff", "é中😀", "😀" * 100_000, "😀" * 100_001, "y" * 600 + "1", "y" * 601]
    row, run = pilots_at(9)[1].row, pilots_at(9)[1].runs[0]
    rows, theirs, increments, counts = [], [], {}, {}
    for number, name in enumerate(names, 1):
        of = row.identity._replace(
            name=name, factory_job=name, factory=name, key=EntryKey(name, name), group=name
        )
        settled: Any = {("cpu", "resource", Category.UNCLASSIFIED, name): 5}
        rows.append(row._replace(id=number, identity=of._replace(node=name), settled=settled))
        facts = tuple(
            fact._replace(job=name, user=name, pilot=name, job_group=name) for fact in run.facts
        )
        key = RunKey(name, 1)
        theirs.append(run._replace(pilot=number, key=key, user=name, job_group=name, facts=facts))
        series = SERIES._replace(outcome=name, site=name, entry=name, group=name)
        increments[series] = {HOUR: 5}
        counts[COUNT._replace(outcome=name, site=name, entry=name, group=name)] = 1
    gaps = tuple(Gap(name, name, None, NOW, name) for name in names)
    with Ledger.open(url) as ledger:
        ledger.commit(
            Batch(0, NOW, tuple(rows), tuple(theirs), (), increments, (), counts, (), gaps)
        )
        state = ledger.load()
        assert len(state.pilots) == len(state.runs) == 7
        assert sum(total.micros for total in state.totals.pilots.values()) == 35
        assert state.pilots[2] == rows[2]
        found = ledger.find_runs(names)
        assert {name: len(run_rows) for name, run_rows in found.items()} == dict.fromkeys(names, 1)
        assert found[names[2]] == [theirs[2]]
        for number, name in enumerate(names, 1):
            assert [row.id for row in ledger.fetch(PilotKeys(startds={name})).pilots] == [number]
        # As they come back they can be written again, and are the same rows.
        ledger.commit(_empty(1)._replace(pilots=state.pilots, runs=state.runs))
        again = ledger.load()
        assert again.pilots == state.pilots
        assert again.runs == state.runs
        gone = tuple((a.pilot, a.key) for a in theirs)
        ledger.commit(_empty(2)._replace(moved=gone))
        assert ledger.load().runs == ()


def test_runs_move(url: str) -> None:
    """A run whose key or pilot changed is stored once, where it is now."""
    row, run = pilots_at(9)[1].row, pilots_at(9)[1].runs[0]
    unknown = run._replace(key=run.key._replace(number=0))
    elsewhere = run._replace(pilot=2)
    with Ledger.open(url) as ledger:
        ledger.commit(_empty()._replace(pilots=(row,), runs=(unknown,)))
        moved: tuple[tuple[int, RunKey], ...] = ((1, unknown.key),)
        ledger.commit(_empty(1)._replace(runs=(run,), moved=moved))
        assert ledger.find_runs([run.key.job]) == {run.key.job: [run]}
        moved = ((1, run.key),)
        ledger.commit(_empty(2)._replace(runs=(elsewhere,), moved=moved))
        assert ledger.find_runs([run.key.job]) == {run.key.job: [elsewhere]}
        moved = ((2, elsewhere.key), (7, elsewhere.key))  # gone and back; never was there
        ledger.commit(_empty(3)._replace(runs=(elsewhere,), moved=moved))
        assert ledger.find_runs([run.key.job]) == {run.key.job: [elsewhere]}
