"""What counters of factories' numbers stood at in the past, as ``hourly`` has it of pilots.

Each function reads one state of the ledger, and has one series in memory at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

from sqlalchemy import select

from gwmond.ledger.classify import KEEP
from gwmond.ledger.errors import LedgerCorrupt
from gwmond.ledger.factory_schema import factory_hours, factory_totals
from gwmond.ledger.hourly import Done, Found, HourlySeries, Labels
from gwmond.ledger.pilot_writes import stored_batches
from gwmond.ledger.reader import LedgerReader
from gwmond.model.factory_totals import FactoryKind

_AT_ONCE = 5000


def factory_numbers(
    reader: LedgerReader, kinds: Mapping[FactoryKind, Labels], unit: int, done: Done
) -> Found:
    """Yield numbers of these kinds, each times ``unit``; the labels: a kind's, entry, client."""
    total, c = factory_totals.c, factory_hours.c
    wanted = total.kind.in_([kind.value for kind in kinds])
    with reader._reading() as connection:
        complete = stored_batches(connection).pruned_before
        query = select(total.id, total.kind, total.entry, total.client, total.number)
        series = {
            number: ((*kinds[FactoryKind(kind)], entry, client), amount)
            for number, kind, entry, client, amount in connection.execute(
                query.where(wanted).order_by(total.id)
            )
        }
        left = dict(series)
        rows = (
            select(c.series, c.hour, c.number)
            .join_from(factory_hours, factory_totals)
            .where(wanted)
            .order_by(c.series, c.hour)
            .execution_options(yield_per=_AT_ONCE)
        )
        for number, group in groupby(connection.execute(rows), key=itemgetter(0)):
            key, amount = left.pop(number)
            hours = tuple((hour, some * unit) for _, hour, some in group)
            if sum(some for _, some in hours) > amount * unit:
                what = f"the hours of {key} are more than their total (gwmond ledger check)"
                raise LedgerCorrupt(reader.where, what, KEEP)
            done(len(series) - len(left), len(series))
            yield HourlySeries(key, amount * unit, hours, complete)
        for key, amount in left.values():  # all their hours were taken out
            yield HourlySeries(key, amount * unit, (), complete)
