"""What slots show of runs, beside what records report of other runs of the same jobs."""

from __future__ import annotations

from collections.abc import Callable

from gwmond.model.pilot_life import Category
from tests.daemon.running import RunningDaemon, patient
from tests.pool.condor import CondorPool
from tests.pool.sandbox import wait_until

Start = Callable[..., RunningDaemon]
OUTCOME_WAIT_S = 8
TABLES: dict[str, dict[str, object]] = {
    **patient(2),
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


def _doing(running: RunningDaemon, pilot: str) -> tuple[str, int]:
    (found,) = running.document("pilots", "--name", pilot)["pilots"]
    return found["state"], found["running_jobs"]


def _runs_again(pool: CondorPool, cluster: int) -> None:
    again = f"ClusterId == {cluster} && JobStatus == 2 && NumShadowStarts == 2"
    pool.wait_for("its second run", lambda: pool.jobs(pool.schedds[0], again))


def test_a_second_run_soon_after_the_first_is_shown_and_runs_on(
    epochs: CondorPool, daemon: Start
) -> None:
    """The program fails at once, and the schedd tries it again on the same pilot."""
    epochs.start_pilot("retried", cores=1, memory=2048)
    running = daemon(epochs.collector, tables=TABLES)
    marker = epochs.local / "alice" / "tried"
    cluster = epochs.submit(
        epochs.schedds[0],
        executable="/bin/sh",
        arguments=f"\"-c 'test -e {marker} || {{ touch {marker}; exit 3; }}; exec sleep 600'\"",
        max_retries=1,
    )
    _runs_again(epochs, cluster)
    wait_until("two runs", lambda: len(running.stored("retried@pool.test")[1]) == 2)
    wait_until(
        "the record of the first",
        lambda: running.stored("retried@pool.test")[1][0].key.shadow_start == 1,
    )
    first, second = running.stored("retried@pool.test")[1]
    assert (first.key.shadow_start, first.end_us is None) == (1, False)
    assert second.start_us - first.start_us < 60_000_000
    running.wait_until("the wait for outcomes", _after(running, OUTCOME_WAIT_S + 4))
    assert _doing(running, "retried@pool.test") == ("running", 1)
    first, second = running.stored("retried@pool.test")[1]
    assert (second.end_us, second.open) == (None, True)
    epochs.remove(epochs.schedds[0])
    wait_until(
        "its record", lambda: running.stored("retried@pool.test")[1][1].key.shadow_start == 2
    )
    assert len(running.stored("retried@pool.test")[1]) == 2
    for pilot in epochs.pilots:
        pilot.stop_graceful()


def test_a_run_on_another_pilot_goes_on(epochs: CondorPool, daemon: Start) -> None:
    """Its pilot ends; the job runs again elsewhere, for longer than outcomes are waited for."""
    first = epochs.start_pilot("before", cores=1, memory=2048)
    running = daemon(epochs.collector, tables=TABLES)
    cluster = epochs.submit(epochs.schedds[0])
    epochs.wait_for(
        "it to run",
        lambda: epochs.jobs(epochs.schedds[0], f"ClusterId == {cluster} && JobStatus == 2"),
    )
    wait_until("its run", lambda: running.stored(first.name)[1])
    second = epochs.start_pilot("after", cores=1, memory=2048)
    first.stop_graceful()
    _runs_again(epochs, cluster)
    wait_until("the end of its first run", lambda: not running.stored(first.name)[1][0].open)
    wait_until("its second run", lambda: running.stored(second.name)[1])
    running.wait_until("the wait for outcomes", _after(running, OUTCOME_WAIT_S + 4))
    (lost,), (runs,) = running.stored(first.name)[1], running.stored(second.name)[1]
    assert lost.outcome is not None
    assert (lost.key.shadow_start, lost.outcome.category) == (1, Category.PREEMPTION_BADPUT)
    assert (runs.key.shadow_start, runs.end_us, runs.open) == (None, None, True)
    assert _doing(running, second.name) == ("running", 1)
    epochs.remove(epochs.schedds[0])
    second.stop_graceful()


def _after(running: RunningDaemon, seconds: float) -> Callable[..., bool]:
    """Whether polls have gone on for so long."""
    until = running.metrics().accounted_at + seconds
    return lambda metrics: metrics.accounted_at >= until
