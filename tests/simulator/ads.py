"""What the simulated daemons tell: ads of pilots, frontend, schedds and collector, and records.

The attributes are those that real ones have (tests/pool/feign, tests/recordings/histories).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

from tests.pool import feign
from tests.pool.adtext import Ad, Expr
from tests.simulator.parts import HELD, How, Job, Left, Pilot, Run
from tests.simulator.pool import AD_LIFETIME_S, CYCLE_S, MAX_HELD, STEP_S, Pool
from tests.simulator.world import (
    COLLECTOR,
    DOMAIN,
    ENTRIES,
    FACTORY,
    FACTORY_SCHEDD,
    GLIDEIN,
    KINDS,
    SCHEDDS,
    STARTS,
    Entry,
    Kind,
)

_FRONTEND = "<198.51.100.100:9618?sock=frontend>"
_VERSION = "$CondorVersion: 23.9.6 2026-07-12 PackageID: 23.9.6 $"
_BEGINS_S = 12
"""From a run's start until its program runs."""
VALIDATION_TEST, NOTICE_S = "check_cvmfs.sh", 300


class _Failure(NamedTuple):
    """How HTCondor tells of a failure: code, subcode and the reason's text."""

    code: int
    subcode: int = 0
    reason: str = ""


_VACATED = {
    How.STAGE_IN: _Failure(13, 256, "Transfer input files failure at execution point"),
    How.HELD_FOR_MEMORY: _Failure(34),
    How.REMOVED: _Failure(0),
    How.HELD_BY_USER: _Failure(0),
    How.EVICTED: _Failure(1005),
    How.LOST: _Failure(1008),
}
_KILLED = (How.REMOVED, How.HELD_BY_USER, How.HELD_FOR_MEMORY, How.EVICTED)


def _glidein(pilot: Pilot) -> Ad:
    entry, host = pilot.entry, f"{pilot.node}.{DOMAIN}"
    address = f"<192.0.2.{1 + pilot.serial % 250}:9618?sock=startd_{pilot.serial}>"
    return feign.glidein(
        entry.name,
        entry.site,
        FACTORY,
        GLIDEIN,
        pilot.group,
        to_retire=pilot.retires,
        to_die=pilot.dies,
        GLIDEIN_Max_Walltime=entry.walltime_h * 3600,
        GLIDEIN_Schedd=FACTORY_SCHEDD,
        GLIDEIN_ClusterId=pilot.serial,
        GLIDEIN_ProcId=0,
        Machine=host,
        MyAddress=address,
        StartdIpAddr=address,
    )


def start(group: str) -> Expr:
    """The START of a group's pilots."""
    return Expr(f"({STARTS[group]}) && TARGET.MaxWallTimeMins * 60 < MY.GLIDEIN_Max_Walltime")


def pilot(pilot: Pilot, now: int) -> list[Ad]:
    """The ads of a pilot: of its startd, and of its slots; or that its validation failed."""
    entry, glidein = pilot.entry, _glidein(pilot)
    heard = heard_of(pilot, now)
    if pilot.fails:
        del glidein["GLIDEIN_ToRetire"], glidein["GLIDEIN_ToDie"]
        return [_failure(pilot, sent, glidein) for sent in _notices(pilot, now)]
    children = [_child(run) for run in pilot.jobs]
    common: dict[str, Any] = {
        "cpus": entry.cores,
        "memory": entry.memory_mib,
        "gpus": entry.gpus,
        "children": children,
        "started": pilot.ready,
        "now": heard,
        "glidein": glidein,
    }
    whole = feign.partitionable_slot(pilot.name, disk=20_000_000 * entry.cores, **common)
    startd = feign.startd_ad(pilot.name, job_starts=pilot.claims, **common)
    whole["Start"] = start(pilot.group)
    if not entry.gpus:
        for attribute in ("GPUs", "TotalSlotGPUs", "ChildGPUs"):
            del whole[attribute]
        del startd["TotalGPUs"], startd["TotalInUseGPUs"]
    found = [whole, startd, *(_claim(run, pilot, glidein) for run in pilot.jobs)]
    return [ad | {"LastHeardFrom": heard, "MyCurrentTime": heard} for ad in found]


def heard_of(pilot: Pilot, now: int) -> int:
    """When a pilot's startd updated its ads last: every five minutes, and as a slot changes."""
    changed = max([pilot.idle_since, *(run.start + 1 for run in pilot.jobs)])
    regular = now - (now - pilot.ready) % NOTICE_S
    return pilot.heard or min(now, max(regular, changed, pilot.ready))


def _notices(pilot: Pilot, now: int) -> list[int]:
    """When a pilot has told that its validation failed, of late: it does so every five minutes."""
    sent = range(pilot.ready, min(now, pilot.dies - 1) + 1, NOTICE_S)
    return [at for at in sent if at > now - AD_LIFETIME_S]


def _failure(pilot: Pilot, sent: int, glidein: dict[str, Any]) -> Ad:
    number = (pilot.serial + (sent - pilot.ready) // NOTICE_S) % 1000
    ad = feign.failed_validation(
        pilot.serial,
        number,
        dies=pilot.dies,
        test=VALIDATION_TEST,
        host=f"{pilot.node}.{DOMAIN}",
        now=sent,
        **glidein,
    )
    return ad | {"LastHeardFrom": sent}


def _child(run: Run) -> Ad:
    kind = run.job.kind
    return {
        "Name": f"slot1_{run.slot}",
        "State": "Claimed",
        "Activity": "Busy",
        "EnteredCurrentState": run.start,
        "Cpus": kind.cores,
        "Memory": kind.memory_mib,
        "GPUs": kind.gpus,
        "Disk": 1_000_000,
    }


def _claim(run: Run, pilot: Pilot, glidein: Ad) -> Ad:
    """The dynamic slot in which a run is, as far as anybody asks for it."""
    kind = run.job.kind
    return glidein | {
        "MyType": "Machine",
        "Name": f"slot1_{run.slot}@{pilot.name}",
        "DaemonStartTime": pilot.ready,
        "SlotType": "Dynamic",
        "DynamicSlot": True,
        "SlotID": 1,
        "DSlotId": run.slot,
        "State": "Claimed",
        "Activity": "Busy",
        "Cpus": kind.cores,
        "Memory": kind.memory_mib,
        "GPUs": kind.gpus,
        "GlobalJobId": run.job.id,
        "JobId": f"{run.job.cluster}.{run.job.proc}",
        "JobStart": run.start + 1,
        "RemoteOwner": f"{kind.owner}@{DOMAIN}",
        "RemoteUser": f"{kind.owner}@{DOMAIN}",
        "Requirements": Expr("START"),
    }


# -- histories


def epoch(run: Run, pilot: Pilot) -> Ad:
    """What its shadow writes of a run into the epoch history."""
    return _common(run, pilot, "JOB_") | {
        "EpochWriteDate": run.written,
        "EnteredCurrentStatus": run.start,
        "RemoteHost": f"slot1_{run.slot}@{pilot.name}",
        "PublicClaimId": _claim_id(run, pilot),
    }


def history(left: Left) -> Ad:
    """What the schedd writes of a job that leaves its queue."""
    run, pilot = left.last, left.pilot
    ad = _common(run, pilot, "MATCH_EXP_JOB_") | {
        "EnteredCurrentStatus": left.at,
        "JobStatus": 3 if left.removed else 4,
        "LastJobStatus": 5 if left.held else 2,
        "LastRemoteHost": f"slot1_{run.slot}@{pilot.name}",
        "LastPublicClaimId": _claim_id(run, pilot),
        "LastRemoteWallClockTime": float(run.written - run.start),
    }
    if left.removed:
        ad["LastVacateTime"] = run.written
    else:
        ad["CompletionDate"] = left.at
    if left.held and run.how is not None:
        failure, user = _VACATED[run.how], run.how is How.HELD_BY_USER
        ad["LastHoldReasonCode"] = 1 if user else failure.code
        ad["LastHoldReasonSubCode"] = failure.subcode
        ad["LastHoldReason"] = failure.reason
    return ad


def _claim_id(run: Run, pilot: Pilot) -> str:
    return f"<192.0.2.1:9618?sock=startd>#{pilot.ready}#{run.claim}#..."


def _common(run: Run, pilot: Pilot, prefix: str) -> Ad:
    kind, how = run.job.kind, run.how
    ad: Ad = {
        "GlobalJobId": run.job.id,
        "ClusterId": run.job.cluster,
        "ProcId": run.job.proc,
        "QDate": run.job.queued,
        "NumShadowStarts": run.number,
        "JobUniverse": 5,
        "Owner": kind.owner,
        "User": f"{kind.owner}@{DOMAIN}",
        "Cmd": f"/home/{kind.owner}/{kind.name}.sh",
        "JobStartDate": run.first,
        "JobCurrentStartDate": run.start,
        "RequestCpus": kind.cores,
        "RequestMemory": kind.memory_mib,
        "CpusProvisioned": kind.cores,
        "MemoryProvisioned": kind.memory_mib,
        "AcctGroup": kind.accounting_group,
        "ExitBySignal": how is How.SIGNAL or how in _KILLED,
        f"{prefix}GLIDEIN_Site": pilot.entry.site,
        f"{prefix}GLIDEIN_Entry_Name": pilot.entry.name,
        f"{prefix}GLIDECLIENT_Name": pilot.group,
        f"{prefix}GLIDECLIENT_Group": pilot.group.rpartition(".")[2],
    }
    if run.number > 1:
        ad["JobLastStartDate"] = run.last
    if kind.gpus:
        ad |= {"RequestGPUs": kind.gpus, "GPUsProvisioned": kind.gpus}
    if how is not How.STAGE_IN:
        ad["JobCurrentStartExecutingDate"] = run.start + _BEGINS_S
    if how in (How.EXIT, How.SIGNAL):
        ad |= _exited(run)
    elif how in _KILLED:
        ad["ExitSignal"] = 15
    if how is How.LOST:
        ad["JobDisconnectedDate"] = run.end + 5
    if how in _VACATED:
        failure = _VACATED[how]
        ad["VacateReasonCode"] = failure.code
        ad["VacateReasonSubCode"] = failure.subcode
        ad["VacateReason"] = failure.reason
    return ad


def _exited(run: Run) -> Ad:
    """A program that ended itself, and that its output was transferred."""
    signal = run.how is How.SIGNAL
    what = "ExitSignal" if signal else "ExitCode"
    told = (
        f'[ How = "OF_ITS_OWN_ACCORD"; Who = "itself"; When = {run.end}; HowCode = 0; '
        f"{what} = {run.plan.code}; ExitBySignal = {str(signal).lower()} ]"
    )
    return {
        what: run.plan.code,
        "ToE": Expr(told),
        "JobCurrentStartTransferOutputDate": run.end,
        "JobCurrentFinishTransferOutputDate": run.end,
        "TransferOutFinished": run.end,
    }


# -- schedds and the collector


def rows(pool: Pool, schedd: str) -> Iterator[Ad]:
    """What a schedd makes of its idle jobs, grouped."""
    for kind, jobs in zip(KINDS, pool.idle, strict=True):
        if not jobs or SCHEDDS[kind.schedd] != schedd:
            continue
        few = [f"{job.cluster}.{job.proc}" for job in list(jobs)[:3]]
        yield _wants(kind) | {
            "JobCount": len(jobs),
            "JobIds": f"{few[0]} ... {few[-1]}" if len(jobs) > 1 else few[0],
            "JobStatus": 1,
        }


def _wants(kind: Kind) -> Ad:
    """What jobs of a kind have in common."""
    ad: Ad = {
        "AcctGroup": kind.accounting_group,
        "JobUniverse": 5,
        "RequestCpus": kind.cores,
        "RequestMemory": kind.memory_mib,
        "RequestDisk": 1024,
        "RequestGPUs": kind.gpus or Expr("undefined"),
        "Requirements": Expr(kind.requirements),
        "MaxWallTimeMins": round(kind.hours * 60),
        "VO": kind.vo,
    }
    return ad | ({"DESIRED_Sites": ",".join(kind.sites)} if kind.sites else {})


_HOLDS = {
    How.STAGE_IN: (13, "Transfer input files failure at execution point"),
    How.HELD_FOR_MEMORY: (34, "Job has gone over cgroup memory limit"),
    How.HELD_BY_USER: (1, "via condor_hold"),
}


def jobs(pool: Pool, schedd: str) -> Iterator[Ad]:
    """The jobs of a schedd one by one: idle, running (their pilot may be lost), held."""
    for job in (job for jobs in pool.idle for job in jobs):
        if job.schedd == schedd:
            yield _job(job, 1, job.since or job.queued)
    running = [(run, pilot) for pilot in pool.all_pilots() for run in pilot.jobs]
    for run, pilot in (*running, *((run, pilot) for _, run, pilot in pool.later)):
        if run.job.schedd != schedd:
            continue
        if run.how in HELD:
            code, why = _HOLDS[run.how]
            yield _job(run.job, 5, run.end) | {"HoldReasonCode": code, "HoldReason": why}
        else:
            yield _job(run.job, 2, run.start) | {"RemoteHost": f"slot1_{run.slot}@{pilot.name}"}


def _job(job: Job, status: int, since: int) -> Ad:
    kind = job.kind
    return _wants(kind) | {
        "ClusterId": job.cluster,
        "ProcId": job.proc,
        "GlobalJobId": job.id,
        "Owner": kind.owner,
        "User": f"{kind.owner}@{DOMAIN}",
        "AccountingGroup": f"{kind.accounting_group}.{kind.owner}",
        "QDate": job.queued,
        "JobStatus": status,
        "EnteredCurrentStatus": since,
        "NumShadowStarts": job.starts,
        "JobPrio": 0,
    }


def accounting(pool: Pool) -> Iterator[Ad]:
    """What the negotiator advertises of the root group, and of all who submit."""
    root: Ad = {"Name": "<none>", "IsAccountingGroup": True, "NegotiatorName": COLLECTOR}
    yield root | {"LastUpdate": pool.now}
    cores = Counter({_submitter(kind): 0 for kind in KINDS})
    for run in (run for pilot in pool.all_pilots() for run in pilot.jobs):
        cores[_submitter(run.job.kind)] += run.job.kind.cores
    for kind in {_submitter(kind): kind for kind in KINDS}.values():
        yield {
            "Name": _submitter(kind),
            "IsAccountingGroup": False,
            "AccountingGroup": "<none>",
            "Priority": round(pool.usage[kind.owner], 1),
            "WeightedResourcesUsed": cores[_submitter(kind)],
        }


def negotiator(pool: Pool) -> Ad:
    """The negotiator, whose last cycle has just ended."""
    return {
        "Name": COLLECTOR,
        "LastNegotiationCycleTime0": pool.now - CYCLE_S,
        "LastNegotiationCycleEnd0": pool.now,
        "LastNegotiationCyclePeriod0": STEP_S,
    }


def _submitter(kind: Kind) -> str:
    return f"{kind.accounting_group}.{kind.owner}@{DOMAIN}"


# -- the factory's schedd


def factory_schedd(pool: Pool) -> Ad:
    """Its ad."""
    return {
        "MyType": "Scheduler",
        "Name": FACTORY_SCHEDD,
        "MyAddress": "<198.51.100.9:9618?sock=schedd>",
        "CondorVersion": _VERSION,
        "LastHeardFrom": pool.now,
    }


def queue(pool: Pool) -> Iterator[Ad]:
    """The pilots in its queue, as grid jobs."""
    refused = "HTCONDOR: no route of the CE takes this job (JOB_ROUTER)"
    for (entry, group), queued in pool.queues.items():
        common: Ad = {
            "JobCount": 1,
            "JobUniverse": 9,
            "GlideinFactory": FACTORY,
            "GlideinName": GLIDEIN,
            "GlideinEntryName": entry.name,
            "GlideinClient": group,
        }
        for waiting in queued.waiting:
            yield common | {"JobStatus": 1, "GridJobStatus": "IDLE", "QDate": waiting.submitted}
        for _ in queued.held:
            yield common | {"JobStatus": 5, "HoldReason": refused, "HoldReasonCode": 26}
        if running := sum(pilot.group == group for pilot in pool.pilots[entry]):
            yield common | {"JobStatus": 2, "GridJobStatus": "RUNNING", "JobCount": running}


def _address(schedd: str) -> str:
    return f"<198.51.100.{SCHEDDS.index(schedd) + 1}:9618?sock=schedd>"


def schedds(pool: Pool) -> Iterator[Ad]:
    """The ads of the schedds."""
    for schedd in SCHEDDS:
        idle = sum(
            len(q) for k, q in zip(KINDS, pool.idle, strict=True) if SCHEDDS[k.schedd] == schedd
        )
        yield {
            "MyType": "Scheduler",
            "Name": schedd,
            "MyAddress": _address(schedd),
            "CondorVersion": _VERSION,
            "TotalIdleJobs": idle,
            "JobsUnmaterialized": 0,
            "RecentDaemonCoreDutyCycle": 0.1,
            "LastHeardFrom": pool.now,
        }


def submitters(pool: Pool) -> Iterator[Ad]:
    """The ads of the submitters."""
    running = Counter(run.job.index for p in pool.all_pilots() for run in p.jobs)
    running.update(run.job.index for _, run, _ in pool.later if run.how is How.LOST)
    held = Counter(
        (_submitter(r.job.kind), r.job.schedd) for _, r, _ in pool.later if r.how in HELD
    )
    idle: Counter[tuple[str, str]] = Counter()
    sums: Counter[tuple[str, str]] = Counter()
    for index, kind in enumerate(KINDS):
        name = _submitter(kind)
        sums[name, SCHEDDS[kind.schedd]] += running[index]
        idle[name, SCHEDDS[kind.schedd]] += len(pool.idle[index])
    for (name, schedd), jobs in sums.items():
        yield {
            "MyType": "Submitter",
            "Name": name,
            "ScheddName": schedd,
            "MyAddress": _address(schedd),
            "ScheddIpAddr": _address(schedd),
            "CondorVersion": _VERSION,
            "IdleJobs": idle[name, schedd],
            "RunningJobs": jobs,
            "HeldJobs": held[name, schedd],
            "SubmitterTag": "",
            "LastHeardFrom": pool.now,
        }


def collector(pool: Pool) -> Ad:
    """The ad of the collector itself."""
    return {
        "MyType": "Collector",
        "Name": COLLECTOR,
        "CondorVersion": _VERSION,
        "StatsLifetime": 40 * 86400,
        "StatsLastUpdateTime": pool.now,
        "LastHeardFrom": pool.now,
    }


# -- the frontend


def resources(pool: Pool) -> Iterator[Ad]:
    """The glideresource ads: one for each entry and frontend group."""
    for entry in ENTRIES:
        for group in entry.groups:
            yield _resource(pool, entry, group) | {"LastHeardFrom": pool.now}


def _resource(pool: Pool, entry: Entry, group: str) -> Ad:
    request, queue = pool.requests[entry, group], pool.queues[entry, group]
    running = Counter(pilot.group for pilot in pool.pilots[entry])
    queues = [pool.queues[entry, each] for each in entry.groups]
    waiting, held = sum(len(q.waiting) for q in queues), sum(len(q.held) for q in queues)
    asked = sum(pool.requests[entry, each].idle for each in entry.groups)
    pilots = [p for p in pool.pilots[entry] if p.group == group and p.registered(pool.now)]
    cores, free = entry.cores * len(pilots), sum(pilot.cores for pilot in pilots)
    ad = feign.glideresource(
        entry.name, entry.site, FACTORY, GLIDEIN, group,
        pending=len(queue.waiting), running=running[group], held=len(queue.held),
        requested_idle=request.idle, requested_max=entry.limit,
        jobs_idle=request.matching, jobs_running=request.slots_running,
        slots_idle=request.slots_idle, slots_running=request.slots_running,
        limits=request.limits,
        down=pool.is_down(entry),
        cpus=entry.cores, memory=entry.memory_mib, gpus=entry.gpus,
        walltime=entry.walltime_h * 3600,
        MyAddress=_FRONTEND,
        GLIDEIN_ResourceName=entry.name,
        GLIDEIN_Gatekeeper=f"ce.{entry.site.lower()}.{DOMAIN}:9619",
        GlideFactoryConfigPerEntryMaxGlideins=entry.limit,
        GlideFactoryConfigPerEntryMaxHeld=MAX_HELD,
        GlideClientConstraintJobCondorExpr=STARTS[group].replace("TARGET.", ""),
        GlideClientMonitorJobsIdle=ceil(request.proportional),
        GlideClientMonitorJobsIdleOld=ceil(request.proportional * 4 / 5),
        GlideClientMonitorJobsIdleUnique=request.unique,
        GlideClientMonitorJobsIdleEffective=request.effective,
        GlideFactoryMonitorClientMonitorInfoAge=60,
    )  # fmt: skip
    return ad | {
        "GlideClientMonitorGlideinsTotalCores": cores,
        "GlideClientMonitorGlideinsIdleCores": free,
        "GlideClientMonitorGlideinsRunningCores": cores - free,
        "GlideFactoryMonitorTotalStatusIdle": waiting,
        "GlideFactoryMonitorTotalStatusPending": waiting,
        "GlideFactoryMonitorTotalStatusRunning": running.total(),
        "GlideFactoryMonitorTotalStatusRunningCores": running.total() * entry.cores,
        "GlideFactoryMonitorTotalStatusHeld": held,
        "GlideFactoryMonitorTotalRequestedIdle": asked,
        "GlideFactoryMonitorTotalRequestedAdjustedIdle": asked,
        "GlideFactoryMonitorTotalRequestedIdleCores": asked * entry.cores,
    }


def monitors(pool: Pool) -> Iterator[Ad]:
    """The frontends' own ads."""
    idle = Counter[str]()
    groups: dict[str, list[str]] = {}
    for group in STARTS:
        frontend, _, name = group.partition(".")
        groups.setdefault(frontend, []).append(name)
    for kind, jobs in zip(KINDS, pool.idle, strict=True):
        idle[kind.group.partition(".")[0]] += len(jobs)
    for frontend, names in groups.items():
        jobs_idle = idle[frontend]
        yield feign.glidefrontendmonitor(
            frontend, tuple(names), idle=jobs_idle, idle_600=jobs_idle * 4 // 5,
            idle_3600=jobs_idle // 2, MyAddress=_FRONTEND, LastHeardFrom=pool.now,
        )  # fmt: skip
