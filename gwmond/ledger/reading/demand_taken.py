"""Who took the jobs of a frontend group in a period: runs that began, and pilots that lived.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from sqlalchemy import case, func, select

from gwmond.ledger.database.schema import pilots, runs
from gwmond.ledger.reading.pilot_reader import PilotLookup
from gwmond.ledger.reading.reader import of_pilots
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotId


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
        found = connection.execute(query)
        return Counter({EntryKey(site, entry): number for site, entry, number in found})


def pilot_counts(reader: PilotLookup, wanted: PilotFilter, besides: PilotId) -> PilotCounts:
    """Count the pilots that are wanted, without one of them; an empty group is that of no group."""
    c = pilots.c
    ran = case((c.ran_jobs != 0, 1), else_=0)
    failed = case(((c.validation == Validation.FAILED.value) & (c.ran_jobs == 0), 1), else_=0)
    others = c.id != besides, c.group_name == wanted.place.group
    query = select(func.count(), func.sum(ran), func.sum(failed)).where(*of_pilots(wanted), *others)
    with reader.reading() as connection:
        return PilotCounts(*(int(number or 0) for number in connection.execute(query).one()))
