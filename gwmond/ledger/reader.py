"""Reading a ledger: what a daemon starts from, and what reports, pages and checks ask for."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from gwmond.ledger import counters, tables
from gwmond.ledger.counters import Kind
from gwmond.ledger.pilot_reader import late_runs, open_pilots
from gwmond.ledger.pilot_reports import PilotReports
from gwmond.ledger.schema import problems
from gwmond.model.batch import LedgerState, TimedProblem
from gwmond.model.elapsed import Tick
from gwmond.model.factory_totals import FactoryKey
from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName
from gwmond.model.totals import Hour, HourTotal


class LedgerReader(PilotReports):
    """A ledger open to read beside its writer; what it holds of pilots is in ``PilotReports``."""

    def load(self, *, pilots: bool = True) -> LedgerState:
        """Return all that the accounting goes on from; without ``pilots`` only that of sites."""
        with self._reading() as connection:
            stored = tables.stored_state(connection)
            state = LedgerState(
                batches=stored.batches,
                tick=stored.tick,
                totals=counters.stored_totals(connection),
                entries=tables.stored_entries(connection),
                peaks=tables.stored_peaks(connection),
                next_id=stored.next_id,
            )
            if not pilots:
                return state
            rows = tuple(open_pilots(connection))
            return state._replace(
                pilots=rows,
                runs=tuple(late_runs(connection, [row.id for row in rows])),
                cursors=tables.stored_cursors(connection),
                places=tables.open_places(connection),
                experiments=tables.open_experiments(connection),
            )

    def tick(self) -> Tick | None:
        """Return up to when site time is accounted; None before the first poll."""
        with self._reading() as connection:
            return tables.stored_state(connection).tick

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
                TimedProblem(time, Problem(source, ProblemName(problem), detail))
                for time, source, problem, detail in connection.execute(query)
            ]
