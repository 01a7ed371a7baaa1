"""Which pilots' parts of a batch the ledger refuses, so that the rest can be stored without them.

The second line of defence: what makes no sense is not to get as far as a batch.  A batch that is
refused as a whole would be tried for ever, and all accounting would wait for one pilot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

from sqlalchemy import Connection

from gwmond.ledger.classify import is_refusal
from gwmond.model.stored_pilots import CountKey, Hour, Part, Parts, PilotBatch, PilotSeries

_T = TypeVar("_T")

MOST = 1000
"""So many are found at once, so that a search takes a bounded time."""


def joined(parts: Sequence[PilotBatch]) -> PilotBatch:
    """Return several parts as one batch."""
    increments: Counter[tuple[Hour, PilotSeries]] = Counter()
    counts: Counter[CountKey] = Counter()
    for part in parts:
        increments.update(part.increments)
        counts.update(part.counts)
    return parts[0]._replace(
        pilots=_all(part.pilots for part in parts),
        attempts=_all(part.attempts for part in parts),
        moved=_all(part.moved for part in parts),
        withdrawn=_all(part.withdrawn for part in parts),
        heard=_all(part.heard for part in parts),
        increments=increments,
        corrections=_all(part.corrections for part in parts),
        counts=counts,
        places=_all(part.places for part in parts),
    )


def _all(of_parts: Iterable[tuple[_T, ...]]) -> tuple[_T, ...]:
    return tuple(chain.from_iterable(of_parts))


def find_refused(
    connection: Connection,
    parts: Parts,
    store: Callable[[Connection, PilotBatch], object],
) -> dict[Part, str]:
    """Return which parts cannot be stored, each after those before it that can, and why.

    They are stored by halves, each in a savepoint; the caller's transaction is to be rolled back.
    The order is that of ``parts``.  After ``MOST`` were found the rest is not looked at.
    """
    found: dict[Part, str] = {}

    def look(names: Sequence[Part]) -> None:
        if not names or len(found) >= MOST:
            return
        point = connection.begin_nested()
        try:
            store(connection, joined([parts[name] for name in names]))
        except Exception as exc:
            if not is_refusal(exc):
                raise
            point.rollback()
            if len(names) == 1:
                found[names[0]] = " ".join(str(getattr(exc, "orig", None) or exc).split())
        else:
            point.commit()
            return
        if len(names) > 1:
            half = len(names) // 2
            look(names[:half])
            look(names[half:])

    look(list(parts))
    return found
