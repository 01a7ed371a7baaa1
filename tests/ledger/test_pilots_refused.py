"""What the ledger refuses of one pilot stops that pilot alone, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import pytest
from sqlalchemy import select, update
from structlog.testing import capture_logs
from structlog.typing import EventDict

from gwmond.ledger import store
from gwmond.ledger.database.errors import LedgerRefused
from gwmond.ledger.database.schema import pilots, series, series_hours
from gwmond.ledger.rows import tables, writes
from gwmond.ledger.rows.pilot_codec import Values
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Gap, Pilot
from gwmond.model.packed import Packed
from gwmond.model.pilots.file_facts import PilotName, QueueEvent, QueueState
from gwmond.model.pilots.stored_pilots import PilotCorrection, PilotRow
from gwmond.model.poll.batch import Batch, Parts
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import JobRecord
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from tests.build.accounting import attached
from tests.build.pilot_files import us
from tests.build.play import T0, record, shown

BAD, GOOD = "bad@node", "good@node"
STEP_S = 600
END_S = 7200
Bad: TypeAlias = Callable[[Any], bool]


def poll(
    keeper: LedgerKeeper, at: int, some: list[Pilot], records: Sequence[JobRecord] = ()
) -> None:
    """One poll, in which all pilots are shown as long as they live."""
    alive = [key._replace(last_heard=T0 + at) for key in some if at < END_S]
    with keeper.steps() as steps:
        steps.run(steps.accounting.add_ads(us(at), STEP_S * 10**6, alive, complete=True))
        steps.run(steps.accounting.add_claims(us(at), Packed(), complete=True))
    keeper.add_records(records, None, None)
    keeper.settle(us(at), us(at - 120), ())


def runs(startd: str, job: str) -> list[JobRecord]:
    """A run of a job for half an hour."""
    return [record(job, 600, 2400, startd=startd)]


def play(keeper: LedgerKeeper, some: list[Pilot], first: int = 0, last: int = 21_600) -> None:
    """Poll until all is settled; on each pilot a job runs, which is reported at 3000."""
    for at in range(first, last + 1, STEP_S):
        told = [run for n, one in enumerate(some) for run in runs(one.name, f"{n}.0")]
        poll(keeper, at, some, told if at == 3000 else [])


def spent(ledger: Ledger) -> dict[str, int]:
    """What is stored of hours, in micros, by entry."""
    sums: dict[str, int] = {}
    for row in ledger.pilot_hours(0, 10**7):
        sums[row.series.entry] = sums.get(row.series.entry, 0) + row.micros
    return {entry: micros for entry, micros in sums.items() if micros}


def proven(ledger: Ledger) -> dict[str, PilotRow]:
    """Assert that all sums up; return the pilots by name."""
    assert [check_pilot for check_pilot in ledger.check() if check_pilot.micros] == []
    return {row.identity.name: row for row in ledger.pilot_rows()}


def undecodable(patch: pytest.MonkeyPatch, module: object, name: str, bad: Bad) -> None:
    """Let no such row be prepared any more, where a module calls what prepares it by this name."""
    real = getattr(module, name)

    def values(row: Any) -> Values:
        if bad(row):
            raise ValueError("a bug")
        return cast(Values, real(row))

    patch.setattr(module, name, values)


def both(**bad: float) -> list[Pilot]:
    return [shown(BAD, entry="bad", **bad), shown(GOOD, entry="good")]  # type: ignore[arg-type]


def told_of(logs: list[EventDict]) -> list[tuple[object, object]]:
    """Which pilots were told to be left out."""
    return [(log["pilot"], log["entry"]) for log in logs if "cannot store" in log["event"]]


def test_a_pilot_that_cannot_be_prepared_is_left_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its runs, hours and counts; it is told once, and the rest is as without it."""
    with Ledger.open(url) as ledger:
        keeper = attached(ledger)
        with monkeypatch.context() as patch, capture_logs() as logs:
            undecodable(patch, writes, "pilot_values", lambda row: row.identity.name == BAD)
            play(keeper, both())
        assert keeper.ready
        assert told_of(logs) == [(BAD, "bad")]
        assert {"a bug"} == {log["cause"] for log in logs if "cause" in log}
        assert {name: n for name, n in keeper.accounting.left_out.items() if n} == {
            "not_storable": 1
        }
        rows = proven(ledger)
        assert rows.keys() == {GOOD}
        assert rows[GOOD].closed
        assert {row.key.job for row, _ in ledger.run_rows()} == {"schedd#1.0#1"}
        assert spent(ledger) == {"good": 2 * 4 * (END_S - STEP_S) * 10**6}
        counts = ledger.load().totals.counts
        assert {count_key.entry for count_key, total in counts.items() if total.net} == {"good"}


def test_a_pilot_that_is_stored_stays_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a start finds that it can be stored; then it goes on."""

    def bad(row: PilotRow) -> bool:
        return row.identity.name == BAD and row.posted_last_heard_us >= us(4300)

    with Ledger.open(url) as ledger:
        keeper = attached(ledger)
        play(keeper, both(), last=4200)
        before, had = proven(ledger)[BAD], spent(ledger)["bad"]
        with monkeypatch.context() as patch, capture_logs() as logs:
            undecodable(patch, writes, "pilot_values", bad)
            play(keeper, both(), 4800, 10_200)
        assert told_of(logs) == [(BAD, "bad")]
        rows = proven(ledger)
        assert rows[BAD]._replace(last_heard_us=0) == before._replace(last_heard_us=0)
        assert (spent(ledger)["bad"], rows[GOOD].end_us) == (had, us(END_S - STEP_S))
        play(attached(ledger), both(), 10_800)
        rows = proven(ledger)
        assert rows[BAD].closed
        assert spent(ledger)["bad"] > had


def test_a_size_that_is_absurd(url: str) -> None:
    """No column holds its time: that pilot is left out by itself, nothing is made up."""
    with Ledger.open(url) as ledger:
        keeper = attached(ledger)
        with capture_logs() as logs:
            play(keeper, both(cores=1e15))
        assert told_of(logs) == [(BAD, "bad")]
        rows = proven(ledger)
        assert (rows[GOOD].closed, rows[BAD].end_us) == (True, None)
        assert spent(ledger).keys() == {"good"}


def test_what_the_tables_refuse_is_left_out(url: str) -> None:
    """A correction takes from an hour what is not there: once it is there again all sums up."""
    with Ledger.open(url) as ledger:
        keeper = attached(ledger)
        play(keeper, both(), last=4800)
        proven(ledger)
        number = select(series.c.id).where(series.c.labels.contains('"bad"'))
        of_bad = series_hours.c.series.in_(number)
        with ledger.transaction() as connection:
            kept = connection.execute(select(series_hours).where(of_bad)).all()
            connection.execute(update(series_hours).where(of_bad).values(amount=0))
        late = [record(f"7.{n}", 10, 400, startd=one.name) for n, one in enumerate(both())]
        with capture_logs() as logs:
            poll(keeper, 5400, both(), late)
            play(keeper, both(), 6000)
        assert told_of(logs) == [(BAD, "bad")]
        with ledger.transaction() as connection:
            for hour, of_series, amount in kept:
                at = series_hours.c.hour == hour, series_hours.c.series == of_series
                connection.execute(update(series_hours).where(*at).values(amount=amount))
        rows = proven(ledger)
        assert (rows[GOOD].closed, rows[BAD].end_us) == (True, None)
        jobs = {(row.key.job, who.name) for row, who in ledger.run_rows()}
        assert {job for job, who in jobs if who == BAD} == {"schedd#0.0#1"}
        assert {job for job, who in jobs if who == GOOD} == {"schedd#1.0#1", "schedd#7.1#1"}


def test_what_fits_only_in_part_is_left_out_in_order(url: str) -> None:
    """Each of two corrections could be made alone; the second takes what the first has taken."""
    with Ledger.open(url) as ledger:
        play(attached(ledger), [shown(GOOD)])
        pilot_series = ledger.pilot_hours(0, 10**7)[0]
        amount = pilot_series.micros * 2 // 3
        empty = Batch(ledger.load().batches, us(0))
        takes = [
            PilotCorrection(us(0), n, pilot_series.hour, pilot_series.series, -amount, "revised")
            for n in range(3)
        ]
        parts: Parts = {n: empty._replace(corrections=(takes[n],)) for n in range(3)}
        for one in parts.values():
            assert ledger.refused_parts({7: one}) == {}
        assert ledger.refused_parts(parts).keys() == {1, 2}
        proven(ledger)  # nothing was stored


def test_a_place_that_cannot_be_stored(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the queue reported of one job is left out alone."""
    undecodable(monkeypatch, tables, "place_values", lambda place: place.entry == "bad")
    with Ledger.open(url) as ledger:
        keeper = attached(ledger)
        names = [PilotName(entry=literal, cluster=1, proc=0) for literal in ("bad", "good")]
        keeper.add_facts([QueueEvent("", name, QueueState.STARTED, us(0)) for name in names], None)
        keeper.settle(us(60), us(0), ())
        assert [place.entry for place in ledger.load().places] == ["good"]
        assert keeper.accounting.left_out[ProblemName.NOT_STORABLE] == 1
        assert keeper.ready


def test_what_lies_in_no_pilot_is_not_left_out(url: str) -> None:
    """Such as a gap: all of it waits, and is told."""
    with Ledger.open(url) as ledger:
        keeper = attached(ledger)
        keeper.add_records(runs(GOOD, "1.0"), None, Gap("schedd", "history", None, -1, ""))
        with pytest.raises(LedgerRefused):
            keeper.settle(us(3000), us(2900), ())
        assert not keeper.ready
        assert ledger.pilot_rows() == []


def test_very_many_are_left_out_some_at_a_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a search takes a bounded time; the batch waits until all are found."""
    undecodable(monkeypatch, writes, "pilot_values", lambda row: row.identity.name[:3] == "bad")
    monkeypatch.setattr(store, "MOST_REFUSED", 10)
    some = [shown(f"{'bad' if n % 2 else 'good'}{n}@node") for n in range(60)]
    with Ledger.open(url) as ledger:
        keeper = attached(ledger)
        with keeper.steps() as steps:
            steps.run(steps.accounting.add_ads(us(600), STEP_S * 10**6, some, complete=True))
        with pytest.raises(LedgerRefused):
            keeper.settle(us(600), us(480), ())
        with pytest.raises(LedgerRefused):
            keeper.retry()
        keeper.retry()
        assert keeper.ready
        with ledger.transaction() as connection:
            assert len(connection.execute(select(pilots.c.id)).all()) == 30
        proven(ledger)
