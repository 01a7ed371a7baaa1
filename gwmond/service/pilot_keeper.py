"""Keeps the book of pilots in the ledger: what is shown is what is stored.

While the ledger cannot be written, what waits to be stored stays in memory and counters stand
still.  Nothing new is taken in then (``ready``), so that memory stays bounded, and no record is
lost: the histories and files keep them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import structlog

from gwmond.config.settings import Config
from gwmond.ledger.errors import LedgerConflict, LedgerError, LedgerRefused
from gwmond.ledger.pilot_codec import identity
from gwmond.ledger.store import Ledger
from gwmond.model.factory_totals import FactoryTotalKey
from gwmond.model.facts import Cursor, EntryRequest, Gap, Pilot
from gwmond.model.names import Names
from gwmond.model.pilot_evidence import FileFact
from gwmond.model.pilot_facts import Resources
from gwmond.model.records import JobRecord
from gwmond.model.snapshot import PilotTime, SilentPilot
from gwmond.model.stored_pilots import (
    CountKey,
    PilotBatch,
    PilotSeries,
    PilotState,
    Shown,
)
from gwmond.model.suspects import Suspect
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.factory_numbers import FactoryNumbers
from gwmond.pilots.verdict_check import Verdicts
from gwmond.pilots.verdicts import slice_us, suspicions
from gwmond.service.waiting_periods import later_us, rules

log = structlog.get_logger()
_JUDGE_EVERY_US = 60 * SECOND_US


class PilotKeeper:
    """The daemon's book, and what is stored of it."""

    def __init__(self, config: Config, names: Names | None = None) -> None:
        """``names`` says which names of places are kept apart; None: all, as of an import."""
        self._rules = rules(config)
        self._names = names
        self._later_us = later_us(config)
        self._silent: frozenset[str] = frozenset()
        self._book: PilotAccounting | None = None
        self._ledger: Ledger | None = None
        self._cursors: dict[tuple[str, str], Cursor] = {}
        self._moved_on: set[tuple[str, str]] = set()
        self._gaps: list[Gap] = []
        self._net: dict[PilotSeries, int] = {}
        self._numbers: dict[CountKey, int] = {}
        self._shown: dict[PilotSeries, Shown] = {}
        self._counted: dict[CountKey, Shown] = {}
        self._factory = FactoryNumbers()
        self._factory_shown: dict[FactoryTotalKey, Shown] = {}
        self._judged_us = 0
        self._suspected_in = 0
        self.suspects: tuple[Suspect, ...] = ()
        self._known_us: int | None = None
        self._settled_us: int | None = None  # what was settled then is not stored yet
        self._failed = False  # the last attempt to store it

    @property
    def book(self) -> PilotAccounting | None:
        """The book, None before a ledger was opened."""
        return self._book

    @property
    def ready(self) -> bool:
        """Whether facts may be told: the ledger is there to look up what is not in memory.

        Not while a batch waits that could not be stored.
        """
        return self._ledger is not None and self._book is not None and not self._failed

    @property
    def cursors(self) -> tuple[Cursor, ...]:
        """How far each source's records have been taken."""
        return tuple(self._cursors[cursor] for cursor in sorted(self._cursors))

    def cursor(self, source: str, kind: str) -> Cursor | None:
        """Return how far a source's records have been taken."""
        return self._cursors.get((identity(source), kind))

    def attach(self, ledger: Ledger | None) -> None:
        """Use a ledger, or none; raises LedgerError.

        The book in memory goes on if the ledger holds what it has stored, else it is made anew.
        """
        if ledger is self._ledger:
            return
        self._ledger = None
        if ledger is None:
            return
        state = ledger.load_pilots()
        book = self._book
        if book is not None and state.batches == book.batches + 1:
            book.stored()  # the answer to the last commit was lost, but not the commit
            self._clear()
        if book is None or state.batches != book.batches:
            self._book = PilotAccounting(state, self._rules, self._names)
            self._cursors = dict(state.cursors)
            self._clear()
        self._take_totals(state)
        self._ledger = ledger

    def retry(self) -> None:
        """Store what could not be stored before, if anything waits; raises LedgerError."""
        if self._ledger is not None and self._failed:
            self.commit()

    def _clear(self) -> None:
        """Nothing waits any more, besides what is in the book."""
        self._moved_on.clear()
        self._gaps.clear()
        self._factory.clear()
        self._settled_us = None
        self._failed = False

    def _take_totals(self, state: PilotState) -> None:
        self._net, self._numbers = dict(state.net), dict(state.numbers)
        self._shown, self._counted = dict(state.shown), dict(state.counted)
        self._factory_shown = dict(state.factory)

    def see(self, now_us: int, period_us: int, pilots: Iterable[Pilot], *, complete: bool) -> bool:
        """Take in what collectors show; see ``PilotAccounting.see``.  Raises LedgerError."""
        book, ledger = self._both()
        return book.see(now_us, period_us, pilots, ledger, complete=complete)

    def check(self, now_us: int, before: Verdicts, pilots: Iterable[Pilot]) -> None:
        """Let pilots that have registered since ``before`` check what that poll said."""
        book, _ = self._both()
        book.check(now_us, before, pilots)

    def note_silence(self, before_us: int | None) -> None:
        """Take in before when a pilot was heard of last that is silent."""
        book, _ = self._both()
        book.silence.note(before_us)

    def claim(self, now_us: int, records: Sequence[JobRecord], *, complete: bool) -> None:
        """Take in claims that slots show; raises LedgerError."""
        book, ledger = self._both()
        book.claim(now_us, records, ledger, complete=complete)

    def tell(self, records: Sequence[JobRecord], cursor: Cursor | None, gap: Gap | None) -> None:
        """Take in records, and how far their source has been read; raises LedgerError."""
        book, ledger = self._both()
        book.tell(records, ledger)
        if gap is not None:
            self._gaps.append(gap)
        self._move_on(cursor)

    def report(
        self,
        facts: Sequence[FileFact],
        cursor: Cursor | None,
        expected: Mapping[str, Resources] = MappingProxyType({}),
    ) -> None:
        """Take in what GlideinWMS's files tell of pilots; raises LedgerError."""
        book, ledger = self._both()
        self._factory.take(book.report(facts, ledger, expected))
        self._move_on(cursor)

    @property
    def factory(self) -> Collection[FactoryTotalKey]:
        """Which of the factory's own numbers are stored."""
        return self._factory_shown.keys()

    @property
    def undated(self) -> int:
        """How many records of factories are in none of their numbers: no time, or no entry."""
        return self._factory.undated

    def revise(self, entries: Collection[str] = ()) -> Iterator[int]:
        """Change what was assumed, some pilots at a time; see ``PilotAccounting.revise``.

        After some the book is to be settled.  Raises LedgerError.
        """
        book, ledger = self._both()
        yield from book.revise(ledger, entries)

    def watch(self, requests: Sequence[EntryRequest], hour: int, seconds: float) -> None:
        """Take in what ads of entries say; it holds for these seconds of an hour."""
        self._factory.watch(requests, hour, seconds)

    def expect(self, expected: Mapping[str, Resources]) -> None:
        """Remember how large entries' pilots are expected to be; raises LedgerError."""
        book, ledger = self._both()
        book.report((), ledger, expected)

    def _move_on(self, cursor: Cursor | None) -> None:
        if cursor is None:
            return
        cursor = cursor._replace(source=identity(cursor.source))  # as it comes back from the ledger
        if cursor != self._cursors.get((cursor.source, cursor.kind)):
            self._cursors[cursor.source, cursor.kind] = cursor
            self._moved_on.add((cursor.source, cursor.kind))

    def settle(
        self,
        now_us: int,
        known_us: int,
        silent: Collection[str],
        *,
        verdicts: bool = True,
        store: bool = True,
    ) -> None:
        """Settle what can be, and ``store`` it; raises LedgerError.

        What is not stored now is to be stored with the site time of the same poll.
        ``verdicts`` on early failures are not to fall as long as evidence of any time may still
        come.
        """
        book, ledger = self._both()
        self._silent = frozenset(silent)
        book.settle(now_us, known_us, ledger, silent)
        judged = verdicts and now_us - self._judged_us >= _JUDGE_EVERY_US
        if judged and book.open_groups:
            self._judged_us = now_us
            book.judge(now_us, known_us, ledger)
            book.settle(now_us, known_us, ledger, silent)
        self._known_us = known_us or self._known_us
        self._settled_us = now_us
        if store:
            self.commit()

    def suspect(self) -> None:
        """Look for places where jobs succeed far too soon, once a slice; raises LedgerError."""
        _, ledger = self._both()
        known_us, number = self._known_us or 0, slice_us(self._rules)
        if known_us and known_us // number != self._suspected_in:
            self._suspected_in = known_us // number
            self.suspects = suspicions(known_us, ledger, self._rules)

    def shown(self) -> PilotTime | None:
        """Return what is to be shown; None before a ledger was read."""
        book = self._book
        if book is None:
            return None
        return PilotTime(
            shown=dict(self._shown),
            counted=dict(self._counted),
            unsettled=book.unsettled(),
            waits=book.waits(self._silent, self._later_us),
            residual=dict(book.residual),
            contradictions=dict(book.contradictions),
            known_us=self._known_us,
            factory=dict(self._factory_shown),
            suspects=self.suspects,
            silent=tuple(
                SilentPilot(
                    pilot.identity.name, pilot.identity.key, pilot.identity.group, pilot.contact_us
                )
                for pilot in book.silent()
            ),
        )

    def _both(self) -> tuple[PilotAccounting, Ledger]:
        if self._book is None or self._ledger is None:
            raise ValueError("no ledger is attached")
        return self._book, self._ledger

    def commit(self) -> None:
        """Store alone what was settled; raises LedgerError."""
        _, ledger = self._both()
        batch = self.batch()
        if batch is None:
            return
        try:
            try:
                ledger.commit_pilots(batch)
            except LedgerRefused as error:
                batch = self.without_refused(batch)
                if batch is None:
                    raise error from None
                ledger.commit_pilots(batch)
        except LedgerError as error:
            self.failed(error)
            raise
        self.stored(batch)

    def batch(self) -> PilotBatch | None:
        """Return what was settled and is not stored, None where there is nothing to store."""
        if self._book is None or self._ledger is None or self._settled_us is None:
            return None
        moved_on = [self._cursors[source] for source in sorted(self._moved_on)]
        batch = self._book.batch(self._settled_us, moved_on, self._gaps)
        return batch._replace(factory=self._factory.changes())

    def stored(self, batch: PilotBatch) -> None:
        """Take note that a batch was stored: counters follow."""
        if self._book is not None:
            self._book.stored()
        self._clear()
        self._raise(batch)

    def passed(self) -> None:
        """Take note that site time was stored alone."""
        if self._book is not None:
            self._book.batches += 1

    def failed(self, error: LedgerError) -> None:
        """Take note that a batch could not be stored: it waits."""
        self._failed = True
        if error.reopen or isinstance(error, LedgerConflict):
            self._ledger = None

    def without_refused(self, batch: PilotBatch) -> PilotBatch | None:
        """Return a batch that was refused without what cannot be stored, None if all could be.

        Each pilot is logged once: it is set aside then, until gwmond is started anew.
        """
        book, ledger = self._both()
        found = ledger.refused_parts(book.divide(batch))
        if not found:
            return None
        rows = {row.id: row.identity for row in batch.pilots}
        for part, why in found.items():
            who = rows.get(part) if isinstance(part, int) else None
            log.error(
                "the ledger cannot store a pilot: it is left out; please report this",
                pilot=who.name if who is not None else part,
                entry=who.key.entry if who is not None else None,
                site=who.key.site if who is not None else None,
                cause=why,
            )
        book.leave_out(found)
        return self.batch()

    def _raise(self, batch: PilotBatch) -> None:
        """Let counters go up to what is stored; one never falls."""
        created = batch.now_us / SECOND_US
        changed: set[PilotSeries] = set()
        for (_, series), micros in batch.increments.items():
            self._net[series] = self._net.get(series, 0) + micros
            changed.add(series)
        for correction in batch.corrections:
            series = correction.series
            self._net[series] = self._net.get(series, 0) + correction.micros
            changed.add(series)
        for series in changed:
            before = self._shown.get(series, Shown(0, created))
            self._shown[series] = before._replace(micros=max(before.micros, self._net[series]))
        for key, number in batch.counts.items():
            self._numbers[key] = self._numbers.get(key, 0) + number
            before = self._counted.get(key, Shown(0, created))
            self._counted[key] = before._replace(micros=max(before.micros, self._numbers[key]))
        for factory_key, more in batch.factory.items():
            before = self._factory_shown.get(factory_key.total, Shown(0, created))
            self._factory_shown[factory_key.total] = before._replace(micros=before.micros + more)
