"""How large a ledger is, table by table, and from when to when it reaches."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from gwmond.ledger.database.schema import metadata, runs
from gwmond.ledger.rows.counters import Kind, span
from gwmond.ledger.rows.tables import latest_gaps, stored_cursors
from gwmond.model.facts import Cursor, Gap
from gwmond.model.totals import Hour

GAPS_SHOWN = 20

_SQLITE = "SELECT name, SUM(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name"
_OWNERS = "SELECT name, tbl_name FROM sqlite_master"
_POSTGRES = text("SELECT pg_total_relation_size(to_regclass(:name))")


class TableStats(NamedTuple):
    """``bytes`` with indexes; None where the database does not say."""

    table: str
    rows: int
    bytes: int | None


class LedgerStats(NamedTuple):
    """Hours are None where there are none yet; ``run_bytes`` is for each, with indexes."""

    tables: tuple[TableStats, ...]
    site_hours: tuple[Hour | None, Hour | None]
    pilot_hours: tuple[Hour | None, Hour | None]
    factory_hours: tuple[Hour | None, Hour | None]
    run_bytes: float | None
    cursors: tuple[Cursor, ...]
    gaps: tuple[Gap, ...]


def stats(connection: Connection) -> LedgerStats:
    """Count rows and bytes; reads all of an SQLite file."""
    sizes = _sizes(connection)
    tables = tuple(
        TableStats(name, connection.scalar(select(func.count()).select_from(table)) or 0, size)
        for name, table in sorted(metadata.tables.items())
        for size in (sizes.get(name),)
    )
    of_runs = next(table for table in tables if table.table == runs.name)
    sized = of_runs.rows and of_runs.bytes is not None
    return LedgerStats(
        tables=tables,
        site_hours=span(connection, Kind.SITE),
        pilot_hours=span(connection, Kind.PILOT),
        factory_hours=span(connection, Kind.FACTORY),
        run_bytes=(of_runs.bytes or 0) / of_runs.rows if sized else None,
        cursors=tuple(stored_cursors(connection).values()),
        gaps=tuple(latest_gaps(connection, GAPS_SHOWN)),
    )


def _sizes(connection: Connection) -> dict[str, int]:
    if connection.dialect.name == "postgresql":
        pairs = ((n, connection.scalar(_POSTGRES, {"name": n})) for n in metadata.tables)
        return {name: int(size) for name, size in pairs if size is not None}
    owners = {str(row[0]): str(row[1]) for row in connection.exec_driver_sql(_OWNERS)}
    sizes: dict[str, int] = {}
    try:
        for name, size in connection.exec_driver_sql(_SQLITE):
            table = owners.get(name, name)
            sizes[table] = sizes.get(table, 0) + int(size)
    except SQLAlchemyError:  # this SQLite was built without dbstat
        return {}
    return sizes
