"""What became of the runs of users, for a page.  Times and lengths are microseconds."""

from __future__ import annotations

from typing import NamedTuple

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.reading.users import ended_of_users, going_on
from gwmond.model.facts import Place
from gwmond.model.pilots.stored_pilots import EndedOfUser, GoingOn, RunFilter
from gwmond.model.runs.run_facts import RunFact
from gwmond.model.times import Period
from gwmond.reports.ledger.ledger_reading import ledger_for_page

LATEST = 500
"""Of so many runs that began last it is read how long their jobs had waited."""


class RunsOfUsers(NamedTuple):
    """Runs that ended in a period, of a user or of all; of a user also what goes on.

    ``waits``: how long jobs of the latest runs had waited for their first, the shortest first.
    """

    ended: list[EndedOfUser]
    going: list[GoingOn]
    waits: list[int]


def runs_of_users(url: str, period: Period, place: Place, user: str) -> RunsOfUsers:
    """Read the runs at a place; an empty user stands for all.  Raises Unreadable."""
    with ledger_for_page(url) as ledger:
        ended = ended_of_users(ledger, period, place, user)
        if not user:
            return RunsOfUsers(ended, [], [])
        wanted = RunFilter(period, place, user)
        return RunsOfUsers(ended, going_on(ledger, place, user), _waits(ledger, wanted))


def _submitted(fact: RunFact) -> int | None:
    return fact.about_job and fact.about_job.queued_us


def _waits(ledger: LedgerReader, wanted: RunFilter) -> list[int]:
    found = [
        (row.start_us, next(filter(None, map(_submitted, row.facts)), None))
        for row, _ in ledger.runs_begun(wanted, LATEST)
        if row.key.shadow_start == 1
    ]
    return sorted(max(0, start - queued) for start, queued in found if queued is not None)
