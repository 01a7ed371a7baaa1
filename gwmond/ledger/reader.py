"""Reading a ledger: what a daemon starts from, and what reports, pages and checks ask for."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from gwmond.ledger import counters
from gwmond.ledger.counters import Kind
from gwmond.ledger.pilot_reader import stored_verdicts
from gwmond.ledger.pilot_reports import PilotReports
from gwmond.ledger.schema import entries, problems
from gwmond.ledger.writes import stored_peaks, stored_state
from gwmond.model.factory_totals import FactoryKey
from gwmond.model.facts import EntryKey, Problem
from gwmond.model.totals import EntryState, Hour, HourTotal, LedgerState, TimedProblem, Total
from gwmond.model.units import RESOURCES


class LedgerReader(PilotReports):
    """A ledger open to read beside its writer; what it holds of pilots is in ``PilotReports``."""

    def load(self) -> LedgerState:
        """Return all that the accounting goes on from."""
        with self._reading() as connection:
            stored = stored_state(connection)
            totals = {
                counters.site_key(known.labels): Total(known.total, known.created)
                for known in counters.stored_series(connection, Kind.SITE)
            }
            states = {}
            for row in connection.execute(select(entries)):
                units = {"cpu": row.provisioned_cpu, "gpu": row.provisioned_gpu}
                provisioned = {r: units[r] for r in RESOURCES if units[r] is not None}
                state = EntryState(row.first_seen, row.last_accounted, provisioned)
                states[EntryKey(row.site, row.entry)] = state
            groups: dict[tuple[EntryKey, str], float] = {}
            for known in counters.stored_series(connection, Kind.PILOT):
                *_, site, entry, group, _ = known.labels
                at = EntryKey(site, entry), group
                groups[at] = min(known.created, groups.get(at, known.created))
            return LedgerState(
                stored.tick,
                stored.batches,
                totals,
                states,
                stored_peaks(connection),
                groups,
                stored_verdicts(connection),
            )

    def hours(self, first: Hour, last: Hour) -> list[HourTotal]:
        """Return what was spent in the hours first ... last, both included, oldest first."""
        with self._reading() as connection:
            return sorted(
                HourTotal(hour, counters.site_key(labels), micros)
                for hour, labels, micros in counters.hour_rows(connection, Kind.SITE, first, last)
            )

    def factory_hours(self, first: Hour, last: Hour) -> Mapping[FactoryKey, int]:
        """Return factories' numbers of the hours first ... last, both included.

        What is missing was not reported: no file of that time was read, or nothing happened.
        """
        with self._reading() as connection:
            return {
                FactoryKey(hour, *counters.factory_key(labels)): number
                for hour, labels, number in counters.hour_rows(
                    connection, Kind.FACTORY, first, last
                )
            }

    def problems(self, limit: int = 100) -> list[TimedProblem]:
        """Return the latest problems, newest first."""
        columns = (problems.c.time, problems.c.source, problems.c.problem, problems.c.detail)
        query = select(*columns).order_by(problems.c.id.desc()).limit(limit)
        with self._transaction() as connection:
            return [
                TimedProblem(time, Problem(source, problem, detail))
                for time, source, problem, detail in connection.execute(query)
            ]
