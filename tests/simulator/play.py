"""Plays the simulated pool to gwmond's own pipeline, poll by poll, with the simulated clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gwmond.config.settings import Config, LedgerOptions, Poll
from gwmond.model.elapsed import Tick
from gwmond.model.poll.snapshot import Snapshot
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.host.clock import REPLAY
from gwmond.service.poller import Poller
from gwmond.service.pool.pool import Pool as Watched
from gwmond.sources.garbage import RUNNING, few_collections
from gwmond.sources.htcondor.access import Access
from tests.build.at_once import at_once
from tests.simulator.access import SimulatedAccess
from tests.simulator.pool import Pool
from tests.simulator.world import COLLECTOR

POLL_S = 300


class _SimulatedClock:
    """Stands at the simulation's minute; its ticks are those of the replay that follows."""

    speed = 1.0

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def tick(self) -> Tick:
        """Return the time of the simulation."""
        now = float(self._pool.now)
        return Tick(now, now, now, REPLAY)

    def next_tick(self, after: Tick | None = None) -> Tick:
        """Return it as a poll begins."""
        del after
        return self.tick()


class _WatchedPool(Watched):
    """gwmond's view of the simulated pool."""

    def __init__(self, config: Config, simulated: SimulatedAccess) -> None:
        super().__init__(config)
        self.clock = _SimulatedClock(simulated.pool)
        self._simulated = simulated

    def access(self, tick: Tick) -> Access:
        """Return how the simulated daemons are asked."""
        del tick
        return self._simulated


def config_of(ledger: Path) -> Config:
    """What gwmond is told: a poll every five minutes, and time enough for each."""
    poll = Poll.model_construct(**{**Poll().model_dump(), "interval": float(POLL_S)})
    config = Config(ledger=LedgerOptions(url=str(ledger)))
    pool = config.pool.model_copy(update={"collectors": (COLLECTOR,)})
    histories = config.histories.model_copy(update={"startds": ()})
    return config.model_copy(update={"poll": poll, "pool": pool, "histories": histories})


@contextmanager
def played(access: SimulatedAccess, ledger: Path) -> Iterator[Callable[[], Snapshot]]:
    """Give what goes on by five minutes and polls; the ledger is closed at the end."""
    config = config_of(ledger)
    with at_once():
        keeper = LedgerKeeper(config)
        poller = Poller(config, _WatchedPool(config, access), keeper)

        def poll() -> Snapshot:
            access.go_on(POLL_S)
            return poller.poll()

        try:
            with few_collections(RUNNING):
                yield poll
        finally:
            keeper.close()
