"""Ads that make no sense harm nobody but what they describe."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.daemon.running import RunningDaemon, patient
from tests.daemon.scene import PILOT, Scene, pledged
from tests.pool import feign
from tests.pool.adtext import Expr, Value

#: "Caf", and a byte that is no UTF-8.
LATIN = Expr('"Caf\\351"')
NOTHING = Expr("undefined")
BROKEN = Expr("1 / 0")

SLOTS: dict[str, dict[str, Value]] = {
    "latin-site": {"GLIDEIN_Site": LATIN},
    "latin-everything": {"GLIDEIN_Site": LATIN, "GLIDEIN_Entry_Name": LATIN, "OpSys": LATIN},
    "no-entry": {"GLIDEIN_Site": NOTHING, "GLIDEIN_Entry_Name": NOTHING},
    "site-is-a-number": {"GLIDEIN_Site": 7, "GLIDEIN_Entry_Name": BROKEN},
    "cores-are-a-word": {"Cpus": "many", "TotalSlotCpus": "many"},
    "negative-memory": {"Memory": -5, "TotalSlotMemory": -5},
    "infinite-cores": {"Cpus": 1e300, "TotalSlotCpus": 1e300},
    "undefined-size": {"Cpus": NOTHING, "TotalSlotCpus": NOTHING},
    "strange-children": {"ChildCpus": Expr('{ 1, undefined, "x" }'), "ChildMemory": 7},
    "strange-times": {"GLIDEIN_ToDie": "never", "DaemonStartTime": -1, "GLIDEIN_ToRetire": BROKEN},
    "strange-state": {"State": NOTHING, "Activity": 3, "SlotType": LATIN},
}
RESOURCES: dict[str, dict[str, Value]] = {
    "e-negative": {"GlideFactoryMonitorStatusIdle": -7, "GlideFactoryMonitorStatusPending": -7},
    "e-words": {"GlideFactoryMonitorStatusIdle": "few", "GLIDEIN_MaxMemMBs": "lots"},
    "e-infinite": {"GlideFactoryConfigPerEntryMaxGlideins": 1e300, "GLIDEIN_CPUS": "1e300"},
    "e-latin": {"GlideClientName": LATIN, "GlideClientLimitTotalGlideinsPerEntry": LATIN},
    "e-broken": {"GLIDEIN_In_Downtime": BROKEN, "GlideClientMonitorGlideinsRequestIdle": BROKEN},
    "e-nameless": {"GlideFactoryName": NOTHING, "GlideClientName": NOTHING},
}


def test_ads_that_make_no_sense(shared_scene: Scene, daemon: Callable[..., RunningDaemon]) -> None:
    """What is undefined, not UTF-8, absurd or missing is counted as a problem and told once; the
    entries that are described well are as they were, and no number is absurd."""
    scene = shared_scene
    scene.pilot("Good", busy=PILOT)
    scene.resource("Good", running=1)
    scene.jobs(5, "Good")
    running = daemon(scene.pool.collector, tables=pledged(Good=20) | patient(4))
    before = running.wait_until(
        "the good site's state", lambda m: m.units("Good", "provisioning_bottleneck") == 5
    )
    assert not before.rows("gwmond_problems_total")

    slots = [
        feign.partitionable_slot(f"{name}@bad", glidein=feign.glidein("e-bad", "Bad")) | more
        for name, more in SLOTS.items()
    ]
    scene.pool.advertise(slots, feign.COMMANDS["Machine"])
    for entry, more in RESOURCES.items():
        scene.pool.advertise([feign.glideresource(entry, "Bad") | more], "UPDATE_AD_GENERIC")
    scene.jobs(2, "Bad", attrs={"RequestCpus": "lots"})
    scene.jobs(2, "Bad", attrs={"RequestMemory": BROKEN, "x509UserProxyVOName": LATIN})
    scene.jobs(2, "Bad", attrs={"MaxWallTimeMins": "long", "AcctGroup": LATIN})
    scene.jobs(2, requirements='TARGET.GLIDEIN_Site == "Caf\\351" || TARGET.Nothing')

    metrics = running.next_polls(3)
    assert metrics.units("Good", "provisioning_bottleneck") == 5
    assert metrics.units("Good", "provisioned") == PILOT
    told = {
        ("bad_size", scene.pool.collector): "cores-are-a-word@bad",
        ("no_site", scene.pool.collector): "no-entry@bad",
        ("bad_request", scene.pool.schedds[0]): "RequestCpus of 2 jobs is no number",
    }
    for (problem, source), words in told.items():
        labels = {"source": source, "problem": problem}
        assert (metrics.value("gwmond_problems_total", **labels) or 0) > 2
        (event,) = running.log("problem", **labels)
        assert words in event["detail"]
    assert len(running.log("problem")) == len(told)
    assert all(metrics.rows("gwmond_source_up").values())
    for entry in ("e-negative", "e-words", "e-infinite"):
        labels = {"entry": entry, "state": "unknown"}
        assert metrics.value("gwmond_site_state", **labels) == 1
    units = metrics.rows("gwmond_site_canonical_units").values()
    assert all(math.isfinite(n) and 0 <= n < 1e5 for n in units)
    assert metrics.sum("gwmond_demand_jobs", status="idle") == 13
    assert metrics.sum("gwmond_ledger_residual_seconds") == 0
