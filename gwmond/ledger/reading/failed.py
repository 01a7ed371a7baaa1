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
from gwmond.model.pilot_life import Category, RunKey, Validation
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotRow
from gwmond.model.runs.phases import FailedTransfer, failed_transfer
from gwmond.model.runs.run_facts import Move, Source
from gwmond.model.times import Period
from gwmond.pilots.early.comparison import Result

NOT_JUDGED = "not judged yet"
"""Stands for the outcome of a run that failed early, as long as no verdict has decided whose
fault that was."""


BLAMED = runs.c.category == Category.MISCONFIGURATION_BADPUT.value
_UNJUDGED = and_(runs.c.category.is_(None), runs.c.result == Result.FAILED_EARLY.value)
FAILED_EARLY = or_(BLAMED, _UNJUDGED)
OUTCOME = case((BLAMED, runs.c.outcome), (_UNJUDGED, NOT_JUDGED), else_="")
"""As ``EndedRuns.outcome``."""
TRANSFER_FAILED = or_(*(runs.c.facts.contains(f'"u":"{way} ') for way in ("input", "output")))
"""Facts have it in their text (``fact_codec``)."""
VALIDATED = or_(pilots.c.validation != Validation.UNKNOWN.value, pilots.c.ran_jobs != 0)
"""It is known whether validation failed."""

_AND = "\n"
"""Stands between two names: neither has it (``sources.htcondor.ads.clean``)."""


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
    empty: all others, of which no ``job`` is named.  ``job``: of one of the runs; and its user.
    """

    site: str
    entry: str
    node: str
    outcome: str
    runs: int
    micros: int
    job: str
    user: str


class Moved(NamedTuple):
    """What a plugin transferred for a run; ``micros``: canonical time of CPUs that is settled."""

    move: Move
    run: RunKey
    user: str
    site: str
    micros: int


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
        .where(VALIDATED)
        .group_by(c.group_name, c.entry, "of")
    )
    with reader.reading() as connection:
        return Counter({(g, e, f): n for g, e, f, n in connection.execute(query)})


def ended_within(reader: LedgerReader, choice: PilotFilter, most: int) -> EndedInPeriod:
    """Count what ended in the period ``choice.ended``, on pilots of a site, entry and group."""
    assert choice.ended is not None
    c, place = pilots.c, (pilots.c.site, pilots.c.entry, pilots.c.node)
    counted = func.count(), *(func.sum(case((term, 1), else_=0)) for term in (~VALIDATED, FAILED))
    since_us, until_us = choice.ended
    outcome = OUTCOME.label("kind")
    micros = func.coalesce(func.sum(runs.c.cpu_canonical), 0)
    failed_job = runs.c.job + _AND + runs.c.user_name  # together, so that both are of one run
    example = func.max(case((FAILED_EARLY, failed_job), else_=_AND))
    of_runs = (
        select(*place, outcome, func.count(), micros, example)
        .join_from(runs, pilots, runs.c.pilot == c.id)
        .where(runs.c.end_us >= since_us, runs.c.end_us < until_us)
        .where(*of_pilots(choice._replace(ended=None)))
        .group_by(*place, "kind")
    )
    with reader.reading() as connection:
        ended = connection.execute(
            select(*place, *counted).where(*of_pilots(choice)).group_by(*place)
        ).all()
        failed = None
        if sum(row[-1] for row in ended) <= most:
            rows = PILOT_ROWS.where(*of_pilots(choice._replace(failed=True)))
            failed = [pilot_row(row) for row in connection.execute(rows)]
        return EndedInPeriod(
            [EndedPilots(*row[:5]) for row in ended],
            failed,
            [
                EndedRuns(site, entry, node, kind, number, int(spent), *job.split(_AND))
                for site, entry, node, kind, number, spent, job in connection.execute(of_runs)
            ],
            _transfers(connection, choice, most),
        )


def moved_within(
    reader: LedgerReader, choice: PilotFilter, period: Period, most: int
) -> tuple[list[Moved], int]:
    """Return what plugins transferred for runs of a place in a period, and since when.

    Of more than ``most`` runs the latest.
    """
    c = runs.c
    begun = c.start_us < period.until_us, or_(c.end_us.is_(None), c.end_us >= period.since_us)
    query = (
        select(pilots.c.site, *RUN)
        .join_from(runs, pilots, c.pilot == pilots.c.id)
        .where(*begun, c.facts.contains(f'"s":"{Source.TRANSFERS}"'))
        .where(*of_pilots(choice._replace(ended=None)))
        .order_by(c.start_us.desc())
        .limit(most)
    )
    found, since_us, number = list[Moved](), period.since_us, 0
    with reader.reading() as connection:
        for site, *values in connection.execute(query):
            row, number = run_row(values), number + 1
            micros = row.settled.get(("cpu", "canonical"), 0)
            moves = (move for fact in row.facts for move in fact.moves)
            found += [Moved(move, row.key, row.user, site, micros) for move in moves]
            if number == most:
                since_us = max(since_us, row.start_us)
    inside = (one for one in found if since_us <= one.move.end_us < period.until_us)
    return list(inside), since_us


def _transfers(
    connection: Connection, choice: PilotFilter, most: int
) -> Counter[tuple[str, FailedTransfer]]:
    """Count transfers that failed."""
    since_us, until_us = choice.ended or (0, 0)
    query = (
        select(pilots.c.site, *RUN)
        .join_from(runs, pilots, runs.c.pilot == pilots.c.id)
        .where(runs.c.end_us >= since_us, runs.c.end_us < until_us, TRANSFER_FAILED)
        .where(*of_pilots(choice._replace(ended=None)))
        .limit(most)
    )
    transfers = Counter[tuple[str, FailedTransfer]]()
    for site, *values in connection.execute(query):
        failed = failed_transfer(run_row(values).facts)
        if failed is not None:
            transfers[site, failed] += 1
    return transfers
