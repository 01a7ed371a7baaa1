"""The book: takes facts in, gives batches out.

Units: times are microseconds since the epoch, amounts are micros.

    book = PilotAccounting(state, rules)
    book.see(now, period, pilots, lookup, complete=True)
    book.claim(now, records, lookup, complete=True)
    book.tell(records, lookup)
    book.settle(now, known, lookup)
    ledger.commit(book.batch(now, cursors)); book.stored()

A batch stays in the book until ``stored``: what could not be stored comes again with the next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from gwmond.model.batch import Batch, LedgerState, Part, Parts
from gwmond.model.facts import Cursor, EntryKey, Gap, Pilot
from gwmond.model.names import Names
from gwmond.model.pilot_evidence import CentralEvent, FileFact
from gwmond.model.pilot_facts import Assumption, Measure, Resources
from gwmond.model.pilot_sources import replace
from gwmond.model.problem_names import ProblemName
from gwmond.model.records import JobRecord
from gwmond.model.stored_pilots import AttemptRow, PilotRow
from gwmond.model.units import Resource
from gwmond.model.waits import Wait
from gwmond.pilots import posting
from gwmond.pilots.ad_times import Silence, is_silent
from gwmond.pilots.collector_ads import CollectorAds
from gwmond.pilots.experiments import Experiments
from gwmond.pilots.factory_facts import FactoryFacts
from gwmond.pilots.factory_records import NewFact
from gwmond.pilots.failed import is_failed
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.outcome import DecisionTime, decide_runs
from gwmond.pilots.pending import PendingAmounts, PendingCounts, split_by_pilot
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.posting import needs_posting
from gwmond.pilots.revision import Revision
from gwmond.pilots.rules import FAR_US, ExpectedInput, Lookup, Rules
from gwmond.pilots.run_matcher import RunMatcher
from gwmond.pilots.summaries import only_runs
from gwmond.pilots.verdict_check import Verdicts
from gwmond.pilots.verdicts import Trials, decide, undecided
from gwmond.pilots.waits import waits
from gwmond.pilots.witnesses import CentralLogEvents


class PilotAccounting:
    """All pilots of which something may still change, and what is to be stored."""

    def __init__(self, state: LedgerState, rules: Rules, names: Names | None = None) -> None:
        """``names`` says which names of places are kept apart; None: all."""
        self.rules = rules
        self.batches = state.batches
        self._cache = PilotCache()
        self._ads = CollectorAds(self._cache, rules, state.next_id, state.cursors, names)
        self._matcher = RunMatcher(self._cache, self._ads, rules)
        self.files = FactoryFacts(self._cache, self._ads, self._matcher, rules)
        self.witnesses = CentralLogEvents(self._cache, self._matcher, rules, state.cursors)
        self._experiments = Experiments(state.experiments, rules.check_us)
        self.silence = Silence(state.cursors)
        self._changes = PendingAmounts()
        self._counts = PendingCounts(rules.q)
        self._now_us = 0  # when it was settled last, by the clock
        self._not_storable = 0
        self.comes = ExpectedInput.EVERYTHING  # an import says at its end that no more does
        self.residual: Counter[Measure] = Counter()
        self._load(state)

    def _load(self, state: LedgerState) -> None:
        for row in state.pilots:
            self._cache.add_pilot(OpenPilot.of(row, loaded_from_us=row.mark_us))
        self._cache.recall_attempts(state.attempts)
        rows: defaultdict[int, list[AttemptRow]] = defaultdict(list)
        for attempt in state.attempts:
            rows[attempt.pilot].append(attempt)
        for pilot in self._cache.pilots.values():
            pilot.note_booked(rows[pilot.id])
            pilot.counted = posting.counted(pilot)
            self._ads.sizes.note_pilot(pilot)
        self.files.places.load(state.places)

    @property
    def pilots(self) -> Collection[OpenPilot]:
        """The pilots in memory; those that ended are for a while."""
        return self._cache.pilots.values()

    @property
    def contradictions(self) -> Mapping[str, int]:
        """How often sources differed on a field of an attempt, so far."""
        return self._matcher.contradictions

    @property
    def below_one_unit(self) -> AbstractSet[str]:
        """The entries with pilots that are a canonical unit only as each pilot is at least one."""
        return self._ads.sizes.below_one_unit

    @property
    def left_out(self) -> Mapping[ProblemName, int]:
        """How many records could not be accounted so far, by the reason."""
        return {
            ProblemName.NO_STARTD: self._matcher.homeless,
            ProblemName.TOO_LATE: self._matcher.late,
            ProblemName.NOT_STORABLE: self._not_storable,
            **(counter := self.files.left_out),
            ProblemName.BAD_TIME: self._matcher.absurd + counter[ProblemName.BAD_TIME],
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
        """Take in what collectors show; see ``CollectorAds.see``.

        Return whether a pilot was new although it began long ago: its jobs may have, too.
        """
        self._ads.late = False
        self.files.watch(now_us, period_us, complete=complete)
        self._ads.see(now_us, period_us, pilots, lookup, complete=complete)
        self._relabel(now_us, lookup)
        return self._ads.late

    def check(self, now_us: int, before: Verdicts, pilots: Iterable[Pilot]) -> None:
        """Let pilots that collectors show check what the last poll said of their entries."""
        self._experiments.begin(before, pilots, now_us, self._cache.by_name)

    def _relabel(self, now_us: int, lookup: Lookup) -> None:
        """Post pilots that turned out to be others under their right names."""
        for pilot, named in self._ads.relabelled:
            if pilot.id not in self._cache.pilots:
                continue  # it was left out
            identity = self._ads.kept_apart(named, pilot.identity)
            if identity == pilot.identity != named:
                continue  # it differs only in names that are not kept apart
            self._cache.load_whole(pilot, lookup)
            only_runs(pilot, self._matcher)
            self._counts.uncount(pilot)
            self._cache.unindex(pilot)
            self._changes.take(pilot.id, posting.relabel(pilot, identity, self.rules), now_us)
            self._cache.index(pilot)
        self._ads.relabelled.clear()

    def claim(
        self, now_us: int, records: Sequence[JobRecord], lookup: Lookup, *, complete: bool
    ) -> None:
        """Take in the claims that slots show; ``complete``: all there are."""
        self.tell(records, lookup)
        self._cache.show(now_us, records, complete=complete)

    def tell(self, records: Sequence[JobRecord], lookup: Lookup) -> None:
        """Take in records of jobs."""
        self._matcher.tell(records, lookup)

    def report(
        self,
        facts: Sequence[FileFact],
        lookup: Lookup,
        expected: Mapping[str, Resources] = MappingProxyType({}),
    ) -> list[NewFact]:
        """Take in what files tell, and ``expected`` sizes of entries' pilots; return the news."""
        self._ads.sizes.expect(expected)
        new = self.files.take(facts, lookup)
        self._matcher.absorb(lookup)
        self.witnesses.take([fact for fact in facts if isinstance(fact, CentralEvent)], lookup)
        return new

    def settle(
        self,
        now_us: int,
        known_us: int,
        lookup: Lookup,
        silent: Collection[str] = (),
    ) -> None:
        """Decide what can be decided, and book what is settled.

        ``known_us``: attempts that began before are known.  ``silent``: schedds whose records
        are missing for now.
        """
        self._relabel(now_us, lookup)
        self._now_us, now_us = now_us, now_us + self.comes.ahead_us
        self._matcher.absorb(lookup)
        self.witnesses.settle(now_us, known_us, lookup)
        self.files.settle(self._now_us, self.comes, lookup)
        self._relabel(self._now_us, lookup)
        for pilot in self._cache.withdrawing():
            self._counts.uncount(pilot)
            self._changes.take(pilot.id, posting.withdraw(pilot, self.rules), self._now_us)
        some = list(self._cache.pilots.values())
        while some:  # what is decided on one pilot may tell something of another
            for pilot in some:
                if not pilot.closed:
                    self._settle(pilot, now_us, known_us, lookup, silent)
            some = [
                pilot
                for pilot in self._cache.pilots.values()
                if pilot.from_us < FAR_US and pilot.known_us
            ]
        self._counts.remove(self._matcher.removed)
        self._matcher.removed.clear()
        self._experiments.settle(self._cache.pilots, known_us)

    def _settle(
        self, pilot: OpenPilot, now_us: int, known_us: int, lookup: Lookup, silent: Collection[str]
    ) -> None:
        if not needs_posting(pilot, now_us, known_us, self.rules):
            self._close(pilot, now_us)
            return
        if pilot.implied:  # its life depends on all of its attempts
            self._cache.load_whole(pilot, lookup)
        at = DecisionTime(now_us, self._now_us, known_us)
        decide_runs(pilot, at, self._cache, self._matcher, self.rules, silent)
        if pilot.implied:
            posting.imply(pilot, self.rules.q)
            quiet = known_us >= pilot.contact_us + self.rules.quiet_us
            if not quiet and not pilot.known_us:
                return
            if quiet and pilot.end_us is None:
                quiet_decision = replace(pilot.facts.decisions, quiet=True)
                pilot.learn(replace(pilot.facts, decisions=quiet_decision))
        elif Assumption.SIZE in pilot.assumed and pilot.attempts:
            self._cache.load_whole(pilot, lookup)
            posting.grow(pilot, self.rules.start_guard_us)
        pilot.derive()
        entries = posting.post(
            pilot, known_us, self.rules, lambda pilot: self._cache.load_whole(pilot, lookup)
        )
        pilot.booked_at_us = now_us
        self._changes.take(pilot.id, entries, self._now_us)
        self._counts.count(pilot)
        self._close(pilot, now_us)

    def revise(self, lookup: Lookup, entries: Collection[str] = ()) -> Iterator[int]:
        """Go over what was assumed of pilots of these entries, and all of which files told.

        It yields numbers of pilots, which are to be settled and stored some time.  See there.
        """
        revision = Revision(self._cache, self._ads, self.rules.q, self.files.resized)
        for entry in sorted(self.files.entries.union(entries)):
            yield from revision.entry(entry, lookup)

    def judge(self, now_us: int, known_us: int, trials: Trials) -> None:
        """Decide on early failures; see ``verdicts``."""
        ahead_us = self.comes.ahead_us
        decide(self._cache, now_us + ahead_us, known_us + ahead_us, trials, self.rules)

    @property
    def open_groups(self) -> set[str]:
        """Groups of jobs with early failures that are not judged."""
        return {attempt.merged.job_group or "" for attempt in undecided(self._cache)}

    def batch(self, now_us: int, cursors: Iterable[Cursor] = (), gaps: Iterable[Gap] = ()) -> Batch:
        """Return all that is not stored yet."""
        attempts: list[AttemptRow] = []
        rows: dict[int, PilotRow] = {}
        for pilot in self._cache.pilots.values():
            changed = [attempt for attempt in pilot.attempts.values() if attempt.dirty]
            if pilot.dirty or changed:
                rows[pilot.id] = pilot.row()
            attempts += [attempt.row() for attempt in changed]
        return Batch(
            before=self.batches,
            now_us=now_us,
            pilots=tuple(rows.values()),
            attempts=tuple(attempts),
            moved=tuple(sorted(self._cache.moved)),
            withdrawn=tuple(sorted(self._cache.withdrawn)),
            heard=self._cache.heard(rows),
            increments=self._changes.increments(),
            corrections=self._changes.corrections,
            counts={**self._counts.changes(), **self._experiments.counts()},
            cursors=(
                *(*cursors, *self.witnesses.cursors()),
                *(*self._ads.gaps.cursors(), *self.silence.cursors()),
            ),
            gaps=tuple(gaps),
            places=self.files.places.rows(),
            experiments=self._experiments.rows(),
        )

    def divide(self, batch: Batch) -> Parts:
        """Return what a batch has of each pilot and place."""
        return split_by_pilot(batch, self._changes, self._counts)

    def leave_out(self, parts: Iterable[Part]) -> None:
        """Leave pilots and places as they are stored, as the ledger refuses them; count them."""
        for part in parts:
            if isinstance(part, int):
                self._cache.set_aside(part)
                self._changes.forget(part)
                self._counts.forget(part)
            else:
                self.files.places.leave_out(part)
            self._not_storable += 1

    def stored(self) -> None:
        """Say that the last batch is in the ledger; forget what need not be in memory."""
        self.batches += 1
        self._changes.clear()
        self._counts.clear()
        self._experiments.stored()
        self.witnesses.stored()
        self._ads.gaps.stored()
        self.silence.stored()
        self.files.places.stored()
        self._cache.stored()
        for pilot in list(self._cache.pilots.values()):
            pilot.dirty = False
            for attempt in pilot.attempts.values():
                attempt.dirty = False
            if pilot.closed:
                self._cache.drop_pilot(pilot)
            else:
                self._cache.drop_old(pilot, self.rules.linger_us)

    def silent(self) -> list[OpenPilot]:
        """Return the pilots that are silent, those that were heard of latest first."""
        before_us = self.silence.before_us
        found = [
            pilot
            for pilot in self._cache.pilots.values()
            if is_silent(pilot.identity, pilot.end_us, pilot.contact_us, before_us)
            and not is_failed(pilot)
        ]
        return sorted(found, key=lambda pilot: (-pilot.contact_us, pilot.id))

    def waits(self, silent: Collection[str], later_us: int) -> tuple[Wait, ...]:
        """Return what runs that are over wait for; see ``waits``."""
        attempts = (
            attempt for pilot in self._cache.pilots.values() for attempt in pilot.attempts.values()
        )
        return waits(attempts, self.rules, self.silence.before_us, silent, later_us)

    def unsettled(self) -> dict[tuple[Resource, EntryKey, str], int]:
        """Return the canonical micros that are not settled yet, by resource, entry and group."""
        return posting.unsettled(self._cache.pilots.values(), self.rules.q)

    def _close(self, pilot: OpenPilot, now_us: int) -> None:
        """Close a pilot of which nothing more is expected, and prove that it is booked whole."""
        end_us = pilot.end_us
        if end_us is None or pilot.mark_us < end_us or pilot.counted is None:
            return
        if any(attempt.is_open for attempt in pilot.attempts.values()):
            return
        if not pilot.implied and now_us < end_us + self.rules.linger_us:
            return
        self.residual.update(posting.residual(pilot, self.rules))
        pilot.closed, pilot.dirty = True, True
