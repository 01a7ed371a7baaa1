"""Which ledgers ``gwmond demo --ledger`` takes: its own, and none that holds a live pool's time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond import cli
from gwmond.clock import ReplayClock
from gwmond.commands import demo
from gwmond.facts import Cursor
from gwmond.ledger import Ledger
from gwmond.ledger.pilot_model import PilotBatch
from tests.ledger.batches import batch


def test_a_place_without_a_ledger_and_a_ledger_of_a_demo(url: str) -> None:
    """A new place is taken, and again what a replay has written there."""
    assert demo._unfit(url) == ""
    replayed = batch(1)._replace(tick=ReplayClock(1000.0, 600.0, 60.0).tick())
    with Ledger.open(url) as ledger:
        assert demo._unfit(url) == ""
        ledger.commit(replayed)
    assert demo._unfit(url) == ""


def test_a_ledger_of_a_live_pool(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a daemon has written, or only an import, is refused, and nothing is added to it."""
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))
    assert cli.main(["demo", "--ledger", url]) == cli.EXIT_FAILED
    said = capsys.readouterr()
    assert (said.out, "has a live pool's time" in said.err) == ("", True)
    with Ledger.open(url) as ledger:
        assert ledger.load().commits == 1


def test_a_ledger_with_imported_files_only(file: Path) -> None:
    """There is no tick then; what was read tells."""
    with Ledger.open(str(file)) as ledger:
        cursor = Cursor("/logs", "files", "read", None)
        ledger.commit_pilots(PilotBatch(before=0, now_us=0, cursors=(cursor,)))
    assert "has a live pool's time" in demo._unfit(str(file))


def test_what_is_no_ledger(file: Path) -> None:
    """It is told, and left as it is."""
    file.write_bytes(b"no database" * 1000)
    assert str(file) in demo._unfit(str(file))
