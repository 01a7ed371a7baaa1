"""What counters stood at in the past, from hourly totals: series by series, hour by hour.

Amounts are micros for time, and plain numbers for runs and pilots.  ``labels`` name what
distinguishes series, by the names that metrics have; what they leave out (the outcome of pilot
time) is summed.  Each function reads one state of the ledger, and has one series in memory at a
time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    case,
    func,
    literal,
    or_,
    select,
    text,
)

from gwmond.ledger.database.classify import KEEP
from gwmond.ledger.database.errors import LedgerCorrupt
from gwmond.ledger.database.schema import entries, pilots, runs, series, series_hours
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows import counters
from gwmond.ledger.rows.counters import Kind
from gwmond.ledger.rows.pilot_codec import counted_rules
from gwmond.ledger.rows.tables import stored_state
from gwmond.model.factory.totals import FactoryKind
from gwmond.model.pilot_life import Assumption, Category, Measure, Validation
from gwmond.model.pilots.stored_pilots import ASSUMED, CountKey, PilotSeries
from gwmond.model.times import HOUR_US
from gwmond.model.totals import Hour, SiteKey, from_columns
from gwmond.model.units import MICRO, Resource

_PAIRS = 20_000
_AT_ONCE = 5000

Labels: TypeAlias = tuple[str, ...]
Done: TypeAlias = Callable[[int, int], None]
KeyOf: TypeAlias = Callable[[Labels], Labels | None]


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
    with reader.reading() as connection:
        start = connection.scalar(select(func.min(series_hours.c.hour))) or 0
        last = connection.scalar(select(func.max(series_hours.c.hour)))
        ends = [connection.scalar(select(func.max(table.c.end_us))) for table in (pilots, runs)]
        of_sites = select(func.min(series.c.created)).where(series.c.kind == Kind.SITE.value)
        polls = [
            connection.scalar(select(func.min(entries.c.first_seen))),
            connection.scalar(of_sites),
        ]
        tick = stored_state(connection).tick
    after = [] if last is None else [last + 1]
    after += [-(-end // HOUR_US) for end in ends if end is not None]
    times = [time for time in polls if time is not None]
    if not times and tick is not None:  # it has polled, and has never seen an entry
        times = [tick.wall]
    return Reach(start, max(start, *after) if after else start, min(times, default=None))


def pilot_time(reader: LedgerReader, measure: Measure, labels: Labels, done: Done) -> Found:
    """Yield settled time of pilots; hours are net of corrections."""
    pick = _named(PilotSeries._fields, labels)
    which = PilotSeries._fields.index("measure")

    def key(stored: Labels) -> Labels | None:
        return pick(stored) if stored[which] == measure else None

    yield from _hours(reader, Kind.PILOT, key, done)


def site_time(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield what became of entries' capacity; there is none before a daemon's first poll."""
    yield from _hours(reader, Kind.SITE, _named(SiteKey._fields, labels), done)


def factory_numbers(
    reader: LedgerReader, kinds: Mapping[FactoryKind, Labels], unit: int, done: Done
) -> Found:
    """Yield numbers of these kinds, each times ``unit``; the labels: a kind's, entry, client."""

    def key(stored: Labels) -> Labels | None:
        entry, client, kind = counters.factory_key(stored)
        return (*kinds[kind], entry, client) if kind in kinds else None

    yield from _hours(reader, Kind.FACTORY, key, done, unit)


def spent(
    reader: LedgerReader, kind: Kind, key_of: KeyOf, first: Hour, last: Hour
) -> dict[Labels, dict[Hour, int]]:
    """Return micros of the hours first ... last, both included, by key and hour.

    ``key_of`` makes keys of labels as they are stored, None where a series is not wanted; the
    database adds up what has the same key.
    """
    heads: dict[Labels, int] = {}
    pairs: list[tuple[int, int]] = []
    hours: dict[int, dict[Hour, int]] = defaultdict(dict)
    with reader.reading() as connection:
        for row in counters.stored_series(connection, kind):
            if (key := key_of(row.labels)) is not None:
                pairs.append((row.id, heads.setdefault(key, row.id)))
        for head, hour, *parts in _merged(connection, pairs, (first, last)):
            hours[head][hour] = from_columns(*parts)
    return {key: hours[head] for key, head in heads.items() if head in hours}


def ended_runs(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield runs whose outcome is known, by the hour in which they ended."""
    with reader.reading() as connection:
        complete = -(-stored_state(connection).runs_pruned_us // HOUR_US)
        yield from _counts(connection, "runs", _runs(labels), labels, complete, done)


def ended_pilots(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield pilots by the hour in which they ended, and the category of their own time."""
    with reader.reading() as connection:
        complete = -(-stored_state(connection).pilots_pruned_us // HOUR_US)
        yield from _counts(connection, "pilots", _pilots(labels), labels, complete, done)


def ended(
    reader: LedgerReader, labels: Labels, first: Hour, last: Hour
) -> dict[str, dict[Labels, dict[Hour, int]]]:
    """Return how many runs, and pilots, ended in the hours first ... last, by labels and hour."""
    found: dict[str, dict[Labels, dict[Hour, int]]] = {}
    with reader.reading() as connection:
        for name, table, query in (
            ("runs", runs, _runs(labels)),
            ("pilots", pilots, _pilots(labels)),
        ):
            within = table.c.end_us.between(first * HOUR_US + 1, (last + 1) * HOUR_US)
            columns = list(query.selected_columns)[:-1]
            hours = found[name] = defaultdict(dict)
            for *key, hour, number in connection.execute(query.where(within).group_by(*columns)):
                hours[tuple(key)][hour] = number
    return found


def _runs(labels: Labels) -> Select[Any]:
    """Return the query for runs that ended, without their grouping."""
    columns: dict[str, ColumnElement[Any]] = {
        "category": runs.c.category,
        "outcome": runs.c.outcome,
        **_PLACE,
    }
    query = select(*(columns[name] for name in labels), _ended_in(runs), func.count())
    query = query.join_from(runs, pilots, runs.c.pilot == pilots.c.id)
    return query.where(runs.c.category.is_not(None), runs.c.end_us.is_not(None))


def _pilots(labels: Labels) -> Select[Any]:
    """Return the query for pilots that ended, without their grouping.

    The rule is that of ``life.partition.own_category``: a pilot that ran no job and passed its
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
    return query.where(c.end_us.is_not(None), decided)


def estimated_time(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield canonical micros of ended pilots; ``labels``: resource, rule, site, entry, group.

    The hours of one group at one entry are in memory at a time.
    """
    if labels != ("resource", "rule", "site", "entry", "group"):
        raise ValueError(f"labels of estimated time: {labels}")
    c = pilots.c
    place = c.site, c.entry, c.group_name
    with reader.reading() as connection:
        complete = -(-stored_state(connection).pilots_pruned_us // HOUR_US)
        totals: Counter[Labels] = Counter()
        for row in counters.stored_series(connection, Kind.COUNT):
            counted, _, rule, *rest = row.labels
            if resource := _ASSUMED.get(counted):
                totals[resource, rule, *rest] += row.total
        left = dict(totals)
        rows = select(*place, c.end_us, c.estimated).where(c.end_us.is_not(None))
        rows = rows.order_by(*place).execution_options(yield_per=_AT_ONCE)
        for where, group in groupby(connection.execute(rows), key=lambda row: tuple(row[:3])):
            hours: defaultdict[tuple[Assumption, Resource], Counter[int]] = defaultdict(Counter)
            for *_, end_us, estimated in group:
                for kind, micros in counted_rules(estimated).items():
                    hours[kind][(end_us - 1) // HOUR_US] += micros
            for (rule, estimated_resource), amounts in sorted(hours.items()):
                key = (estimated_resource, rule.value, *where)
                number = left.pop(key, 0)
                if sum(amounts.values()) > number:
                    what = f"pilots have more of {key} than its total (gwmond ledger check)"
                    raise LedgerCorrupt(reader.where, what, KEEP)
                done(len(totals) - len(left), len(totals))
                yield HourlySeries(key, number, tuple(sorted(amounts.items())), complete)
        for key, number in left.items():
            yield HourlySeries(key, number, (), complete)


# --- how -----------------------------------------------------------------------------------------

_ASSUMED: Mapping[str, Resource] = {counted: resource for resource, counted in ASSUMED.items()}
_PLACE: dict[str, ColumnElement[Any]] = {
    "site": pilots.c.site,
    "entry": pilots.c.entry,
    "group": pilots.c.group_name,
}


def _ended_in(table: Table) -> ColumnElement[int]:
    """Return the hour of an end; what ends with an hour ended in it."""
    hour: ColumnElement[int] = (table.c.end_us - 1) // HOUR_US
    return hour


def picked(fields: Sequence[str], names: Sequence[str], **values: str) -> KeyOf:
    """Return what picks the labels of these names, of series with these values; empty: any."""
    pick = _named(fields, names)
    wanted = [(fields.index(name), value) for name, value in values.items() if value]

    def key(labels: Labels) -> Labels | None:
        return pick(labels) if all(labels[at] == value for at, value in wanted) else None

    return key


def _named(fields: Sequence[str], names: Sequence[str]) -> Callable[[Labels], Labels]:
    """Return what picks the labels of these names."""
    positions = [fields.index(name) for name in names]
    return lambda labels: tuple(labels[position] for position in positions)


def _hours(reader: LedgerReader, kind: Kind, key_of: KeyOf, done: Done, unit: int = 1) -> Found:
    """Yield the hours of a kind; series of the same key are one, None is no key.

    They are sorted by the database, under the number of the first of them.
    """
    totals: dict[Labels, int] = {}
    heads: dict[Labels, int] = {}
    pairs: list[tuple[int, int]] = []
    with reader.reading() as connection:
        complete = stored_state(connection).pruned_before
        for row in counters.stored_series(connection, kind):
            if (key := key_of(row.labels)) is not None:
                totals[key] = totals.get(key, 0) + row.total * unit
                pairs.append((row.id, heads.setdefault(key, row.id)))
        left = {head: key for key, head in heads.items()}
        for head, group in groupby(_merged(connection, pairs), key=itemgetter(0)):
            key = left.pop(head)
            amounts = tuple((hour, from_columns(*parts) * unit) for _, hour, *parts in group)
            if sum(amount for _, amount in amounts) > totals[key]:
                what = f"the hours of {key} are more than their total (gwmond ledger check)"
                raise LedgerCorrupt(reader.where, what, KEEP)
            done(len(totals) - len(left), len(totals))
            yield HourlySeries(key, totals[key], amounts, complete)
        for key in left.values():  # all their hours were taken out
            yield HourlySeries(key, totals[key], (), complete)


def _merged(
    connection: Connection,
    pairs: Sequence[tuple[int, int]],
    within: tuple[Hour, Hour] | None = None,
) -> Iterator[Any]:
    """Yield number, hour, and the sum in millions and rest; of pairs of a series and its number.

    ``within``: the first and the last hour that are wanted; None: all.

    The pairs go with the statement, as many as a statement may be long.  SQLite makes an index of
    them only for ``+series``, which has no affinity, as the pairs have none; without an index it
    would compare each row with each pair.
    """
    ordered = sorted(pairs, key=itemgetter(1))
    while ordered:
        batch, ordered = ordered[:_PAIRS], ordered[_PAIRS:]
        while ordered and ordered[0][1] == batch[-1][1]:
            batch.append(ordered.pop(0))
        values = ", ".join(map(str, batch))
        statement = text(
            f"WITH merged (id, head) AS (VALUES {values}) "
            f"SELECT head, hour, SUM(amount / {MICRO}), SUM(amount % {MICRO}) "
            "FROM series_hours JOIN merged ON +series = id "
            f"{'WHERE hour BETWEEN :first AND :last ' if within else ''}"
            "GROUP BY head, hour ORDER BY head, hour"
        )
        bound = {"first": within[0], "last": within[1]} if within else {}
        yield from connection.execute(statement.execution_options(yield_per=_AT_ONCE), bound)


def _counts(
    connection: Connection,
    counted: Literal["runs", "pilots"],
    query: Select[Any],
    labels: Labels,
    complete: Hour,
    done: Done,
) -> Found:
    """Yield counts; ``query`` has the labels, the hour and the number, all rows of them."""
    pick = _named(CountKey._fields, labels)
    totals: Counter[Labels] = Counter()
    for row in counters.stored_series(connection, Kind.COUNT):
        if row.labels[0] == counted:
            totals[pick(row.labels)] += row.total
    columns = list(query.selected_columns)[:-1]
    rows = query.group_by(*columns).order_by(*columns)
    left = dict(totals)
    stream = connection.execute(rows.execution_options(yield_per=_AT_ONCE))
    for key, group in groupby(stream, key=lambda row: tuple(row[:-2])):
        amounts = tuple((hour, number) for *_, hour, number in group)
        if key not in left:  # rows that are not counted yet
            continue
        total = left.pop(key)
        done(len(totals) - len(left), len(totals))
        yield HourlySeries(key, total, amounts, complete)
    for key, total in left.items():
        yield HourlySeries(key, total, (), complete)
