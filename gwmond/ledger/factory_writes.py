"""The statements that change what a ledger holds of factories; each runs in its caller's
transaction, which is the one that stores the cursors of the files that told it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from sqlalchemy import Connection, bindparam, delete, func, select, update

from gwmond.ledger.backend import upsert
from gwmond.ledger.factory_schema import factory_hours, factory_totals
from gwmond.ledger.pilot_codec import HOURS, whole
from gwmond.ledger.writes import Row, clean
from gwmond.model.factory_totals import FactoryKey, FactoryKind, FactoryTotalKey
from gwmond.model.stored_pilots import Hour

_TOTAL = ("entry", "client", "kind")


FactoryRows: TypeAlias = Mapping[FactoryKey, int]


def prepare(numbers: Mapping[FactoryKey, int]) -> FactoryRows:
    """Return what a batch adds, as it is stored; raises ``ValueError`` for what cannot be."""
    hours: defaultdict[FactoryKey, int] = defaultdict(int)
    for key, number in numbers.items():
        kind = FactoryKind(key.kind)
        hour = whole(key.hour, HOURS)
        hours[FactoryKey(hour, clean(key.entry), clean(key.client), kind)] += whole(number)
    return hours


def store(connection: Connection, hours: FactoryRows, created: float, pruned_before: Hour) -> None:
    """Add the numbers.

    An hour that retention has passed gets no row again: its number is carried by its series.
    """
    sums: defaultdict[FactoryTotalKey, list[int]] = defaultdict(lambda: [0, 0])
    for key, number in hours.items():
        sums[key.total][0] += number
        sums[key.total][1] += number if key.hour < pruned_before else 0
    if not sums:
        return
    c = factory_totals.c
    statement = upsert(connection, factory_totals)
    new = statement.excluded
    summed = {"number": c.number + new.number, "pruned": c.pruned + new.pruned}
    connection.execute(
        statement.on_conflict_do_update(index_elements=list(_TOTAL), set_=summed),
        [
            {**_names(total), "number": number, "pruned": pruned, "created": created}
            for total, (number, pruned) in sorted(sums.items())
        ],
    )
    rows = [
        {"hour": key.hour, "number": number, **_names(key.total, "of_")}
        for key, number in sorted(hours.items())
        if number and key.hour >= pruned_before
    ]
    if not rows:
        return
    same = (c[name] == bindparam(f"of_{name}", type_=c[name].type) for name in _TOTAL)
    series = select(c.id).where(*same).scalar_subquery()
    statement = upsert(connection, factory_hours)
    values = {
        name: bindparam(name, type_=factory_hours.c[name].type) for name in ("hour", "number")
    }
    connection.execute(
        statement.values(**values, series=series).on_conflict_do_update(
            index_elements=["hour", "series"],
            set_={"number": factory_hours.c.number + statement.excluded.number},
        ),
        rows,
    )


def _names(total: FactoryTotalKey, prefix: str = "") -> Row:
    return {f"{prefix}{name}": str(value) for name, value in zip(_TOTAL, total, strict=True)}


def prune_hours(connection: Connection, before: Hour) -> int:
    """Move the numbers of all hours earlier than ``before`` into their series' ``pruned``."""
    hours, totals = factory_hours.c, factory_totals.c
    query = select(hours.series, func.sum(hours.number)).where(hours.hour < before)
    rows = [
        {"of_id": series, "more": int(number)}
        for series, number in connection.execute(query.group_by(hours.series))
    ]
    if not rows:
        return 0
    carried = totals.pruned + bindparam("more", type_=totals.pruned.type)
    statement = update(factory_totals).where(totals.id == bindparam("of_id"))
    connection.execute(statement.values(pruned=carried), rows)
    return connection.execute(delete(factory_hours).where(hours.hour < before)).rowcount
