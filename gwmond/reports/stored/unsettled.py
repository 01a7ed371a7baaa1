"""Time of pilots that is not settled: how much, and when.  Units: microseconds, micros."""

from __future__ import annotations

from collections.abc import Iterator

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.facts import Place
from gwmond.model.pilot_life import beside
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.times import Period
from gwmond.pilots.life.partition import Totals, settled_times, total
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot


def unsettled(
    ledger: LedgerReader, place: Place, period: Period, step_us: int, memory_per_unit_mib: int
) -> Iterator[tuple[StoredPilot, int, Totals]]:
    """Yield what a place's pilots had in a period that is not settled, up to the last contact.

    Each item is of one pilot, from a time on, and of one step; steps begin with the period.
    """
    pilots, runs = ledger.unsettled()
    as_of = AsOf(memory_per_unit_mib=memory_per_unit_mib)
    by_pilot: dict[int, list[RunRow]] = {}
    for run in runs:
        by_pilot.setdefault(run.pilot, []).append(run)
    for row in pilots:
        if not place.covers(*row.identity.key, row.identity.group):
            continue
        pilot = StoredPilot(row, by_pilot.get(row.id, ()), as_of)
        life = pilot.life_now
        since = max(period.since_us, row.settled_until_us, row.start_us)
        until = min(period.until_us, life.effective_end_us)
        for start, end in beside((since, until), settled_times(life)) if since < until else ():
            at = start
            while at < end:
                steps = (at - period.since_us) // step_us + 1
                stop = min(end, period.since_us + steps * step_us)
                yield pilot, at, total(life, (at, stop), pilot.unit_mib)
                at = stop
