"""The ledger cannot be written, or the port is taken: the daemon says so, and shows what it can."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.running import RunningDaemon, patient
from tests.daemon.scene import PILOT, Scene, pledged
from tests.daemon.scrape import SECONDS, Metrics
from tests.ledger.tmpfs import Tmpfs
from tests.pool.sandbox import wait_until

Start = Callable[..., RunningDaemon]
INTERVAL_S = 3.0
CAPACITY = 24


@pytest.fixture(scope="module")
def steady(shared_scene: Scene) -> Scene:
    """One site: 8 units in use, 10 bottleneck, 6 without demand."""
    shared_scene.pilot("Busy", busy=PILOT)
    shared_scene.resource("Busy", running=1)
    shared_scene.jobs(10, "Busy")
    return shared_scene


def _tables(url: str = "") -> dict[str, dict[str, object]]:
    return patient(INTERVAL_S) | pledged(Busy=CAPACITY) | ({"ledger": {"url": url}} if url else {})


def _counting(running: RunningDaemon, above: float = 0) -> Metrics:
    return running.wait_until("counters", lambda m: m.seconds("Busy") > above)


def _complete(first: Metrics, last: Metrics, *, restarted: bool = False) -> None:
    """The site's capacity is in the counters for all the time, once; none of it is unknown.

    Unless it was restarted: what it then did not see for too long, on a slow machine, is.
    """
    passed = last.accounted_at - first.accounted_at
    unseen = (
        last.seconds("Busy", "unknown") - first.seconds("Busy", "unknown") if restarted else 0.0
    )
    spent = last.seconds("Busy") - first.seconds("Busy")
    assert spent == pytest.approx(CAPACITY * passed, abs=CAPACITY)
    for state, units in (("provisioned", 8), ("provisioning_bottleneck", 10)):
        spent = last.seconds("Busy", state) - first.seconds("Busy", state)
        assert spent == pytest.approx(units * (passed - unseen / CAPACITY), abs=units), state


def _told(running: RunningDaemon, problem: str, *words: str) -> None:
    """That the ledger is not written was told once, with the remedy, and is to be seen."""
    metrics = running.wait_for(
        "gwmond_problems_total", {"source": "ledger", "problem": problem}, lambda n: (n or 0) > 1
    )
    assert metrics.value("gwmond_source_up", source="ledger", kind="commit") == 0
    assert metrics.state("Busy") == "provisioning_bottleneck"
    (event,) = running.log("problem")
    assert (event["source"], event["problem"]) == ("ledger", problem)
    for word in words:
        assert word in event["detail"]
    assert "ledger" in running.get("/")


def _over(running: RunningDaemon, problem: str) -> Metrics:
    metrics = running.wait_for(
        "gwmond_source_up", {"source": "ledger", "kind": "commit"}, lambda up: up == 1
    )
    assert len(running.log("problem", problem=problem)) == 1
    running.wait_until("the news", lambda _: bool(running.log("problem over", problem=problem)))
    return metrics


def test_a_full_disk(steady: Scene, daemon: Start, disk: Tmpfs) -> None:
    """While the disk is full gauges go on and counters stand still; with space, all is made up."""
    running = daemon(steady.pool.collector, tables=_tables(f"sqlite:///{disk.path}/ledger.sqlite"))
    first = _counting(running)
    with running.probe() as probe:
        disk.fill()
        _told(running, "full", "full", "Counters stand still")
        still = running.metrics()
        after = running.next_polls(3)
        assert after.rows(SECONDS) == still.rows(SECONDS)
        assert after.sum("gwmond_ledger_waiting_increments") > 0
        disk.free()
        last = _over(running, "full")
    probe.check()
    assert last.sum("gwmond_ledger_waiting_increments") == 0
    _complete(first, last)
    running.kill9()
    running.start()
    _complete(first, _counting(running, last.seconds("Busy")), restarted=True)


def test_a_ledger_that_is_corrupt_at_the_start(
    steady: Scene, daemon: Start, tmp_path: Path
) -> None:
    """A damaged file is left as it is; once it is moved away a new ledger begins."""
    file = tmp_path / "ledger.sqlite"
    noise = random.Random(1).randbytes(50_000)
    file.write_bytes(noise)
    running = daemon(steady.pool.collector, tables=_tables())
    _told(running, "corrupt", str(file), "restore a backup")
    assert file.read_bytes() == noise
    assert not running.metrics().rows(SECONDS)
    file.rename(tmp_path / "aside")
    first = _counting(running)
    _over(running, "corrupt")
    _complete(first, _counting(running, first.seconds("Busy")))


def test_a_ledger_that_is_damaged_while_it_is_used(
    steady: Scene, daemon: Start, tmp_path: Path
) -> None:
    """Damage stops the counters; with a backup put back, what it lacks becomes unknown time."""
    configured_s = 30.0
    poll = patient(INTERVAL_S, configured_s - 1, configured_s)
    running = daemon(steady.pool.collector, tables=_tables() | poll)
    saved = _counting(running)
    assert running.stop()[0] == 0
    ended = time.time()
    file, aside = tmp_path / "ledger.sqlite", tmp_path / "aside"
    backup = file.read_bytes()
    running.start()
    _counting(running, saved.seconds("Busy"))
    os.truncate(file, file.stat().st_size // 2)
    _told(running, "corrupt", "was cut", "restore a backup")
    wait_until("more than two periods", lambda: time.time() > ended + 2 * configured_s)
    aside.mkdir()
    restored = file.with_name("restored")
    restored.write_bytes(backup)
    for damaged in tmp_path.glob("ledger.sqlite*"):
        if not damaged.name.endswith(".lock"):
            damaged.rename(aside / damaged.name)
    restored.rename(file)
    metrics = _over(running, "corrupt")
    last = _counting(running, metrics.seconds("Busy"))
    passed = last.accounted_at - saved.accounted_at
    spent = last.seconds("Busy") - saved.seconds("Busy")
    assert spent == pytest.approx(CAPACITY * passed, abs=CAPACITY)
    assert last.reasons("unknown") == {"missed_poll"}


def test_two_daemons_on_one_ledger(steady: Scene, daemon: Start) -> None:
    """The second shows gauges and says who has the ledger; it takes over once that is killed."""
    first = daemon(steady.pool.collector, tables=_tables())
    began = _counting(first)
    second = daemon(steady.pool.collector, tables=_tables(), name="second")
    with second.probe() as probe:
        _told(second, "locked", "another gwmond (pid ", "Stop that process")
        assert not second.metrics().rows(SECONDS)
        assert not first.log("problem")
        before = first.metrics()
        assert before.value("gwmond_ledger_standby") == 0
        second.wait_for("gwmond_ledger_standby", {}, lambda standby: standby == 1)
        first.signal(signal.SIGSTOP)
        second.wait_for("gwmond_ledger_standby", {}, lambda standby: standby == 0)
        first.signal(signal.SIGCONT)
        second.wait_for("gwmond_ledger_standby", {}, lambda standby: standby == 1)
        first.kill9()
        after = _counting(second)
        assert after.value("gwmond_ledger_standby") == 0
        _over(second, "locked")
    probe.check()
    for labels, value in before.rows(SECONDS).items():
        assert after[SECONDS, labels] >= value
    last = _counting(second, after.seconds("Busy"))
    _complete(began, last, restarted=True)
    assert last.seconds("Busy") <= CAPACITY * (time.time() - first.began)
