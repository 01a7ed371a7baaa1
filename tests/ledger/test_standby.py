"""A daemon that stands by with another one's ledger: it says so, and takes over; both kinds."""

from __future__ import annotations

from gwmond.config.settings import Config
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.elapsed import Elapsed, Tick
from gwmond.model.facts import EntryKey
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.pool.known_entries import EMPTY
from gwmond.sites.integrate import SiteTime

T0 = 1_700_000_000
PERIOD_S = 60


class Daemon:
    """Polls at given minutes, each of which has 1000 units of site time."""

    def __init__(self, url: str) -> None:
        self.keeper = LedgerKeeper(Config.model_validate({"ledger": {"url": url}}))

    def poll(self, minute: int) -> tuple[bool, bool]:
        """Whether the ledger is written, and whether the daemon stands by."""
        self.keeper.open(EMPTY, (720, 24))
        passed = PERIOD_S * minute
        spent = [SiteTime("cpu", "provisioned", "", EntryKey("S", "e"), 1000)]
        at = Tick(T0 + passed, 500 + passed, 600 + passed, "boot")
        self.keeper.add(at, Elapsed(PERIOD_S * 1000, True, ""), spent, EMPTY, ())
        status = self.keeper.status
        return status.up, status.standby


def test_a_standby(url: str) -> None:
    """While the other writes; one that has the ledger and does not write it has no standby."""
    first, second = Daemon(url), Daemon(url)
    assert first.poll(0) == (True, False)
    assert [second.poll(minute) for minute in (1, 2)] == [(False, True)] * 2
    assert first.poll(3) == (True, False)
    assert [second.poll(minute) for minute in range(4, 9)] == [(False, True)] * 5
    assert second.poll(9) == (False, False)
    assert first.poll(10) == (True, False)
    assert second.poll(10) == (False, True)
    first.keeper.close()
    assert [second.poll(minute) for minute in (11, 12)] == [(True, False)] * 2
    second.keeper.close()
    with LedgerReader.open(url) as reader:
        (total,) = reader.load().totals.site.values()
    assert total.micros == 5 * 1000  # of the first's polls, and of the second's from minute 11 on
