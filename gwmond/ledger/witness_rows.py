"""Pilots by what lines of central logs call them, as rows of ``pilots``.

Each function runs in the caller's transaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from gwmond.accounting.pilot_evidence import short_node
from gwmond.ledger.pilot_model import PilotId
from gwmond.ledger.pilot_schema import pilots

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
    times: defaultdict[str, list[int]] = defaultdict(list)
    for node, at_us in sorted(moments):
        times[node].append(at_us)
    every = [at_us for _, at_us in moments]
    of = pilots.c
    query = select(of.id, of.node, of.start_us, of.end_us).where(
        of.end_us >= min(every) - late_us, of.start_us <= max(every) + early_us
    )
    rows = connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE))
    for number, node, start_us, end_us in rows:
        here = times.get(short_node(node), [])
        after = bisect_left(here, start_us - early_us)
        if after < len(here) and here[after] <= end_us + late_us:
            yield number


def _named(connection: Connection, startds: list[str]) -> ColumnElement[bool]:
    """Return the condition; SQLite finds a range of names by the index, as bytes are in order."""
    name = pilots.c.name
    if connection.dialect.name == "sqlite":
        return or_(*(and_(name >= f"{of}@", name < f"{of}A") for of in startds))
    return and_(name.contains("@"), func.split_part(name, "@", 1).in_(startds))
