"""What a factory's queue and summary tell of its jobs, as rows of ``factory_jobs``.

Each function runs in the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, literal_column, select

from gwmond.ledger.backend import upsert
from gwmond.ledger.fact_codec import encode_json
from gwmond.ledger.pilot_codec import Undecodable, identity, maybe_time, time_us
from gwmond.ledger.schema import factory_jobs
from gwmond.ledger.writes import Row, clean
from gwmond.model.factory_jobs import QueueRecord
from gwmond.model.pilot_evidence import CompletedPilot, PilotName, QueueEvent, QueueState

PLACES_AT_ONCE = 10_000
PLACE = tuple(factory_jobs.c[name] for name in ("entry", "number", "open", "facts"))


def place_values(place: QueueRecord) -> Row:
    """Return the columns of a place; raises ``ValueError`` for what cannot be stored."""
    events = [
        (*_who(event.name), event.state.value, time_us(event.at_us)) for event in place.events
    ]
    lines = [(*_who(line.name), maybe_time(line.written_us), *line[3:]) for line in place.lines]
    outputs = [(maybe_time(start), time_us(at)) for start, at in place.outputs]
    return {
        "name": identity(place.name),
        "entry": clean(place.entry),
        "number": clean(place.number),
        "open": int(place.open),
        "last_us": time_us(place.last_us),
        "facts": encode_json([events, lines, place.checked, *([outputs] if outputs else [])]),
    }


def _who(name: PilotName) -> tuple[str, str, str]:
    return clean(name.instance), clean(name.user), clean(name.frontend)


def place_row(values: Sequence[Any]) -> QueueRecord:
    """Return the place of the columns, or raise ``Undecodable``."""
    entry, number, is_open, facts = values
    try:
        events, lines, checked, *outputs = json.loads(facts)
        return QueueRecord(
            entry=entry,
            number=number,
            events=tuple(
                QueueEvent("", _name(who), QueueState(state), at) for *who, state, at in events
            ),
            lines=tuple(CompletedPilot("", _name(line[:3]), *line[3:]) for line in lines),
            checked=tuple(checked),
            open=bool(is_open),
            outputs=tuple((start, int(at)) for some in outputs for start, at in some),
        )
    except (ValueError, TypeError) as exc:
        raise Undecodable(f"factory job {entry} {number}: {exc!r}") from exc


def _name(who: Sequence[str]) -> PilotName:
    instance, user, client = who
    return PilotName(instance=instance, user=user, frontend=client)


def store_places(connection: Connection, rows: Sequence[Row]) -> None:
    """Put rows in the place of those with their names."""
    if not rows:
        return
    statement = upsert(connection, factory_jobs)
    changed = {c: statement.excluded[c] for c in ("open", "last_us", "facts")}
    statement = statement.on_conflict_do_update(index_elements=["name"], set_=changed)
    for first in range(0, len(rows), PLACES_AT_ONCE):
        connection.execute(statement, list(rows[first : first + PLACES_AT_ONCE]))


def open_places(connection: Connection) -> tuple[QueueRecord, ...]:
    """Return the places of which more may follow."""
    waiting = factory_jobs.c.open == literal_column("1")  # no parameter: the index is of it
    query = select(*PLACE).where(waiting).order_by(factory_jobs.c.name)
    return tuple(map(place_row, connection.execute(query)))


def find_places(connection: Connection, names: Collection[str]) -> Iterable[QueueRecord]:
    """Return the places of these names that are stored."""
    wanted = sorted(map(identity, names))
    found = connection.execute(select(*PLACE).where(factory_jobs.c.name.in_(wanted)))
    return map(place_row, found)


def prune_places(connection: Connection, before_us: int) -> dict[str, int]:
    """Take out some of which nothing was told since; none are left when it is 0."""
    old = select(factory_jobs.c.name).where(factory_jobs.c.last_us < before_us)
    names = list(connection.scalars(old.limit(PLACES_AT_ONCE)))
    for first in range(0, len(names), 500):
        some = names[first : first + 500]
        connection.execute(delete(factory_jobs).where(factory_jobs.c.name.in_(some)))
    return {"places": len(names)}


def undecodable_places(connection: Connection) -> tuple[int, list[str]]:
    """Return how many there are, and the names of those whose facts cannot be read or differ."""
    every = connection.scalar(select(func.count()).select_from(factory_jobs)) or 0
    wrong = []
    query = select(factory_jobs.c.name, factory_jobs.c.last_us, *PLACE)
    for name, last_us, *values in connection.execute(query.execution_options(yield_per=2000)):
        place = place_row(values)
        if (identity(place.name), place.last_us) != (name, last_us):
            wrong.append(name)
    return every, wrong
