"""What is forgotten of pilots, and the proof that nothing else is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gwmond.ledger.database.errors import LedgerRefused
from gwmond.ledger.rows import counters, pilot_prune
from gwmond.ledger.rows.pilot_prune import Pruned, Retention
from gwmond.ledger.store import Ledger
from gwmond.model.pilots.stored_pilots import PilotCorrection, PilotFilter, PilotSeries
from gwmond.model.poll.batch import Batch
from tests.ledger.pilot_batches import (
    HOUR,
    NOTHING,
    ORIGIN,
    batch,
    expected_factory,
    expected_hours,
    now_us,
    pilot_at,
    pilots_at,
    prove_pilots,
)

FOR_EVER = 10**9


def _sums(number: int) -> dict[PilotSeries, int]:
    sums: dict[PilotSeries, int] = {}
    for (_, series), micros in expected_hours(number).items():
        sums[series] = sums.get(series, 0) + micros
    return sums


def _sound(ledger: Ledger) -> None:
    assert [check_pilot for check_pilot in ledger.check() if check_pilot.micros] == []


def _totals(ledger: Ledger) -> dict[PilotSeries, int]:
    with ledger.transaction() as connection:
        return {
            counters.pilot_key(series.labels): series.total
            for series in counters.stored_series(connection, counters.Kind.PILOT)
            if series.total
        }


def test_any_course_of_pruning_stays_provable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes whenever: totals are the exact sums, and everything left is proven."""
    monkeypatch.setattr(pilot_prune, "PILOTS_AT_ONCE", 3)
    monkeypatch.setattr(pilot_prune, "RUNS_AT_ONCE", 4)
    chance = random.Random(5)
    with Ledger.open(url) as ledger:
        for number in range(1, 33):
            ledger.commit(batch(number))
            if number % 3 == 0:
                keep = Retention(*(chance.randrange(2, 12) * 3600 for _ in range(4)))
                ledger.prune(now_us(number) / 1e6, keep)
                _sound(ledger)
        assert _totals(ledger) == _sums(32)
        state = ledger.load()
        wanted = pilots_at(32)
        assert {row.id for row in state.pilots} == {
            i for i, rows in wanted.items() if not rows.row.closed
        }
        assert all(row.runs_pruned == 0 for row in state.pilots)


def test_open_pilots_stay(url: str) -> None:
    """Without any retention all that is closed goes, and what is open stays as it is."""
    with Ledger.open(url) as ledger:
        for number in range(1, 25):
            ledger.commit(batch(number))
        before = ledger.load()
        pruned = ledger.prune(now_us(24) / 1e6 + FOR_EVER, NOTHING)
        after = ledger.load()
        assert after == before._replace(places=())
        assert pruned.places == 24
        assert {row.id for row in ledger.pilot_rows()} == {row.id for row in after.pilots}
        assert ledger.pilot_hours(0, 10**7) == []
        assert ledger.factory_hours(0, 10**7) == {}
        assert sum(shown.micros for shown in after.totals.factory.values()) == sum(
            expected_factory(24).values()
        )
        assert ledger.corrections(limit=10**6) == []
        assert pruned.pilots == len(pilots_at(24)) - len(after.pilots)
        _sound(ledger)
        assert ledger.prune(now_us(24) / 1e6 + FOR_EVER, NOTHING) == Pruned()
        # Amounts and corrections of hours that are gone go into the carry.
        for number in range(25, 29):
            ledger.commit(batch(number))
            _sound(ledger)
        assert ledger.pilot_hours(0, 10**7) == []
        assert _totals(ledger) == _sums(28)


def test_what_is_kept_for_ever_stays(url: str) -> None:
    with Ledger.open(url) as ledger:
        for number in range(1, 20):
            ledger.commit(batch(number))
        kept = ledger.prune(now_us(19) / 1e6, Retention(*[FOR_EVER] * 4))
        assert kept == Pruned()
        prove_pilots(ledger, 19)


def test_runs_go_before_their_pilots(url: str) -> None:
    """A closed pilot says how many of its runs went, and keeps saying so when it is written."""
    closed = pilot_at(1, now_us(30))
    assert closed is not None
    row, runs = closed
    assert row.closed
    assert runs[0].end_us is not None
    with Ledger.open(url) as ledger:
        for number in range(1, 31):
            ledger.commit(batch(number))
        now = now_us(30)
        between = (now - runs[0].end_us - 1_000_000) / 1e6
        ledger.prune(now / 1e6, Retention(runs_s=between))
        (stored,) = ledger.pilot_rows(PilotFilter(id=1))
        assert stored == row._replace(runs_pruned=1)
        assert ledger.runs_of([1])[1] == list(runs[1:])
        ledger.commit(Batch(30, now, pilots=(row,)))
        assert ledger.pilot_rows(PilotFilter(id=1)) == [stored]
        _sound(ledger)


def test_a_run_stays_while_its_job_is_on_a_pilot_that_is_not_closed(url: str) -> None:
    """Whether the job ran again bears on the run there, also after a restart."""
    first, later = pilot_at(1, now_us(30)), pilot_at(2, now_us(30))
    assert first is not None
    assert later is not None
    run = later.runs[0]
    again = run._replace(key=first.runs[0].key._replace(number=2))
    going_on = first.row._replace(closed=False)
    with Ledger.open(url) as ledger:
        runs = (*first.runs, again, *later.runs[1:])
        ledger.commit(Batch(0, ORIGIN, pilots=(going_on, later.row), runs=runs))
        ledger.prune(now_us(30) / 1e6, Retention(runs_s=0))
        assert ledger.runs_of([1, 2]) == {1: list(first.runs), 2: [again]}
        ledger.commit(Batch(1, ORIGIN, pilots=(first.row,)))
        ledger.prune(now_us(30) / 1e6, Retention(runs_s=0))
        assert ledger.runs_of([1, 2]) == {}


def test_a_correction_of_a_pruned_hour(url: str) -> None:
    """What is taken from an hour that is gone comes from the carry, and never from another."""
    series = next(iter(_sums(5)))
    hour = ORIGIN // HOUR
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(0, ORIGIN, increments={series: {hour: 5, hour + 9: 7}}))
        ledger.prune((hour + 5) * 3600, NOTHING)
        made = PilotCorrection(ORIGIN, 1, hour, series, -5, "revised")
        ledger.commit(Batch(1, ORIGIN, corrections=(made,)))
        (left,) = ledger.pilot_hours(0, 10**7)
        assert (left.hour, left.micros) == (hour + 9, 7)
        assert ledger.check()[0].micros == 0
        with pytest.raises(LedgerRefused, match="less than nothing"):
            ledger.commit(Batch(2, ORIGIN, corrections=(made,)))


def test_numbers_are_never_given_again(file: Path) -> None:
    """Next numbers go on after the highest there ever was, also when that pilot is pruned."""
    row = pilots_at(40)[1].row
    with Ledger.open(str(file)) as ledger:
        ledger.commit(Batch(0, ORIGIN, pilots=(row._replace(id=41, settled={}),)))
        assert ledger.load().next_id == 42
        assert ledger.prune(ORIGIN / 1e6 + 10**6, NOTHING).pilots == 1
        assert ledger.load().next_id == 42
        ledger.commit(Batch(1, ORIGIN, pilots=(row._replace(id=7),)))
        assert ledger.load().next_id == 42
