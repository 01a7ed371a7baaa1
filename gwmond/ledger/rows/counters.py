"""The ledger's one family of counters: site time, pilot time, factories' numbers and counts.

A series is a kind and its labels.  An amount is an exact integer: micros of time, or a number of
things.  A total may need more than 64 bits over the years, so it is stored as two columns, millions
and the rest; the amount of one hour is one column.

Always: total = pruned + the sum of the hours, for the kinds that have hours; ``high`` is the
highest that the total has been, which a counter shows; no hour before ``pruned_before`` has a row.
An amount that would become negative is refused by the tables themselves (CHECK).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, delete, func, select

from gwmond.ledger.database.backend import chunks, many, mark
from gwmond.ledger.database.columns import HOURS, LARGEST, Undecodable, clean, time_s, whole
from gwmond.ledger.database.schema import series, series_hours
from gwmond.model.factory.totals import FactoryKey, FactoryKind, FactoryTotalKey
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import CountKey, PilotSeries
from gwmond.model.poll.batch import Batch, Totals
from gwmond.model.states import State
from gwmond.model.totals import Hour, Micros, SiteKey, Total, from_columns, to_columns
from gwmond.model.units import MICRO

Labels: TypeAlias = tuple[str, ...]
_K = TypeVar("_K")
_LABELS = msgspec.json.Decoder(Labels)
_AT_ONCE = 5000


class Kind(StrEnum):
    """What a series counts; its labels are the fields of a type.

    ``CARRIED`` is what was posted for pilots that retention took out (``PilotSeries`` without
    evidence); neither it nor ``COUNT`` has hours.
    """

    SITE = "site"  # SiteKey
    PILOT = "pilot"  # PilotSeries
    FACTORY = "factory"  # FactoryTotalKey
    COUNT = "count"  # CountKey
    CARRIED = "carried"


class Key(NamedTuple):
    """What names a series: its kind, and its labels as they are stored."""

    kind: Kind
    labels: str


class Addition(NamedTuple):
    """What is added to a series: by hour, under None what has no hour.

    ``created``: since when it is counted (epoch seconds), if it is new.
    """

    created: float
    amounts: dict[Hour | None, int]


Changes: TypeAlias = Mapping[Key, Addition]


class Series(NamedTuple):
    """A series as it is stored."""

    id: int
    labels: Labels
    created: float
    total: int
    high: int
    pruned: int

    @property
    def counter(self) -> Total:
        """What is shown of it."""
        return Total(self.high, self.created, self.high - self.total)


@lru_cache(1 << 14)
def key_of(kind: Kind, labels: Labels) -> Key:
    """Return the key of a series, its labels as every database can store them."""
    texts = [clean(str(label)) for label in labels]
    return Key(kind, msgspec.json.encode(texts).decode())


def site_key(labels: Labels) -> SiteKey:
    return SiteKey(*labels)  # type: ignore[arg-type]


def pilot_key(labels: Labels) -> PilotSeries:
    resource, measure, category, *rest = labels
    return PilotSeries(resource, measure, Category(category), *rest)  # type: ignore[arg-type]


def factory_key(labels: Labels) -> FactoryTotalKey:
    entry, client, kind = labels
    return entry, client, FactoryKind(kind)


def count_key(labels: Labels) -> CountKey:
    counted, category, *rest = labels
    state = State(category) if counted == "verdicts" else Category(category)
    return CountKey(counted, state, *rest)  # type: ignore[arg-type]


# --- What batches change -----------------------------------------------------------------------


def changes(batch: Batch) -> Changes:
    """Return the additions of a batch, by series; raises ``ValueError`` for too large numbers."""
    additions: dict[Key, Addition] = {}
    now = batch.now_us / MICRO

    def amounts_of(kind: Kind, labels: Labels, created: float = now) -> dict[Hour | None, int]:
        key = key_of(kind, labels)
        change = additions.get(key)
        if change is None:
            change = additions[key] = Addition(created, {})
        return change.amounts

    def add_amount(
        kind: Kind, labels: Labels, hour: Hour | None, amount: int, created: float = now
    ) -> None:
        amounts = amounts_of(kind, labels, created)
        amounts[hour] = amounts.get(hour, 0) + amount

    for (hour, site), micros in batch.site_time.items():
        add_amount(Kind.SITE, site, whole(hour, HOURS), whole(micros), time_s(batch.site_since))
    for pilot, hours in batch.increments.items():
        amounts = amounts_of(Kind.PILOT, pilot)
        for hour, micros in hours.items():
            amounts[whole(hour, HOURS)] = amounts.get(hour, 0) + whole(micros)
    for correction in batch.corrections:
        micros = whole(correction.micros, least=-LARGEST)
        add_amount(Kind.PILOT, correction.series, whole(correction.hour, HOURS), micros)
    for number, amount in batch.factory.items():
        add_amount(Kind.FACTORY, _factory_labels(number), whole(number.hour, HOURS), whole(amount))
    for count, amount in batch.counts.items():
        add_amount(Kind.COUNT, count, None, whole(amount, least=-LARGEST))
    return additions


def _factory_labels(number: FactoryKey) -> Labels:
    return number.entry, number.client, FactoryKind(number.kind)


def totals(batch: Batch, named: Mapping[Key, Series]) -> Totals:
    """Return the totals that a batch names, of the series as they are after it."""

    def now(kind: Kind, labels: Labels) -> Total:
        return named[key_of(kind, labels)].counter

    pilots = set(batch.increments)
    pilots.update(correction.series for correction in batch.corrections)
    return Totals(
        site={site: now(Kind.SITE, site) for site in {site for _, site in batch.site_time}},
        pilots={series: now(Kind.PILOT, series) for series in pilots},
        counts={count: now(Kind.COUNT, count) for count in batch.counts},
        factory={
            number.total: now(Kind.FACTORY, _factory_labels(number)) for number in batch.factory
        },
    )


# --- Write and prune ---------------------------------------------------------------------------

_COLUMNS = (
    *("id", "kind", "labels", "created", "whole", "micros", "high_whole", "high_micros"),
    *("pruned_whole", "pruned_micros"),
)
_AMOUNTS = _COLUMNS[4:]


def add(connection: Connection, changes: Changes, pruned_before: Hour) -> dict[Key, Series]:
    """Add to totals and hours; return the series as they are then.

    A series with nothing but zeros still gets its row.  An hour that retention has passed gets no
    row again: its amount goes to ``pruned``.  Raises ``LookupError`` where something is taken from
    an hour that is not there.
    """
    if not changes:
        return {}
    stored, last = _stored(connection, changes)
    after: dict[Key, Series] = {}
    more: list[tuple[Hour, int, int]] = []
    fewer: list[tuple[int, Hour, int]] = []
    for key, change in changes.items():
        before = stored.get(key)
        if before is None:
            last += 1
            before = Series(last, (), change.created, 0, 0, 0)
        total, pruned = before.total, before.pruned
        for hour, amount in change.amounts.items():
            total += amount
            if hour is None:
                continue
            if hour < pruned_before:
                pruned += amount
            elif amount > 0:
                more.append((hour, before.id, amount))
            elif amount:
                fewer.append((amount, hour, before.id))
        high = max(total, before.high)
        after[key] = Series(before.id, (), before.created, total, high, pruned)
    _store_series(connection, {key: row for key, row in after.items() if row != stored.get(key)})
    _add_hours(connection, sorted(more))
    _take_from_hours(connection, sorted(fewer))
    return after


def _stored(connection: Connection, changes: Changes) -> tuple[dict[Key, Series], int]:
    """Return the series that change, those that are stored; and the last id of all."""
    stored: dict[Key, Series] = {}
    last = connection.scalar(select(func.max(series.c.id))) or 0
    for number, kind, text, created, *amounts in _rows(connection, changes, last):
        if (key := Key(kind, text)) in changes:
            stored[key] = Series(number, (), created, *_totals(amounts))
    return stored, last


def _rows(connection: Connection, changes: Changes, last: int) -> Iterator[Sequence[Any]]:
    """Yield the rows of series that change by their labels; all rows, where most of them change."""
    query = f"SELECT {', '.join(_COLUMNS)} FROM series"
    if len(changes) * 3 > last:
        yield from connection.exec_driver_sql(query).all()
        return
    labels = sorted({key.labels for key in changes})
    for some in map(tuple, chunks(labels)):
        marks = ", ".join([mark(connection)] * len(some))
        yield from connection.exec_driver_sql(f"{query} WHERE labels IN ({marks})", some).all()


def _totals(columns: list[int]) -> Iterator[int]:
    """Return total, high and pruned of their six columns."""
    if not all(isinstance(column, int) for column in columns):
        raise Undecodable("a total is not a number")
    yield from map(from_columns, columns[::2], columns[1::2])


def _store_series(connection: Connection, after: Mapping[Key, Series]) -> None:
    rows = [
        (
            *(row.id, *key, row.created, *to_columns(row.total)),
            *(*to_columns(row.high), *to_columns(row.pruned)),
        )
        for key, row in after.items()
    ]
    values = ", ".join([mark(connection)] * len(_COLUMNS))
    changed = ", ".join(f"{name} = excluded.{name}" for name in _AMOUNTS)
    many(
        connection,
        f"INSERT INTO series ({', '.join(_COLUMNS)}) VALUES ({values}) "
        f"ON CONFLICT (id) DO UPDATE SET {changed}",
        rows,
    )


def _add_hours(connection: Connection, rows: list[tuple[Hour, int, int]]) -> None:
    values = ", ".join([mark(connection)] * 3)
    many(
        connection,
        f"INSERT INTO series_hours (hour, series, amount) VALUES ({values}) "
        "ON CONFLICT (hour, series) DO UPDATE SET amount = series_hours.amount + excluded.amount",
        rows,
    )


def _take_from_hours(connection: Connection, rows: list[tuple[int, Hour, int]]) -> None:
    """Take from hours that must be there; an INSERT of a negative amount would be refused."""
    marker = mark(connection)
    statement = (
        f"UPDATE series_hours SET amount = amount + {marker} "
        f"WHERE hour = {marker} AND series = {marker}"
    )
    if many(connection, statement, rows) != len(rows):
        raise LookupError("a correction takes from an hour that is not there")


def prune_hours(connection: Connection, before: Hour) -> int:
    """Move the amounts of all hours earlier than ``before`` into ``pruned`` of their series."""
    summed = select(series_hours.c.series, *_summed()).where(series_hours.c.hour < before)
    gone = {
        number: from_columns(seconds, micros)
        for number, seconds, micros in connection.execute(summed.group_by(series_hours.c.series))
    }
    if not gone:
        return 0
    c = series.c
    carried = connection.execute(select(c.id, c.pruned_whole, c.pruned_micros))
    rows = [
        (*to_columns(from_columns(seconds, micros) + gone[number]), number)
        for number, seconds, micros in carried
        if number in gone
    ]
    marker = mark(connection)
    many(
        connection,
        f"UPDATE series SET pruned_whole = {marker}, pruned_micros = {marker} WHERE id = {marker}",
        rows,
    )
    return connection.execute(delete(series_hours).where(series_hours.c.hour < before)).rowcount


# --- Read and check ----------------------------------------------------------------------------


def _summed() -> tuple[ColumnElement[int], ColumnElement[int]]:
    """Return the columns of a sum of hours, as its whole may need more than 64 bits."""
    amount = series_hours.c.amount
    return func.sum(amount // MICRO), func.sum(amount % MICRO)


def stored_series(connection: Connection, kind: Kind) -> list[Series]:
    """Return all series of a kind, by their ids; raises ``Undecodable`` for a damaged row."""
    c = series.c
    query = select(c.id, c.labels, c.created, *(c[name] for name in _AMOUNTS))
    decoded = []
    rows: Iterable[Sequence[Any]] = connection.execute(
        query.where(c.kind == kind.value).order_by(c.id)
    )
    for number, labels, created, *amounts in rows:
        try:
            decoded.append(Series(number, _LABELS.decode(labels), created, *_totals(amounts)))
        except (msgspec.MsgspecError, Undecodable) as exc:
            raise Undecodable(f"series {number}: {exc}") from exc
    return decoded


def stored_totals(connection: Connection, kinds: Collection[Kind] = tuple(Kind)) -> Totals:
    """Return the totals of these kinds."""

    def totals(kind: Kind, key: Callable[[Labels], _K]) -> dict[_K, Total]:
        if kind not in kinds:
            return {}
        try:
            return {key(row.labels): row.counter for row in stored_series(connection, kind)}
        except (ValueError, TypeError) as exc:
            raise Undecodable(f"a series of {kind}: {exc}") from exc

    return Totals(
        site=totals(Kind.SITE, site_key),
        pilots=totals(Kind.PILOT, pilot_key),
        counts=totals(Kind.COUNT, count_key),
        factory=totals(Kind.FACTORY, factory_key),
    )


def hour_rows(
    connection: Connection, kind: Kind, first: Hour, last: Hour
) -> Iterator[tuple[Hour, Labels, int]]:
    """Yield the amounts of the hours first ... last, both included: by hour and series."""
    labels = {row.id: row.labels for row in stored_series(connection, kind)}
    query = within(kind, first, last).order_by(series_hours.c.hour, series_hours.c.series)
    for hour, number, amount in connection.execute(query.execution_options(yield_per=_AT_ONCE)):
        yield hour, labels[number], amount


def within(kind: Kind, first: Hour = 0, last: Hour = HOURS) -> Select[Any]:
    """Return the query of hour, id of the series and amount."""
    c = series_hours.c
    query = select(c.hour, c.series, c.amount).join_from(series_hours, series)
    return query.where(series.c.kind == kind.value, c.hour.between(first, last))


def sums(connection: Connection, kind: Kind, first: Hour, last: Hour) -> dict[Labels, int]:
    """Return what each series has in the hours first ... last, both included."""
    rows = _by_series(connection, within(kind, first, last), *_summed())
    labels = {row.id: row.labels for row in stored_series(connection, kind)}
    return {labels[number]: from_columns(*amounts) for number, *amounts in rows}


def spans(
    connection: Connection, kind: Kind, first: Hour, last: Hour
) -> dict[Labels, tuple[Hour, Hour]]:
    """Return the first and last hour of each series within first ... last."""
    hour = series_hours.c.hour
    rows = _by_series(connection, within(kind, first, last), func.min(hour), func.max(hour))
    labels = {row.id: row.labels for row in stored_series(connection, kind)}
    return {labels[number]: (earliest, latest) for number, earliest, latest in rows}


def _by_series(
    connection: Connection, query: Select[Any], *columns: ColumnElement[int]
) -> Iterable[Any]:
    number = series_hours.c.series
    return connection.execute(query.with_only_columns(number, *columns).group_by(number))


def span(connection: Connection, kind: Kind) -> tuple[Hour | None, Hour | None]:
    """Return the first and the last hour of a kind, None where there is none yet."""
    hour = series_hours.c.hour
    query = select(func.min(hour), func.max(hour)).join_from(series_hours, series)
    first, last = connection.execute(query.where(series.c.kind == kind.value)).one()
    return first, last


class Proven(NamedTuple):
    """A series, ``difference`` by which it exceeds pruned and hours, and how many hours it has."""

    series: Series
    difference: Micros
    hours: int


def prove(connection: Connection, kind: Kind) -> Iterator[Proven]:
    """Yield each series of a kind with how far its total is from its hours."""
    rows = _by_series(connection, within(kind), func.count(), *_summed())
    summed = {number: (hours, from_columns(*amounts)) for number, hours, *amounts in rows}
    for row in stored_series(connection, kind):
        hours, amount = summed.get(row.id, (0, 0))
        yield Proven(row, row.total - row.pruned - amount, hours)
