"""Reading a ledger: what a daemon starts from, and what reports, pages and checks ask for."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, func, select

from gwmond.facts import EntryKey, Problem
from gwmond.ledger import postgres, sqlite
from gwmond.ledger.backend import Backend
from gwmond.ledger.classify import KEEP, translate
from gwmond.ledger.errors import LedgerClosed, LedgerCorrupt
from gwmond.ledger.hours import from_columns
from gwmond.ledger.location import SqliteFile, parse
from gwmond.ledger.model import (
    Difference,
    EntryState,
    Hour,
    HourTotal,
    LedgerState,
    Residual,
    SiteKey,
    TimedProblem,
    Total,
)
from gwmond.ledger.schema import entries, problems, site_hours, site_seconds
from gwmond.ledger.writes import stored_peaks, stored_tick
from gwmond.units import RESOURCES

_KEY = tuple(site_seconds.c[name] for name in SiteKey._fields)


class LedgerReader:
    """An open ledger.  Methods may be called from any thread; calls wait for one another.

    Every method is one transaction, so it sees one state between two commits.  A failure is a
    ``LedgerError``; when its ``reopen`` is true this object is of no more use.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._mutex = threading.Lock()
        self._pid = os.getpid()
        self._unusable: str | None = None

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the ledger that a URL or path names; it may be tried again after any failure."""
        location = parse(url)
        if isinstance(location, SqliteFile):
            return cls(sqlite.open_reader(location.path))
        return cls(postgres.open_reader(location))

    @property
    def where(self) -> str:
        """The ledger's name for messages, without password."""
        return self._backend.where

    def close(self) -> None:
        """Close; never raises, harmless when repeated."""
        if os.getpid() != self._pid:
            return  # the connection is the parent's
        with self._mutex:
            self._unusable = self._unusable or "it was closed"
            self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Begin; commit at the end, or roll back and raise a ``LedgerError``."""
        backend = self._backend
        if os.getpid() != self._pid:
            what = f"process {self._pid} opened it, and this is a forked child"
            raise LedgerClosed(backend.where, what, "Open it in this process, or use the parent's.")
        with self._mutex:
            if self._unusable:
                raise LedgerClosed(backend.where, self._unusable, "Close and open it again.")
            try:
                backend.verify()
                with backend.connection.begin():
                    yield backend.connection
                backend.note()
            except Exception as exc:
                error = translate(exc, backend.where, backend.path)
                if error.reopen:
                    self._unusable = f"it failed before ({error.what})"
                if error is exc:
                    raise
                raise error from exc

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
                units = {"cpu": row.in_use_cpu, "gpu": row.in_use_gpu}
                in_use = {r: units[r] for r in RESOURCES if units[r] is not None}
                state = EntryState(row.first_seen, row.last_accounted, in_use)
                known[EntryKey(row.site, row.entry)] = state
            return LedgerState(tick, commits, totals, known, stored_peaks(connection))

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
        series = site_seconds.c
        summed = (
            select(
                site_hours.c.series,
                func.sum(site_hours.c.whole).label("whole"),
                func.sum(site_hours.c.micros).label("micros"),
            )
            .group_by(site_hours.c.series)
            .subquery()
        )
        query = select(
            *_KEY,
            series.whole - series.pruned_whole - func.coalesce(summed.c.whole, 0),
            series.micros - series.pruned_micros - func.coalesce(summed.c.micros, 0),
        ).join_from(site_seconds, summed, series.id == summed.c.series, isouter=True)
        with self._transaction() as connection:
            found = [
                Difference(SiteKey(*key), from_columns(whole, micros))
                for *key, whole, micros in connection.execute(query)
            ]
        wrong = sorted((d for d in found if d.micros), key=lambda d: -abs(d.micros))
        residual = sum(abs(d.micros) for d in wrong)
        return (Residual("site_canonical", residual, tuple(wrong[:10])),)
