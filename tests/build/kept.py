"""A real ledger for tests that look at all that it holds."""

from __future__ import annotations

import atexit
import shutil
import weakref
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp

from sqlalchemy import delete

from gwmond.ledger.database import sqlite
from gwmond.ledger.database.backend import Backend
from gwmond.ledger.database.schema import metadata
from gwmond.ledger.rows import tables
from gwmond.ledger.store import Ledger
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.pilot_life import RunKey
from gwmond.model.pilots.stored_pilots import CountKey, PilotId, PilotRow, PilotSeries, RunRow
from gwmond.model.poll.pilot_keys import PilotKeys

MEMORY = Path("/dev/shm")
FAR = 1 << 40


_spare: list[Backend] = []


def _new() -> Backend:
    """Make an empty ledger, and open it."""
    where = mkdtemp(prefix="gwmond-kept-", dir=MEMORY if MEMORY.is_dir() else None)
    atexit.register(shutil.rmtree, where, ignore_errors=True)
    return sqlite.open_writer(Path(where, "ledger.sqlite"))


def _emptied(backend: Backend) -> Backend:
    """Take out all rows: it is quicker than to open another ledger."""
    with backend.connection.begin():
        for table in reversed(metadata.sorted_tables):
            backend.connection.execute(delete(table))
    backend.note()
    return backend


def kept() -> Kept:
    """Return an empty ledger; when nobody uses it any more, it becomes the next one."""
    backend = _emptied(_spare.pop()) if _spare else _new()
    ledger = Kept(backend)
    weakref.finalize(ledger, _spare.append, backend)
    return ledger


class Kept(Ledger):
    """A ledger, and all that it holds."""

    @property
    def pilots(self) -> dict[PilotId, PilotRow]:
        """All pilots."""
        return {row.id: row for row in sorted(self.pilot_rows(), key=lambda row: row.id)}

    @property
    def runs(self) -> dict[tuple[PilotId, RunKey], RunRow]:
        """All runs."""
        return {(row.pilot, row.key): row for row, _ in self.run_rows()}

    @property
    def posted(self) -> Counter[tuple[int, PilotSeries]]:
        """What was posted, in micros."""
        return Counter({(hour.hour, hour.series): hour.micros for hour in self.pilot_hours(0, FAR)})

    @property
    def counts(self) -> Counter[CountKey]:
        """What was counted."""
        return Counter({key: total.net for key, total in self.load().totals.counts.items()})

    @property
    def corrected(self) -> int:
        """How many corrections there are."""
        return len(self.corrections(limit=100_000))

    def prove(self) -> None:
        """Prove all that the ledger's check proves."""
        assert not [found for found in self.check() if found.micros]
        assert all(n >= 0 for n in self.counts.values())

    def forget_places(self, before_us: int) -> None:
        """Prune what the factory's queue and summary said before, and nothing else."""
        with self.transaction() as connection:
            tables.prune_places(connection, before_us)

    def place(self, name: str) -> QueueRecord:
        """What the factory's queue and summary said of a job."""
        return self.fetch(PilotKeys(places={name})).places[name]
