"""How a batch is stored; in the caller's transaction.

Rows of pilots and runs go to the driver as tuples, past SQLAlchemy's handling of parameters,
because a pool brings a million runs a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection, Table, insert

from gwmond.ledger.database.backend import many, mark
from gwmond.ledger.database.columns import clean, identity, maybe_time, time_s, time_us, whole
from gwmond.ledger.database.schema import (
    changes,
    corrections,
    cursors,
    entries,
    factory_jobs,
    gaps,
    polls,
    problems,
    verdict_checks,
    waits,
)
from gwmond.ledger.rows import backlog, counters, tables
from gwmond.ledger.rows.counters import Changes, Key, Kind, Series, key_of
from gwmond.ledger.rows.pilot_codec import (
    PILOT_COLUMNS,
    RUN_COLUMNS,
    Values,
    pilot_values,
    run_values,
)
from gwmond.ledger.rows.tables import Row, Stored
from gwmond.model.pilots.stored_pilots import PilotCorrection, PilotId
from gwmond.model.poll.batch import Batch
from gwmond.model.times import SECOND_US

PROBLEMS_KEPT = GAPS_KEPT = 10_000


class Prepared(NamedTuple):
    """A batch that was found to make sense, as rows.

    ``replaced`` go in the place of rows with their keys, ``added`` besides those that are there.
    """

    batch: Batch
    pilots: list[Values]
    runs: list[Values]
    moved: list[Values]
    withdrawn: list[Values]
    heard: list[Values]
    sights: list[Values]
    changes: Changes
    next_id: PilotId
    replaced: tuple[tuple[Table, list[Row]], ...]
    added: tuple[tuple[Table, list[Row], int], ...]


def prepare(batch: Batch) -> Prepared:
    """Return a batch's rows; raises ``ValueError`` or ``TypeError`` for a senseless one."""
    whole(batch.before)
    time_us(batch.now_us)
    for time in batch.tick[:3] if batch.tick is not None else ():
        time_s(time)
    for correction in batch.corrections:
        whole(correction.pilot)
        time_us(correction.time_us)
    for group in batch.peaks.values():
        for peak in group:
            whole(peak.hour)
            whole(peak.units)
    return Prepared(
        batch=batch,
        pilots=[pilot_values(row) for row in batch.pilots],
        runs=[run_values(row) for row in batch.runs],
        moved=[(identity(key.job), whole(key.number), whole(pilot)) for pilot, key in batch.moved],
        withdrawn=[(whole(pilot),) for pilot in batch.withdrawn],
        heard=[
            (time_us(heard_us), maybe_time(polled_us), whole(pilot))
            for pilot, heard_us, polled_us in batch.heard
        ],
        sights=[
            (maybe_time(shown_us), identity(key.job), whole(key.number), whole(pilot))
            for pilot, key, shown_us in batch.sights
        ],
        changes=counters.changes(batch),
        next_id=max((row.id for row in batch.pilots), default=0) + 1,
        replaced=(
            (entries, [tables.entry_values(*item) for item in sorted(batch.entries.items())]),
            (cursors, [tables.row(cursors, cursor._asdict()) for cursor in batch.cursors]),
            (factory_jobs, [tables.place_values(place) for place in batch.places]),
            (verdict_checks, [tables.experiment_values(check) for check in batch.experiments]),
            (waits, [tables.row(waits, wait._asdict()) for wait in batch.waits]),
            (polls, _poll(batch)),
            (changes, [tables.change_values(changed) for changed in batch.values]),
        ),
        added=(
            (gaps, [tables.row(gaps, gap._asdict()) for gap in batch.gaps], GAPS_KEPT),
            (problems, [tables.problem_values(timed) for timed in batch.problems], PROBLEMS_KEPT),
        ),
    )


def store(connection: Connection, stored: Stored, rows: Prepared) -> dict[Key, Series]:
    """Store a batch beside what is ``stored``; return the series that it names, as they are now."""
    batch = rows.batch
    tick = {} if batch.tick is None else batch.tick._asdict()
    next_id = max(stored.next_id, rows.next_id)
    after = stored._replace(batches=stored.batches + 1, next_id=next_id, **tick)
    tables.store_state(connection, after)
    _store_pilots(connection, rows)
    named = counters.add(connection, rows.changes, stored.pruned_before)
    _store_corrections(connection, batch.corrections, named)
    for table, changed in rows.replaced:
        tables.put(connection, table, changed)
    for table, new, most in rows.added:
        tables.append(connection, table, new, most)
    tables.store_peaks(connection, batch.peaks)
    backlog.add(connection, after.batches, batch.stored_us, batch.settled)
    return named


def _poll(batch: Batch) -> list[Row]:
    """Return what a poll found, by the time up to which it is accounted."""
    if batch.tick is None or not batch.found:
        return []
    time = round(batch.tick.wall * SECOND_US)
    return [tables.row(polls, {"time_us": time, "found": batch.found})]


@lru_cache
def _replace(marker: str, table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
    """Return the upsert of whole rows; columns that are not named keep what they have."""
    changed = ", ".join(f"{c} = excluded.{c}" for c in columns if c not in key)
    values = ", ".join([marker] * len(columns))
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"
    )


def _store_pilots(connection: Connection, rows: Prepared) -> None:
    """Take out what is not there any more, then store the pilots and runs."""
    name = mark(connection)
    this_run = f"job = {name} AND number = {name} AND pilot = {name}"
    many(connection, f"DELETE FROM runs WHERE {this_run}", rows.moved)
    many(connection, f"DELETE FROM pilots WHERE id = {name}", rows.withdrawn)
    many(connection, _replace(name, "pilots", PILOT_COLUMNS, ("id",)), rows.pilots)
    times = f"last_heard_us = {name}, last_polled_us = {name}"
    many(connection, f"UPDATE pilots SET {times} WHERE id = {name}", rows.heard)
    many(connection, f"UPDATE runs SET last_shown_us = {name} WHERE {this_run}", rows.sights)
    key = ("job", "number", "pilot")
    many(connection, _replace(name, "runs", RUN_COLUMNS, key), rows.runs)


def _store_corrections(
    connection: Connection, made: Iterable[PilotCorrection], named: Mapping[Key, Series]
) -> None:
    rows = [
        {
            "time_us": correction.time_us,
            "pilot": correction.pilot,
            "hour": correction.hour,
            "series": named[key_of(Kind.PILOT, correction.series)].id,
            "micros": correction.micros,
            "cause": clean(str(correction.cause)),
        }
        for correction in made
    ]
    if rows:
        connection.execute(insert(corrections), rows)
