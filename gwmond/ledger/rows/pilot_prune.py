"""What is forgotten of pilots, so that what is left can still be proven.

Hours go into their series, closed pilots into series of the kind ``carried``; a closed pilot whose
runs went says how many they were.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, exists, select, update

from gwmond.ledger.database.schema import corrections, pilots, runs
from gwmond.ledger.rows import counters
from gwmond.ledger.rows.counters import Addition, Key, Kind, key_of
from gwmond.ledger.rows.pilot_codec import pilot_row
from gwmond.ledger.rows.tables import store_state, stored_state
from gwmond.model.totals import Hour
from gwmond.model.units import MICRO

PILOTS_AT_ONCE = 1000
RUNS_AT_ONCE = 10_000


class Retention(NamedTuple):
    """How long is kept what, in seconds; None: for ever."""

    hours_s: float | None = None
    pilots_s: float | None = None
    runs_s: float | None = None
    corrections_s: float | None = None
    problems_s: float | None = None
    cursors_s: float | None = None
    polls_s: float | None = None


class Pruned(NamedTuple):
    """How many rows ``prune`` took out."""

    hours: int = 0
    pilots: int = 0
    runs: int = 0
    corrections: int = 0
    places: int = 0
    experiments: int = 0
    problems: int = 0
    cursors: int = 0
    unsent: int = 0
    waits: int = 0
    polls: int = 0
    values: int = 0


def _remember(connection: Connection, **pruned: int) -> None:
    """Note before when rows may be gone; it never falls."""
    stored = stored_state(connection, lock=True)
    later = {name: max(before, getattr(stored, name)) for name, before in pruned.items()}
    if stored._replace(**later) != stored:
        store_state(connection, stored._replace(**later))


def prune_hours(connection: Connection, before: Hour) -> dict[str, int]:
    """Move the amounts of all hours earlier than ``before`` into their series."""
    _remember(connection, pruned_before=before)
    return {"hours": counters.prune_hours(connection, before)}


def prune_runs(connection: Connection, before_us: int) -> dict[str, int]:
    """Take out some runs of closed pilots that ended before; when it takes none, none are left.

    A run without an end of its own goes with its pilot.  If its job has another run on a pilot
    that is not closed it stays: whether the job ran again bears on that other run.
    """
    _remember(connection, runs_pruned_us=before_us)
    a, other, its = runs.c, runs.alias(), pilots.alias()
    undecided = exists().where(other.c.job == a.job, other.c.pilot == its.c.id, its.c.closed == 0)
    query = (
        select(a.job, a.number, a.pilot)
        .join_from(runs, pilots, a.pilot == pilots.c.id)
        .where(a.end_us < before_us, a.open == 0, pilots.c.closed == 1, ~undecided)
        .limit(RUNS_AT_ONCE)
    )
    gone = connection.execute(query).all()
    if gone:
        key = "job", "number", "pilot"
        same_run = (a[name] == bindparam(f"of_{name}", type_=a[name].type) for name in key)
        rows = [{f"of_{name}": v for name, v in zip(key, row, strict=True)} for row in gone]
        connection.execute(delete(runs).where(*same_run), rows)
        counted = Counter(row.pilot for row in gone)
        more = update(pilots).where(pilots.c.id == bindparam("of_id"))
        connection.execute(
            more.values(runs_pruned=pilots.c.runs_pruned + bindparam("more")),
            [{"of_id": pilot, "more": number} for pilot, number in counted.items()],
        )
    return {"runs": len(gone)}


def prune_closed(connection: Connection, before_us: int) -> dict[str, int]:
    """Take out some closed pilots that ended before, with their runs; return how many."""
    _remember(connection, pilots_pruned_us=before_us, runs_pruned_us=before_us)
    query = (
        select(pilots)
        .where(pilots.c.closed == 1, pilots.c.end_us < before_us)
        .order_by(pilots.c.end_us)
        .limit(PILOTS_AT_ONCE)
    )
    gone = [pilot_row(row) for row in connection.execute(query)]
    if not gone:
        return {}
    carried: dict[Key, Addition] = {}
    for row in gone:
        place = *row.identity.key, row.identity.group
        for kind, micros in row.settled.items():
            key = key_of(Kind.CARRIED, (*kind, *place))
            change = carried.setdefault(key, Addition(before_us / MICRO, {None: 0}))
            change.amounts[None] += micros
    counters.add(connection, carried, 0)
    ids = [row.id for row in gone]
    run_count = connection.execute(delete(runs).where(runs.c.pilot.in_(ids))).rowcount
    connection.execute(delete(pilots).where(pilots.c.id.in_(ids)))
    return {"pilots": len(ids), "runs": run_count}


def prune_corrections(connection: Connection, before_us: int) -> dict[str, int]:
    old = delete(corrections).where(corrections.c.time_us < before_us)
    return {"corrections": connection.execute(old).rowcount}
