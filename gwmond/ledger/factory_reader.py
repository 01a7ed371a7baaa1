"""What reports and the daemon ask a ledger of factories' numbers."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, func, select

from gwmond.ledger.factory_schema import factory_hours, factory_totals
from gwmond.ledger.session import Session
from gwmond.model.factory_totals import FactoryKey, FactoryKind, FactoryTotalKey
from gwmond.model.stored_pilots import Hour, PilotDifference, PilotResidual, Shown

WORST = 10


class FactoryReader(Session):
    """A ledger open to read what it holds of factories."""

    def factory_hours(self, from_hour: Hour, to_hour: Hour) -> Mapping[FactoryKey, int]:
        """Return the numbers of the hours from_hour ... to_hour, both included.

        What is not there was not told: no file of that time was read, or nothing happened.
        """
        c, total = factory_hours.c, factory_totals.c
        query = (
            select(c.hour, total.entry, total.client, total.kind, c.number)
            .join_from(factory_hours, factory_totals)
            .where(c.hour.between(from_hour, to_hour))
        )
        with self._transaction() as connection:
            return {
                FactoryKey(hour, entry, client, FactoryKind(kind)): int(number)
                for hour, entry, client, kind, number in connection.execute(query)
            }


def load_totals(connection: Connection) -> dict[FactoryTotalKey, Shown]:
    """Return the totals, and since when each is counted; they never fall."""
    c = factory_totals.c
    query = select(c.entry, c.client, c.kind, c.number, c.created)
    return {
        (entry, client, FactoryKind(kind)): Shown(number, created)
        for entry, client, kind, number, created in connection.execute(query)
    }


def check(connection: Connection) -> PilotResidual:
    """Prove that every total is what was pruned plus the sum of its hours."""
    c, hour = factory_totals.c, factory_hours.c
    summed = (
        select(hour.series, func.sum(hour.number).label("number"), func.count().label("hours"))
        .group_by(hour.series)
        .subquery()
    )
    query = select(
        *(c.entry, c.client, c.kind, c.number, c.pruned, summed.c.number, summed.c.hours)
    ).join_from(factory_totals, summed, c.id == summed.c.series, isouter=True)
    checked, found = 0, []
    for *names, number, pruned, in_hours, hours in connection.execute(query):
        checked += hours or 0
        if difference := number - pruned - int(in_hours or 0):
            found.append(PilotDifference(" ".join(names), difference * 1_000_000))
    found.sort(key=lambda one: -abs(one.micros))
    micros = sum(abs(one.micros) for one in found)
    return PilotResidual("factory", checked, 0, micros, tuple(found[:WORST]))
