"""What is forgotten of pilots, so that what is left can still be proven.

Hours go into their series' carry, closed pilots into ``pilot_carried``; a closed pilot whose
attempts went says how many they were.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, select, update

from gwmond.ledger.backend import upsert
from gwmond.ledger.pilot_codec import PILOT_READ, pilot_row
from gwmond.ledger.pilot_schema import (
    attempts,
    corrections,
    pilot_carried,
    pilot_hours,
    pilot_seconds,
    pilots,
)
from gwmond.ledger.pilot_writes import store_batches, stored_batches
from gwmond.model.hours import from_columns, to_columns
from gwmond.model.stored_pilots import Hour, Micros
from gwmond.model.units import MICRO

PILOTS_AT_ONCE = 1000
ATTEMPTS_AT_ONCE = 10_000


class PilotsPruned(NamedTuple):
    """How many rows ``prune_pilots`` took out."""

    hours: int
    pilots: int
    attempts: int
    corrections: int
    factory_hours: int = 0
    places: int = 0


def _remember(connection: Connection, **pruned: int) -> None:
    """Note before when rows may be gone; it never falls."""
    stored = stored_batches(connection, lock=True)
    later = {name: max(before, getattr(stored, name)) for name, before in pruned.items()}
    if stored._replace(**later) != stored:
        store_batches(connection, stored._replace(**later))


def prune_hours(connection: Connection, before: Hour) -> int:
    """Move the amounts of all hours earlier than ``before`` into their series' carry."""
    _remember(connection, pruned_before=before)
    hours, series = pilot_hours.c, pilot_seconds.c
    query = (
        select(
            *(hours.series, func.sum(hours.whole), func.sum(hours.micros)),
            *(series.pruned_whole, series.pruned_micros),
        )
        .join_from(pilot_hours, pilot_seconds)
        .where(hours.hour < before)
        .group_by(hours.series, series.pruned_whole, series.pruned_micros)
    )
    rows = []
    for number, whole, micros, carried, rest in connection.execute(query):
        seconds, left = to_columns(from_columns(whole, micros) + from_columns(carried, rest))
        rows.append({"of_id": number, "pruned_whole": seconds, "pruned_micros": left})
    if not rows:
        return 0
    connection.execute(update(pilot_seconds).where(series.id == bindparam("of_id")), rows)
    return connection.execute(delete(pilot_hours).where(hours.hour < before)).rowcount


def prune_attempts(connection: Connection, before_us: int) -> int:
    """Take out some attempts of closed pilots that ended before; none are left when it is 0.

    One without an end of its own goes with its pilot.
    """
    _remember(connection, attempts_pruned_us=before_us)
    a = attempts.c
    query = (
        select(a.job, a.run, a.pilot)
        .join_from(attempts, pilots, a.pilot == pilots.c.id)
        .where(a.end_us < before_us, a.open == 0, pilots.c.closed == 1)
        .limit(ATTEMPTS_AT_ONCE)
    )
    gone = connection.execute(query).all()
    if gone:
        key = "job", "run", "pilot"
        this = (a[name] == bindparam(f"of_{name}", type_=a[name].type) for name in key)
        rows = [{f"of_{name}": v for name, v in zip(key, row, strict=True)} for row in gone]
        connection.execute(delete(attempts).where(*this), rows)
        counted = Counter(row.pilot for row in gone)
        more = update(pilots).where(pilots.c.id == bindparam("of_id"))
        connection.execute(
            more.values(attempts_pruned=pilots.c.attempts_pruned + bindparam("more")),
            [{"of_id": pilot, "more": number} for pilot, number in counted.items()],
        )
    return len(gone)


def prune_closed(connection: Connection, before_us: int) -> tuple[int, int]:
    """Take out some closed pilots that ended before, with their attempts; return how many."""
    _remember(connection, pilots_pruned_us=before_us, attempts_pruned_us=before_us)
    query = (
        select(*(pilots.c[name] for name in PILOT_READ))
        .where(pilots.c.closed == 1, pilots.c.end_us < before_us)
        .order_by(pilots.c.end_us)
        .limit(PILOTS_AT_ONCE)
    )
    gone = [pilot_row(row) for row in connection.execute(query)]
    if not gone:
        return 0, 0
    carried: defaultdict[tuple[str, ...], Micros] = defaultdict(int)
    for row in gone:
        place = *row.identity.key, row.identity.group
        for kind, micros in row.settled.items():
            carried[*map(str, kind), *place] += micros
    names = [column.name for column in pilot_carried.primary_key]
    if carried:
        statement = upsert(connection, pilot_carried)
        new, old = statement.excluded, pilot_carried.c
        summed = {
            "whole": old.whole + new.whole + (old.micros + new.micros) // MICRO,
            "micros": (old.micros + new.micros) % MICRO,
        }
        connection.execute(
            statement.on_conflict_do_update(index_elements=names, set_=summed),
            [
                {
                    **dict(zip(names, key, strict=True)),
                    "whole": micros // MICRO,
                    "micros": micros % MICRO,
                }
                for key, micros in sorted(carried.items())
            ],
        )
    ids = [row.id for row in gone]
    taken = connection.execute(delete(attempts).where(attempts.c.pilot.in_(ids))).rowcount
    connection.execute(delete(pilots).where(pilots.c.id.in_(ids)))
    return len(ids), taken


def prune_corrections(connection: Connection, before_us: int) -> int:
    return connection.execute(delete(corrections).where(corrections.c.time_us < before_us)).rowcount
