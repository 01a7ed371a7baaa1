"""Sources fail: it is told once, the rest goes on, nothing is guessed, nothing counts twice."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.build.command_line import gwmond
from tests.daemon.gate import Gate
from tests.daemon.running import RunningDaemon, patient
from tests.daemon.scene import PILOT, Scene, pledged
from tests.daemon.scrape import Metrics

Start = Callable[..., RunningDaemon]
#: What answers does so within the deadline, on a busy machine too; what was known is not known any
#: more some configured intervals later.
POLL = patient(4, deadline_s=10, configured_s=11)
PLEDGES = {"Fed": 32, "Poor": 16, "Idle": 16}


@pytest.fixture
def sites(scene: Scene) -> Scene:
    """Fed has 10 jobs in the first schedd, Poor 6 in the second, Idle none."""
    scene.pilot("Fed", busy=PILOT)
    scene.resource("Fed", running=1)
    scene.resource("Poor")
    scene.resource("Idle")
    scene.jobs(10, "Fed")
    scene.jobs(6, "Poor", schedd=1)
    return scene


def _running(
    daemon: Start, *collectors: str, replicated: bool = False
) -> tuple[RunningDaemon, Metrics]:
    """A daemon that has seen all as it should be, and accounted some of it."""
    tables = POLL | pledged(**PLEDGES) | {"pool": {"replicated": replicated}}
    name = f"{len(collectors)}-{replicated}"
    running = daemon(*collectors, tables=tables, name=name, ledger=name)
    first = running.wait_until("counters", lambda m: m.seconds("Fed") > 0)
    _all_well(first)
    return running, first


def _all_well(metrics: Metrics) -> None:
    assert [metrics.state(s) for s in PLEDGES] == [
        "provisioning_bottleneck",
        "provisioning_bottleneck",
        "insufficient_demand",
    ]
    assert metrics.units("Fed", "provisioning_bottleneck") == 10
    assert metrics.units("Poor", "provisioning_bottleneck") == 6
    assert metrics.sum("gwmond_demand_jobs", status="idle") == 16


def _recovered(running: RunningDaemon, source: str, problem: str) -> Metrics:
    """All is as before, and that the problem is over was told once."""

    def well(metrics: Metrics) -> bool:
        rows = metrics.rows("gwmond_source_up", source=source)
        return bool(rows) and all(rows.values()) and metrics.state("Idle") == "insufficient_demand"

    running.wait_until(f"{source} to be well", well)
    metrics = running.next_polls(1)
    _all_well(metrics)
    assert len(running.log("problem", source=source, problem=problem)) == 1
    assert len(running.log("problem over", source=source, problem=problem)) == 1
    return metrics


def _complete(running: RunningDaemon, first: Metrics, last: Metrics, **capacities: float) -> None:
    """Every second of every site's capacity is in the counters, and once."""
    passed = last.accounted_at - first.accounted_at
    for site, capacity in (capacities or PLEDGES).items():
        spent = last.seconds(site) - first.seconds(site)
        assert spent == pytest.approx(capacity * passed, abs=capacity * 0.7)
        assert last.seconds(site) <= capacity * (time.time() - running.began)


@contextmanager
def _answering(running: RunningDaemon) -> Iterator[None]:
    """Scrapes are answered at once all the while."""
    with running.probe() as probe:
        yield
    probe.check()


def _unknown_demand(running: RunningDaemon, *unknown: str) -> Metrics:
    """Sites of which it is not known that no job waits; what is proven of Fed stays."""
    states = dict.fromkeys(unknown, "unknown")
    metrics = running.wait_state(**states, Fed="provisioning_bottleneck")
    for site in unknown:
        assert metrics.reason(site) == "demand"
    assert metrics.units("Fed", "provisioning_bottleneck") == 10
    assert metrics.units("Fed", "insufficient_demand") == 0
    assert metrics.units("Fed", "unknown") == 14
    before = metrics.seconds("Fed", "provisioning_bottleneck")
    running.wait_until("the rest", lambda m: m.seconds("Fed", "provisioning_bottleneck") > before)
    return metrics


def test_a_schedd_that_is_stopped(sites: Scene, daemon: Start) -> None:
    """A schedd that hangs times out; sites which its jobs could want are unknown meanwhile."""
    running, first = _running(daemon, sites.pool.collector)
    schedd = sites.pool.schedds[1]
    with _answering(running):
        sites.pool.signal("SCHEDD2", signal.SIGSTOP)
        metrics = _unknown_demand(running, "Poor", "Idle")
        assert metrics.value("gwmond_source_up", source=schedd, kind="demand") == 0
        problem = metrics.value("gwmond_problems_total", source=schedd, problem="timeout")
        assert problem is not None
        assert problem >= 2
        (event,) = running.log("problem", source=schedd, problem="timeout")
        assert "no answer within" in event["detail"]
        # What had no time left afterwards says who was silent; so does gwmond check.
        named = f"{schedd} (demand): no answer within"
        hurried = running.log("problem", problem="no_time_left")
        assert [event for event in hurried if named not in event["detail"]] == []
        checked = gwmond("check", "--config", running.config)
        assert checked.returncode == 3, checked.stdout + checked.stderr
        assert re.search(rf"\n{schedd}: timeout: (demand: )?no answer within", checked.stdout)
        assert checked.stdout.count(named) == checked.stdout.count("no_time_left: ")
        sites.pool.signal("SCHEDD2", signal.SIGCONT)
        _complete(running, first, _recovered(running, schedd, "timeout"))


def test_a_schedd_that_denies_and_then_dies(sites: Scene, daemon: Start) -> None:
    """A schedd that lets us read no more is told apart from one that is dead, whose successor is
    found at another address."""
    running, first = _running(daemon, sites.pool.collector)
    schedd = sites.pool.schedds[1]
    config = sites.pool.local / "condor_config"
    allowed = config.read_text()
    with _answering(running):
        config.write_text(f"{allowed}\nSCHEDD2.DENY_READ = *\n")
        sites.pool.tool("condor_reconfig", "-full")
        _unknown_demand(running, "Poor", "Idle")
        (event,) = running.log("problem", source=schedd, problem="denied")
        assert "DENIED" in event["detail"]

        config.write_text(allowed)
        sites.pool.signal("MASTER", signal.SIGSTOP)  # or the schedd would be back at once
        sites.pool.signal("SCHEDD2", signal.SIGKILL)
        refused = {"source": schedd, "problem": "refused"}
        running.wait_for("gwmond_problems_total", refused, bool)
        metrics = _unknown_demand(running, "Poor", "Idle")
        assert metrics.value("gwmond_source_up", source=schedd, kind="demand") == 0
        (_, event) = running.log("problem")
        assert refused.items() <= event.items()
        assert "refused the connection" in event["detail"]
        sites.pool.signal("MASTER", signal.SIGCONT)
        _complete(running, first, _recovered(running, schedd, "refused"))
        assert len(running.log("problem over", problem="denied")) == 1


def test_a_collector_that_is_silent(sites: Scene, daemon: Start) -> None:
    """A collector that accepts and stays silent: its replica suffices; where it held a part of the
    pool what it may know is unknown; without any other everything is."""
    address = sites.pool.collector
    with Gate(address) as gate, ExitStack() as probes:
        replicas = _running(daemon, address, gate.address, replicated=True)
        parts = _running(daemon, address, gate.address)
        alone = _running(daemon, gate.address)
        for running, _ in (replicas, parts, alone):
            probes.enter_context(_answering(running))
        gate.silence()
        metrics = parts[0].wait_state(Fed="unknown", Poor="unknown", Idle="unknown")
        assert metrics.reason("Fed") == "pending"
        assert metrics.units("Fed", "provisioned") == PILOT
        metrics = alone[0].wait_state(Fed="unknown", Poor="unknown", Idle="unknown")
        assert metrics.reason("Fed") == "pilots"
        assert metrics.units("Fed", "unknown") == 32
        assert not metrics.rows("gwmond_site_canonical_units", state="provisioned")
        metrics = replicas[0].metrics()
        _all_well(metrics)
        for source, up in ((gate.address, 0), (address, 1)):
            assert metrics.value("gwmond_source_up", source=source, kind="slots") == up
        for running, _ in (replicas, parts, alone):
            (event,) = running.log("problem")
            assert (event["source"], event["problem"]) == (gate.address, "timeout")
        gate.open()
        for running, first in (replicas, parts, alone):
            _complete(running, first, _recovered(running, gate.address, "timeout"))
        unknown = replicas[0].metrics().reasons("unknown", site="Fed")
        assert unknown <= {"missed_poll"}  # a slow machine


def test_a_collector_that_is_restarted(sites: Scene, daemon: Start) -> None:
    """After a restart an entry is unknown until the collector has heard of as many pilots again."""
    pool = sites.pool
    for name in ("i1", "i2"):
        sites.pilot("Idle", busy=PILOT, name=name)
    tables = POLL | pledged(Fed=32, Poor=16, Idle=16 + PILOT)
    tables["site"] |= {"collector_distrust": "1h"}
    running = daemon(pool.collector, tables=tables)
    first = running.wait_until("counters", lambda m: m.seconds("Idle") > 0)
    assert first.units("Idle", "provisioned") == 2 * PILOT
    with _answering(running):
        pool.restart("COLLECTOR")
        running.wait_state(Fed="unknown", Poor="unknown", Idle="unknown")
        for site in PLEDGES:
            sites.resource(site)
        sites.pilot("Fed", busy=PILOT, name="f1")
        bottleneck = "provisioning_bottleneck"
        metrics = running.wait_state(Idle="unknown", Fed=bottleneck, Poor=bottleneck)
        assert metrics.reason("Idle") == "young_collector"
        assert metrics.units("Idle", "unknown") == 16 + PILOT
        sites.pilot("Idle", busy=PILOT, name="i1")
        metrics = running.wait_until("a pilot", lambda m: m.registered(site="Idle") == 1)
        assert metrics.state("Idle") == "unknown"
        (event,) = running.log("problem", problem="young_collector")
        assert "fewer pilots than before: e-" in event["detail"]
        assert "unknown until 20" in event["detail"]
        sites.pilot("Idle", busy=PILOT, name="i2")
        last = running.wait_state(Idle="insufficient_demand")
    assert len(running.log("problem over", problem="young_collector")) == 1
    assert last.units("Idle", "provisioned") == 2 * PILOT
    _complete(running, first, last, Fed=32, Poor=16, Idle=16 + PILOT)
