"""Pilots that failed validation and runs that failed early, counted by where they were.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from sqlalchemy import Connection, and_, case, func, or_, select

from gwmond.ledger.database.schema import pilots, runs
from gwmond.ledger.reading.pilot_reader import PILOT_ROWS, RUN
from gwmond.ledger.reading.reader import FAILED, LedgerReader, of_pilots
from gwmond.ledger.rows.pilot_codec import pilot_row, run_row
from gwmond.model.pilot_life import Category, Validation
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotRow
from gwmond.model.runs.phases import FailedTransfer, failed_transfer
from gwmond.pilots.early.comparison import Result

NOT_JUDGED = "not judged yet"
"""Stands for the outcome of a run that failed early, as long as no verdict has decided whose
fault that was."""


class EndedPilots(NamedTuple):
    """How many pilots ended at a place; of how many it is not known whether validation failed."""

    site: str
    entry: str
    node: str
    pilots: int
    unknown: int


class EndedRuns(NamedTuple):
    """How many runs ended at a place, with their canonical time of CPUs.

    ``outcome``: of runs that failed at the beginning by the doing of the place, or ``NOT_JUDGED``;
    empty: all others.  ``job``: of one of the runs.
    """

    site: str
    entry: str
    node: str
    outcome: str
    runs: int
    micros: int
    job: str


class EndedInPeriod(NamedTuple):
    """What ended in a period; ``failed`` is None where more than ``most`` pilots failed.

    ``transfers``: how many failed, by site and server; of more than ``most`` only so many.
    """

    pilots: list[EndedPilots]
    failed: list[PilotRow] | None
    runs: list[EndedRuns]
    transfers: Counter[tuple[str, FailedTransfer]]


def validated(
    reader: LedgerReader, since_us: int, until_us: int = 2**62
) -> Counter[tuple[str, str, str]]:
    """Count pilots that began then by group, entry, and what their validation failed (or empty).

    Those of which that is not known yet are left out.
    """
    c = pilots.c
    failure = case((FAILED, c.failure), else_="").label("of")
    query = (
        select(c.group_name, c.entry, failure, func.count())
        .where(c.start_us >= since_us, c.start_us < until_us)
        .where(or_(c.end_us.is_(None), c.end_us >= since_us))
        .where(or_(c.validation != Validation.UNKNOWN.value, c.ran_jobs != 0))
        .group_by(c.group_name, c.entry, "of")
    )
    with reader.reading() as connection:
        return Counter({(g, e, of): n for g, e, of, n in connection.execute(query)})


def ended_within(reader: LedgerReader, wanted: PilotFilter, most: int) -> EndedInPeriod:
    """Count what ended in the period ``wanted.ended``, on pilots of a site, entry and group."""
    assert wanted.ended is not None
    c, place = pilots.c, (pilots.c.site, pilots.c.entry, pilots.c.node)
    unknown = and_(c.validation == Validation.UNKNOWN.value, c.ran_jobs == 0)
    counted = func.count(), *(func.sum(case((what, 1), else_=0)) for what in (unknown, FAILED))
    since_us, until_us = wanted.ended
    blamed = runs.c.category == Category.MISCONFIGURATION_BADPUT.value
    open_failure = and_(runs.c.category.is_(None), runs.c.result == Result.FAILED_EARLY.value)
    outcome = case((blamed, runs.c.outcome), (open_failure, NOT_JUDGED), else_="").label("kind")
    micros = func.coalesce(func.sum(runs.c.cpu_canonical), 0)
    of_runs = (
        select(*place, outcome, func.count(), micros, func.max(runs.c.job))
        .join_from(runs, pilots, runs.c.pilot == c.id)
        .where(runs.c.end_us >= since_us, runs.c.end_us < until_us)
        .where(*of_pilots(wanted._replace(ended=None)))
        .group_by(*place, "kind")
    )
    with reader.reading() as connection:
        found = connection.execute(
            select(*place, *counted).where(*of_pilots(wanted)).group_by(*place)
        ).all()
        failed = None
        if sum(row[-1] for row in found) <= most:
            rows = PILOT_ROWS.where(*of_pilots(wanted._replace(failed=True)))
            failed = [pilot_row(row) for row in connection.execute(rows)]
        return EndedInPeriod(
            [EndedPilots(*row[:5]) for row in found],
            failed,
            [
                EndedRuns(site, entry, node, kind, number, int(spent), job)
                for site, entry, node, kind, number, spent, job in connection.execute(of_runs)
            ],
            _transfers(connection, wanted, most),
        )


def _transfers(
    connection: Connection, wanted: PilotFilter, most: int
) -> Counter[tuple[str, FailedTransfer]]:
    """Count transfers that failed; what a fact has of one is in its text (``fact_codec``)."""
    since_us, until_us = wanted.ended or (0, 0)
    named = or_(*(runs.c.facts.contains(f'"u":"{way} ') for way in ("input", "output")))
    query = (
        select(pilots.c.site, *RUN)
        .join_from(runs, pilots, runs.c.pilot == pilots.c.id)
        .where(runs.c.end_us >= since_us, runs.c.end_us < until_us, named)
        .where(*of_pilots(wanted._replace(ended=None)))
        .limit(most)
    )
    found = Counter[tuple[str, FailedTransfer]]()
    for site, *values in connection.execute(query):
        failed = failed_transfer(run_row(values).facts)
        if failed is not None:
            found[site, failed] += 1
    return found
