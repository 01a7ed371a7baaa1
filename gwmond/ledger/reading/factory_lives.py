"""What a reconciliation reads of a ledger, in one transaction: one state of it.

Units: times are microseconds since the epoch; core-time is core-microseconds.  Some grouped
queries, and of each pilot of the period a few columns: a day of 60,000 pilots takes seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from sqlalchemy import ColumnElement, Connection, case, func, literal, or_, select

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.database.schema import factory_jobs, pilots, runs
from gwmond.ledger.reading.pilot_reader import PILOT_ROWS
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows import counters
from gwmond.ledger.rows.counters import Kind
from gwmond.ledger.rows.pilot_codec import pilot_row
from gwmond.ledger.rows.tables import PLACE_ROWS, place_row, stored_state
from gwmond.model.factory.jobs import FactoryJob
from gwmond.model.factory.totals import FactoryKind, FactoryLife, FactoryLives, RunTime
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.model.times import HOUR_US
from gwmond.model.totals import Hour
from gwmond.pilots.factory.records import jobs

_LATE_US = 7 * 24 * HOUR_US
"""A line is written at most so long after its pilot's end, as far as runs are looked for."""

_SUMMED_UP = func.coalesce(runs.c.outcome, "") == SUMMARISED
"""What stands for the jobs of a summary: they have no record."""

_OF_FILES = ("queue_", "summary_")
_AT_ONCE = 5000


def read(
    reader: LedgerReader,
    since_us: int,
    until_us: int,
    now_us: int,
    life: Callable[[PilotRow, int], FactoryLife],
) -> FactoryLives:
    """Read what [since, until) is reconciled by; both are full hours, ``now_us`` is the present.

    ``life`` returns a pilot's part in it; its second argument is how long runs on the pilot lasted.
    Raises ``LedgerError``.
    """
    with reader.reading() as connection:
        places = _places(connection, since_us)
        recorded = {
            (entry, number)
            for (entry, number), of_place in places.items()
            for job in of_place
            if job.line is not None and since_us <= (job.line.written_us or -1) < until_us
        }
        return FactoryLives(
            lives=[life(*pilot) for pilot in _pilots(connection, since_us, until_us, recorded)],
            jobs=places,
            numbers=_numbers(connection, since_us, until_us),
            reported=_reported(connection, since_us, until_us),
            runs=_runs(connection, since_us, min(until_us, now_us)),
            posted=_posted(connection, since_us, until_us),
            pruned_us=stored_state(connection).pilots_pruned_us,
        )


def _places(connection: Connection, since_us: int) -> dict[tuple[str, str], list[FactoryJob]]:
    query = PLACE_ROWS.where(factory_jobs.c.last_us >= since_us)
    rows = connection.execute(query.execution_options(yield_per=_AT_ONCE))
    return {(place.entry, place.number): jobs(place) for place in map(place_row, rows)}


def _pilots(
    connection: Connection, since_us: int, until_us: int, recorded: set[tuple[str, str]]
) -> Iterator[tuple[PilotRow, int]]:
    """Yield pilots that live in the period, and those whose line was written in it.

    With each: how long the runs of jobs on it lasted, by their records.
    """
    c, left = pilots.c, set(recorded)
    query = PILOT_ROWS.execution_options(yield_per=_AT_ONCE)
    within = query.where(c.start_us < until_us, or_(c.end_us.is_(None), c.end_us >= since_us))
    wall = _walls(connection, since_us, until_us)
    for row in map(pilot_row, connection.execute(within)):
        left.discard((row.identity.key.entry, row.identity.factory_number))
        yield row, wall.get(row.id, 0)
    for some in chunks(sorted({number for _, number in left})):
        earlier = query.where(c.factory_number.in_(some), c.end_us < since_us)
        for row in map(pilot_row, connection.execute(earlier)):
            if (row.identity.key.entry, row.identity.factory_number) in left:
                yield row, wall.get(row.id, 0)


def _walls(connection: Connection, since_us: int, until_us: int) -> dict[int, int]:
    """Return how long runs lasted on each pilot that ended in the period or not long before.

    By their records: what is made of a summary cannot be compared with it.
    """
    c = runs.c
    ended = pilots.c.end_us.between(since_us - _LATE_US, until_us)
    query = select(c.pilot, func.sum(c.end_us - c.start_us))
    query = query.join_from(runs, pilots, c.pilot == pilots.c.id)
    query = query.where(ended, c.end_us > c.start_us, ~_SUMMED_UP).group_by(c.pilot)
    return {pilot: int(wall) for pilot, wall in connection.execute(query)}


def _runs(connection: Connection, since_us: int, until_us: int) -> dict[str, RunTime]:
    c = runs.c
    end = func.coalesce(c.end_us, pilots.c.end_us, literal(until_us))
    inside = _least(end, until_us) - _most(c.start_us, since_us)
    core = c.cores * inside
    by_records = case((_SUMMED_UP, 0), else_=core)
    unknown = case((c.category.is_(None), core), else_=0)
    sums = (func.sum(amount) for amount in (by_records, unknown, case((_SUMMED_UP, core), else_=0)))
    query = select(pilots.c.entry, *sums)
    query = query.join_from(runs, pilots, c.pilot == pilots.c.id)
    query = query.where(c.start_us < until_us, end > since_us, end > c.start_us)
    return {
        entry: RunTime(*map(round, times))
        for entry, *times in connection.execute(query.group_by(pilots.c.entry))
    }


def _least(first: ColumnElement[int], second: int) -> ColumnElement[int]:
    return case((first < second, first), else_=second)


def _most(first: ColumnElement[int], second: int) -> ColumnElement[int]:
    return case((first > second, first), else_=second)


def _numbers(
    connection: Connection, since_us: int, until_us: int
) -> dict[tuple[str, FactoryKind], int]:
    numbers: defaultdict[tuple[str, FactoryKind], int] = defaultdict(int)
    hours = since_us // HOUR_US, until_us // HOUR_US - 1
    for labels, number in counters.sums(connection, Kind.FACTORY, *hours).items():
        entry, _, kind = counters.factory_key(labels)
        numbers[entry, kind] += number
    return dict(numbers)


def _reported(connection: Connection, since_us: int, until_us: int) -> frozenset[str]:
    """Return entries whose files were read for some of the period, lines of completed_jobs too.

    Files are taken to cover all the time between two things that they have.
    """
    around = (since_us - _LATE_US) // HOUR_US, (until_us + _LATE_US) // HOUR_US
    reach: dict[str, tuple[Hour, Hour]] = {}
    for (entry, _, kind), span in counters.spans(connection, Kind.FACTORY, *around).items():
        if kind.startswith(_OF_FILES):
            first, last = reach.get(entry, span)
            reach[entry] = min(first, span[0]), max(last, span[1])
    within = {
        entry
        for entry, (first, last) in reach.items()
        if first < until_us // HOUR_US and last >= since_us // HOUR_US
    }
    lines = {
        entry
        for entry, _, kind in (
            row.labels for row in counters.stored_series(connection, Kind.FACTORY)
        )
        if kind == FactoryKind.SUMMARY_PILOTS
    }
    return frozenset(within & lines)


def _posted(
    connection: Connection, since_us: int, until_us: int
) -> dict[tuple[str, Category], int]:
    """Return what runs got of cores; a pilot's own time has no outcome."""
    posted: defaultdict[tuple[str, Category], int] = defaultdict(int)
    hours = since_us // HOUR_US, until_us // HOUR_US - 1
    for labels, micros in counters.sums(connection, Kind.PILOT, *hours).items():
        series = counters.pilot_key(labels)
        if series[:2] == ("cpu", "resource") and series.outcome:
            posted[series.entry, series.category] += micros
    return dict(posted)
