"""Pilots that are real and really run jobs."""

from __future__ import annotations

import re
from collections.abc import Callable

from gwmond.model.poll.snapshot import OVERHEADS
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import Scene, pledged
from tests.daemon.scrape import Metrics


def _pilot_units(metrics: Metrics) -> dict[str, float]:
    return {
        use: metrics.sum("gwmond_pilot_canonical_units", site="Real", use=use, resource="cpu")
        for use in ("busy", "idle", "remainder")
    }


def _overhead(metrics: Metrics) -> dict[str, float]:
    """Units that are idle, by part, where there are any."""
    name = "gwmond_pilot_overhead_canonical_units"
    parts = {part: metrics.sum(name, site="Real", part=part, resource="cpu") for part in OVERHEADS}
    return {part: units for part, units in parts.items() if units}


def _demand(metrics: Metrics) -> dict[str, float]:
    name = "gwmond_demand_canonical_units"
    fates = {fate: metrics.sum(name, fate=fate) for fate in ("absorbed", "assigned")}
    return {"idle": metrics.sum("gwmond_demand_idle_canonical_units"), **fates}


def test_a_pilot_that_runs_jobs(scene: Scene, daemon: Callable[..., RunningDaemon]) -> None:
    """A real pilot's units are busy while jobs run there and idle after; what waits is absorbed
    by a pilot that waits in the queue, is a bottleneck without one, and runs on the next pilot."""
    pool, (schedd, _) = scene.pool, scene.pool.schedds
    entry = {"GLIDEIN_Site": "Real", "GLIDEIN_Entry_Name": "e-Real"}
    pool.start_pilot("one", cores=4, memory=8192, attrs=entry)
    scene.resource("Real", cpus=4, memory=8192, running=1)
    scene.jobs(2, "Real", request_memory=2000)
    pool.wait_for("two jobs to run", lambda: len(pool.jobs(schedd, "JobStatus == 2")) == 2)
    scene.jobs(2, "Real", request_memory=3500)
    pool.wait_for("three jobs to run", lambda: len(pool.jobs(schedd, "JobStatus == 2")) == 3)

    running = daemon(pool.collector, tables=pledged(Real=12))
    # A core is left, but no memory: the third job takes two units, as the one that waits would.
    four = {"busy": 4, "idle": 0, "remainder": 0}
    metrics = running.wait_until("four busy units", lambda m: _pilot_units(m) == four)
    assert metrics.units("Real", "provisioned") == 4
    assert _overhead(metrics) == {}, "a core without memory is no unit"
    assert _demand(metrics) == {"idle": 2, "absorbed": 0, "assigned": 2}
    assert metrics.state("Real") == "provisioning_bottleneck"
    assert metrics.units("Real", "provisioning_bottleneck") == 2
    assert metrics.value("gwmond_site_evidence_info", site="Real", evidence="measured") == 1

    scene.resource("Real", cpus=4, memory=8192, running=1, pending=1)
    metrics = running.wait_state(Real="filling")
    assert _demand(metrics) == {"idle": 2, "absorbed": 2, "assigned": 0}

    pool.start_pilot("two", cores=4, memory=8192, attrs=entry)
    scene.resource("Real", cpus=4, memory=8192, running=2)
    six = {"busy": 6, "idle": 2, "remainder": 0}
    metrics = running.wait_until("six busy units", lambda m: _pilot_units(m) == six)
    assert _overhead(metrics) == {"beside_jobs": 2}
    metrics = running.wait_state(Real="insufficient_demand")
    assert _demand(metrics) == {"idle": 0, "absorbed": 0, "assigned": 0}
    assert metrics.units("Real", "provisioned") == 8
    assert metrics.units("Real", "insufficient_demand") == 4
    # What pilots hold and what jobs fill of it are two numbers, in the command and on the page.
    (row,) = running.document("sites")["sites"]
    assert (row["provisioned_units"], row["busy_units"]) == (8, 6)
    page = running.get("/site?site=Real")
    figures = dict(re.findall(r"<dt>(provisioned|busy)</dt><dd>(\d+)</dd>", page))
    assert figures == {"provisioned": "8", "busy": "6"}

    pool.remove(schedd)
    metrics = running.wait_until("eight idle units", lambda m: _pilot_units(m)["idle"] == 8)
    assert metrics.units("Real", "provisioned") == 8
    assert _overhead(metrics) == {"between_jobs": 8}
    pool.start_pilot("three", cores=2, memory=4096, attrs=entry)
    pool.start_pilot("four", cores=1, memory=2048, attrs=entry, retire_after=0)
    pool.start_pilot("five", cores=1, memory=2048, attrs=entry).drain()
    scene.resource("Real", cpus=4, memory=8192, running=6)  # five have registered
    parts = {"between_jobs": 8, "first_job": 2, "retirement": 1, "draining": 1, "start": 4}
    running.wait_until("idle units of each part", lambda m: _overhead(m) == parts)
