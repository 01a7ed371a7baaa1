"""The accounting of pilots with its ledger: each step with all that it needs of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from gwmond.ledger import Ledger
from gwmond.model.batch import Batch
from gwmond.model.facts import Pilot
from gwmond.model.pilot_evidence import FileFact
from gwmond.model.pilot_facts import Resources
from gwmond.model.pilot_keys import PilotKeys
from gwmond.model.records import JobRecord
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.factory_records import NewFact

REVISED_AT_ONCE = 1000


class Steps:
    """The steps of a poll; times are microseconds since the epoch."""

    def __init__(self, accounting: PilotAccounting, ledger: Ledger) -> None:
        self.accounting = accounting
        self.ledger = ledger

    def see(
        self, now_us: int, period_us: int, pilots: Sequence[Pilot], *, complete: bool = True
    ) -> bool:
        """Take in what collectors show."""
        self.accounting.load(self.ledger.fetch(self.accounting.keys_of_ads(pilots)))
        return self.accounting.add_ads(now_us, period_us, pilots, complete=complete)

    def claim(self, now_us: int, records: Sequence[JobRecord], *, complete: bool = True) -> None:
        """Take in what slots show."""
        self.accounting.load(self.ledger.fetch(self.accounting.keys_of_records(records)))
        self.accounting.add_claims(now_us, records, complete=complete)

    def tell(self, records: Sequence[JobRecord]) -> None:
        """Take in records of jobs."""
        self.accounting.load(self.ledger.fetch(self.accounting.keys_of_records(records)))
        self.accounting.add_records(records)

    def report(
        self,
        facts: Sequence[FileFact],
        expected: Mapping[str, Resources] = MappingProxyType({}),
    ) -> list[NewFact]:
        """Take in what files report; return the news."""
        self.accounting.load(self.ledger.fetch(self.accounting.keys_of_files(facts)))
        new = self.accounting.add_facts(facts, expected)
        while keys := self.accounting.missing():
            self.accounting.load(self.ledger.fetch(keys))
            new += self.accounting.add_facts(())
        return new

    def settle(self, now_us: int, known_us: int, silent: Collection[str] = ()) -> None:
        """Settle what can be."""
        self.accounting.settle(now_us, known_us, silent)
        while keys := self.accounting.missing():
            self.accounting.load(self.ledger.fetch(keys))
            self.accounting.go_on()

    def judge(self, now_us: int, known_us: int) -> None:
        """Let verdicts on early failures fall."""
        trials = {
            keys: self.ledger.trials(*keys) for keys in self.accounting.trials(now_us, known_us)
        }
        self.accounting.judge(now_us, known_us, trials)

    def revise(self) -> None:
        """Go over what was assumed of the pilots of all entries."""
        for entry in sorted(self.accounting.files.entries):
            changes = self.accounting.revise(entry, self.ledger.pilots_by_kind(entry))
            numbers = set(changes)
            self.accounting.load(self.ledger.fetch(PilotKeys(pilots=numbers, whole=numbers)))
            self.accounting.change(changes)

    def store(self, now_us: int) -> Batch:
        """Store what was settled; return it."""
        batch = self.accounting.batch(now_us)
        self.ledger.commit(batch)
        self.accounting.stored()
        return batch
