"""What counters stood at in the past, from hourly totals: series by series, hour by hour.

Amounts are micros for time, and plain numbers for runs and pilots.  ``labels`` name what tells
series apart, by the names that metrics have; what they leave out (the outcome of pilot time) is
summed.  Each function reads one state of the ledger, and has one series in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    case,
    func,
    literal,
    or_,
    select,
    true,
)

from gwmond.ledger.classify import KEEP
from gwmond.ledger.errors import LedgerCorrupt
from gwmond.ledger.factory_schema import factory_hours
from gwmond.ledger.pilot_schema import attempts, pilot_counts, pilot_hours, pilot_seconds, pilots
from gwmond.ledger.pilot_writes import stored_batches
from gwmond.ledger.reader import LedgerReader
from gwmond.ledger.schema import entries, site_hours, site_seconds
from gwmond.ledger.writes import stored_tick
from gwmond.model.hours import from_columns
from gwmond.model.pilot_facts import Category, Measure, Validation
from gwmond.model.stored_pilots import Hour
from gwmond.model.times import HOUR_US

_AT_ONCE = 5000

Labels: TypeAlias = tuple[str, ...]
Done: TypeAlias = Callable[[int, int], None]


class HourlySeries(NamedTuple):
    """A series: ``total`` is all that it ever had, net of corrections; ``hours`` are ascending.

    ``complete``: every hour from here on is there; what the total has beside the hours was spent
    earlier, and retention has taken out when.
    """

    labels: Labels
    total: int
    hours: tuple[tuple[Hour, int], ...]
    complete: Hour


Found: TypeAlias = Generator[HourlySeries, None, None]
"""To be closed when it is not read to its end: it holds the ledger."""


class Reach(NamedTuple):
    """From which hour to which a ledger reaches, ``stop`` excluded; equal in an empty one.

    ``first_poll_s`` is when a daemon first polled with this ledger (epoch seconds), None if none
    has.
    """

    start: Hour
    stop: Hour
    first_poll_s: float | None


def reach(reader: LedgerReader) -> Reach:
    """Return how far a ledger reaches."""
    with reader._reading() as connection:
        hours = (pilot_hours.c.hour, site_hours.c.hour, factory_hours.c.hour)
        starts = [connection.scalar(select(func.min(hour))) for hour in hours]
        stops = [connection.scalar(select(func.max(hour))) for hour in hours]
        ends = [connection.scalar(select(func.max(table.c.end_us))) for table in (pilots, attempts)]
        polls = [
            connection.scalar(select(func.min(column)))
            for column in (entries.c.first_seen, _CREATED)
        ]
        tick, _ = stored_tick(connection)
    start = min((hour for hour in starts if hour is not None), default=0)
    after = [hour + 1 for hour in stops if hour is not None]
    after += [-(-end // HOUR_US) for end in ends if end is not None]
    known = [time for time in polls if time is not None]
    if not known and tick is not None:  # it has polled, and has never seen an entry
        known = [tick.wall]
    return Reach(start, max(start, *after) if after else start, min(known, default=None))


def pilot_time(reader: LedgerReader, measure: Measure, labels: Labels, done: Done) -> Found:
    """Yield settled time of pilots; hours are net of corrections."""
    condition = pilot_seconds.c.measure == measure
    with reader._reading() as connection:
        complete = stored_batches(connection).pruned_before
        yield from _time(connection, reader.where, _PILOT, condition, labels, complete, done)


def site_time(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield what became of entries' capacity; there is none before a daemon's first poll."""
    with reader._reading() as connection:
        complete = connection.scalar(select(func.min(site_hours.c.hour))) or 0
        yield from _time(connection, reader.where, _SITE, true(), labels, complete, done)


def ended_attempts(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield runs whose outcome is known, by the hour in which they ended."""
    columns: dict[str, ColumnElement[Any]] = {
        "category": attempts.c.category,
        "outcome": attempts.c.outcome,
        **_PLACE,
    }
    query = select(*(columns[name] for name in labels), _ended_in(attempts), func.count())
    query = query.join_from(attempts, pilots, attempts.c.pilot == pilots.c.id)
    query = query.where(attempts.c.category.is_not(None), attempts.c.end_us.is_not(None))
    with reader._reading() as connection:
        complete = -(-stored_batches(connection).attempts_pruned_us // HOUR_US)
        yield from _counts(connection, "attempts", query, labels, complete, done)


def ended_pilots(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield pilots by the hour in which they ended, and the category of their own time.

    The rule is that of ``pilot_time.own_category``: a pilot that ran no job and passed its
    validation is not decided before all that could have run on it is known.
    """
    c = pilots.c
    category = case(
        (c.ran_jobs == 1, literal(Category.PILOT_OVERHEAD.value)),
        (c.validation == Validation.FAILED.value, literal(Category.VALIDATION_FAILS.value)),
        (c.validation == Validation.PASSED.value, literal(Category.DECISION_PROBLEM.value)),
        else_=literal(Category.UNCLASSIFIED.value),
    )
    decided = or_(
        c.ran_jobs == 1,
        c.validation == Validation.FAILED.value,
        c.known_until_us.is_(None),
        c.known_until_us >= c.end_us,
    )
    columns: dict[str, ColumnElement[Any]] = {"category": category, **_PLACE}
    query = select(*(columns[name].label(name) for name in labels), _ended_in(pilots), func.count())
    query = query.where(c.end_us.is_not(None), decided)
    with reader._reading() as connection:
        complete = -(-stored_batches(connection).pilots_pruned_us // HOUR_US)
        yield from _counts(connection, "pilots", query, labels, complete, done)


# --- how -----------------------------------------------------------------------------------------

_CREATED = site_seconds.c.created
_PILOT, _SITE = (pilot_hours, pilot_seconds), (site_hours, site_seconds)
_PLACE: dict[str, ColumnElement[Any]] = {
    "site": pilots.c.site,
    "entry": pilots.c.entry,
    "group": pilots.c.group_name,
}


def _ended_in(table: Table) -> ColumnElement[int]:
    """Return the hour of an end; what ends with an hour ended in it."""
    hour: ColumnElement[int] = (table.c.end_us - 1) // HOUR_US
    return hour


def _named(table: Table, labels: Sequence[str]) -> list[ColumnElement[Any]]:
    return [table.c["group_name" if name == "group" else name] for name in labels]


def _time(
    connection: Connection,
    where: str,
    tables: tuple[Table, Table],
    wanted: ColumnElement[bool],
    labels: Labels,
    complete: Hour,
    done: Done,
) -> Found:
    """Yield the time of two tables, those of the hours and of the series.

    Series that differ in nothing but what ``labels`` leave out are one, under their first number:
    rows are sorted by two numbers instead of by names.
    """
    hours, series = tables
    names = _named(series, labels)
    totals: dict[Labels, int] = {}
    numbers: dict[int, Labels] = {}
    query = select(series.c.id, series.c.whole, series.c.micros, *names)
    for number, whole, micros, *values in connection.execute(
        query.where(wanted).order_by(series.c.id)
    ):
        key = tuple(values)
        if key not in totals:
            numbers[number] = key
        totals[key] = totals.get(key, 0) + from_columns(whole, micros)
    first = select(func.min(series.c.id).label("first"), *names).where(wanted).group_by(*names)
    subquery = first.subquery()
    same = (column == subquery.c[column.name] for column in names)
    map_ = (
        select(series.c.id, subquery.c.first)
        .join_from(series, subquery, and_(*same))
        .where(wanted)
        .cte()
    )
    rows = (
        select(map_.c.first, hours.c.hour, func.sum(hours.c.whole), func.sum(hours.c.micros))
        .join_from(hours, map_, hours.c.series == map_.c.id)
        .group_by(map_.c.first, hours.c.hour)
        .order_by(map_.c.first, hours.c.hour)
    )
    told = 0
    for number, group in groupby(_stream(connection, rows), key=itemgetter(0)):
        key = numbers.pop(number)
        amounts = tuple((hour, from_columns(whole, micros)) for _, hour, whole, micros in group)
        if sum(amount for _, amount in amounts) > totals[key]:
            what = f"the hours of {key} are more than their total (gwmond ledger check)"
            raise LedgerCorrupt(where, what, KEEP)
        done(told := told + 1, len(totals))
        yield HourlySeries(key, totals[key], amounts, complete)
    for key in numbers.values():  # all their hours were taken out
        done(told := told + 1, len(totals))
        yield HourlySeries(key, totals[key], (), complete)


def _counts(
    connection: Connection,
    what: Literal["attempts", "pilots"],
    query: Select[Any],
    labels: Labels,
    complete: Hour,
    done: Done,
) -> Found:
    """Yield counts; ``query`` has the labels, the hour and the number, all rows of them."""
    table = pilot_counts
    counted = select(*_named(table, labels), table.c.number).where(table.c.what == what)
    totals: dict[Labels, int] = {}
    for *values, number in connection.execute(counted):
        totals[tuple(values)] = totals.get(tuple(values), 0) + number
    columns = list(query.selected_columns)[:-1]
    rows = query.group_by(*columns).order_by(*columns)
    left = dict(totals)
    told = 0
    for key, group in groupby(_stream(connection, rows), key=lambda row: tuple(row[:-2])):
        amounts = tuple((hour, number) for *_, hour, number in group)
        if key not in left:  # rows that are not counted yet
            continue
        total = left.pop(key)
        done(told := told + 1, len(totals))
        yield HourlySeries(key, total, amounts, complete)
    for key, total in left.items():
        done(told := told + 1, len(totals))
        yield HourlySeries(key, total, (), complete)


def _stream(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    """Yield rows as they come, some at a time."""
    yield from connection.execute(query.execution_options(yield_per=_AT_ONCE))
