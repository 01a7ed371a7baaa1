"""What the counter of estimated time stood at in the past, by the hours in which pilots ended.

What rests on a rule is counted with the pilot when it has ended, as its amount at once.  It is kept
with the pilot's row: what retention took out is in the totals alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby

from sqlalchemy import func, select

from gwmond.ledger.classify import KEEP
from gwmond.ledger.errors import LedgerCorrupt
from gwmond.ledger.hourly import Done, Found, HourlySeries, Labels
from gwmond.ledger.pilot_codec import counted_rules
from gwmond.ledger.pilot_schema import pilot_counts, pilots
from gwmond.ledger.pilot_writes import stored_batches
from gwmond.ledger.reader import LedgerReader
from gwmond.model.pilot_facts import Assumption
from gwmond.model.stored_pilots import ASSUMED
from gwmond.model.times import HOUR_US
from gwmond.model.units import Resource

_AT_ONCE = 2000
_OF = {what: resource for resource, what in ASSUMED.items()}


def estimated_time(reader: LedgerReader, labels: Labels, done: Done) -> Found:
    """Yield canonical micros of ended pilots; ``labels``: resource, rule, site, entry, group.

    The hours of one group at one entry are in memory at a time.
    """
    if labels != ("resource", "rule", "site", "entry", "group"):
        raise ValueError(f"labels of estimated time: {labels}")
    total, c = pilot_counts.c, pilots.c
    place = c.site, c.entry, c.group_name
    with reader._reading() as connection:
        complete = -(-stored_batches(connection).pilots_pruned_us // HOUR_US)
        summed = select(
            *(total.what, total.outcome, total.site, total.entry, total.group_name),
            func.sum(total.number),
        ).where(total.what.in_(_OF))
        summed = summed.group_by(
            *(total.what, total.outcome, total.site, total.entry, total.group_name)
        )
        totals = {
            (_OF[what], *key): int(number) for what, *key, number in connection.execute(summed)
        }
        left = dict(totals)
        rows = select(*place, c.end_us, c.estimated).where(c.end_us.is_not(None))
        rows = rows.order_by(*place).execution_options(yield_per=_AT_ONCE)
        for where, group in groupby(connection.execute(rows), key=lambda row: tuple(row[:3])):
            hours: defaultdict[tuple[Assumption, Resource], Counter[int]] = defaultdict(Counter)
            for *_, end_us, estimated in group:
                for kind, micros in counted_rules(estimated).items():
                    hours[kind][(end_us - 1) // HOUR_US] += micros
            for (rule, resource), amounts in sorted(hours.items()):
                key = (resource, rule.value, *where)
                number = left.pop(key, 0)
                if sum(amounts.values()) > number:
                    what = f"pilots have more of {key} than its total (gwmond ledger check)"
                    raise LedgerCorrupt(reader.where, what, KEEP)
                done(len(totals) - len(left), len(totals))
                yield HourlySeries(key, number, tuple(sorted(amounts.items())), complete)
        for key, number in left.items():
            yield HourlySeries(key, number, (), complete)
