"""The steps of the accounting of pilots, each with all that it needs of the ledger.

The accounting makes no query: here what it asks for is fetched, until nothing is missing.  Times
are microseconds since the epoch.  Each step raises LedgerError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Pilot, Size
from gwmond.model.pilots.file_facts import FileFact
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.runs.records import JobRecord
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.factory.records import NewFact
from gwmond.pilots.runs.verdicts import Evidence

REVISED_AT_ONCE = 1000


class PilotSteps:
    """The accounting of pilots and its ledger; see ``PilotAccounting`` for what each step does."""

    def __init__(self, accounting: PilotAccounting, ledger: Ledger) -> None:
        self.accounting = accounting
        self.ledger = ledger

    def _load(self, keys: PilotKeys) -> bool:
        """Load what is stored under keys; return whether anything is asked for."""
        if asked := bool(keys):
            self.accounting.load(self.ledger.fetch(keys))
        return asked

    def _load_missing(self) -> bool:
        """Load what the last step has left out for want of; return whether there was anything."""
        return self._load(self.accounting.missing())

    def add_ads(
        self, now_us: int, period_us: int, pilots: Iterable[Pilot], *, complete: bool
    ) -> bool:
        """Take in what collectors show; return whether a pilot was new that began long ago."""
        shown = tuple(pilots)
        self._load(self.accounting.keys_of_ads(shown))
        return self.accounting.add_ads(now_us, period_us, shown, complete=complete)

    def add_claims(self, now_us: int, records: Sequence[JobRecord], *, complete: bool) -> None:
        """Take in claims that slots show."""
        self._load(self.accounting.keys_of_records(records))
        self.accounting.add_claims(now_us, records, complete=complete)

    def add_records(self, records: Sequence[JobRecord]) -> None:
        """Take in records of jobs."""
        self._load(self.accounting.keys_of_records(records))
        self.accounting.add_records(records)

    def add_facts(
        self,
        facts: Sequence[FileFact],
        expected: Mapping[str, Size] = MappingProxyType({}),
    ) -> list[NewFact]:
        """Take in what GlideinWMS's files report, and the sizes that are expected of pilots.

        Return what the factory had not reported before.
        """
        self.load_files(facts)
        return self.take_facts(facts, expected)

    def load_files(self, facts: Sequence[FileFact]) -> None:
        """Load what is stored of the pilots and places of facts, before these are taken."""
        self._load(self.accounting.keys_of_files(facts))

    def take_facts(
        self,
        facts: Sequence[FileFact],
        expected: Mapping[str, Size] = MappingProxyType({}),
    ) -> list[NewFact]:
        """Take in facts as ``add_facts``, once ``load_files`` was asked for them."""
        new = self.accounting.add_facts(facts, expected)
        while self._load_missing():
            new += self.accounting.add_facts(())
        return new

    def settle(self, now_us: int, known_us: int, silent: Collection[str] = ()) -> None:
        """Settle what can be."""
        self.accounting.settlement.settle(now_us, known_us, silent)
        if self._load_missing():
            self.settle_changed()

    def settle_changed(self) -> None:
        """Settle what has changed since, or was left out, at the same time."""
        self.accounting.settlement.go_on()
        while self._load_missing():
            self.accounting.settlement.go_on()

    def judge(self, now_us: int, evidence: Evidence) -> None:
        """Decide on early failures, by what is stored; then the pilots are to be settled anew."""
        due = self.accounting.settlement.trials(now_us, evidence)
        trials = {keys: self.ledger.trials(*keys) for keys in due}
        self.accounting.settlement.judge(now_us, evidence, trials)

    def revise(self, entries: Collection[str] = ()) -> Iterator[int]:
        """Change what was assumed of pilots of these entries, and of all that files reported.

        It yields how many were changed at once.  After some the pilots are to be settled.
        """
        for entry in sorted(self.accounting.files.entries.union(entries)):
            changes = self.accounting.revise(entry, self.ledger.pilots_by_kind(entry))
            for numbers in chunks(changes, REVISED_AT_ONCE):
                self._load(PilotKeys(pilots=set(numbers), whole=set(numbers)))
                self.accounting.change({number: changes[number] for number in numbers})
                yield len(numbers)
