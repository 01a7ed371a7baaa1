"""Reading a ledger: what a daemon starts from, and what reports, pages and checks ask for."""

from __future__ import annotations

from sqlalchemy import func, select

from gwmond.ledger.classify import KEEP
from gwmond.ledger.errors import LedgerCorrupt
from gwmond.ledger.factory_reader import FactoryReader
from gwmond.ledger.pilot_reports import PilotReports
from gwmond.ledger.pilot_schema import pilot_seconds
from gwmond.ledger.schema import entries, problems, site_hours, site_seconds
from gwmond.ledger.site_check import site_residual
from gwmond.ledger.writes import stored_peaks, stored_tick
from gwmond.model.facts import EntryKey, Problem
from gwmond.model.hours import from_columns
from gwmond.model.totals import (
    EntryState,
    Hour,
    HourTotal,
    LedgerState,
    Residual,
    SiteKey,
    TimedProblem,
    Total,
)
from gwmond.model.units import RESOURCES

_KEY = tuple(site_seconds.c[name] for name in SiteKey._fields)


class LedgerReader(PilotReports, FactoryReader):
    """A ledger open to read beside its writer.

    What it holds of pilots is in ``PilotReports``, of factories in ``FactoryReader``.
    """

    def load(self) -> LedgerState:
        """Return all that the accounting goes on from."""
        with self._transaction() as connection:
            tick, commits = stored_tick(connection)
            totals = {}
            for row in connection.execute(select(site_seconds)):
                if not isinstance(row.whole, int) or not isinstance(row.micros, int):
                    what = f"the total of series {row.id} is not a number"
                    raise LedgerCorrupt(self.where, what, KEEP)
                key = SiteKey(row.resource, row.state, row.reason, row.site, row.entry)
                totals[key] = Total(from_columns(row.whole, row.micros), row.created)
            known = {}
            for row in connection.execute(select(entries)):
                units = {"cpu": row.provisioned_cpu, "gpu": row.provisioned_gpu}
                provisioned = {r: units[r] for r in RESOURCES if units[r] is not None}
                state = EntryState(row.first_seen, row.last_accounted, provisioned)
                known[EntryKey(row.site, row.entry)] = state
            c = pilot_seconds.c
            query = select(c.site, c.entry, c.group_name, func.min(c.created))
            groups = {
                (EntryKey(site, entry), group): created
                for site, entry, group, created in connection.execute(
                    query.group_by(c.site, c.entry, c.group_name)
                )
            }
            return LedgerState(tick, commits, totals, known, stored_peaks(connection), groups)

    def hours(self, first: Hour, last: Hour) -> list[HourTotal]:
        """Return what was spent in the hours first ... last, both included, oldest first."""
        query = (
            select(site_hours.c.hour, *_KEY, site_hours.c.whole, site_hours.c.micros)
            .join_from(site_hours, site_seconds)
            .where(site_hours.c.hour.between(first, last))
            .order_by(site_hours.c.hour, *_KEY)
        )
        with self._transaction() as connection:
            return [
                HourTotal(hour, SiteKey(*key), from_columns(whole, micros))
                for hour, *key, whole, micros in connection.execute(query)
            ]

    def problems(self, limit: int = 100) -> list[TimedProblem]:
        """Return the latest problems, newest first."""
        columns = (problems.c.time, problems.c.source, problems.c.problem, problems.c.detail)
        query = select(*columns).order_by(problems.c.id.desc()).limit(limit)
        with self._transaction() as connection:
            return [
                TimedProblem(time, Problem(source, problem, detail))
                for time, source, problem, detail in connection.execute(query)
            ]

    def check(self) -> tuple[Residual, ...]:
        """Prove, for each measure, that every total is what was pruned plus the sum of its hours.

        Reads all hours: some seconds for a year of sixty entries, and commits wait for it.
        """
        with self._transaction() as connection:
            return (site_residual(connection),)
