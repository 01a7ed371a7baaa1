"""The rows of ``waits``: since when groups of idle jobs wait for which reason.

Each function runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, delete, select

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.database.columns import clean, identity, maybe_time, time_us
from gwmond.ledger.database.schema import waits
from gwmond.ledger.rows.tables import Row
from gwmond.model.demand.idle_history import WaitInterval

_COLUMNS = tuple(waits.c[name] for name in WaitInterval._fields)


def values(row: WaitInterval) -> Row:
    """Return the columns; raises ``ValueError`` for what cannot be stored."""
    return {
        "schedd": identity(row.schedd),
        "identity": clean(row.identity),
        "since_us": time_us(row.since_us),
        "until_us": maybe_time(row.until_us),
        **{name: clean(getattr(row, name)) for name in ("wants", "reason", "cause", "site")},
    }


def lasting(connection: Connection) -> tuple[WaitInterval, ...]:
    """Return the intervals that have not ended."""
    return _rows(connection, waits.c.until_us.is_(None))


def of_group(
    connection: Connection, schedd: str, group: str, since_us: int
) -> tuple[WaitInterval, ...]:
    """Return the intervals of a group that lasted after a time, in their order."""
    known = waits.c.schedd == identity(schedd), waits.c.identity == clean(group)
    return _rows(connection, *known, _after(since_us))


def of_wants(
    connection: Connection, wanted: Iterable[str], since_us: int
) -> tuple[WaitInterval, ...]:
    """Return the intervals of groups by ``wants`` that lasted after a time, in their order."""
    names, found = sorted({clean(wants) for wants in wanted if wants}), list[WaitInterval]()
    for some in chunks(names):
        found += _rows(connection, waits.c.wants.in_(some), _after(since_us))
    return tuple(found)


def prune(connection: Connection, before_us: int) -> dict[str, int]:
    """Forget the intervals that ended before."""
    return {"waits": connection.execute(delete(waits).where(waits.c.until_us < before_us)).rowcount}


def _after(since_us: int) -> ColumnElement[bool]:
    return waits.c.until_us.is_(None) | (waits.c.until_us > since_us)


def _rows(connection: Connection, *where: ColumnElement[bool]) -> tuple[WaitInterval, ...]:
    order = waits.c.schedd, waits.c.identity, waits.c.since_us
    query = select(*_COLUMNS).where(*where).order_by(*order)
    return tuple(WaitInterval(*row) for row in connection.execute(query))
