"""``gwmond demo``, as it is typed."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path

from gwmond.commands import demo
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.service.host.clock import REPLAY
from tests.build import demos
from tests.build.otlp_sink import OK, Reply, sink
from tests.daemon.scrape import Metrics
from tests.pool.sandbox import PATIENCE_S, wait_until


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


def polls(url: str) -> tuple[float, float]:
    """How many there were, and how long what is to be exported waits."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_S) as answer:
        found = Metrics.parse(answer.read().decode())
    return found.sum("gwmond_polls_total"), found.sum("gwmond_trace_backlog_seconds")


def test_polls_do_not_wait_for_a_receiver_of_traces(tmp_path: Path) -> None:
    """While it hangs they go on; when it answers it gets what waited."""
    with sink(reply=Reply(hang=True)) as receiver:
        tables = f"[traces]\nendpoint = '{receiver.url}'\ntimeout = '1s'\n"
        arguments = tmp_path / "gwmond.toml", "--speed", "600"
        with demos.demo([sys.executable, "-m", "gwmond"], *arguments, tables=tables) as url:
            receiver.await_requests(1)
            before, _ = polls(url)
            wait_until("polls go on", lambda: polls(url)[0] >= before + 2)
            assert polls(url)[1] > 0
            receiver.reply = OK
            receiver.await_spans(1)
    names = {span.name for span in receiver.accepted}
    assert {"job", "queue", "run", "execute"} <= names
