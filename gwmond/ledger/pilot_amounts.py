"""Adding to the totals and hours of pilot time, where corrections take away as well.

Whatever would make an amount negative is refused by the tables themselves (CHECK).  So amounts
that grow are upserted, and those that shrink are updated: an INSERT of a negative amount would be
refused before it is found to be in conflict with a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, or_, select, update

from gwmond.ledger.backend import upsert
from gwmond.ledger.hours import to_columns
from gwmond.ledger.pilot_codec import HOURS, whole
from gwmond.ledger.pilot_model import Hour, Micros, PilotBatch, PilotSeries
from gwmond.ledger.pilot_schema import pilot_hours, pilot_seconds
from gwmond.ledger.writes import Row, clean
from gwmond.units import MICRO

SERIES_COLUMNS = (
    *("resource", "measure", "category", "outcome", "site", "entry", "group_name", "evidence"),
)
_KEY = ("site", "entry", "group_name", "resource", "measure", "category", "outcome", "evidence")
_SERIES = tuple(pilot_seconds.c[name] for name in SERIES_COLUMNS)
Deltas: TypeAlias = dict[PilotSeries, Micros]


class Sums(NamedTuple):
    """What a batch changes, net: per series, and per hour and series.  Both sum to the same."""

    totals: Deltas
    hours: dict[tuple[Hour, PilotSeries], Micros]
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
    totals: Deltas = defaultdict(int)
    hours: dict[tuple[Hour, PilotSeries], Micros] = defaultdict(int)
    names: dict[PilotSeries, PilotSeries] = {}

    def add(hour: Hour, series: PilotSeries, micros: Micros) -> None:
        whole(hour, HOURS)
        known = names.get(series)
        if known is None:
            known = names[series] = clean_series(series)
        totals[known] += micros
        hours[hour, known] += micros

    for (hour, series), micros in batch.increments.items():
        add(hour, series, micros)
    for correction in batch.corrections:
        add(correction.hour, correction.series, correction.micros)
    return Sums(totals, hours, names)


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
    totals, hours = sums.totals, sums.hours
    if not totals:
        return
    grown = [(series, n) for series, n in totals.items() if n >= 0]
    _grow_series(connection, grown, created)
    shrunk = [{**series_row(s, "of_"), **_delta(n)} for s, n in totals.items() if n < 0]
    same = [c == bindparam(f"of_{c.name}", type_=c.type) for c in _SERIES]
    _change(connection, pilot_seconds, same, shrunk)
    carried: Deltas = defaultdict(int)
    for (hour, series), micros in hours.items():
        if hour < pruned_before and micros:
            carried[series] += micros
    late = [{**series_row(s, "of_"), **_delta(n)} for s, n in carried.items()]
    _change(connection, pilot_seconds, same, late, "pruned_")
    kept = {at: micros for at, micros in hours.items() if at[0] >= pruned_before and micros}
    _add_hours(connection, kept)
    raise_high(connection)


def _delta(micros: Micros) -> Row:
    added, rest = to_columns(micros)
    return {"add_whole": added, "add_micros": rest}


def _grow_series(
    connection: Connection, grown: Iterable[tuple[PilotSeries, Micros]], created: float
) -> None:
    rows = []
    for series, micros in sorted(grown):
        added, rest = to_columns(micros)
        amounts = {"whole": added, "micros": rest, "high_whole": 0, "high_micros": 0}
        rows.append({**series_row(series), **amounts, "created": created})
    if not rows:
        return
    statement = upsert(connection, pilot_seconds)
    new, old = statement.excluded, pilot_seconds.c
    summed = {
        "whole": old.whole + new.whole + (old.micros + new.micros) // MICRO,
        "micros": (old.micros + new.micros) % MICRO,
    }
    connection.execute(
        statement.on_conflict_do_update(index_elements=list(_KEY), set_=summed), rows
    )


def _change(
    connection: Connection,
    table: Table,
    same: list[ColumnElement[bool]],
    rows: list[Row],
    prefix: str = "",
) -> None:
    """Add a signed amount, as whole and micros rounded down, to rows that must exist."""
    if not rows:
        return
    now_whole, now_micros = table.c[f"{prefix}whole"], table.c[f"{prefix}micros"]
    added = bindparam("add_whole", type_=now_whole.type)
    rest = bindparam("add_micros", type_=now_micros.type)
    statement = update(table).where(*same)
    statement = statement.values(
        {
            now_whole: now_whole + added + (now_micros + rest) // MICRO,
            now_micros: (now_micros + rest) % MICRO,
        }
    )
    if connection.execute(statement, rows).rowcount != len(rows):
        raise LookupError(f"a correction takes from a row of {table.name} that is not there")


def _numbers(connection: Connection, wanted: set[PilotSeries]) -> dict[PilotSeries, int]:
    """Return the ids of these series, which all must be stored."""
    keys = {tuple(map(str, series)): series for series in wanted}
    rows = connection.execute(select(pilot_seconds.c.id, *_SERIES))
    return {keys[key]: number for number, *of in rows if (key := tuple(of)) in keys}


def _add_hours(connection: Connection, hours: dict[tuple[Hour, PilotSeries], Micros]) -> None:
    more = {at: n for at, n in hours.items() if n > 0}
    numbers = _numbers(connection, {series for _, series in more}) if more else {}
    grown = [
        {"hour": hour, "series": numbers[series], "whole": n // MICRO, "micros": n % MICRO}
        for (hour, series), n in more.items()
    ]
    grown.sort(key=itemgetter("hour", "series"))
    if grown:
        statement = upsert(connection, pilot_hours)
        new, old = statement.excluded, pilot_hours.c
        names = ("hour", "series", "whole", "micros")
        values = {c: bindparam(c, type_=old[c].type) for c in names}
        summed = {
            "whole": old.whole + new.whole + (old.micros + new.micros) // MICRO,
            "micros": (old.micros + new.micros) % MICRO,
        }
        connection.execute(
            statement.values(**values).on_conflict_do_update(
                index_elements=["hour", "series"], set_=summed
            ),
            grown,
        )
    shrunk = [
        {"of_hour": hour, **_delta(n), **series_row(series, "of_")}
        for (hour, series), n in sorted(hours.items())
        if n < 0
    ]
    hour = pilot_hours.c.hour == bindparam("of_hour", type_=pilot_hours.c.hour.type)
    _change(connection, pilot_hours, [hour, pilot_hours.c.series == series_number()], shrunk)


def raise_high(connection: Connection) -> None:
    """Let the highest that a total has been follow it up."""
    of = pilot_seconds.c
    higher = or_(
        of.whole > of.high_whole,
        and_(of.whole == of.high_whole, of.micros > of.high_micros),
    )
    statement = update(pilot_seconds).where(higher)
    connection.execute(statement.values(high_whole=of.whole, high_micros=of.micros))
