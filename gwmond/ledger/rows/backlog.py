"""The backlog of traces: what was settled and is not exported yet; in the caller's transaction.

A poll adds what it settles in the transaction that settles it.  The export takes the oldest, and
forgets them when they were sent: so each is sent at least once, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, and_, delete, func, insert, or_, select

from gwmond.ledger.database.schema import unsent
from gwmond.ledger.rows import tables
from gwmond.model.poll.batch import Settled


class UnsentPosition(NamedTuple):
    """Up to where in the backlog: a batch, and a place in it."""

    batch: int = -1
    place: int = -1


class UnsentChunk(NamedTuple):
    """Some of one batch, in order; ``stored_us`` is when it was stored, ``last`` its last place."""

    last: UnsentPosition
    stored_us: int
    settled: tuple[Settled, ...]


def add(connection: Connection, batch: int, stored_us: int, settled: Sequence[Settled]) -> None:
    """Add what a batch has settled."""
    if settled:
        where = {"batch": batch, "stored_us": stored_us}
        rows = [
            tables.row(unsent, {**where, "place": place, **part._asdict()})
            for place, part in enumerate(settled)
        ]
        connection.execute(insert(unsent), rows)


def first(connection: Connection, after: UnsentPosition, most: int) -> UnsentChunk | None:
    """Return the oldest after a position, at most ``most`` and all of one batch; None: no more.

    A chunk that begins where another ended is the same each time.
    """
    c = unsent.c
    later = or_(c.batch > after.batch, and_(c.batch == after.batch, c.place > after.place))
    query = select(unsent).where(c.batch >= after.batch, later).order_by(c.batch, c.place)
    rows = connection.execute(query.limit(most)).all()
    if not rows:
        return None
    batch, stored_us = rows[0].batch, rows[0].stored_us
    same = [row for row in rows if row.batch == batch]
    settled = tuple(Settled(row.pilot, row.job, row.number) for row in same)
    return UnsentChunk(UnsentPosition(batch, same[-1].place), stored_us, settled)


def before(connection: Connection, time_us: int) -> tuple[UnsentPosition, int]:
    """Return up to where all was stored before a time, and how many that are."""
    c = unsent.c
    query = select(func.max(c.batch), func.count()).where(c.stored_us < time_us)
    batch, number = connection.execute(query).one()
    return (UnsentPosition() if batch is None else UnsentPosition(batch, 1 << 30)), number


def forget(connection: Connection, upto: UnsentPosition) -> int:
    """Forget what was sent; return how many."""
    c = unsent.c
    old = or_(c.batch < upto.batch, and_(c.batch == upto.batch, c.place <= upto.place))
    return connection.execute(delete(unsent).where(c.batch <= upto.batch, old)).rowcount


def prune(connection: Connection, before_us: int) -> dict[str, int]:
    """Forget what is old: where traces are not exported any more, nobody else does."""
    old = delete(unsent).where(unsent.c.stored_us < before_us)
    return {"unsent": connection.execute(old).rowcount}
