"""How long jobs waited until their first run lately, and pilots until they began; who took jobs.

Of waits only the latest runs, and the latest jobs of factories, are looked at, so that this takes
no longer in a large ledger.  Units: waits are seconds, times microseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, case, func, select

from gwmond.ledger.database.columns import clean, identity
from gwmond.ledger.database.schema import factory_jobs, pilots, runs
from gwmond.ledger.reading.pilot_reader import PilotLookup
from gwmond.ledger.reading.reader import of_pilots
from gwmond.ledger.rows.pilot_codec import run_row
from gwmond.ledger.rows.tables import PLACE, place_row
from gwmond.model.demand.idle_history import Begun, PastWaits
from gwmond.model.demand.waiting_job import WaitingJob
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import QueueState
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotId
from gwmond.model.runs.phases import waited_us
from gwmond.model.times import SECOND_US

LATEST_RUNS, LATEST_PILOTS = 200_000, 5_000
_LIKE = 5_000
_ENTRIES = 500


def past_waits(ledger: PilotLookup, job: WaitingJob, entries: Collection[str]) -> PastWaits:
    """Return the latest jobs of a job's schedd that began, and the waits of pilots of entries.

    For a job that is not submitted yet: those of its accounting group with as many cores, as of
    one user without a name.
    """
    names = [clean(name) for name in sorted(entries)[:_ENTRIES]]
    with ledger.reading() as connection:
        return PastWaits(_jobs(connection, job), _pilots(connection, names))


def _jobs(connection: Connection, job: WaitingJob) -> dict[str, list[Begun]]:
    latest = select(runs).order_by(runs.c.start_us.desc()).limit(LATEST_RUNS).subquery()
    group, of_schedd = clean(job.accounting_group), f"{identity(job.schedd)}#"
    like = (
        (latest.c.job.startswith(of_schedd, autoescape=True),)
        if job.schedd
        else (latest.c.job_group == group, latest.c.cores == job.size.cores)
    )
    query = select(latest).where(latest.c.number == 1, *like)
    begun: defaultdict[str, list[Begun]] = defaultdict(list)
    for values in connection.execute(query.order_by(latest.c.start_us.desc()).limit(_LIKE)):
        row = run_row(values)
        if (wait_us := waited_us(row.facts)) is not None:
            one = Begun((row.start_us - wait_us) / SECOND_US, row.start_us / SECOND_US)
            begun[row.user if job.schedd else ""].append(one)
    return dict(begun)


def _pilots(connection: Connection, entries: Collection[str]) -> dict[str, list[float]]:
    latest = select(factory_jobs).order_by(factory_jobs.c.last_us.desc()).limit(LATEST_PILOTS)
    chosen = latest.subquery()
    query = select(*(chosen.c[column.name] for column in PLACE)).where(chosen.c.entry.in_(entries))
    by_entry: defaultdict[str, list[float]] = defaultdict(list)
    for row in connection.execute(query):
        place = place_row(row)
        if (wait := waited(place)) is not None:
            by_entry[place.entry].append(wait)
    return dict(by_entry)


def waited(place: QueueRecord) -> float | None:
    """Return how long a pilot waited from its last submission until it began; None: not known."""
    submitted = None
    for event in place.events:
        if event.state is QueueState.SUBMITTED:
            submitted = event.at_us
        elif event.state is QueueState.STARTED and submitted is not None:
            return (event.at_us - submitted) / SECOND_US
    return None


class PilotCounts(NamedTuple):
    """Pilots of an entry and a group: all, those that ran a job, those that failed validation."""

    pilots: int
    ran: int
    failed: int


def runs_begun(reader: PilotLookup, group: str, since_us: int, until_us: int) -> Counter[EntryKey]:
    """Return how many runs of jobs began on pilots of a frontend group, by entry."""
    c = pilots.c
    query = (
        select(c.site, c.entry, func.count())
        .join_from(runs, pilots, runs.c.pilot == c.id)
        .where(runs.c.start_us >= since_us, runs.c.start_us < until_us, c.group_name == group)
        .group_by(c.site, c.entry)
    )
    with reader.reading() as connection:
        rows = connection.execute(query)
        return Counter({EntryKey(site, entry): number for site, entry, number in rows})


def pilot_counts(reader: PilotLookup, choice: PilotFilter, besides: PilotId) -> PilotCounts:
    """Count the pilots of a choice ``besides`` one; an empty group is that of no group."""
    c = pilots.c
    ran = case((c.ran_jobs != 0, 1), else_=0)
    failed = case(((c.validation == Validation.FAILED.value) & (c.ran_jobs == 0), 1), else_=0)
    others = c.id != besides, c.group_name == choice.place.group
    query = select(func.count(), func.sum(ran), func.sum(failed)).where(*of_pilots(choice), *others)
    with reader.reading() as connection:
        return PilotCounts(*(int(number or 0) for number in connection.execute(query).one()))
