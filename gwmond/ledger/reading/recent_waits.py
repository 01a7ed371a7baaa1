"""What a ledger knows of recent waits: of jobs until their first run, of pilots until they began.

Only the latest runs, and the latest jobs of factories, are looked at, so that this takes no longer
in a large ledger.  Units: waits are seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import Connection, select

from gwmond.ledger.database.columns import clean
from gwmond.ledger.database.schema import factory_jobs, pilots, runs
from gwmond.ledger.reading.pilot_reader import PilotLookup
from gwmond.ledger.rows.pilot_codec import run_row
from gwmond.ledger.rows.tables import PLACE, place_row
from gwmond.model.demand.past_waits import PastWaits
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.pilots.file_facts import QueueState
from gwmond.model.runs.phases import waited_us
from gwmond.model.times import SECOND_US

LATEST_RUNS, LATEST_PILOTS = 20_000, 5_000
_ENTRIES = 500


def past_waits(
    ledger: PilotLookup, job_group: str, cores: float, entries: Collection[str]
) -> PastWaits:
    """Return the waits of jobs of an accounting group with as many cores, and of pilots.

    ``entries``: where the jobs ran, and the pilots.
    """
    names = [clean(name) for name in sorted(entries)[:_ENTRIES]]
    with ledger.reading() as connection:
        return PastWaits(
            _jobs(connection, clean(job_group), cores, names), _pilots(connection, names)
        )


def _jobs(
    connection: Connection, job_group: str, cores: float, entries: Collection[str]
) -> list[float]:
    latest = select(runs).order_by(runs.c.start_us.desc()).limit(LATEST_RUNS).subquery()
    query = (
        select(latest)
        .join(pilots, latest.c.pilot == pilots.c.id)
        .where(latest.c.job_group == job_group, latest.c.cores == cores, latest.c.number == 1)
        .where(pilots.c.entry.in_(entries))
    )
    waits = (waited_us(run_row(row).facts) for row in connection.execute(query))
    return [wait / SECOND_US for wait in waits if wait is not None]


def _pilots(connection: Connection, entries: Collection[str]) -> dict[str, list[float]]:
    latest = select(factory_jobs).order_by(factory_jobs.c.last_us.desc()).limit(LATEST_PILOTS)
    chosen = latest.subquery()
    query = select(*(chosen.c[column.name] for column in PLACE)).where(chosen.c.entry.in_(entries))
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row in connection.execute(query):
        place = place_row(row)
        if (wait := waited(place)) is not None:
            found[place.entry].append(wait)
    return dict(found)


def waited(place: QueueRecord) -> float | None:
    """Return how long a pilot waited from its last submission until it began; None: not known."""
    submitted = None
    for event in place.events:
        if event.state is QueueState.SUBMITTED:
            submitted = event.at_us
        elif event.state is QueueState.STARTED and submitted is not None:
            return (event.at_us - submitted) / SECOND_US
    return None
