"""``gwmond demo``, as it is typed."""

from __future__ import annotations

import sys
from pathlib import Path

from gwmond.commands import demo
from gwmond.ledger.reader import LedgerReader
from gwmond.service.clock import REPLAY
from tests.build import demos


def run(config: Path, *arguments: str) -> None:
    """Run it until it has polled, and is stopped."""
    with demos.demo([sys.executable, "-m", "gwmond"], config, *arguments):
        pass


def test_the_ledger_of_the_configuration_is_not_touched(tmp_path: Path) -> None:
    """A demo that shares a daemon's configuration does not share its ledger."""
    run(tmp_path / "gwmond.toml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gwmond.toml", "log"]


def test_a_ledger_to_keep(tmp_path: Path) -> None:
    """One that is named is kept, is known from a live pool's, and is taken again."""
    run(tmp_path / "gwmond.toml", "--ledger", "kept.sqlite")
    assert not (tmp_path / "live.sqlite").exists()
    with LedgerReader.open(f"{tmp_path}/kept.sqlite") as ledger:
        tick = ledger.load().tick
    assert tick is not None
    assert tick.boot_id.startswith(REPLAY)
    assert demo.unfit(f"{tmp_path}/kept.sqlite") == ""
