"""Reconciles the last day once an hour, beside the polls.

A thread of its own reads the ledger through a connection of its own, so that no poll and no commit
waits for it.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor

from gwmond.ledger.database.errors import LedgerError
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.factory.reconciliation import Reconciliation
from gwmond.model.factory.totals import FactoryKind, FactoryTotalKey
from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.reports.reconcile.reconcile import gather

LENGTH_US = 24 * HOUR_US
LATE_US = HOUR_US
"""Files are read, and time is settled, a while after it was spent."""


def due(now_us: int) -> Period:
    """Return the last 24 complete hours that ended ``LATE_US`` ago.

    >>> due(100 * HOUR_US + 5) == Period(75 * HOUR_US, 99 * HOUR_US)
    True
    """
    until_us = (now_us - LATE_US) // HOUR_US * HOUR_US
    return Period(until_us - LENGTH_US, until_us)


class Reconciler:
    """The latest reconciliation of a ledger; call it from one thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: Future[Reconciliation] | None = None
        self._begun: Period | None = None
        self.shown: Reconciliation | None = None
        self._without_lines: float | None = None

    def step(self, now: float, factory: Collection[FactoryTotalKey]) -> list[Problem]:
        """Take the finished part, begin the next; ``now`` is in epoch seconds.

        ``factory``: which numbers are stored; without any line there is nothing to do.
        """
        problems = [*self._take(), *self._lineless(now, {kind for _, _, kind in factory})]
        period = due(round(now * SECOND_US))
        summarised = any(kind is FactoryKind.SUMMARY_PILOTS for _, _, kind in factory)
        if summarised and self._under_way is None and period != self._begun:
            self._begun = period
            self._pool = self._pool or ThreadPoolExecutor(1, "reconcile")
            self._under_way = self._pool.submit(self._gather, period)
        return problems

    def _lineless(self, now: float, kinds: Collection[FactoryKind]) -> list[Problem]:
        """Return that pilots end in the factory's event logs, and no line comes for a day."""
        if FactoryKind.QUEUE_ENDED not in kinds or FactoryKind.SUMMARY_PILOTS in kinds:
            self._without_lines = None
            return []
        self._without_lines = self._without_lines or now
        if now - self._without_lines < LENGTH_US // SECOND_US:
            return []
        return [Problem("factory", ProblemName.NO_COMPLETED_JOBS, "no line for a day")]

    def wait(self) -> None:
        """Wait for what is under way."""
        if self._under_way is not None:
            self._under_way.exception()

    def _take(self) -> list[Problem]:
        future = self._under_way
        if future is None or not future.done():
            return []
        self._under_way = None
        try:
            self.shown = future.result()
        except LedgerError as error:
            self.shown = None
            return [Problem("ledger", ProblemName.RECONCILE, str(error))]
        return []

    def _gather(self, period: Period) -> Reconciliation:
        with LedgerReader.open(self._url) as ledger:
            return gather(ledger, period, period.until_us)
