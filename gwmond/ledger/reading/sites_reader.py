"""What a poll on its own takes from a ledger: nothing of single pilots is loaded for that."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, func, select

from gwmond.ledger.database.schema import pilots
from gwmond.ledger.database.session import Session
from gwmond.ledger.rows import counters, tables
from gwmond.ledger.rows.counters import Kind
from gwmond.model.entries.experiments import Experiment
from gwmond.model.poll.batch import LedgerState
from gwmond.model.times import HOUR_US, SECOND_US


class SitesReader(Session):
    """A ledger open to read what it remembers of sites."""

    def load_sites(self) -> LedgerState:
        """Return what is known of entries; of all totals those of pilots and the counts."""
        with self.reading() as connection:
            totals = counters.stored_totals(connection, {Kind.PILOT, Kind.COUNT})
            state, ended = state_of_sites(connection), _ended(connection)
            return state._replace(totals=totals, ended=ended)

    def latest_checks(self, most: int) -> tuple[Experiment, ...]:
        """Return the latest experiments that have checked a verdict, the last one first."""
        with self.reading() as connection:
            return tables.latest_checks(connection, most)

    def poll_before(self, until_us: int) -> tuple[int, bytes] | None:
        """Return when the last poll was until then, and what it found; None: none is kept."""
        with self.reading() as connection:
            return tables.poll_before(connection, until_us)

    def polls_between(
        self, since_us: int, until_us: int, step_us: int
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the last poll of each step of a time, and what it found, in their order."""
        with self.reading() as connection:
            yield from tables.polls_between(connection, since_us, until_us, step_us)


def _ended(connection: Connection) -> dict[str, int]:
    """Return when pilots ended lately: their ads may still be there."""
    c = pilots.c
    latest = select(func.max(c.end_us)).scalar_subquery()
    lately = select(c.name, c.end_us).where(c.end_us > latest - HOUR_US).order_by(c.end_us)
    return {name: end_us // SECOND_US for name, end_us in connection.execute(lately) if name}


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
