"""The accounting of pilots with its ledger, which also stores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Pilot, Size
from gwmond.model.packed import Packed
from gwmond.model.pilots.file_facts import FileFact
from gwmond.model.poll.batch import Batch
from gwmond.model.runs.run_facts import JobRecord
from gwmond.pilots.factory.records import NewFact
from gwmond.pilots.settlement import NOTHING_UNREAD, Unread
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.accounting.pilot_steps import PilotSteps


class Steps(PilotSteps):
    """The steps of a poll, to the last; times are microseconds since the epoch."""

    def add_ads(
        self, now_us: int, period_us: int, pilots: Iterable[Pilot], *, complete: bool
    ) -> bool:
        return self.run(self.accounting.add_ads(now_us, period_us, pilots, complete=complete))

    def add_claims(self, now_us: int, records: Iterable[JobRecord], *, complete: bool) -> None:
        self.run(self.accounting.add_claims(now_us, Packed(records), complete=complete))

    def add_records(self, records: Sequence[JobRecord]) -> None:
        self.run(self.accounting.add_records(records))

    def add_facts(
        self, facts: Sequence[FileFact], expected: Mapping[str, Size] = MappingProxyType({})
    ) -> list[NewFact]:
        return self.run(self.accounting.add_facts(facts, expected))

    def settle(
        self,
        now_us: int,
        known_us: int,
        silent: Collection[str] = (),
        unread: Unread = NOTHING_UNREAD,
    ) -> None:
        self.run(self.accounting.settle(now_us, known_us, silent, unread))

    def store(self, now_us: int) -> Batch:
        """Store what was settled; return it."""
        batch = self.accounting.batch(now_us)
        self.ledger.commit(batch)
        self.accounting.stored()
        return batch


def attached(ledger: Ledger) -> LedgerKeeper:
    """A keeper as it is after a restart."""
    keeper = LedgerKeeper(Config())
    keeper.use(ledger)
    return keeper
