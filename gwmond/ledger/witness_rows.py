"""Pilots by what lines of central logs call them, as rows of ``pilots``.

Each function runs in the caller's transaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from gwmond.ledger.pilot_schema import pilots
from gwmond.model.pilot_evidence import short_node
from gwmond.model.stored_pilots import PilotId

_AT_ONCE = 200
_ROWS_AT_ONCE = 5000


def of_startds(connection: Connection, startds: Collection[str]) -> Iterator[PilotId]:
    """Yield pilots with one of these names up to the ``@``."""
    wanted = sorted(startds)
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        yield from connection.scalars(select(pilots.c.id).where(_named(connection, some)))


def on_nodes(
    connection: Connection, moments: Collection[tuple[str, int]], early_us: int, late_us: int
) -> Iterator[PilotId]:
    """Yield pilots that were on a node at one of these moments, see ``Lookup.find_on_nodes``.

    All pilots that ended since the first moment are looked through, some at a time.
    """
    c, every = pilots.c, [at_us for _, at_us in moments]
    query = select(c.id, c.node, c.start_us, c.end_us).where(
        c.end_us >= min(every) - late_us, c.start_us <= max(every) + early_us
    )
    rows = connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE))
    yield from _there(rows, moments, early_us, late_us)


def nameless(
    connection: Connection, moments: Collection[tuple[str, int]], early_us: int, age_us: int
) -> Iterator[PilotId]:
    """Yield pilots that may have been on a node, see ``Lookup.find_nameless``.

    All of them are looked through, some at a time; most pilots have a startd's name.
    """
    c, every = pilots.c, [at_us for _, at_us in moments]
    query = select(c.id, c.node, c.start_us, c.start_us).where(
        _without_startd(connection),
        c.end_us >= min(every) - age_us,
        c.node != "",
        c.start_us >= min(every) - age_us,
        c.start_us <= max(every) + early_us,
    )
    rows = connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE))
    yield from _there(rows, moments, early_us, age_us)


def _there(
    rows: Iterable[Sequence[Any]],
    moments: Collection[tuple[str, int]],
    early_us: int,
    late_us: int,
) -> Iterator[PilotId]:
    """Yield rows of number, node, and from when to when, that were on a node at some moment."""
    times: defaultdict[str, list[int]] = defaultdict(list)
    for node, at_us in sorted(moments):
        times[node].append(at_us)
    for number, node, start_us, end_us in rows:
        here = times.get(short_node(node), [])
        after = bisect_left(here, start_us - early_us)
        if after < len(here) and here[after] <= end_us + late_us:
            yield number


def _without_startd(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that a name begins with a digit, as own names do."""
    name = pilots.c.name
    if connection.dialect.name == "sqlite":
        return and_(name >= "0", name < ":")
    return name.regexp_match("^[0-9]")


def _named(connection: Connection, startds: list[str]) -> ColumnElement[bool]:
    """Return the condition; SQLite finds a range of names by the index, as bytes are in order."""
    name = pilots.c.name
    if connection.dialect.name == "sqlite":
        return or_(*(and_(name >= f"{startd}@", name < f"{startd}A") for startd in startds))
    return and_(name.contains("@"), func.split_part(name, "@", 1).in_(startds))
