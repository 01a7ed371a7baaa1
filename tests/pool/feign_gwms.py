"""Feigned ads of GlideinWMS's frontend and factory.

The attributes follow GlideinWMS 3.11: classes ResourceClassad and FrontendMonitorClassad in
frontend/glideinFrontendInterface.py, limits and curbs in frontend/glideinFrontendElement.py,
EntryClassad and createGlideinClientMonitoringFile in factory/glideFactoryInterface.py. What begins
with GlideFactoryMonitor or GlideinMonitor counts pilots, GlideClientMonitorGlideins… *slots*.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from tests.pool.adtext import Ad, Value

_VERSION = "glideinWMS v3_11_1"
CORES = 8
"""Of a pilot, where nothing else is said."""


def _entry_attributes(
    site: str, cpus: int = CORES, memory: int = 16384, gpus: int = 0, walltime: int = 172800
) -> Ad:
    """Attributes of a factory's entry, which are copied into every ad about it.

    GLIDEIN_CPUS is a string there because it may also be "auto".
    """
    ad: Ad = {
        "GLIDEIN_Site": site,
        "GLIDEIN_ResourceName": site,
        "GLIDEIN_Gatekeeper": f"ce.{site.lower()}.test:9619",
        "GLIDEIN_GridType": "condor",
        "GLIDEIN_CPUS": str(cpus),
        "GLIDEIN_MaxMemMBs": memory,
        "GLIDEIN_Max_Walltime": walltime,
    }
    if gpus:
        ad["GLIDEIN_Resource_Slots"] = f"GPUs,{gpus},type=main"
    return ad


def _status(
    pending: int, running: int, held: int, staging: int, cores: int, idle: int, most: int
) -> Ad:
    """A factory's counts of pilots by state, and what is requested of it.

    `pending` wait at the site; `staging` are those not yet accepted there ("Wait").
    """
    return {
        "StatusIdle": pending + staging,
        "StatusPending": pending,
        "StatusWait": staging,
        "StatusStageIn": 0,
        "StatusStageOut": 0,
        "StatusIdleOther": 0,
        "StatusRunning": running,
        "StatusHeld": held,
        "StatusRunningCores": running * cores,
        "RequestedIdle": idle,
        "RequestedAdjustedIdle": idle,
        "RequestedMaxGlideins": most,
        "RequestedIdleCores": idle * cores,
        "RequestedMaxCores": most * cores,
    }


def _totals(status: Mapping[str, Value]) -> Ad:
    """The same, summed over all clients of the entry (here there is but one)."""
    return {f"Total{key}": value for key, value in status.items()}


def _factory_limits(limits: Mapping[str, tuple[int, int]]) -> Ad:
    return {
        f"Status_GlideFactoryLimit{name}": f"count={count}, limit={limit}"
        for name, (count, limit) in limits.items()
    }


def glideresource(
    entry: str = "entry",
    site: str = "Site",
    factory: str = "factory",
    glidein: str = "glidein",
    client: str = "frontend.main",
    *,
    pending: int = 0,
    running: int = 0,
    held: int = 0,
    staging: int = 0,
    requested_idle: int = 0,
    requested_max: int = 100,
    jobs_idle: int = 0,
    jobs_running: int = 0,
    slots_idle: int = 0,
    slots_running: int = 0,
    limits: Mapping[str, tuple[int, int]] | None = None,
    curbs: Mapping[str, tuple[int, int]] | None = None,
    factory_limits: Mapping[str, tuple[int, int]] | None = None,
    down: Value = False,
    cpus: int = 8,
    memory: int = 16384,
    gpus: int = 0,
    walltime: int = 172800,
    factory_heard: bool = True,
    sequence: int = 0,
    **more: Value,
) -> Ad:
    """What a frontend's group `client` ("frontend.group") publishes of one entry, in the user pool.

    `limits` and `curbs` (TotalGlideinsPerEntry, IdleGlideinsGlobal …, without the prefix "Curb")
    and `factory_limits` (HeldGlideinsPerEntry …) map a name to (count, limit). Without
    `factory_heard` there is nothing which comes from a glidefactoryclient ad.
    """
    reference = f"{entry}@{glidein}@{factory}"
    frontend, _, group = client.rpartition(".")
    ad: Ad = {
        "MyType": "glideresource",
        "GlideinMyType": "glideresource",
        "GlideinWMSVersion": _VERSION,
        "Name": f"{reference}@{client}",
        "GlideFactoryName": reference,
        "GlideClientName": client,
        "GlideFrontendName": frontend,
        "GlideGroupName": group,
        "GlideFrontendHAMode": "master",
        "UpdateSequenceNumber": sequence,
        **_entry_attributes(site, cpus, memory, gpus, walltime),
        "GLIDEIN_In_Downtime": str(down) if isinstance(down, bool) else down,
        "GlideClientMatchingGlideinCondorExpr": "True",
        "GlideClientConstraintJobCondorExpr": "JobUniverse==5",
        "GlideClientMatchingInternalPythonExpr": "True",
        "GlideClientConstraintFactoryCondorExpr": "True",
        "GlideFactoryConfigPerEntryMaxIdle": 100,
        "GlideFactoryConfigPerEntryMaxHeld": 50,
        "GlideFactoryConfigPerEntryMaxGlideins": 1000,
        "GlideClientConfigGroupMaxRunningPerEntry": 1000,
        "GlideClientConfigGroupMaxIdleVMsPerEntry": 100,
        "GlideClientConfigGroupMaxRunningTotal": 10000,
        "GlideClientConfigFrontendMaxRunningTotal": 20000,
    }
    monitored = {
        "JobsIdle": jobs_idle,
        "JobsIdleMatching": jobs_idle,
        "JobsIdleEffective": max(jobs_idle - slots_idle, 0),
        "JobsIdleOld": 0,
        "JobsIdleUnique": 0,
        "JobsRunning": jobs_running,
        "JobsRunningHere": jobs_running,
        "JobsRunningMax": 1000,
        "GlideinsTotal": slots_idle + slots_running,
        "GlideinsIdle": slots_idle,
        "GlideinsRunning": slots_running,
        "GlideinsFailed": 0,
        "GlideinsTotalCores": running * cpus,
        "GlideinsIdleCores": slots_idle * cpus,
        "GlideinsRunningCores": jobs_running,
        "GlideinsRequestIdle": requested_idle,
        "GlideinsRequestMaxRun": requested_max,
    }
    ad |= {f"GlideClientMonitor{key}": value for key, value in monitored.items()}
    if factory_heard:
        status = _status(pending, running, held, staging, cpus, requested_idle, requested_max)
        heard = status | _totals(status) | _factory_limits(factory_limits or {})
        ad |= {f"GlideFactoryMonitor{key}": value for key, value in heard.items()}
    for name, (count, limit) in (limits or {}).items():
        ad[f"GlideClientLimit{name}"] = f"count={count}, limit={limit}"
    for name, (count, curb) in (curbs or {}).items():
        ad[f"GlideClientCurbCurb{name}"] = f"count={count}, curb={curb}"
    return ad | more


def glidefrontendmonitor(
    frontend: str = "frontend",
    groups: tuple[str, ...] = ("main",),
    *,
    idle: int = 0,
    idle_600: int = 0,
    idle_3600: int = 0,
    **more: Value,
) -> Ad:
    """What a frontend publishes of itself in the user pool: jobs idle, and idle for that long."""
    ad: Ad = {
        "MyType": "glidefrontendmonitor",
        "GlideinMyType": "glidefrontendmonitor",
        "GlideinWMSVersion": _VERSION,
        "Name": frontend,
        "GlideFrontendName": frontend,
        "GlideFrontendGroups": ",".join(groups),
        "GlideFrontendHAMode": "master",
        "GlideFrontend_IdleJobs_Total": idle,
        "GlideFrontend_IdleJobs_600": idle_600,
        "GlideFrontend_IdleJobs_3600": idle_3600,
        "UpdateSequenceNumber": 0,
    }
    return ad | more


def glidefactoryclient(
    entry: str = "entry",
    site: str = "Site",
    factory: str = "factory",
    glidein: str = "glidein",
    client: str = "frontend.main",
    *,
    pending: int = 0,
    running: int = 0,
    held: int = 0,
    staging: int = 0,
    requested_idle: int = 0,
    requested_max: int = 100,
    jobs_idle: int = 0,
    info_age: int = 0,
    limits: Mapping[str, tuple[int, int]] | None = None,
    **more: Value,
) -> Ad:
    """What a factory publishes of one entry and one frontend's group, in the WMS collector."""
    reference = f"{entry}@{glidein}@{factory}"
    status = _status(pending, running, held, staging, CORES, requested_idle, requested_max)
    counts: Ad = {
        **_totals(status),
        **status,
        **_factory_limits(limits or {}),
        "ClientMonitorInfoAge": info_age,
        "ClientMonitorJobsIdle": jobs_idle,
        "ClientMonitorGlideIdle": running,
        "ClientMonitorGlideTotal": running,
        "ClientMonitorCoresIdle": running * CORES,
        "ClientMonitorCoresTotal": running * CORES,
        **{f"ClientMonitor{name}": 0 for name in ("JobsRunning", "JobsRunHere")},
        **{f"ClientMonitor{name}": 0 for name in ("GlideRunning", "CoresRunning")},
    }
    ad: Ad = {
        "MyType": "glidefactoryclient",
        "GlideinMyType": "glidefactoryclient",
        "GlideinWMSVersion": _VERSION,
        "Name": f"{reference}@{client}",
        "ReqGlidein": reference,
        "ReqFactoryName": factory,
        "ReqGlideinName": glidein,
        "ReqEntryName": entry,
        "ReqClientName": client,
        "ReqClientReqName": reference,
        "UpdateSequenceNumber": 0,
        **_entry_attributes(site),
    }
    return ad | {f"GlideinMonitor{key}": value for key, value in counts.items()} | more


def glidefactory(
    entry: str = "entry",
    site: str = "Site",
    *,
    pending: int = 0,
    running: int = 0,
    held: int = 0,
    staging: int = 0,
    **more: Value,
) -> Ad:
    """What a factory publishes of one entry, in the WMS collector."""
    status = _status(pending, running, held, staging, CORES, 0, 100)
    ad: Ad = {
        "MyType": "glidefactory",
        "GlideinMyType": "glidefactory",
        "GlideinWMSVersion": _VERSION,
        "Name": f"{entry}@glidein@factory",
        "FactoryName": "factory",
        "GlideinName": "glidein",
        "EntryName": entry,
        "SupportedSignTypes": "sha1",
        "DaemonStartTime": int(time.time() - 3600),
        "UpdateSequenceNumber": 0,
        **_entry_attributes(site),
        "GLIDEIN_In_Downtime": False,
        "GlideinConfigPerEntryMaxIdle": 100,
        "GlideinConfigPerEntryMaxHeld": 50,
        "GlideinConfigPerEntryMaxGlideins": 1000,
        "GlideinConfigDefaultPerFrontendMaxIdle": 100,
        "GlideinConfigDefaultPerFrontendMaxHeld": 50,
        "GlideinConfigDefaultPerFrontendMaxGlideins": 5000,
    }
    return ad | {f"GlideinMonitor{key}": value for key, value in _totals(status).items()} | more


def glideclient(
    entry: str = "entry",
    *,
    idle: int = 0,
    most: int = 100,
    credential: str = "",
    **more: Value,
) -> Ad:
    """What a frontend's group asks of an entry, in the WMS collector; one ad per credential."""
    reference, client = f"{entry}@glidein@factory", "frontend.main"
    ad: Ad = {
        "MyType": "glideclient",
        "GlideinMyType": "glideclient",
        "Name": f"{credential}{reference}@{client}",
        "ClientName": client,
        "ReqName": reference,
        "ReqGlidein": reference,
        "ReqIdleGlideins": idle,
        "ReqMaxGlideins": most,
    }
    return ad | more
