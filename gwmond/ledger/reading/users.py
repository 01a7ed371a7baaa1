"""Runs of users' jobs, counted by what became of them and where.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from sqlalchemy import and_, case, func, literal, select

from gwmond.ledger.database.schema import pilots, runs
from gwmond.ledger.reading.reader import LedgerReader, of_pilots, of_user
from gwmond.model.facts import Place
from gwmond.model.pilots.stored_pilots import EndedOfUser, GoingOn, PilotFilter
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.model.times import Period
from gwmond.pilots.early.comparison import Result


def ended_of_users(
    reader: LedgerReader, period: Period, place: Place, user: str
) -> list[EndedOfUser]:
    """Count runs that ended in a period at a place: of a user (with a domain, or of any), or all.

    Without those that stand for what is known from statistics only.
    """
    c, none = runs.c, literal("")
    where = pilots.c.site, pilots.c.entry
    keys = [
        c.user_name.label("of"),
        *(column if user else none for column in where),
        func.coalesce(c.category, "").label("kind"),
        (func.coalesce(c.outcome, "") if user else none).label("end"),
    ]
    early = func.sum(case((c.result == Result.FAILED_EARLY.value, 1), else_=0))
    spent = (func.coalesce(func.sum(x), 0) for x in (c.cpu_canonical, c.gpu_canonical))
    query = (
        select(*keys, func.count(), early, *spent, func.max(c.job))
        .join_from(runs, pilots, c.pilot == pilots.c.id)
        .where(c.end_us >= period.since_us, c.end_us < period.until_us, c.user_name != "")
        .where(func.coalesce(c.outcome, "") != SUMMARISED)
        .where(*of_pilots(PilotFilter(place=place)), *([of_user(user)] if user else []))
        .group_by("of", *(where if user else ()), "kind", "end")
    )
    with reader.reading() as connection:
        return [
            EndedOfUser(who, site, entry, kind, end, number, failed, int(cpu), int(gpu), job)
            for who, site, entry, kind, end, number, failed, cpu, gpu, job in connection.execute(
                query
            )
        ]


def going_on(reader: LedgerReader, place: Place, user: str) -> list[GoingOn]:
    """Count a user's runs that go on, by entry; of pilots of which no end is known."""
    c = runs.c
    keys = c.user_name, pilots.c.site, pilots.c.entry
    query = (
        select(*keys, func.count(), func.sum(c.cores), func.min(c.start_us))
        .join_from(runs, pilots, c.pilot == pilots.c.id)
        .where(and_(c.open == 1, c.end_us.is_(None), pilots.c.end_us.is_(None)), of_user(user))
        .where(*of_pilots(PilotFilter(place=place)))
        .group_by(*keys)
    )
    with reader.reading() as connection:
        return [GoingOn(*row) for row in connection.execute(query)]
