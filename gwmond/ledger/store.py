"""The ledger of the daemon: its only writer, and exactly once."""

from __future__ import annotations

from typing import Self

from sqlalchemy import delete

from gwmond.accounting.elapsed import Tick
from gwmond.ledger import postgres, sqlite, writes
from gwmond.ledger.errors import LedgerConflict, LedgerRefused
from gwmond.ledger.hours import HOUR_S
from gwmond.ledger.location import SqliteFile, parse
from gwmond.ledger.model import Batch, Pruned
from gwmond.ledger.reader import LedgerReader
from gwmond.ledger.schema import problems

PROBLEM_RETENTION_S = 30 * 86400


class Ledger(LedgerReader):
    """A ledger that this process alone may write, until ``close`` or its death.

    Invariant, at every instant and after every interruption: the totals, the hours and the rest
    are those of the batches up to the stored tick, each exactly once.
    """

    @classmethod
    def open(cls, url: str) -> Self:
        """Lock, prove sound, create or upgrade the ledger that a URL or path names.

        May be tried again after any failure; nothing of the user's is ever moved or deleted.
        """
        location = parse(url)
        if isinstance(location, SqliteFile):
            return cls(sqlite.open_writer(location.path))
        return cls(postgres.open_writer(location))

    def commit(self, batch: Batch) -> None:
        """Store a batch in one transaction, durably, if it starts from the stored tick.

        Raises ``LedgerConflict`` when it does not, ``LedgerRefused`` for a batch that makes no
        sense, or another ``LedgerError``; after each of them nothing was stored.  (Only when the
        connection to a server broke meanwhile, is it unknown: ``open`` and ``load`` tell.)
        """
        try:
            writes.check_batch(batch)
            rows = writes.sum_rows(batch)
        except (ValueError, TypeError) as exc:
            remedy = "Please report this error of gwmond."
            raise LedgerRefused(self.where, f"refused a batch: {exc}", remedy) from exc
        with self._transaction() as connection:
            stored, commits = writes.stored_tick(connection, lock=True)
            if stored != batch.before:
                raise self._conflict(stored, batch)
            writes.store_tick(connection, batch.tick, commits + 1)
            writes.add(connection, rows)
            writes.store_entries(connection, batch.entries)
            writes.store_peaks(connection, batch.peaks)
            writes.store_problems(connection, batch.problems)

    def prune(
        self, now: float, retention_s: float, problem_retention_s: float = PROBLEM_RETENTION_S
    ) -> Pruned:
        """Forget hours that ended more than ``retention_s`` ago; their sum stays in the carry."""
        oldest = int((now - retention_s) // HOUR_S)
        with self._transaction() as connection:
            hours = writes.prune_hours(connection, oldest)
            old = problems.c.time < now - problem_retention_s
            return Pruned(hours, connection.execute(delete(problems).where(old)).rowcount)

    def _conflict(self, stored: Tick | None, batch: Batch) -> LedgerConflict:
        if stored == batch.tick:
            what = f"this batch is stored already ({stored})"
            return LedgerConflict(self.where, what, "Go on with the next one.", replay=True)
        what = f"the batch starts from {batch.before}, but the stored tick is {stored}"
        remedy = "Another writer was here, or the batch is old: load the ledger and go on from it."
        return LedgerConflict(self.where, what, remedy, replay=False)
