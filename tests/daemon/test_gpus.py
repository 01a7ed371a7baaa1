"""GPUs that HTCondor itself feigns: their models, and how much of them jobs use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.daemon.running import RunningDaemon
from tests.pool.condor import CondorPool

#: condor_gpu_discovery's own simulations (``-simulate``): their models, and how many there are.
MODELS = {2: ("Tesla V100-PCIE-16GB", 2), 4: ("A100-SXM4-40GB", 1), 6: ("", 7)}
GPUS, PERIOD_S, SHARE = "gwmond_pilot_gpus", 4, 0.25
CONFIG = f"""
use feature:GPUs
GPU_DISCOVERY_EXTRA = -extra -simulate:{{kind}},{{number}}
use feature:Monitor(GPUs, WaitForExit, {PERIOD_S}, {{monitor}}, SUM:GPUs, PEAK:GPUsMemory)
STARTD_JOB_ATTRS = $(STARTD_JOB_ATTRS) GPUsUsage GPUsMemoryUsage
OSG_INSTITUTION_ID = "https://osg-htc.org/iid/{{kind}}"
STARTD_ATTRS = $(STARTD_ATTRS) OSG_INSTITUTION_ID
"""
#: What condor_gpu_utilization writes: so many seconds more did each GPU of the slot compute.
MONITOR = f"""#!/bin/sh
printf 'SlotMergeConstraint = true\\nUptimeGPUsSeconds = {SHARE * PERIOD_S}\\n- GPUsSlot0\\n'
"""


def test_models_and_use_of_gpus(htcondor: str, daemon: Callable[..., RunningDaemon]) -> None:
    """Truth: what condor_gpu_discovery feigns, and GPUsAverageUsage in the schedd's history."""
    with CondorPool(htcondor=htcondor, config="JOB_EPOCH_HISTORY = $(SPOOL)/epochs") as pool:
        monitor = pool.local / "monitor"
        monitor.write_text(MONITOR)
        monitor.chmod(0o755)
        for kind, (_, number) in MODELS.items():
            simulated = 1 if kind == 6 else number  # one GPU in seven parts
            config = CONFIG.format(kind=kind, number=simulated, monitor=monitor)
            pool.start_pilot(f"glidein_{kind}_1", cores=2, memory=4000, config=config)
        schedd = pool.schedds[0]
        a100 = f'TARGET.GPUs_DeviceName == "{MODELS[4][0]}"'
        job = pool.submit(schedd, seconds=20, request_gpus=1, requirements=a100)
        running = daemon(pool.collector)
        busy = running.wait_until("a busy GPU", lambda m: m.sum(GPUS, use="busy") == 1)
        pool.wait_for("its end", lambda: pool.jobs(schedd, history=True), 180)
        (ended,) = pool.jobs(schedd, projection=["ClusterId", "GPUsAverageUsage"], history=True)
        running.wait_until("the run", lambda m: m.sum("gwmond_job_runs_total") == 1)
        (run,) = running.document("runs")["runs"]
        pilots = running.document("pilots")["pilots"]
        groups = running.document("report", "--from", "1d", "--by", "gpu_model")["groups"]
        (user,) = running.document("report", "--from", "1d", "--by", "gpu_model,user")["groups"]
        (owner,) = running.document("report", "--from", "1d", "--by", "institution,user")["groups"]
        running.stop()
    assert (owner["institution"], owner["runs_ended"]) == ("https://osg-htc.org/iid/4", 1)
    assert {pilot["institution"][-1] for pilot in pilots} == set(map(str, MODELS))
    assert ended["ClusterId"] == job
    for model, number in MODELS.values():
        assert busy.sum(GPUS, model=model) == number, model
    assert busy.sum(GPUS, use="busy", model=MODELS[4][0]) == 1
    names = {model for model, _ in MODELS.values()}
    assert {pilot["gpu_model"] or "" for pilot in pilots} == names
    assert MODELS[4][0] in {group["gpu_model"] for group in groups} <= names | {"?"}
    assert (user["gpu_model"], user["user"]) == (MODELS[4][0], "alice@pool.test")
    assert user["runs_ended"] == 1
    assert 0 < ended["GPUsAverageUsage"] < 1
    assert run["gpus_used"] == pytest.approx(ended["GPUsAverageUsage"])
