"""The accounting of pilots with its ledger, which also stores."""

from __future__ import annotations

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.poll.batch import Batch
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.accounting.pilot_steps import PilotSteps


class Steps(PilotSteps):
    """The steps of a poll, to the last; times are microseconds since the epoch."""

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
