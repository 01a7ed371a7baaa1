"""Feigned ads of slots and startds, as HTCondor 23.9 publishes them (read off real ones).

Memory is in MiB, disk in KiB, times are seconds since the epoch.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence

from tests.pool.adtext import Ad, Expr, Value

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
