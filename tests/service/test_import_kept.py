"""An import decides what waits for files; what waits for jobs it leaves to a daemon, if one is."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Cursor
from gwmond.model.packed import Packed
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import CompletedPilot, PilotName
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.endings import Ending
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.importer import Importer
from gwmond.sources import child
from tests.build import play

EARLY = Ending(over=True, exit_code=1, own_accord=True, began=True, early=True)
PLACE = PilotName(user="fe", instance="factory_instance", entry="E", cluster=7, proc=0)


@pytest.fixture
def url(tmp_path: Path) -> str:
    child.start()
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


def runs(ledger: Ledger) -> list[RunRow]:
    return sorted(ledger.runs_of([1])[1])


def keep(ledger: Ledger, now: int, *, pilots: bool) -> None:
    """What a daemon stored: an early failure, a run without an end, a line of a summary."""
    keeper = LedgerKeeper(Config())
    keeper.use(ledger)
    since = now - play.T0
    pilot = play.shown(started=since - 3600, heard=since - 60)
    failed = play.record("1.0", since - 600, since - 540, started=since - 3600, ending=EARLY)
    lost = play.claim("2.0", since - 500, started=since - 3600)
    line = CompletedPilot("", PLACE, (now - 600) * 10**6, 500, True, 400, *[0] * 8)
    for at, shown, claims in ((now - 60, [pilot], [lost]), (now, [], [])):
        if pilots:
            with keeper.steps() as steps:
                steps.run(steps.accounting.add_ads(at * 10**6, 60 * 10**6, shown, complete=True))
                steps.run(steps.accounting.add_claims(at * 10**6, Packed(claims), complete=True))
            keeper.add_records([failed], None, None)
        keeper.add_facts([line], Cursor("/var/log/factory", "factory_files", "", None))
        keeper.settle(at * 10**6, (now - 120) * 10**6, ())


def test_a_ledger_that_a_daemon_keeps(url: str, tmp_path: Path) -> None:
    """What may still be reported is neither judged nor given up; the summary is used at once."""
    now = int(time.time())
    ledger = Ledger.open(url)
    keep(ledger, now, pilots=True)
    before = runs(ledger)
    assert [run_row.open for run_row in before] == [True, True]
    Importer(Config(), ledger).run([str(tmp_path)])
    assert runs(ledger) == before
    ledger.close()
    with LedgerReader.open(url) as reader:
        rows = sorted(reader.pilot_rows())
    assert [Assumption.NO_OUTPUT in row.assumed for row in rows] == [False, True]


def test_a_ledger_of_imports(url: str, tmp_path: Path) -> None:
    """Of pilots that have just ended nothing is left open; nothing is dated ahead."""
    ended = datetime.fromtimestamp(time.time() - 60, UTC).isoformat(timespec="seconds")
    (tmp_path / "entry_E").mkdir()
    (tmp_path / "entry_E" / "completed_jobs_20261118.log").write_text(
        f'<job terminated="{ended}" client="fe_main" username="fe" id="8.0" duration="900" '
        'condor_started="True" condor_duration="800"><user jobsnr="0" duration="0" goodput="0" '
        'terminated="0"/><wastemill validation="100" idle="0" nosuccess="0" badput="0"/></job>\n'
    )
    ledger = Ledger.open(url)
    keep(ledger, int(time.time()), pilots=False)
    Importer(Config(), ledger).run([str(tmp_path)])
    ledger.close()
    with LedgerReader.open(url) as reader:
        rows = reader.pilot_rows()
        state = reader.load()
    assert [row.closed for row in rows] == [True, True]
    assert state.places == ()
    assert {shown.created <= time.time() for shown in state.totals.counts.values()} == {True}


def test_what_is_given_up_is_not_dated_ahead(url: str, tmp_path: Path) -> None:
    """A run of which no record tells the end is over, and that was said now."""
    now = int(time.time())
    ledger = Ledger.open(url)
    keeper = LedgerKeeper(Config())
    keeper.use(ledger)
    since = now - play.T0
    times = ((1, -900, None, Ending()), (2, -600, -300, EARLY._replace(early=False)))
    told = [
        play.record("3.0", since + start, end and since + end, run=run, started=None, ending=ending)
        for run, start, end, ending in times
    ]
    keeper.add_records(told, None, None)
    keeper.settle(now * 10**6, now * 10**6, ())
    Importer(Config(), ledger).run([str(tmp_path)])
    first, second = runs(ledger)
    assert (first.open, first.end_us, second.open) == (False, second.start_us, False)
    assert len(first.facts) == 2
    assert max(fact.written_us for fact in first.facts) <= time.time() * 10**6
    assert all(correction.time_us <= time.time() * 10**6 for correction in ledger.corrections())
    ledger.close()
