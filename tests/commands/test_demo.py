"""``gwmond demo``, as it is typed."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from gwmond.commands import demo
from gwmond.ledger.reader import LedgerReader
from gwmond.service.clock import REPLAY
from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, wait_until


def run(config: Path, *arguments: str) -> None:
    """Run it until it has polled, and is stopped."""
    listen = f"127.0.0.1:{free_port()}"
    text = f"[http]\nlisten = '{listen}'\n[ledger]\nurl = '{config.parent}/live.sqlite'\n"
    config.write_text(text)
    command = [sys.executable, "-m", "gwmond", "demo", "--config", str(config), *arguments]
    with (config.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            cwd=config.parent,
            env={**os.environ, "CONDOR_CONFIG": "ONLY_ENV"},
            stdout=log,
            stderr=log,
        )
    try:

        def ready() -> bool:
            assert process.poll() is None, (config.parent / "log").read_text()
            try:
                urllib.request.urlopen(f"http://{listen}/-/ready", timeout=5).close()
            except OSError:
                return False
            return True

        wait_until("the demo", ready)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


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
