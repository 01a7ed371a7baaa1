"""SIGTERM in the middle of a poll."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from tests.pool.ports import free_port

DAEMON = """
import sys, time
from gwmond.config.settings import Config
from gwmond.service import daemon
from gwmond.service.host import log
from gwmond.service.poller import Poller

evaluate = Poller._evaluate

def slowly(*facts):
    print("evaluating", flush=True)
    time.sleep({seconds})
    return evaluate(*facts)

Poller._evaluate = slowly
daemon._GIVEN_UP_S = {patience}
config = Config.model_validate({options})
log.configure(config.log)
daemon.Service(config, lambda: config).run()
"""


@pytest.mark.parametrize(
    ("seconds", "patience", "last"),
    [(600, 0.5, "stopped during a poll, of which nothing is stored"), (2, 60, "stopped")],
)
def test_sigterm_during_a_poll(tmp_path: Path, seconds: int, patience: float, last: str) -> None:
    """The poll ends with its stage, or is given up: the end comes soon, and nothing is stored."""
    ledger = f"{tmp_path}/ledger.sqlite"
    options = {
        "pool": {"collectors": [f"127.0.0.1:{free_port()}"]},
        "ledger": {"url": ledger},
        "http": {"listen": f"127.0.0.1:{free_port()}"},
        "log": {"format": "json"},
    }
    script = DAEMON.format(seconds=seconds, patience=patience, options=options)
    daemon = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert daemon.stdout is not None
    assert daemon.stdout.readline() == "evaluating\n"
    began = time.monotonic()
    daemon.terminate()
    _, log = daemon.communicate(timeout=120)
    assert time.monotonic() - began < 30
    assert daemon.returncode == 0
    assert json.loads(log.splitlines()[-1])["event"] == last
    with LedgerReader.open(ledger) as reader:
        assert reader.load().batches == 0
