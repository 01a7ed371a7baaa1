"""What began at one site, good or bad, as evidence of its faults, and the same jobs elsewhere.

Units: times are microseconds since the epoch, amounts are canonical micros of CPUs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, case, distinct, func, or_, select

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.database.schema import pilots, runs
from gwmond.ledger.reading.failed import BLAMED, OUTCOME, TRANSFER_FAILED, VALIDATED
from gwmond.ledger.reading.pilot_reader import PILOT_ROWS, RUN
from gwmond.ledger.reading.reader import FAILED, LedgerReader, of_pilots
from gwmond.ledger.rows.pilot_codec import pilot_row, run_row
from gwmond.model.facts import Place
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotRow
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.model.runs.phases import failed_transfer
from gwmond.model.times import SECOND_US, Period

_JUST_BEGUN_US = 900 * SECOND_US


class BegunRun(NamedTuple):
    """A run of a job; it is ``over``, or goes on for some minutes already.

    ``micros``: None until they are settled.  ``outcome``: as ``EndedRuns`` has it.  ``transfer``:
    of one whose transfer failed, as ``Ending.failed_transfer`` has it.
    """

    start_us: int
    over: bool
    micros: int | None
    transfer: str
    entry: str
    node: str
    group: str
    outcome: str
    user: str
    job_group: str


class Elsewhere(NamedTuple):
    """What began at other sites, how many of it failed the same way, and at how many sites."""

    begun: int
    failed: int
    sites: int


def runs_begun_at(
    reader: LedgerReader, period: Period, place: Place, most: int | None
) -> list[BegunRun] | None:
    """Return the runs that began in a period at a place; None: they are more than ``most``.

    ``most``: None: there may be any number.

    Those that have only just begun are left out: of these it is not known whether they fail.
    """
    c = runs.c
    where = *_runs_in(period), *of_pilots(PilotFilter(place=place))
    columns = (
        *(c.start_us, c.end_us.is_not(None), c.cpu_canonical, c.job, c.number),
        *(pilots.c.entry, pilots.c.node, pilots.c.group_name),
        *(OUTCOME, c.user_name, c.job_group),
    )
    joined = select(*columns).join_from(runs, pilots, c.pilot == pilots.c.id).where(*where)
    transfers = select(*RUN).join_from(runs, pilots, c.pilot == pilots.c.id).where(*where)
    with reader.reading() as connection:
        rows = connection.execute(joined.limit(None if most is None else most + 1)).all()
        if most is not None and len(rows) > most:
            return None
        failed = {}
        for row in map(run_row, connection.execute(transfers.where(TRANSFER_FAILED))):
            if (transfer := failed_transfer(row.facts)) is not None:
                failed[row.key.job, row.key.number] = transfer.text
        return [
            BegunRun(begun, bool(over), micros, failed.get((job, number), ""), *names)
            for begun, over, micros, job, number, *names in rows
        ]


def pilots_begun_at(
    reader: LedgerReader, period: Period, place: Place
) -> tuple[list[tuple[int, str, str, str]], list[PilotRow]]:
    """Return begin, entry, node, group of pilots that passed their validation; those that did not.

    They began in the period.  Those of which it is not known are left out.
    """
    c = pilots.c
    where = *_begun(period), *of_pilots(PilotFilter(place=place))
    passed = select(c.start_us, c.entry, c.node, c.group_name).where(*where, ~FAILED, VALIDATED)
    failed = PILOT_ROWS.where(*where, FAILED)
    with reader.reading() as connection:
        good = [(row[0], row[1], row[2], row[3]) for row in connection.execute(passed)]
        return good, [pilot_row(row) for row in connection.execute(failed)]


def runs_elsewhere(
    reader: LedgerReader,
    period: Period,
    site: str,
    groups: Collection[str],
    outcome: str,
    transfer: str = "",
) -> Elsewhere:
    """Count the runs of the same groups of jobs at other sites, and those that failed so."""
    c = runs.c
    failed: ColumnElement[bool] = and_(BLAMED, c.outcome == outcome)
    if transfer:
        failed = c.facts.contains(f'"u":"{transfer}"', autoescape=True)
    where = *_runs_in(period), pilots.c.site != site
    numbers = (
        func.count(),
        func.sum(case((failed, 1), else_=0)),
        func.count(distinct(pilots.c.site)),
    )
    query = select(*numbers).join_from(runs, pilots, c.pilot == pilots.c.id).where(*where)
    return _together(reader, (query.where(c.job_group.in_(part)) for part in chunks(groups)))


def pilots_elsewhere(
    reader: LedgerReader, period: Period, site: str, groups: Collection[str], failure: str
) -> Elsewhere:
    """Count the pilots of the same frontend groups at other sites, and those that failed so."""
    c = pilots.c
    failed = and_(FAILED, c.failure == failure)
    numbers = func.count(), func.sum(case((failed, 1), else_=0)), func.count(distinct(c.site))
    query = select(*numbers).where(*_begun(period), VALIDATED, c.site != site)
    return _together(reader, (query.where(c.group_name.in_(part)) for part in chunks(groups)))


def _runs_in(period: Period) -> tuple[ColumnElement[bool], ...]:
    c = runs.c
    lasts = or_(c.end_us.is_not(None), c.start_us < period.until_us - _JUST_BEGUN_US)
    real = func.coalesce(c.outcome, "") != SUMMARISED
    return c.start_us >= period.since_us, c.start_us < period.until_us, lasts, real


def _begun(period: Period) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    start_us = pilots.c.start_us
    return start_us >= period.since_us, start_us < period.until_us


def _together(reader: LedgerReader, queries: Iterator[Any]) -> Elsewhere:
    total = Elsewhere(0, 0, 0)
    with reader.reading() as connection:
        for query in queries:
            begun, failed, sites = connection.execute(query).one()
            total = Elsewhere(
                total.begun + begun, total.failed + int(failed or 0), max(total.sites, sites)
            )
    return total
