"""The backlog of traces in the ledger: in order, in the same chunks, forgotten as they are sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from gwmond.ledger import store
from gwmond.ledger.database.schema import VERSION_TABLE
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.backlog import UnsentPosition
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.poll.batch import Batch, Settled


def settled(first: int, number: int) -> tuple[Settled, ...]:
    kinds = (Settled(7), Settled(7, "schedd#1.0#1"), Settled(7, "schedd#ü.0#1", 3))
    return tuple(kinds[place % 3]._replace(pilot=first + place) for place in range(number))


def commit(ledger: Ledger, stored_us: int, *of_batches: int) -> None:
    """Store batches that have settled so many each."""
    before = ledger.load().batches
    for place, number in enumerate(of_batches):
        batch = Batch(before + place, 0, settled=settled(100 * place, number), stored_us=stored_us)
        ledger.commit(batch)


def chunks(ledger: LedgerReader, most: int, after: UnsentPosition) -> Iterator[tuple[Settled, ...]]:
    while (chunk := ledger.unsent(after, most)) is not None:
        yield chunk.settled
        after = chunk.last


def test_chunks_are_the_same_from_wherever_one_ended(url: str) -> None:
    """No chunk is of two batches, and what is settled later does not change the earlier ones."""
    with Ledger.open(url) as ledger:
        commit(ledger, 1, 5, 0, 2)
        all_of = list(chunks(ledger, 2, UnsentPosition()))
        assert [len(chunk) for chunk in all_of] == [2, 2, 1, 2]
        assert [one for chunk in all_of for one in chunk] == [*settled(0, 5), *settled(200, 2)]
        first = ledger.unsent(UnsentPosition(), 2)
        assert first is not None
        ledger.sent(first.last)
        commit(ledger, 1, 1)
        assert list(chunks(ledger, 2, UnsentPosition())) == [*all_of[1:], settled(0, 1)]


def test_what_was_sent_is_forgotten(url: str) -> None:
    with Ledger.open(url) as ledger:
        commit(ledger, 5, 3, 3)
        ledger.sent(UnsentPosition(1, 1))
        assert list(chunks(ledger, 9, UnsentPosition())) == [settled(0, 3)[2:], settled(100, 3)]
        ledger.sent(UnsentPosition(2, 2))
        assert ledger.unsent(UnsentPosition(), 9) is None
        commit(ledger, 5, 1)  # numbers of batches do not come again
        ledger.sent(UnsentPosition(2, 2))
        assert ledger.unsent(UnsentPosition(), 9) is not None


def test_what_waits_for_too_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(url) as ledger:
        commit(ledger, 10_000_000, 3, 2)
        commit(ledger, 20_000_000, 4)
        assert ledger.unsent_before(10_000_000) == (UnsentPosition(), 0)
        upto, number = ledger.unsent_before(15_000_000)
        assert number == 5
        assert list(chunks(ledger, 9, upto)) == [settled(0, 4)]
        monkeypatch.setattr(store, "UNSENT_S", 10)
        assert ledger.prune(25, Retention()).unsent == 5
        assert list(chunks(ledger, 9, UnsentPosition())) == [settled(0, 4)]


def test_a_ledger_without_a_backlog_gets_one(url: str) -> None:
    """A ledger of an older revision is upgraded, and keeps what it has."""
    with Ledger.open(url) as ledger:
        commit(ledger, 1, 0)
        with ledger.transaction() as connection:
            for table in ("unsent", "waits", "polls", "changes"):
                connection.execute(text(f"DROP TABLE {table}"))
            for column in (
                *("pilots.last_polled_us", "pilots.unit_mib", "runs.last_shown_us"),
                "verdict_checks.verdict_us",
            ):
                table, _, name = column.partition(".")
                connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {name}"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0012'"))
    with Ledger.open(url) as ledger:
        assert ledger.load().batches == 1
        commit(ledger, 1, 2)
        assert list(chunks(ledger, 9, UnsentPosition())) == [settled(0, 2)]
