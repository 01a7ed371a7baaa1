"""The statements that change what a ledger holds of pilots; each runs in the caller's transaction.

Rows of pilots and attempts go to the driver as tuples, past SQLAlchemy's handling of parameters,
because a pool brings a million attempts a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from gwmond.ledger import experiment_rows, place_rows
from gwmond.ledger.backend import many, mark, upsert
from gwmond.ledger.counters import Changes, Key, Kind, key_of, pilot_changes
from gwmond.ledger.pilot_codec import (
    ATTEMPT_COLUMNS,
    PILOT_COLUMNS,
    Values,
    attempt_values,
    identity,
    maybe_time,
    pilot_values,
    time_us,
    whole,
)
from gwmond.ledger.schema import corrections, cursors, gaps
from gwmond.ledger.writes import DETAIL_CHARACTERS, Row, clean
from gwmond.model.facts import Cursor, Gap
from gwmond.model.stored_pilots import (
    PilotBatch,
    PilotCorrection,
    PilotId,
)
from gwmond.model.totals import TimedProblem

GAPS_KEPT = 10_000
STATE_CHARACTERS = 1_000_000


class Prepared(NamedTuple):
    """A batch that was found to make sense, as rows."""

    batch: PilotBatch
    pilots: list[Values]
    attempts: list[Values]
    moved: list[Values]
    withdrawn: list[Values]
    heard: list[Values]
    changes: Changes
    next_id: PilotId
    problems: tuple[TimedProblem, ...]
    places: list[Row]
    experiments: list[Row]


def prepare(batch: PilotBatch) -> Prepared:
    """Return a batch's rows; raises ``ValueError`` or ``TypeError`` for a senseless one."""
    whole(batch.before)
    time_us(batch.now_us)
    for correction in batch.corrections:
        whole(correction.pilot)
        time_us(correction.time_us)
    for cursor in batch.cursors:
        _check_state(cursor)
    for gap in batch.gaps:
        maybe_time(gap.start_us)
        time_us(gap.end_us)
    if not all(isfinite(time) for time, _ in batch.problems):
        raise ValueError("a time is not finite")
    return Prepared(
        batch=batch,
        pilots=[pilot_values(row) for row in batch.pilots],
        attempts=[attempt_values(row) for row in batch.attempts],
        moved=[(identity(key.job), whole(key.run), whole(pilot)) for pilot, key in batch.moved],
        withdrawn=[(whole(pilot),) for pilot in batch.withdrawn],
        heard=[(time_us(heard_us), whole(pilot)) for pilot, heard_us in batch.heard],
        changes=pilot_changes(batch),
        next_id=max((row.id for row in batch.pilots), default=0) + 1,
        problems=tuple(TimedProblem(*problem) for problem in batch.problems),
        places=[place_rows.place_values(place) for place in batch.places],
        experiments=[
            experiment_rows.experiment_values(experiment) for experiment in batch.experiments
        ],
    )


def _check_state(cursor: Cursor) -> None:
    """Refuse a cursor that would not come back as it is."""
    maybe_time(cursor.complete_us)
    if clean(cursor.state, STATE_CHARACTERS) != cursor.state:
        raise ValueError(f"the state of cursor {cursor.source} {cursor.kind} cannot be stored")


@lru_cache
def _replace(marker: str, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
    """Return the upsert of whole rows; columns that are not named keep what they have.

    ``of`` stands for a parameter.
    """
    changed = ", ".join(f"{c} = excluded.{c}" for c in columns if c not in key)
    values = ", ".join([marker] * len(columns))
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"
    )


def store_rows(connection: Connection, rows: Prepared) -> None:
    """Take out what is not there any more, then store the pilots and attempts."""
    name = mark(connection)
    gone = f"DELETE FROM attempts WHERE job = {name} AND run = {name} AND pilot = {name}"
    many(connection, gone, rows.moved)
    many(connection, f"DELETE FROM pilots WHERE id = {name}", rows.withdrawn)
    many(connection, _replace(name, "pilots", PILOT_COLUMNS, ("id",)), rows.pilots)
    many(connection, f"UPDATE pilots SET heard_us = {name} WHERE id = {name}", rows.heard)
    key = ("job", "run", "pilot")
    many(connection, _replace(name, "attempts", ATTEMPT_COLUMNS, key), rows.attempts)


def store_corrections(
    connection: Connection, made: Iterable[PilotCorrection], ids: Mapping[Key, int]
) -> None:
    rows = [
        {
            "time_us": correction.time_us,
            "pilot": correction.pilot,
            "hour": correction.hour,
            "series": ids[key_of(Kind.PILOT, correction.series)],
            "micros": correction.micros,
            "cause": clean(str(correction.cause)),
        }
        for correction in made
    ]
    if rows:
        connection.execute(insert(corrections), rows)


def store_cursors(connection: Connection, moved: Iterable[Cursor]) -> None:
    rows = [
        {**cursor._asdict(), "source": identity(cursor.source), "kind": clean(cursor.kind)}
        for cursor in moved
    ]
    if rows:
        marker = upsert(connection, cursors)
        changed = {c: marker.excluded[c] for c in ("state", "complete_us")}
        connection.execute(
            marker.on_conflict_do_update(index_elements=["source", "kind"], set_=changed), rows
        )


def store_gaps(connection: Connection, found: Sequence[Gap]) -> None:
    """Add gaps; the oldest beyond ``GAPS_KEPT`` go."""
    rows = [
        {
            **gap._asdict(),
            "source": clean(gap.source),
            "kind": clean(gap.kind),
            "detail": clean(gap.detail, DETAIL_CHARACTERS),
        }
        for gap in found[-GAPS_KEPT:]
    ]
    if rows:
        connection.execute(gaps.insert(), rows)
        newest = select(func.max(gaps.c.id)).scalar_subquery()
        connection.execute(delete(gaps).where(gaps.c.id <= newest - GAPS_KEPT))
