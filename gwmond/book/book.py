"""The book: takes facts in, gives batches out.

Units: times are microseconds since the epoch, amounts are micros.

    book = Book(state, rules)
    book.see(now, period, pilots, lookup, complete=True)
    book.claim(now, records, lookup, complete=True)
    book.tell(records, lookup)
    book.settle(now, known, lookup)
    ledger.commit_pilots(book.batch(now, cursors)); book.stored()

A batch stays in the book until ``stored``: what could not be stored comes again with the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from gwmond.accounting.early_failure import Trial
from gwmond.accounting.pilot_evidence import CentralEvent, FileFact
from gwmond.accounting.pilot_facts import Measure, Resources
from gwmond.accounting.records import JobRecord
from gwmond.book import booking
from gwmond.book.counts import Counts
from gwmond.book.factory_facts import FactoryFacts
from gwmond.book.joining import Joining
from gwmond.book.open_pilot import OpenPilot
from gwmond.book.outcome import given_up, later_run, plain_outcome, weighed
from gwmond.book.rules import FAR_US, Lookup, Rules
from gwmond.book.shelf import Shelf
from gwmond.book.sightings import Sightings
from gwmond.book.summaries import only_runs
from gwmond.book.verdicts import decide, undecided
from gwmond.book.witnesses import Witnesses
from gwmond.facts import Cursor, EntryKey, Gap, Pilot
from gwmond.ledger.pilot_model import (
    AttemptRow,
    PilotBatch,
    PilotCorrection,
    PilotRow,
    PilotSeries,
    PilotState,
)
from gwmond.units import Resource


class Book:
    """All pilots of which something may still change, and what is to be stored."""

    def __init__(self, state: PilotState, rules: Rules) -> None:
        self.rules = rules
        self.batches = state.batches
        self._shelf = Shelf()
        self._sightings = Sightings(self._shelf, rules, state.next_id)
        self._joining = Joining(self._shelf, self._sightings, rules)
        self.files = FactoryFacts(self._shelf, self._sightings, self._joining, rules)
        self.witnesses = Witnesses(self._shelf, self._joining, rules, state.cursors)
        self._increments: Counter[tuple[int, PilotSeries]] = Counter()
        self._corrections: list[PilotCorrection] = []
        self._counts = Counts(rules.q)
        self.residual: Counter[Measure] = Counter()
        self._load(state)

    def _load(self, state: PilotState) -> None:
        for row in state.pilots:
            self._shelf.add_pilot(OpenPilot.of(row, kept_us=row.mark_us))
        self._shelf.recall_attempts(state.attempts)
        for pilot in self._shelf.pilots.values():
            pilot.note_booked()
            pilot.contact_us = max(pilot.contact_us, pilot.heard_us)
            pilot.counted = booking.counted(pilot)
            self._sightings.sizes.note_pilot(pilot)
        self.files.load(state.places)

    @property
    def pilots(self) -> Collection[OpenPilot]:
        """The pilots in memory; those that ended are for a while."""
        return self._shelf.pilots.values()

    @property
    def contradictions(self) -> Mapping[str, int]:
        """How often sources differed on a field of an attempt, so far."""
        return self._joining.contradictions

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many records could not be accounted so far, by the reason."""
        return {
            "no_startd": self._joining.homeless,
            "too_late": self._joining.late,
            **(of := self.files.left_out),
            "bad_time": self._joining.absurd + of["bad_time"],
        }

    def see(
        self,
        now_us: int,
        period_us: int,
        pilots: Iterable[Pilot],
        lookup: Lookup,
        *,
        complete: bool,
    ) -> bool:
        """Take in what collectors show; see ``Sightings.see``.

        Return whether a pilot was new although it began long ago: its jobs may have, too.
        """
        self._sightings.late = False
        self.files.watch(now_us, period_us, complete=complete)
        self._sightings.see(now_us, period_us, pilots, lookup, complete=complete)
        self._relabel(now_us, lookup)
        return self._sightings.late

    def _relabel(self, now_us: int, lookup: Lookup) -> None:
        """Book pilots that turned out to be others under their right names."""
        for pilot, identity in self._sightings.relabelled:
            self._shelf.load_whole(pilot, lookup)
            only_runs(pilot, self._joining)
            self._counts.uncount(pilot)
            self._shelf.unindex(pilot)
            self._take(pilot, booking.relabel(pilot, identity, self.rules), now_us)
            self._shelf.index(pilot)
        self._sightings.relabelled.clear()

    def claim(
        self, now_us: int, records: Sequence[JobRecord], lookup: Lookup, *, complete: bool
    ) -> None:
        """Take in the claims that slots show; ``complete``: all there are."""
        self.tell(records, lookup)
        self._shelf.show(now_us, records, complete=complete)

    def tell(self, records: Sequence[JobRecord], lookup: Lookup) -> None:
        """Take in records of jobs."""
        self._joining.tell(records, lookup)

    def report(
        self,
        facts: Sequence[FileFact],
        lookup: Lookup,
        expected: Mapping[str, Resources] = MappingProxyType({}),
    ) -> None:
        """Take in what files tell; ``expected``, remembered: the size of an entry's pilots."""
        self._sightings.sizes.expect(expected)
        self.files.take(facts, lookup)
        self.witnesses.take([of for of in facts if isinstance(of, CentralEvent)], lookup)

    def settle(
        self, now_us: int, known_us: int, lookup: Lookup, silent: Collection[str] = ()
    ) -> None:
        """Decide what can be decided, and book what is settled.

        ``known_us``: attempts that began before are known.  ``silent``: schedds whose records
        are missing for now.
        """
        self._relabel(now_us, lookup)
        self.witnesses.settle(now_us, known_us, lookup)
        self.files.settle(now_us, lookup)
        self._relabel(now_us, lookup)
        due = list(self._shelf.pilots.values())
        while due:  # what is decided on one pilot may tell something of another
            for pilot in due:
                if not pilot.closed:
                    self._settle(pilot, now_us, known_us, lookup, silent)
            due = [of for of in self._shelf.pilots.values() if of.from_us < FAR_US and of.known_us]
        self._counts.remove(self._joining.removed)
        self._joining.removed.clear()

    def _settle(
        self, pilot: OpenPilot, now_us: int, known_us: int, lookup: Lookup, silent: Collection[str]
    ) -> None:
        if not self._due(pilot, now_us, known_us):
            self._close(pilot, now_us)
            return
        if pilot.implied:  # its life depends on all of its attempts
            self._shelf.load_whole(pilot, lookup)
        self._decide(pilot, now_us, known_us, silent)
        if pilot.implied:
            booking.imply(pilot, self.rules.q)
            quiet = known_us >= pilot.contact_us + self.rules.quiet_us
            if not quiet and not pilot.known_us:
                return
            if quiet and pilot.end_us is None:
                pilot.end_us, pilot.ended = pilot.contact_us, "assumed"
        booking.doubt(pilot)
        entries = booking.book(
            pilot, known_us, self.rules, lambda of: self._shelf.load_whole(of, lookup)
        )
        pilot.booked_at_us = now_us
        self._take(pilot, entries, now_us)
        self._counts.count(pilot)
        self._close(pilot, now_us)

    def judge(self, now_us: int, trials: Iterable[Trial]) -> None:
        """Decide on early failures, by what all trials say."""
        decide(self._shelf, now_us, trials, self.rules)

    @property
    def open_groups(self) -> set[str]:
        """Groups of jobs with early failures that are not judged."""
        return {of.merged.job_group or "" for of in undecided(self._shelf)}

    def batch(
        self, now_us: int, cursors: Iterable[Cursor] = (), gaps: Iterable[Gap] = ()
    ) -> PilotBatch:
        """Return all that is not stored yet."""
        attempts: list[AttemptRow] = []
        rows: dict[int, PilotRow] = {}
        for pilot in self._shelf.pilots.values():
            changed = [of for of in pilot.attempts.values() if of.dirty]
            if pilot.dirty or changed:
                rows[pilot.id] = pilot.row()
            attempts += [of.row() for of in changed]
        return PilotBatch(
            before=self.batches,
            now_us=now_us,
            pilots=tuple(rows.values()),
            attempts=tuple(attempts),
            moved=tuple(sorted(self._shelf.moved)),
            heard=self._shelf.heard(rows),
            increments={of: micros for of, micros in self._increments.items() if micros},
            corrections=tuple(self._corrections),
            counts=self._counts.changes(),
            cursors=(*cursors, *self.witnesses.cursors()),
            gaps=tuple(gaps),
            places=self.files.rows(),
        )

    def stored(self) -> None:
        """Say that the last batch is in the ledger; forget what need not be in memory."""
        self.batches += 1
        self._increments.clear()
        self._corrections.clear()
        self._counts.clear()
        self.witnesses.stored()
        self.files.stored()
        self._shelf.stored()
        for pilot in list(self._shelf.pilots.values()):
            pilot.dirty = False
            for attempt in pilot.attempts.values():
                attempt.dirty = False
            if pilot.closed:
                self._shelf.drop_pilot(pilot)
            else:
                self._drop_old(pilot)

    def unsettled(self) -> dict[tuple[Resource, EntryKey, str], int]:
        """Return the canonical micros that are not settled yet, by resource, entry and group."""
        return booking.unsettled(self._shelf.pilots.values(), self.rules.q)

    def _due(self, pilot: OpenPilot, now_us: int, known_us: int) -> bool:
        """Return whether booking a pilot may change anything."""
        if pilot.from_us < FAR_US or pilot.booked is None:
            return True
        attempts = pilot.attempts.values()
        limit = min(known_us, pilot.until_us)
        if pilot.end_us is not None and not any(of.is_open for of in attempts):
            return limit > pilot.mark_us or (pilot.counted is None and known_us >= pilot.end_us)
        if now_us < pilot.booked_at_us + self.rules.refresh_us:
            return False
        pilot.booked_at_us = now_us
        guard = self.rules.start_guard_us
        running = [of for of in attempts if of.is_open and not of.merged.ending.over]
        if any(of.is_open and (of.merged.ending.over or of.gone) for of in attempts):
            return True
        if pilot.end_us is not None:
            return True
        return limit > pilot.mark_us and all(of.start_us - guard > pilot.mark_us for of in running)

    def _decide(
        self, pilot: OpenPilot, now_us: int, known_us: int, silent: Collection[str]
    ) -> None:
        for attempt in list(pilot.attempts.values()):
            if attempt.outcome is not None and pilot.from_us > (attempt.end_us or 0):
                continue
            of_job = self._shelf.jobs[attempt.key.job]
            later = later_run(attempt, of_job)
            if (fact := given_up(attempt, later, now_us, self.rules, silent)) is not None:
                self._joining.add(attempt.key.job, [fact])
                of_job = self._shelf.jobs[attempt.key.job]
            plain = plain_outcome(attempt, later, now_us, known_us, self.rules)
            outcome, result = weighed(attempt, plain)
            if (outcome, result) != (attempt.outcome, attempt.result):
                attempt.dirty = True
                if outcome != attempt.outcome:
                    pilot.touch(attempt.start_us)
                attempt.outcome, attempt.result = outcome, result

    def _take(self, pilot: OpenPilot, entries: Iterable[booking.Entry], now_us: int) -> None:
        for entry in entries:
            if entry.cause:
                self._corrections.append(
                    PilotCorrection(
                        now_us, pilot.id, entry.hour, entry.series, entry.micros, entry.cause
                    )
                )
            else:
                self._increments[entry.hour, entry.series] += entry.micros

    def _close(self, pilot: OpenPilot, now_us: int) -> None:
        """Close a pilot of which nothing more is expected, and prove that it is booked whole."""
        end_us = pilot.end_us
        if end_us is None or pilot.mark_us < end_us or pilot.counted is None:
            return
        if any(of.is_open for of in pilot.attempts.values()):
            return
        if not pilot.implied and now_us < end_us + self.rules.linger_us:
            return
        self.residual.update(booking.residual(pilot, self.rules))
        pilot.closed, pilot.dirty = True, True

    def _drop_old(self, pilot: OpenPilot) -> None:
        limit = pilot.mark_us - self.rules.linger_us
        for attempt in list(pilot.attempts.values()):
            end_us = attempt.end_us
            if end_us is not None and end_us <= limit and not attempt.is_open:
                self._shelf.drop_attempt(attempt)
                pilot.kept_us, pilot.ran_jobs = max(pilot.kept_us, end_us), True
