"""The book of pilots and its ledger: cursors that last, and a ledger that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.ledger import pilot_writes
from gwmond.ledger.errors import LedgerError, LedgerFull, LedgerUnreachable
from gwmond.ledger.pilot_codec import Values
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Cursor, Problem
from gwmond.model.stored_pilots import PilotBatch, PilotRow
from gwmond.service.pilot_keeper import PilotKeeper
from tests.build.polls import made
from tests.pilots.play import T0, record

KIND = "factory_files"
FULL = LedgerFull("L", "no space left", "Free some.")


def now_us(at: int) -> int:
    """Microseconds since the epoch of a time since T0."""
    return (T0 + at) * 10**6


def attached(ledger: Ledger) -> PilotKeeper:
    """A keeper as it is after a restart."""
    keeper = PilotKeeper(Config())
    keeper.attach(ledger)
    return keeper


def state(keeper: PilotKeeper, source: str, kind: str = KIND) -> str | None:
    """How far a source has been read."""
    cursor = keeper.cursor(source, kind)
    return cursor.state if cursor is not None else None


def fails(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, error: LedgerError) -> None:
    """Let nothing be stored."""

    def commit(_: object) -> None:
        raise error

    for name in ("commit", "commit_pilots"):
        monkeypatch.setattr(ledger, name, commit)


def test_cursors_of_any_path_go_on_after_a_restart(tmp_path: Path) -> None:
    """Paths that are long, that differ at their end alone, or that are not UTF-8."""
    long = "/" + "x" * 150
    paths = ["/short", f"{long}/a", f"{long}/b", f"/{'y' * 600}1", f"/{'y' * 600}2", "/z\udcff\0é"]
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        for process in range(3):
            keeper = attached(ledger)
            for path in paths:
                assert state(keeper, path) == (f"{process}{path[-1:]!a}" if process else None)
                keeper.report((), Cursor(path, KIND, f"{process + 1}{path[-1:]!a}", None))
            keeper.settle(now_us(process), 0, ())
            assert len(keeper.cursors) == len(ledger.cursors()) == len(paths)


def test_cursors_that_did_not_move_are_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those whose paths are stored otherwise than they are."""
    moved: list[int] = []

    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        store = ledger.commit_pilots

        def commit(batch: PilotBatch) -> None:
            moved.append(len(batch.cursors))
            store(batch)

        monkeypatch.setattr(ledger, "commit_pilots", commit)
        for _ in range(2):
            keeper = attached(ledger)
            keeper.report((), Cursor("/" + "y" * 600, KIND, "1", None))
            keeper.settle(now_us(0), 0, ())
    assert moved == [1, 0]


def test_nothing_is_taken_in_while_a_batch_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again as it is; what was taken in before is stored once, then more may come."""
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        keeper = attached(ledger)
        keeper.tell([record("1.0", 0, 60)], Cursor("s", "epochs", "1", None), None)
        with monkeypatch.context() as patch:
            fails(ledger, patch, FULL)
            with pytest.raises(LedgerFull):
                keeper.settle(now_us(100), 0, ())
            for _ in range(2):
                keeper.attach(ledger)
                assert not keeper.ready
                with pytest.raises(LedgerFull):
                    keeper.retry()
        assert ledger.load_pilots().batches == 0
        keeper.retry()
        assert keeper.ready
        keeper.retry()  # nothing waits
        stored = ledger.load_pilots()
        assert (stored.batches, len(stored.pilots), len(stored.attempts)) == (1, 1, 1)
        assert [cursor.state for cursor in stored.cursors.values()] == ["1"]


@pytest.mark.parametrize("stored", [False, True])
def test_a_ledger_that_went_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    """The batch waits until the ledger is back, unless only the answer was lost."""
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        keeper = attached(ledger)
        keeper.tell([record("1.0", 0, 60)], Cursor("s", "epochs", "1", None), None)
        commit = ledger.commit_pilots

        def lost(batch: PilotBatch) -> None:
            if stored:
                commit(batch)
            raise LedgerUnreachable("L", "it does not answer", "Wait.")

        monkeypatch.setattr(ledger, "commit_pilots", lost)
        with pytest.raises(LedgerUnreachable):
            keeper.settle(now_us(100), 0, ())
        monkeypatch.undo()
        keeper.retry()  # there is none
        assert not keeper.ready
        keeper.attach(ledger)
        assert keeper.ready is stored
        keeper.retry()
        assert keeper.ready
        assert ledger.load_pilots().batches == 1


def test_a_pilot_that_cannot_be_stored_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted once among the records that are not accounted; the polls go on."""

    def values(row: PilotRow) -> Values:
        raise ValueError(f"a bug about {row.identity.name}")

    monkeypatch.setattr(pilot_writes, "pilot_values", values)
    polls = made(tmp_path, {"schedds": False})
    for _ in range(3):
        polls.hear()
        found = polls.poll()
    accountant = polls.poller._accountant
    assert accountant is not None
    assert accountant.failure is None
    assert found.problems["records", "not_storable"] == 1
    ledger = polls.keeper.ledger
    assert ledger is not None
    assert ledger.load_pilots().batches >= 3
    assert ledger.pilot_rows() == []


def test_a_full_disk_stops_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither records nor sightings are taken in; all goes on when there is space again."""
    polls = made(tmp_path, {"files": [f"{tmp_path}/none*"], "schedds": False})
    polls.poll()
    polls.hear()
    accountant = polls.poller._accountant
    assert accountant is not None
    reads: list[float] = []
    real = accountant._central.read

    def read(now: float) -> list[Problem]:
        reads.append(now)
        return real(now)

    monkeypatch.setattr(accountant._central, "read", read)
    ledger = polls.keeper.ledger
    assert ledger is not None
    with monkeypatch.context() as patch:
        fails(ledger, patch, FULL)
        for _ in range(3):
            polls.poll()
            assert not accountant.pilots.ready
            assert not accountant.behind
    assert len(reads) == 1
    polls.poll()
    assert accountant.failure is None
    assert len(reads) == 2
