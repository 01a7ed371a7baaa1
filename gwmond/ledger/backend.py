"""What the two kinds of database have in common once they are open."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeAlias

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

Upsert: TypeAlias = postgresql.Insert | sqlite.Insert


class Backend(Protocol):
    """One connection that lives as long as the ledger is open, so the lock and it end together."""

    @property
    def where(self) -> str:
        """The ledger's name for messages, without password."""

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""

    @property
    def connection(self) -> Connection: ...

    def verify(self) -> None:
        """Raise when this is not the ledger that was opened any more."""

    def note(self) -> None:
        """Remember, after a transaction, what ``verify`` will look at."""

    def vacuum(self) -> None:
        """Give space that is not used back to the system; only for a writer, in no transaction."""

    def close(self) -> None:
        """Close the connection, then give up the lock; never raises, harmless when repeated."""


def upsert(connection: Connection, table: Table) -> Upsert:
    """Return an INSERT that can say ON CONFLICT, which both databases spell alike."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)
