"""For what demand a pilot was sent, and what became of that demand, by the ledger.

Units: times are microseconds since the epoch; ``asked``, ``jobs`` and ``pending`` are means of
whole hours (UTC), jobs and pilots; units are canonical.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from gwmond.ledger.reading.failed import validated
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.reading.recent_waits import PilotCounts, pilot_counts, runs_begun
from gwmond.model.entries.experiments import Experiment
from gwmond.model.facts import EntryKey, Place
from gwmond.model.pilots.file_facts import QueueState
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotRow
from gwmond.model.times import HOUR_US, Period
from gwmond.reports.factory_tools.analyze_frontends import watched
from gwmond.reports.failures.common_failures import CommonFailure, common, split
from gwmond.reports.pilots.traced import queue_of
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot


class DemandAt(NamedTuple):
    """What was asked of an entry for one frontend group in the hour that begins at ``hour_us``.

    None: no ad said so.  ``units`` are those of the entry's capacity beyond its pilots, by state.
    """

    hour_us: int
    asked: float | None
    jobs: float | None
    pending: float | None
    units: Mapping[str, float]


class SentFor(NamedTuple):
    """One pilot that has ended, the demand around it, and who took jobs meanwhile.

    - ``sent_us``: its submission by the factory's queue; None: not known.
    - ``demand``: in the hours in which it was sent, registered, and ended.
    - ``on_its_way``, ``while_there``: runs that began on pilots of its group, by entry.
    - ``alike``: pilots of its entry and group that lived while it did, without it.
    - ``check``: the verdict on the entry as it registered, and what came of that.
    - ``common``: what its validation failed, if pilots that began within an hour of it show that
      this was no site's.
    """

    pilot: StoredPilot
    sent_us: int | None
    registered_us: int | None
    demand: tuple[DemandAt, ...]
    on_its_way: Counter[EntryKey]
    while_there: Counter[EntryKey]
    alike: PilotCounts
    check: Experiment | None
    common: CommonFailure | None = None

    @property
    def end_us(self) -> int:
        """When it ended, or was heard of last."""
        return self.pilot.life_now.effective_end_us


def sent_for(ledger: LedgerReader, row: PilotRow, now_us: int) -> SentFor:
    """Read all of that."""
    runs = ledger.runs_of([row.id]).get(row.id, [])
    pilot = StoredPilot(row, runs, AsOf(now_us))
    ads, end_us = row.facts.ads, pilot.life_now.effective_end_us
    began_us = ads.began_us if ads is not None else None
    registered_us = (row.start_us if began_us is None else began_us) if ads is not None else None
    queue = queue_of(ledger, row)
    events = queue.events if queue is not None else ()
    submitted = (event.at_us for event in events if event.state is QueueState.SUBMITTED)
    sent_us = max((at_us for at_us in submitted if at_us <= row.start_us), default=None)
    begin_us, there_us = sent_us or row.start_us, registered_us or end_us
    key, group = row.identity.key, row.identity.group
    around = PilotFilter(begin_us, end_us, place=Place(*key, group))
    alike = pilot_counts(ledger, around, row.id)
    hours = sorted({time_us // HOUR_US for time_us in (begin_us, there_us, end_us)})
    checks = ledger.experiments(row.start_us, end_us + 1)
    return SentFor(
        pilot,
        sent_us,
        registered_us,
        tuple(_demand(ledger, hour, key, group) for hour in hours),
        runs_begun(ledger, group, begin_us, there_us),
        runs_begun(ledger, group, there_us, end_us),
        alike,
        next((check for check in checks if check.pilot == row.id), None),
        _common(ledger, row) if pilot.failed else None,
    )


def _common(ledger: LedgerReader, row: PilotRow) -> CommonFailure | None:
    """Return the failure of its validation, if that is no site's."""
    counts = validated(ledger, row.start_us - HOUR_US, row.start_us + HOUR_US)
    own, test = row.identity, split(row.failure)[1]
    return next(
        (x for x in common(counts) if x.test == test and x.covers(own.group, own.key.entry)), None
    )


def _demand(ledger: LedgerReader, hour: int, key: EntryKey, group: str) -> DemandAt:
    """Return what was asked in an hour; ``pending`` is the factory's count."""
    period = Period(hour * HOUR_US, (hour + 1) * HOUR_US)
    factory = ledger.factory_hours(hour, hour)
    means = watched(factory, period, lambda client, entry: (client, entry) == (group, key.entry))
    numbers = means.cells.get((group, key.entry), {})
    units: Counter[str] = Counter()
    for total in ledger.hours(hour, hour):
        row = total.key
        if (row.site, row.entry, row.resource) == (*key, "cpu") and row.state != "provisioned":
            units[row.state] += total.micros
    asked, jobs, pending = map(numbers.get, ("asked_idle", "client_jobs_idle", "status_idle"))
    spent = {state: micros / HOUR_US for state, micros in sorted(units.items())}
    return DemandAt(hour * HOUR_US, asked, jobs, pending, spent)
