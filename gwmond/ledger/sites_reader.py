"""What a poll on its own takes from a ledger: nothing of single pilots is loaded for that."""

from __future__ import annotations

from sqlalchemy import Connection

from gwmond.ledger import counters, tables
from gwmond.ledger.counters import Kind
from gwmond.ledger.session import Session
from gwmond.model.batch import LedgerState


class SitesReader(Session):
    """A ledger open to read what it remembers of sites."""

    def load_sites(self) -> LedgerState:
        """Return what is known of entries; of all totals those of pilots and the counts."""
        with self.reading() as connection:
            totals = counters.stored_totals(connection, {Kind.PILOT, Kind.COUNT})
            return state_of_sites(connection)._replace(totals=totals)


def state_of_sites(connection: Connection) -> LedgerState:
    """Return what is known of entries, without any total."""
    stored = tables.stored_state(connection)
    return LedgerState(
        batches=stored.batches,
        tick=stored.tick,
        entries=tables.stored_entries(connection),
        peaks=tables.stored_peaks(connection),
        next_id=stored.next_id,
    )
