"""Incidents in a real pool, through a real Prometheus and a real Alertmanager.

A site is starved, a black hole eats jobs, a schedd hangs, and at last gwmond itself. Time goes 60
times as fast for the rules: what is an hour there is a minute here.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.alerts.rules import ALERTS, DIRECTORY, RECORDING, scaled
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import PUNCTUAL, Scene, at, pledged
from tests.pool.alertmanager import Alertmanager
from tests.pool.condor import CondorPool
from tests.pool.prometheus import Prometheus

FACTOR = 60
#: Amounts of a small pool, and ages that suit polls of 4 seconds.
NUMBERS = {
    "poll_age_seconds": 20,
    "history_lag_seconds": 25,
    "starved_hours": 5,
    "minimum_hours": 0.01,
    "pool_starved_ratio": 0.1,
    "misconfigured_runs": 3,
    "decision_problem_ratio": 1,
}
PATIENCE_S = 240


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A pool whose schedds keep a record of each run."""
    with CondorPool(config="JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history") as pool:
        yield Scene(pool)


@pytest.fixture
def manager() -> Iterator[Alertmanager]:
    """With the configuration that is shipped."""
    with Alertmanager(DIRECTORY / "alertmanager.yml") as running:
        yield running


@pytest.fixture
def rules(tmp_path: Path) -> list[Path]:
    """The rules that are shipped, but for their time and their thresholds."""
    files = []
    for file in (RECORDING, ALERTS):
        files.append(tmp_path / file.name)
        files[-1].write_text(scaled(file.read_text(), FACTOR, NUMBERS))
    return files


def _pool(scene: Scene) -> None:
    """Two sites that their frontend does not let grow, one that is well, and one black hole."""
    limit = {"TotalGlideinsPerEntry": (1, 1)}
    for site in ("Starved", "Hungry"):
        scene.resource(site, requested_idle=0, limits=limit)
    for site in ("Good", "Hole"):
        scene.resource(site, cpus=2, memory=4096, running=1, requested_idle=0)
    for name in ("good1", "good2"):
        entry = {"GLIDEIN_Site": "Good", "GLIDEIN_Entry_Name": "e-Good"}
        scene.pool.start_pilot(name, cores=2, memory=4096, attrs=entry)
    entry = {"GLIDEIN_Site": "Hole", "GLIDEIN_Entry_Name": "e-Hole"}
    scene.pool.start_pilot("hole", attrs=entry, config="USER_JOB_WRAPPER = /bin/false")


def test_incidents(
    scene: Scene,
    prometheus: Callable[..., Prometheus],
    manager: Alertmanager,
    rules: list[Path],
    tmp_path: Path,
) -> None:
    """The right alerts fire and say why; what another one explains is inhibited; all resolve."""
    pool = scene.pool
    _pool(scene)
    tables = {**PUNCTUAL, **pledged(Starved=40, Hungry=40, Good=4, Hole=1)}
    with RunningDaemon(tmp_path, [pool.collector], tables) as running:
        _play(scene, running, prometheus, manager, rules)


def _play(
    scene: Scene,
    running: RunningDaemon,
    prometheus: Callable[..., Prometheus],
    manager: Alertmanager,
    rules: list[Path],
) -> None:
    pool = scene.pool
    running.wait_until("three pilots", lambda m: m.registered() == 3)
    instance = f"127.0.0.1:{running.port}"
    prometheus(instance, options={"job_name": "gwmond"}, rules=rules, alertmanager=manager.listen)
    waiting = scene.jobs(20, "Starved")
    pool.submit(pool.schedds[0], 60, seconds=2, requirements=at("Good", "Hole"))

    # A site starves: which one, and why.
    starved = manager.wait_for("GwmondSiteStarved", site="Starved", timeout=PATIENCE_S)
    assert starved.labels == {
        "job": "gwmond",
        "instance": instance,
        "resource": "cpu",
        "site": "Starved",
        "severity": "warning",
    }
    said = starved.annotations["description"]
    assert "The main reason is frontend_limit at entry e-Starved." in said
    assert starved.annotations["summary"].startswith("Site Starved starves")

    # The black hole is named, and no other site.
    hole = manager.wait_for("GwmondMisconfigurationBadput", site="Hole", timeout=PATIENCE_S)
    assert "e-Hole" in hole.annotations["description"]
    named = {alert.labels["site"] for alert in manager.alerts() if alert.name == hole.name}
    assert named == {"Hole"}

    # One site that starves is no pool, however much of the pool it is; with another one it is.
    assert not [alert for alert in manager.alerts() if alert.name == "GwmondPoolStarved"]
    hungry = scene.jobs(20, "Hungry")
    whole = manager.wait_for("GwmondPoolStarved", timeout=PATIENCE_S)
    assert "The main reason is frontend_limit" in whole.annotations["description"]
    manager.wait_for("GwmondSiteStarved", inhibited=True, timeout=PATIENCE_S)

    # A schedd hangs: what comes of it is inhibited.
    pool.signal("SCHEDD2", signal.SIGSTOP)
    schedd = pool.schedds[1]  # on a busy machine it takes the time of other queries, too
    silent = manager.wait_for("GwmondSourceDown", source=schedd, timeout=PATIENCE_S)
    assert "demand" in silent.annotations["description"]
    late = manager.wait_for("GwmondHistoryLag", inhibited=True, timeout=PATIENCE_S)
    assert f"of {schedd}, " in late.annotations["description"]

    # All of that ends.
    pool.signal("SCHEDD2", signal.SIGCONT)
    for cluster in (waiting, hungry):
        scene.remove(cluster)
    manager.wait_gone(
        *("GwmondSourceDown", "GwmondHistoryLag", "GwmondSiteStarved", "GwmondPoolStarved"),
        timeout=PATIENCE_S,
    )

    # At last gwmond itself: nothing else is told, and it comes back.
    running.signal(signal.SIGSTOP)
    down = manager.wait_for("GwmondDown", timeout=PATIENCE_S)
    assert f"scrape gwmond at {instance}" in down.annotations["description"]
    told = {alert.name for alert in manager.alerts() if not alert.inhibited}
    assert told <= {"GwmondDown", "GwmondPollStale"}
    running.signal(signal.SIGCONT)
    manager.wait_gone("GwmondDown", "GwmondPollStale", timeout=PATIENCE_S)
