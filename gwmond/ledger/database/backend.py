"""What the two kinds of database have in common once they are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

_AT_ONCE = 10_000
_T = TypeVar("_T")
Upsert: TypeAlias = "postgresql.Insert | sqlite.Insert"


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

    def end_within(self, seconds: float) -> None:
        """Set the time limit of each statement, in seconds; only for a reader."""

    def close(self) -> None:
        """Close the connection, then give up the lock; never raises, harmless when repeated."""


def upsert(dialect: str, table: Table) -> Upsert:
    """Return an INSERT that can say ON CONFLICT, which both databases spell alike."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415 (few ledgers are there)

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite  # noqa: PLC0415

    return sqlite.insert(table)


def mark(connection: Connection) -> str:
    """Return what stands for a parameter in statements that go to the driver as they are."""
    return "%s" if connection.dialect.name == "postgresql" else "?"


def chunks(values: Iterable[_T], size: int = 500) -> Iterator[list[_T]]:
    """Divide values into lists that fit into one statement."""
    items = list(values)
    for first in range(0, len(items), size):
        yield items[first : first + size]


def many(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Run a statement with each row, past SQLAlchemy's handling of parameters.

    Return how many rows of the table it found.
    """
    executed = (connection.exec_driver_sql(statement, some) for some in chunks(rows, _AT_ONCE))
    return sum(result.rowcount for result in executed)
