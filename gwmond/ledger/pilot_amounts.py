"""Adding to the totals and hours of pilot time, where corrections take away as well.

Whatever would make an amount negative is refused by the tables themselves (CHECK).  So amounts
that grow are upserted, and those that shrink are updated: an INSERT of a negative amount would be
refused before it is found to be in conflict with a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, bindparam, or_, select, update

from gwmond.ledger.backend import many, mark
from gwmond.ledger.pilot_codec import HOURS, whole
from gwmond.ledger.pilot_schema import pilot_seconds
from gwmond.ledger.writes import Row, clean
from gwmond.model.hours import to_columns
from gwmond.model.stored_pilots import Hour, Micros, PilotBatch, PilotSeries
from gwmond.model.units import MICRO

SERIES_COLUMNS = (
    *("resource", "measure", "category", "outcome", "site", "entry", "group_name", "evidence"),
)
_SERIES = tuple(pilot_seconds.c[name] for name in SERIES_COLUMNS)
Deltas: TypeAlias = dict[PilotSeries, Micros]
_HourRow: TypeAlias = tuple[Hour, int, int, int]  # hour, series, whole and micros


class Sums(NamedTuple):
    """What a batch changes, net: per series, and per hour and series.  Both sum to the same."""

    totals: Deltas
    hours: dict[PilotSeries, dict[Hour, Micros]]
    series: Mapping[PilotSeries, PilotSeries]


def clean_series(series: PilotSeries) -> PilotSeries:
    """Return a series with names that every database can store."""
    return series._replace(
        outcome=clean(series.outcome),
        site=clean(series.site),
        entry=clean(series.entry),
        group=clean(series.group),
    )


def sum_amounts(batch: PilotBatch) -> Sums:
    """Sum increments and corrections; a series with nothing but zeros still gets its row."""
    names: dict[PilotSeries, PilotSeries] = {}
    hours: dict[PilotSeries, dict[Hour, Micros]] = {}
    known: dict[PilotSeries, dict[Hour, Micros]] = {}  # the same, by names that are not clean
    checked: set[Hour] = set()

    def add(hour: Hour, series: PilotSeries, micros: Micros) -> None:
        if hour not in checked:
            checked.add(whole(hour, HOURS))
        of_series = known.get(series)
        if of_series is None:
            names[series] = clean_series(series)
            of_series = known[series] = hours.setdefault(names[series], {})
        of_series[hour] = of_series.get(hour, 0) + micros

    for (hour, series), micros in batch.increments.items():
        add(hour, series, micros)
    for correction in batch.corrections:
        add(correction.hour, correction.series, correction.micros)
    return Sums(
        {pilot_series: sum(micros.values()) for pilot_series, micros in hours.items()}, hours, names
    )


def series_row(series: PilotSeries, prefix: str = "") -> Row:
    """Return the columns that identify a series."""
    return {f"{prefix}{c}": str(v) for c, v in zip(SERIES_COLUMNS, series, strict=True)}


def series_number() -> Any:
    """Return the subquery of the id of the series whose columns are the parameters ``of_*``."""
    same = (c == bindparam(f"of_{c.name}", type_=c.type) for c in _SERIES)
    return select(pilot_seconds.c.id).where(*same).scalar_subquery()


def add_amounts(connection: Connection, sums: Sums, created: float, pruned_before: Hour) -> None:
    """Add to series and hours; raises ``LookupError`` where less would be there than nothing.

    An hour that retention has passed gets no row again: its amount goes to the series' carry.
    """
    if not sums.totals:
        return
    numbers = _numbers(connection, sums.totals, created)
    changed = [
        (numbers[pilot_series], micros) for pilot_series, micros in sums.totals.items() if micros
    ]
    _change_series(connection, changed)
    more: list[_HourRow] = []
    fewer: list[_HourRow] = []
    carried: dict[int, Micros] = defaultdict(int)
    for series, hours in sums.hours.items():
        number = numbers[series]
        for hour, micros in hours.items():
            if hour < pruned_before:
                carried[number] += micros
            elif micros:
                (more if micros > 0 else fewer).append((hour, number, *to_columns(micros)))
    _change_series(connection, carried.items(), "pruned_")
    _add_hours(connection, sorted(more))
    _take_hours(connection, sorted(fewer))
    raise_high(connection)


def _numbers(connection: Connection, totals: Deltas, created: float) -> dict[PilotSeries, int]:
    """Return the ids of series; those that grow and are not stored yet get a row."""
    stored, last = _stored_numbers(connection, totals, 0)
    missing = [pilot_series for pilot_series in totals if pilot_series not in stored]
    if not missing:
        return stored
    if any(totals[pilot_series] < 0 for pilot_series in missing):
        raise LookupError("a correction takes from a series that is not there")
    columns = (*SERIES_COLUMNS, "whole", "micros", "high_whole", "high_micros", "created")
    rows = [(*map(str, pilot_series), 0, 0, 0, 0, created) for pilot_series in sorted(missing)]
    many(
        connection,
        f"INSERT INTO pilot_seconds ({', '.join(columns)}) "
        f"VALUES ({', '.join([mark(connection)] * len(columns))})",
        rows,
    )
    return stored | _stored_numbers(connection, set(missing), last)[0]


def _stored_numbers(
    connection: Connection, wanted: Collection[PilotSeries], after: int
) -> tuple[dict[PilotSeries, int], int]:
    """Return ids of these series, those that are stored; and the last id of all."""
    query = select(pilot_seconds.c.id, *_SERIES).where(pilot_seconds.c.id > after)
    found: dict[PilotSeries, int] = {}
    for number, *names in connection.execute(query):
        after = max(after, number)
        series = PilotSeries(*names)
        if series in wanted:
            found[series] = number
    return found, after


def _change_series(
    connection: Connection, changed: Iterable[tuple[int, Micros]], prefix: str = ""
) -> None:
    """Add signed amounts to series, by their ids."""
    rows = []
    for number, micros in changed:
        if micros:
            added, rest = to_columns(micros)
            rows.append((added, *[rest] * 3, number))
    many(connection, _update(connection, "pilot_seconds", ("id",), prefix), rows)


def _update(connection: Connection, table: str, key: tuple[str, ...], prefix: str = "") -> str:
    """Return what adds a signed amount, as whole and micros rounded down (these thrice), to a row.

    The micros that are stored are never negative, so a carry is rounded down.
    """
    marker = mark(connection)
    where = " AND ".join(f"{name} = {marker}" for name in key)
    return f"UPDATE {table} SET {_sum('', prefix, marker, marker)} WHERE {where}"


def _sum(table: str, prefix: str, more_whole: str, more_micros: str) -> str:
    """Return the assignments that add to whole and micros, and carry."""
    summed = f"({table}{prefix}micros + {more_micros})"
    return (
        f"{prefix}whole = {table}{prefix}whole + {more_whole} + {summed} / {MICRO}, "
        f"{prefix}micros = {summed} - {summed} / {MICRO} * {MICRO}"
    )


def _add_hours(connection: Connection, rows: list[_HourRow]) -> None:
    marker = mark(connection)
    many(
        connection,
        f"INSERT INTO pilot_hours (hour, series, whole, micros) VALUES ({', '.join([marker] * 4)}) "
        "ON CONFLICT (hour, series) DO UPDATE SET "
        + _sum("pilot_hours.", "", "excluded.whole", "excluded.micros"),
        rows,
    )


def _take_hours(connection: Connection, rows: list[_HourRow]) -> None:
    """Take from hours that must be there: a negative amount, as whole and micros rounded down."""
    taken = [(added, *[rest] * 3, hour, series) for hour, series, added, rest in rows]
    statement = _update(connection, "pilot_hours", ("hour", "series"))
    if many(connection, statement, taken) != len(rows):
        raise LookupError("a correction takes from an hour that is not there")


def raise_high(connection: Connection) -> None:
    """Let the highest that a total has been follow it up."""
    c = pilot_seconds.c
    higher = or_(
        c.whole > c.high_whole,
        and_(c.whole == c.high_whole, c.micros > c.high_micros),
    )
    statement = update(pilot_seconds).where(higher)
    connection.execute(statement.values(high_whole=c.whole, high_micros=c.micros))
