"""What slots show of runs, beside what records tell of other runs of the same jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gwmond.ledger.reader import LedgerReader
from gwmond.model.pilot_facts import Category
from gwmond.model.stored_pilots import AttemptRow
from tests.daemon.running import RunningDaemon, gwmond
from tests.pool.condor import CondorPool
from tests.pool.sandbox import wait_until

Start = Callable[..., RunningDaemon]
OUTCOME_WAIT_S = 8
TABLES: dict[str, dict[str, object]] = {
    "poll": {"interval": "2s", "deadline": "1900ms"},
    "pilots": {
        "settle_delay": "2s",
        "outcome_wait": f"{OUTCOME_WAIT_S}s",
        "silent_wait": "20s",
        "verdict_after": "10m",
        "end_tolerance": "5s",
        "assumed_end": "8s",
        "claims_every": "2s",
    },
}


@pytest.fixture(scope="module")
def pool() -> Iterator[CondorPool]:
    """A pool whose first schedd keeps an epoch history."""
    with CondorPool(config="JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history") as pool:
        yield pool


def _ask(running: RunningDaemon, *arguments: str) -> dict[str, Any]:
    done = gwmond(*arguments, "--format", "json", "--config", str(running.config))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _runs(running: RunningDaemon, pilot: str) -> list[AttemptRow]:
    """The runs on a pilot by their start, as they are stored."""
    with LedgerReader.open(f"sqlite:///{running.config.parent / 'ledger.sqlite'}") as ledger:
        ids = [row.id for row in ledger.find_pilots([pilot]).get(pilot, [])]
        rows = [row for rows in ledger.attempts_of(ids).values() for row in rows]
    return sorted(rows, key=lambda row: row.start_us)


def _doing(running: RunningDaemon, pilot: str) -> tuple[str, int]:
    (found,) = _ask(running, "pilots", "--name", pilot)["pilots"]
    return found["state"], found["running_jobs"]


def _runs_again(pool: CondorPool, cluster: int) -> None:
    again = f"ClusterId == {cluster} && JobStatus == 2 && NumShadowStarts == 2"
    pool.wait_for("its second run", lambda: pool.jobs(pool.schedds[0], again))


def test_a_second_run_soon_after_the_first_is_shown_and_runs_on(
    pool: CondorPool, daemon: Start
) -> None:
    """The program fails at once, and the schedd tries it again on the same pilot."""
    pool.start_pilot("retried", cores=1, memory=2048)
    running = daemon(pool.collector, tables=TABLES)
    marker = pool.local / "alice" / "tried"
    cluster = pool.submit(
        pool.schedds[0],
        executable="/bin/sh",
        arguments=f"\"-c 'test -e {marker} || {{ touch {marker}; exit 3; }}; exec sleep 600'\"",
        max_retries=1,
    )
    _runs_again(pool, cluster)
    wait_until("two runs", lambda: len(_runs(running, "retried@pool.test")) == 2)
    first, second = _runs(running, "retried@pool.test")
    assert (first.key.number, first.end_us is None) == (1, False)
    assert second.start_us - first.start_us < 60_000_000
    running.wait_until("the wait for outcomes", _after(running, OUTCOME_WAIT_S + 4))
    assert _doing(running, "retried@pool.test") == ("running", 1)
    first, second = _runs(running, "retried@pool.test")
    assert (second.end_us, second.open) == (None, True)
    pool.remove(pool.schedds[0])
    wait_until("its record", lambda: _runs(running, "retried@pool.test")[1].key.number == 2)
    assert len(_runs(running, "retried@pool.test")) == 2
    for pilot in pool.pilots:
        pilot.stop_graceful()


def test_a_run_on_another_pilot_goes_on(pool: CondorPool, daemon: Start) -> None:
    """Its pilot ends; the job runs again elsewhere, for longer than outcomes are waited for."""
    first = pool.start_pilot("before", cores=1, memory=2048)
    running = daemon(pool.collector, tables=TABLES)
    cluster = pool.submit(pool.schedds[0])
    pool.wait_for(
        "it to run", lambda: pool.jobs(pool.schedds[0], f"ClusterId == {cluster} && JobStatus == 2")
    )
    wait_until("its run", lambda: _runs(running, first.name))
    second = pool.start_pilot("after", cores=1, memory=2048)
    first.stop_graceful()
    _runs_again(pool, cluster)
    wait_until("the end of its first run", lambda: not _runs(running, first.name)[0].open)
    wait_until("its second run", lambda: _runs(running, second.name))
    running.wait_until("the wait for outcomes", _after(running, OUTCOME_WAIT_S + 4))
    (lost,), (runs,) = _runs(running, first.name), _runs(running, second.name)
    assert lost.outcome is not None
    assert (lost.key.number, lost.outcome.category) == (1, Category.PREEMPTION_BADPUT)
    assert (runs.key.number, runs.end_us, runs.open) == (None, None, True)
    assert _doing(running, second.name) == ("running", 1)
    pool.remove(pool.schedds[0])
    second.stop_graceful()


def _after(running: RunningDaemon, seconds: float) -> Callable[..., bool]:
    """Whether polls have gone on for so long."""
    until = running.metrics().accounted_at + seconds
    return lambda metrics: metrics.accounted_at >= until
