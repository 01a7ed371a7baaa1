"""Real pilots check verdicts: the pool's own negotiator gives them jobs, or does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.entries.experiments import PilotResult
from gwmond.model.states import State
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import QUICK, Scene, pledged

CHECKED = "gwmond_verdicts_checked_total"
BOTTLENECK, NO_DEMAND = State.PROVISIONING_BOTTLENECK, State.INSUFFICIENT_DEMAND


def test_verdicts_that_pilots_confirm(
    scene: Scene, daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    """A pilot of an entry with a bottleneck runs a job, one of an entry without demand stays idle:
    both verdicts were right, and count once, although the daemon is killed in between."""
    pool = scene.pool
    tables = {**QUICK, **pledged(Starved=2, Bored=2)}
    tables["site"]["verdict_check"] = "45s"
    for site in ("Starved", "Bored"):
        scene.resource(site, cpus=2, memory=4096, requested_idle=1)
    scene.jobs(1, "Starved", request_memory=1000, seconds=600)
    running = daemon(pool.collector, tables=tables)
    metrics = running.wait_state(Starved=BOTTLENECK.value, Bored=NO_DEMAND.value)
    assert len(metrics.rows(CHECKED)) == 8
    assert metrics.sum(CHECKED) == 0
    running.next_polls(2)
    pilots = [
        pool.start_pilot(
            site.lower(),
            cores=2,
            memory=4096,
            attrs={"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": f"e-{site}"},
        )
        for site in ("Starved", "Bored")
    ]
    ran = {"site": "Starved", "entry": "e-Starved", "state": BOTTLENECK.value, "agreed": "true"}
    running.wait_for(CHECKED, ran, lambda n: n == 1)
    assert running.metrics().sum(CHECKED, site="Bored") == 0
    running.kill9()
    running.start()
    idle = {"site": "Bored", "entry": "e-Bored", "state": NO_DEMAND.value, "agreed": "true"}
    running.wait_for(CHECKED, idle, lambda n: n == 1)
    running.kill9()
    running.start()
    for pilot in pilots:
        pilot.stop_graceful()
    metrics = running.next_polls(3)
    assert [metrics.value(CHECKED, **one) for one in (ran, idle)] == [1, 1]
    assert metrics.sum(CHECKED) == 2
    with LedgerReader.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        found = {experiment.entry.site: experiment for experiment in ledger.experiments(0, 10**17)}
    assert {site: (key.verdict.state, key.result) for site, key in found.items()} == {
        "Starved": (BOTTLENECK, PilotResult.RAN),
        "Bored": (NO_DEMAND, PilotResult.IDLE),
    }
    assert (found["Starved"].verdict.reason, found["Starved"].verdict.evidence) == (
        "not_submitted",
        "estimated",
    )
    said = running.document("explain", "--pilot", pilots[1].name)
    assert said["first_line"].startswith(f"Pilot {pilots[1].name} NEVER HAD A JOB in ")
    assert said["reasons"][0]["reason"] in {"demand_gone", "taken_by_others"}  # as jobs began
    assert said["verdict"]["result"] == "idle"
    asked = {(one["pilots_asked_idle"], one["jobs_idle"]) for one in said["demand"]}
    assert asked - {(None, None)} == {(1, 0)}
    said = running.document("explain", "--pilot", pilots[0].name)
    assert said["reasons"][0]["reason"] == "had_jobs"
