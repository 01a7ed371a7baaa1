"""Feigned ads, to be put into a real collector (CondorPool.advertise) or used as they are.

Slots and startds are as HTCondor 23.9 publishes them (read off real ones).  The ads of GlideinWMS's
frontend and factory follow its version 3.11: classes ResourceClassad and FrontendMonitorClassad in
frontend/glideinFrontendInterface.py, limits and curbs in frontend/glideinFrontendElement.py,
EntryClassad and createGlideinClientMonitoringFile in factory/glideFactoryInterface.py. What begins
with GlideFactoryMonitor or GlideinMonitor counts pilots, GlideClientMonitorGlideins… *slots*.

Memory is in MiB, disk in KiB, times are seconds since the epoch.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence

from tests.pool.adtext import Ad, Expr, Value

#: How each type of ad is sent to the collector.
COMMANDS = {
    "Machine": "UPDATE_STARTD_AD",
    "StartD": "UPDATE_STARTD_AD",
    "glideresource": "UPDATE_AD_GENERIC",
    "glidefrontendmonitor": "UPDATE_AD_GENERIC",
    "glidefactory": "UPDATE_AD_GENERIC",
    "glidefactoryclient": "UPDATE_LICENSE_AD",
    "glideclient": "UPDATE_MASTER_AD",
    "DaemonMaster": "UPDATE_MASTER_AD",
}

_FITS = Expr(
    "MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus"
    " && MY.Memory > 0 && TARGET.RequestMemory <= MY.Memory"
    " && MY.Disk > 0 && TARGET.RequestDisk <= MY.Disk"
    " && (TARGET.RequestGPUs is undefined || MY.GPUs >= TARGET.RequestGPUs)"
)


def glidein(
    entry: str = "entry",
    site: str = "Site",
    factory: str = "factory",
    glidein: str = "glidein",
    client: str = "frontend.main",
    *,
    to_retire: float | None = None,
    to_die: float | None = None,
    **more: Value,
) -> Ad:
    """The attributes by which a pilot's startd and slots tell their origin, and when they end."""
    ad: Ad = {
        "GLIDEIN_Entry_Name": entry,
        "GLIDEIN_Site": site,
        "GLIDEIN_Factory": factory,
        "GLIDEIN_Name": glidein,
        "GLIDECLIENT_Name": client,
        "GLIDECLIENT_Group": client.rpartition(".")[2],
    }
    if to_retire is not None:
        ad["GLIDEIN_ToRetire"] = int(to_retire)
    if to_die is not None:
        ad["GLIDEIN_ToDie"] = int(to_die)
    return ad | more


def _daemon(pilot: str, started: float | None, now: float | None) -> Ad:
    """What the ads of a startd and of its slots have in common."""
    now = time.time() if now is None else now
    port = 1024 + zlib.crc32(pilot.encode()) % 60000
    address = f"<127.0.0.1:{port}?addrs=127.0.0.1-{port}&alias={pilot}>"
    return {
        "Machine": pilot,
        "MyAddress": address,
        "StartdIpAddr": address,
        "Arch": "X86_64",
        "OpSys": "LINUX",
        "OpSysAndVer": "AlmaLinux9",
        "OpSysMajorVer": 9,
        "Microarch": "x86_64-v3",
        "CondorVersion": "$CondorVersion: 23.9.6 2024-08-08 BuildID: 0 $",
        "CondorPlatform": "$CondorPlatform: x86_64_AlmaLinux9 $",
        "FileSystemDomain": pilot,
        "UidDomain": "pool.test",
        "HasFileTransfer": True,
        "HasVM": False,
        # Else the collector makes an ad of the startd from that of its first slot.
        "HasStartDaemonAd": True,
        "HasReconnect": True,
        "DaemonStartTime": int(now - 60 if started is None else started),
        "MyCurrentTime": int(now),
    }


def _slot(
    pilot: str,
    name: str,
    kind: str,
    size: tuple[int, int, int, int],
    free: tuple[int, int, int, int],
    state: tuple[str, str],
    since: float | None,
    daemon: Ad,
) -> Ad:
    """A slot of (cores, memory, gpus, disk), of which that much is free."""
    changed = int(float(str(daemon["DaemonStartTime"])) if since is None else since)
    ad: Ad = {"MyType": "Machine", "Name": f"{name}@{pilot}", **daemon, "SlotType": kind}
    for what, total, left in zip(("Cpus", "Memory", "GPUs", "Disk"), size, free, strict=True):
        ad[what] = left
        ad[f"TotalSlot{what}"] = total
    return ad | {
        "SlotID": int(name.removeprefix("slot").partition("_")[0]),
        "State": state[0],
        "Activity": state[1],
        "EnteredCurrentState": changed,
        "EnteredCurrentActivity": changed,
        "SlotWeight": Expr("Cpus"),
        "Start": True,
        "WithinResourceLimits": _FITS,
        "Requirements": Expr("START && (WithinResourceLimits)"),
    }


def dynamic_slot(
    pilot: str,
    index: int = 1,
    *,
    cpus: int = 1,
    memory: int = 2048,
    gpus: int = 0,
    job: str = "1.0",
    state: tuple[str, str] = ("Claimed", "Busy"),
    since: float | None = None,
    started: float | None = None,
    glidein: Mapping[str, Value] | None = None,
    **more: Value,
) -> Ad:
    """A slot cut off a partitionable one, with the job for which that was done."""
    daemon = _daemon(pilot, started, None)
    size = (cpus, memory, gpus, 1_000_000)
    ad = _slot(pilot, f"slot1_{index}", "Dynamic", size, size, state, since, daemon)
    ad |= {"DynamicSlot": True, "ParentSlotId": 1, "DSlotId": index, **(glidein or {})}
    if state[0] == "Claimed":
        qdate, schedd, user = daemon["DaemonStartTime"], "schedd1@pool.test", "alice@pool.test"
        ad |= {
            "JobId": job,
            "GlobalJobId": f"{schedd}#{job}#{qdate}",
            "JobStart": ad["EnteredCurrentActivity"],
            "RemoteOwner": user,
            "RemoteUser": user,
            "RemoteScheddName": schedd,
            "PublicClaimId": f"{daemon['MyAddress']}#{qdate}#{index}#...",
        }
    return ad | more


def partitionable_slot(
    pilot: str,
    *,
    cpus: int = 8,
    memory: int = 16384,
    gpus: int = 0,
    disk: int = 20_000_000,
    children: Sequence[Mapping[str, Value]] = (),
    state: tuple[str, str] = ("Unclaimed", "Idle"),
    since: float | None = None,
    started: float | None = None,
    now: float | None = None,
    glidein: Mapping[str, Value] | None = None,
    **more: Value,
) -> Ad:
    """A pilot's whole slot: Cpus etc. are what its `children` (dynamic slots) have left over."""
    daemon = _daemon(pilot, started, now)
    size = (cpus, memory, gpus, disk)
    names = ("Cpus", "Memory", "GPUs", "Disk")
    used = {name: [int(str(child[name])) for child in children] for name in names}
    left = [total - sum(used[name]) for name, total in zip(names, size, strict=True)]
    free = (left[0], left[1], left[2], left[3])
    ad = _slot(pilot, "slot1", "Partitionable", size, free, state, since, daemon)
    ad |= {"PartitionableSlot": True, "NumDynamicSlots": len(children), "TotalCpus": cpus}
    ad |= {f"Child{name}": values for name, values in used.items()}
    for name in ("Name", "State", "Activity", "EnteredCurrentState"):
        ad[f"Child{name}"] = [child[name] for child in children]
    return ad | dict(glidein or {}) | more


def static_slot(
    pilot: str,
    index: int = 1,
    *,
    cpus: int = 1,
    memory: int = 2048,
    state: tuple[str, str] = ("Unclaimed", "Idle"),
    started: float | None = None,
    glidein: Mapping[str, Value] | None = None,
    **more: Value,
) -> Ad:
    """One of a pilot's slots of fixed size."""
    size = (cpus, memory, 0, 1_000_000)
    daemon = _daemon(pilot, started, None)
    ad = _slot(pilot, f"slot{index}", "Static", size, size, state, None, daemon)
    return ad | dict(glidein or {}) | more


def startd_ad(
    pilot: str,
    *,
    cpus: int = 8,
    memory: int = 16384,
    gpus: int = 0,
    children: Sequence[Mapping[str, Value]] = (),
    job_starts: int | None = None,
    started: float | None = None,
    now: float | None = None,
    glidein: Mapping[str, Value] | None = None,
    **more: Value,
) -> Ad:
    """The ad of the startd itself (AdType.StartDaemon), beside those of its slots."""
    ad: Ad = {"MyType": "StartD", "Name": pilot, **_daemon(pilot, started, now)}
    del ad["HasStartDaemonAd"]
    for what, total in (("Cpus", cpus), ("Memory", memory), ("GPUs", gpus)):
        ad[f"Total{what}"] = total
        ad[f"TotalInUse{what}"] = sum(int(str(child[what])) for child in children)
    ad["TotalSlots"] = 1 + len(children)
    ad["JobStarts"] = len(children) if job_starts is None else job_starts
    return ad | dict(glidein or {}) | more


def failed_validation(
    pid: int,
    number: int,
    *,
    dies: float,
    test: str = "validate_node.sh",
    host: str = "node",
    activity: str = "Retiring",
    job: str = "factory.test",
    cluster: int = 1,
    proc: int = 0,
    now: float | None = None,
    **more: Value,
) -> Ad:
    """An ad by which a pilot tells that its validation failed; no startd is behind it.

    As creation/web_base/advertise_failure.helper of GlideinWMS writes it, with those of the
    variables that condor_vars.lst and glidein_startup.sh let it append.  ``number`` is random.
    """
    sent = int(time.time() if now is None else now)
    ad: Ad = {
        "MyType": "Machine",
        "TargetType": "Job",
        "State": "Drained",
        "Activity": activity,
        "EnteredCurrentState": sent,
        "EnteredCurrentActivity": sent,
        "START": False,
        "Requirements": Expr("( START ) && ( IsValidCheckpointPlatform )"),
        "IsValidCheckpointPlatform": False,
        "Rank": 0,
        "CurrentRank": 0.0,
        "CpuIsBusy": False,
        "CpuBusy": False,
        "LastBenchmark": 0,
        "FileSystemDomain": host,
        "UidDomain": host,
        "SlotID": 1,
        "TotalSlots": 1,
        "LoadAvg": 0.0,
        "CondorLoadAvg": 0.9,
        "TotalLoadAvg": 0.0,
        "TotalCondorLoadAvg": Expr("0/0"),
        "Arch": "x86_64",
        "OpSys": "LINUX",
        "OpSysLegacy": "LINUX",
        "HasFileTransfer": True,
    }
    sizes = ("Cpus", "TotalSlotCpus", "DetectedCpus", "TotalCpus", "DetectedMemory", "TotalMemory")
    more_sizes = ("TotalVirtualMemory", "VirtualMemory", "TotalSlotMemory", "Memory", "Disk")
    ad |= dict.fromkeys((*sizes, *more_sizes, "TotalSlotDisk", "TotalDisk"), 1)
    busy = f"Keeping node busy until {int(dies)} ({time.ctime(dies)})."
    return (
        ad
        | {
            "Name": f"glidein_{pid}_{number}@{host}",
            "Machine": host,
            "MyAddress": "<127.0.0.1:1>",
            "MyCurrentTime": sent,
            "DaemonStartTime": sent,
            "IS_GLIDEIN": True,
            "GLIDEIN_ToRetire": sent,
            "CondorPlatform": "$glideinWMS: glidein_startup.sh $",
            "GLIDEIN_COLLECTOR_NAME": "collector.test",
            "GLIDEIN_ClusterId": cluster,
            "GLIDEIN_ProcId": proc,
            "GLIDEIN_Schedd": job,
            "GLIDEIN_Max_Idle": 1200,
            "GLIDEIN_ADVERTISE_ONLY": True,
            "GLIDEIN_Failed": True,
            "GLIDEIN_EXIT_CODE": 1,
            "GLIDEIN_ToDie": int(dies),
            "GLIDEIN_Expire": int(dies),
            "GLIDEIN_LAST_SCRIPT": test,
            "GLIDEIN_FAILURE_REASON": f"Glidein failed while running {test}. {busy}",
        }
        | more
    )


def failed_master(pid: int, number: int, *, dies: float, **more: Value) -> Ad:
    """The same as a factory's collector is told it: by the ad of a master, without a state."""
    ad = failed_validation(pid, number, dies=dies, **more)  # type: ignore[arg-type]
    told = ("Name", "Machine", "MyAddress", "MyCurrentTime", "DaemonStartTime", "IS_GLIDEIN")
    kept = {k: v for k, v in ad.items() if k in told or k.startswith(("GLIDEIN_", "GLIDECLIENT_"))}
    return kept | {"MyType": "DaemonMaster", "DetectedCpus": 1, "DetectedMemory": 1}


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
