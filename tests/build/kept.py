"""A real ledger for tests that look at all that it holds, in a directory of its own."""

from __future__ import annotations

import shutil
import weakref
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from gwmond.ledger import tables
from gwmond.ledger.store import Ledger
from gwmond.model.factory_jobs import QueueRecord
from gwmond.model.pilot_facts import RunKey
from gwmond.model.stored_pilots import CountKey, PilotId, PilotRow, PilotSeries, RunRow

MEMORY = Path("/dev/shm")
FAR = 1 << 40


@cache
def _empty() -> Path:
    """Return an empty ledger to be copied, as making one takes longer."""
    path = Path(mkdtemp(prefix="gwmond-empty-")) / "ledger.sqlite"
    Ledger.open(str(path)).close()
    return path


def kept() -> Kept:
    """Return an empty ledger, which goes when nobody uses it any more."""
    where = TemporaryDirectory(prefix="gwmond-kept-", dir=MEMORY if MEMORY.is_dir() else None)
    path = Path(where.name) / "ledger.sqlite"
    shutil.copy(_empty(), path)
    ledger = Kept.open(str(path))
    weakref.finalize(ledger, where.cleanup)
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

    def forget_places(self, before_us: int) -> None:
        """Prune what the factory's queue and summary said before, and nothing else."""
        with self._transaction() as connection:
            tables.prune_places(connection, before_us)

    def place(self, name: str) -> QueueRecord:
        """What the factory's queue and summary said of a job."""
        return self.find_places([name])[name]
