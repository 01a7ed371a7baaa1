"""The accounting: takes facts in, gives batches out.

Units: times are microseconds since the epoch, amounts are micros.

    accounting = PilotAccounting(state, rules)
    run(accounting.add_ads(now, period, pilots, complete=True))
    run(accounting.add_records(records))
    run(accounting.settle(now, known))
    ledger.commit(accounting.batch(now, cursors)); accounting.stored()

The accounting asks nobody.  A step is a generator: it yields the keys of what it needs of the
ledger, and is sent the rows; ``run`` is whoever has the ledger.  A batch stays in the accounting
until ``stored``: what could not be stored comes again with the next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from gwmond.model.facts import Cursor, EntryKey, Gap, Pilot, Size
from gwmond.model.names import Names
from gwmond.model.packed import Packed
from gwmond.model.pilots.file_facts import CentralEvent, FileFact
from gwmond.model.pilots.stored_pilots import CountKey, PilotId, PilotKind, PilotSeries, RunRow
from gwmond.model.poll.batch import Batch, LedgerState, Part, Parts, Settled
from gwmond.model.poll.pilot_keys import PilotKeys, PilotRows
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.model.totals import Hour, Micros
from gwmond.pilots.experiments import Experiments, Verdicts
from gwmond.pilots.factory.entry_defaults import KnownPilots
from gwmond.pilots.factory.files import FactoryFacts
from gwmond.pilots.factory.records import NewFact
from gwmond.pilots.factory.revision import SizeChange, changes, resized
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory import posting
from gwmond.pilots.memory.ad_times import Silence
from gwmond.pilots.memory.assign import PilotAssignment
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun, Unstored
from gwmond.pilots.runs.matcher import RunMatcher
from gwmond.pilots.settlement import NOTHING_UNREAD, Settlement, Unread
from gwmond.pilots.sources.central_log import CentralLogEvents
from gwmond.pilots.sources.collector_ads import CollectorAds

_T = TypeVar("_T")
Lookup: TypeAlias = Generator[PilotKeys, PilotRows, _T]
"""A step that yields keys of what it needs, is sent the rows, and returns its result."""


class PilotAccounting:
    """All pilots of which something may still change, and what is to be stored."""

    def __init__(self, state: LedgerState, rules: Rules, names: Names | None = None) -> None:
        """``names`` says which names of places are kept apart; None: all."""
        self.rules = rules
        self.batches = state.batches
        self._cache = PilotCache(state.cursors)
        self._assignment = PilotAssignment(self._cache, rules, state.next_id, names)
        self._ads = CollectorAds(self._cache, self._assignment, rules, state.cursors)
        self._matcher = RunMatcher(self._cache, self._assignment, rules)
        self.files = FactoryFacts(
            KnownPilots(self._cache, self._assignment, self._ads.sizes, self._matcher, rules)
        )
        self.central_log = CentralLogEvents(self._cache, self._matcher, rules, state.cursors)
        self._experiments = Experiments(state.experiments, rules.check_us)
        self.silence = Silence(state.cursors)
        self.settlement = Settlement(
            *(self._cache, self._matcher, self.files, self.central_log, self._experiments), rules
        )
        self._claims: set[int] = set()  # hashes of those that the last poll has shown
        self._not_storable = 0
        self._recall(state)

    def _recall(self, state: LedgerState) -> None:
        for row in state.pilots:
            self._cache.add_pilot(OpenPilot.of(row, loaded_from_us=row.settled_until_us))
        self._cache.recall_runs(state.runs)
        rows: defaultdict[int, list[RunRow]] = defaultdict(list)
        for run in state.runs:
            rows[run.pilot].append(run)
        for row in state.pilots:
            pilot = self._cache.pilots[row.id]
            self._cache.looks.recall_pilot(pilot, row)
            pilot.note_posted(rows[pilot.id])
            pilot.counted = posting.counted(pilot)
            self._ads.sizes.note_pilot(pilot)
        self.files.places.load(state.places)

    @property
    def pilots(self) -> Collection[OpenPilot]:
        """The pilots in memory; those that ended are for a while."""
        return self._cache.pilots.values()

    @property
    def ended(self) -> dict[str, int]:
        """When those in memory ended that have, by name (epoch seconds)."""
        ends = sorted((p.end_us, p.identity.name) for p in self.pilots if p.end_us is not None)
        return {name: end_us // SECOND_US for end_us, name in ends if name}

    @property
    def contradictions(self) -> Mapping[str, int]:
        """How often sources differed on a field of a run, so far."""
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

    def _load(self, keys: PilotKeys) -> Lookup[bool]:
        """Take in what is stored under keys; return whether anything was asked for."""
        if not keys:
            return False
        rows = yield keys
        self._cache.load(rows)
        self.files.load(rows)
        return True

    def add_ads(
        self, now_us: int, period_us: int, pilots: Iterable[Pilot], *, complete: bool
    ) -> Lookup[bool]:
        """Take in what collectors show; see ``CollectorAds.see``.

        Return whether a pilot was new although it began long ago: its jobs may have, too.
        """
        shown = tuple(pilots)
        yield from self._load(self._ads.keys(shown))
        self._ads.late = False
        self._cache.looks.watch(now_us, period_us, complete=complete)
        self._ads.see(now_us, period_us, shown, complete=complete)
        return self._ads.late

    def check(self, now_us: int, before: Verdicts, pilots: Iterable[Pilot]) -> None:
        """Check the verdicts of the last poll by the pilots that collectors show."""
        self._experiments.begin(before, pilots, now_us, self._cache.by_name)

    def add_claims(
        self, now_us: int, records: Packed[JobRecord], *, complete: bool
    ) -> Lookup[None]:
        """Take in the claims that slots show; ``complete``: all there are.

        A claim is shown at each poll until it is some minutes old: one that the last poll has
        shown with the same words is known.
        """
        known = set[int]() if complete else self._claims
        marks = set[int]()
        for part in records.parts():
            hashes = list(map(hash, part))
            new = [one for one, mark in zip(part, hashes, strict=True) if mark not in known]
            yield from self.add_records(new)
            marks.update(hashes)
        self._claims = marks
        self._cache.show(now_us, records, complete=complete)

    def add_records(self, records: Sequence[JobRecord]) -> Lookup[None]:
        """Take in records of jobs."""
        yield from self._load(self._matcher.keys(records))
        self._matcher.tell(records)

    def load_files(self, facts: Sequence[FileFact]) -> Lookup[None]:
        """Load what is stored of the pilots and places of facts, before these are taken."""
        keys = self.files.keys(facts)
        keys.update(self.central_log.keys(_lines(facts)))
        yield from self._load(keys)

    def take_facts(
        self, facts: Sequence[FileFact], expected: Mapping[str, Size] = MappingProxyType({})
    ) -> Lookup[list[NewFact]]:
        """Take in facts as ``add_facts``, once ``load_files`` was asked for them."""
        self._ads.sizes.expect(expected)
        new, more = list[NewFact](), True
        while more:
            new += self.files.take(facts)
            self._matcher.absorb()
            self.central_log.take(_lines(facts))
            more, facts = (yield from self._load(self._cache.take_missing())), ()
        return new

    def add_facts(
        self, facts: Sequence[FileFact], expected: Mapping[str, Size] = MappingProxyType({})
    ) -> Lookup[list[NewFact]]:
        """Take in what files report, and ``expected`` sizes of entries' pilots; return the news."""
        yield from self.load_files(facts)
        return (yield from self.take_facts(facts, expected))

    def settle(
        self,
        now_us: int,
        known_us: int,
        silent: Collection[str] = (),
        unread: Unread = NOTHING_UNREAD,
    ) -> Lookup[None]:
        """Settle what can be; see ``Settlement.settle``."""
        self.settlement.settle(now_us, known_us, silent, unread)
        yield from self._go_on()

    def settle_changed(self) -> Lookup[None]:
        """Settle what has changed since, or was left out, at the same time."""
        self.settlement.go_on()
        yield from self._go_on()

    def _go_on(self) -> Lookup[None]:
        while (yield from self._load(self._cache.take_missing())):
            self.settlement.go_on()

    def revise(
        self, entry: str, kinds: Mapping[PilotKind, Sequence[PilotId]]
    ) -> dict[PilotId, SizeChange]:
        """Return what is to become of an entry's pilots, by what is stored of all of them."""
        size_changes = changes(entry, kinds, self.rules.memory_per_unit_mib)
        return {number: change for change, ids in size_changes for number in ids}

    def change(self, changed: Mapping[PilotId, SizeChange]) -> Lookup[None]:
        """Change what was assumed of pilots, with all their runs."""
        yield from self._load(PilotKeys(pilots=set(changed), whole=set(changed)))
        for number, change in changed.items():
            if (pilot := self._cache.pilots.get(number)) is not None:
                if resized(pilot, change):
                    self.files.resized(pilot)
                key = EntryKey(change.site, pilot.identity.key.entry)
                named = pilot.identity._replace(key=key, factory=change.factory)
                self._assignment.rename(pilot, named)

    def batch(self, now_us: int, cursors: Iterable[Cursor] = (), gaps: Iterable[Gap] = ()) -> Batch:
        """Return all that is not stored yet."""
        settled: list[Settled] = []
        written: dict[OpenPilot, list[OpenRun]] = {}
        for pilot in self._cache.pilots.values():
            changed = [run for run in pilot.runs.values() if run.dirty]
            if not (pilot.dirty or changed):
                continue
            written[pilot] = changed
            settled += _settled(pilot, changed)
        unstored = self._cache.unstored()
        pilots, runs = self._cache.rows(written, self.rules.memory_per_unit_mib)
        return Batch(
            before=self.batches,
            now_us=now_us,
            pilots=tuple(pilots),
            runs=tuple(runs),
            moved=tuple(sorted((n, key) for n, keys in self._cache.moved.items() for key in keys)),
            withdrawn=tuple(sorted(self._cache.withdrawn)),
            heard=self._cache.heard({row.id for row in pilots}),
            sights=self._cache.sights(),
            increments=_joined_increments(unstored.values()),
            corrections=tuple(made for part in unstored.values() for made in part.corrections),
            counts={**_joined_counts(unstored.values()), **self._experiments.counts()},
            cursors=(
                *(*cursors, *self.central_log.cursors()),
                *(*self._ads.gaps.cursors(now_us), *self.silence.cursors()),
                *self._cache.looks.cursors(),
            ),
            gaps=tuple(gaps),
            places=self.files.places.rows(),
            experiments=self._experiments.rows(),
            settled=tuple(settled),
        )

    def divide(self, batch: Batch) -> Parts:
        """Return what a batch has of each pilot and place."""
        return _parts(batch, self._cache.unstored())

    def leave_out(self, parts: Iterable[Part]) -> None:
        """Leave pilots and places as they are stored, as the ledger refuses them; count them."""
        for part in parts:
            if isinstance(part, int):
                self._cache.set_aside(part)
            else:
                self.files.places.leave_out(part)
            self._not_storable += 1

    def stored(self) -> None:
        """Say that the last batch is in the ledger; forget what need not be in memory."""
        self.batches += 1
        self._experiments.stored()
        self.central_log.stored()
        self._ads.gaps.stored()
        self.silence.stored()
        self.files.places.stored()
        self._cache.stored()
        for pilot in list(self._cache.pilots.values()):
            pilot.dirty, pilot.unstored = False, None
            for run in pilot.runs.values():
                if run.dirty:
                    run.note_stored()
                    run.stored_shown_us = self._cache.looks.shown_us(run)
            if pilot.closed:
                self._cache.drop_pilot(pilot)
            else:
                self._cache.drop_old(pilot, self.rules.linger_us)


def _settled(pilot: OpenPilot, changed: Iterable[OpenRun]) -> Iterator[Settled]:
    """Yield what of a pilot is settled and was not when it was stored last."""
    for run in changed:
        if run.is_open or run.summarised:
            continue
        if not run.was_settled:
            yield Settled(pilot.id, *run.key)
        elif run.has_left and not run.had_left:
            yield Settled(pilot.id, run.key.job)
    if pilot.closed and pilot.dirty and not pilot.was_closed:
        yield Settled(pilot.id)


def _lines(facts: Iterable[FileFact]) -> list[CentralEvent]:
    """Return the facts that are lines of central logs."""
    return [fact for fact in facts if isinstance(fact, CentralEvent)]


def _joined_increments(parts: Iterable[Unstored]) -> dict[PilotSeries, dict[Hour, Micros]]:
    """Return the increments of pilots, summed."""
    sums: defaultdict[PilotSeries, defaultdict[Hour, Micros]] = defaultdict(
        lambda: defaultdict(int)
    )
    for part in parts:
        for series, hours in part.increments:
            summed = sums[series]
            for hour, micros in hours.items():
                summed[hour] += micros
    return {series: dict(hours) for series, hours in sums.items()}


def _joined_counts(parts: Iterable[Unstored]) -> dict[CountKey, int]:
    """Return what is to be added to the stored counts; negative where one was revised."""
    sums: Counter[CountKey] = Counter()
    for part in parts:
        sums.update(part.counts)
    return {key: n for key, n in sums.items() if n}


def _parts(batch: Batch, unstored: Mapping[PilotId, Unstored]) -> Parts:
    """Return what a batch has of each pilot and of each place, by number and name."""
    parts: defaultdict[Part, dict[str, Any]] = defaultdict(lambda: defaultdict(tuple))
    for number, part in unstored.items():
        parts[number]["increments"] = _joined_increments([part])
        parts[number]["counts"] = _joined_counts([part])
    for row in batch.pilots:
        parts[row.id]["pilots"] += (row,)
    for name in ("runs", "corrections"):
        for row in getattr(batch, name):
            parts[row.pilot][name] += (row,)
    for name in ("moved", "heard", "sights"):
        for row in getattr(batch, name):
            parts[row[0]][name] += (row,)
    for pilot in batch.withdrawn:
        parts[pilot]["withdrawn"] += (pilot,)
    for place in batch.places:
        parts[place.name]["places"] += (place,)
    return {part: Batch(batch.before, batch.now_us, **fields) for part, fields in parts.items()}
