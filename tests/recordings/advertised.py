"""What the model's pilots, frontends and factories advertise, made with tests.pool.feign."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from tests.pool import feign
from tests.recordings import run_ads, runs, scenario
from tests.recordings.kinds import Kind
from tests.recordings.simulation import MAX_HELD, STEP_S, Pilot, Simulation
from tests.recordings.world import DOMAIN, GLIDEIN, Entry

_FRONTEND = "<198.51.100.100:9618?sock=frontend>"


def pilot(pilot: Pilot, kinds: tuple[Kind, ...], now: int) -> list[feign.Ad]:
    """The startd of a pilot, its partitionable slot with lists of the dynamic ones, and these."""
    entry = pilot.entry
    host = runs.node(pilot)
    address = f"<192.0.2.{1 + pilot.serial % runs.NODES}:9618?sock=startd_{pilot.serial}>"
    name = run_ads.startd(pilot)
    children = [_child(kinds[run.kind], run.slot) for run in pilot.jobs]
    glidein = feign.glidein(
        entry.name,
        entry.site,
        entry.factory,
        GLIDEIN,
        pilot.group,
        to_retire=pilot.retires,
        to_die=pilot.dies,
        GLIDEIN_Supported_VOs=",".join(entry.communities),
        HAS_LICENCE=False,
        Machine=host,
        MyAddress=address,
        StartdIpAddr=address,
    )
    cores, memory, gpus, started = entry.cores, entry.memory_mib, entry.gpus, pilot.started
    slot = feign.partitionable_slot(
        name,
        cpus=cores,
        memory=memory,
        gpus=gpus,
        disk=20_000_000 * cores,
        children=children,
        started=started,
        now=now,
        glidein=glidein,
    )
    startd = feign.startd_ad(
        name,
        cpus=cores,
        memory=memory,
        gpus=gpus,
        children=children,
        job_starts=pilot.job_starts,
        started=started,
        now=now,
        glidein=glidein,
    )
    if not gpus:
        for attribute in ("GPUs", "TotalSlotGPUs", "ChildGPUs"):
            del slot[attribute]
        del startd["TotalGPUs"], startd["TotalInUseGPUs"]
    return [slot, startd, *(run_ads.claim(run, pilot, kinds, address) for run in pilot.jobs)]


def _child(kind: Kind, number: int) -> feign.Ad:
    return {
        "Name": f"slot1_{number}",
        "State": "Claimed",
        "Activity": "Busy",
        "EnteredCurrentState": 0,
        "Cpus": kind.cores,
        "Memory": kind.memory_mib,
        "GPUs": kind.gpus,
        "Disk": 1_000_000,
    }


def resources(pool: Simulation) -> Iterator[feign.Ad]:
    """The glideresource ads: one for each entry and frontend group."""
    for entry in pool.entries:
        if scenario.any_holds(scenario.FORGOTTEN, entry, pool.hour):
            continue
        counts = {group: _counts(pool, entry, group) for group in entry.groups}
        total = Counts(*(sum(column) for column in zip(*counts.values(), strict=True)))
        for group in entry.groups:
            yield _resource(pool, entry, group, counts[group], total)


class Counts(NamedTuple):
    """Pilots as a factory counts them; ``staging`` are those which a site has not acknowledged."""

    pending: int
    running: int
    held: int
    staging: int


def _counts(pool: Simulation, entry: Entry, group: str) -> Counts:
    queue = pool.queues[entry, group]
    pending = sum(pool.acknowledged(entry, submitted) for submitted in queue.waiting)
    return Counts(
        pending, pool.groups_of(entry)[group], len(queue.held), len(queue.waiting) - pending
    )


def _resource(
    pool: Simulation, entry: Entry, group: str, counts: Counts, total: Counts
) -> feign.Ad:
    request = pool.frontends.requests[entry, group]
    ad = feign.glideresource(
        entry.name,
        entry.site,
        entry.factory,
        GLIDEIN,
        group,
        pending=counts.pending,
        running=counts.running,
        held=counts.held,
        staging=counts.staging,
        requested_idle=request.idle,
        requested_max=entry.max_pilots,
        jobs_idle=request.matching,
        jobs_running=request.slots_running,
        slots_idle=request.slots_idle,
        slots_running=request.slots_running,
        limits=request.limits,
        curbs=request.curbs,
        factory_limits=_factory_limits(pool, entry, group),
        down=scenario.any_holds(scenario.DOWN, entry, pool.hour),
        cpus=entry.cores,
        memory=entry.memory_mib,
        gpus=entry.gpus,
        walltime=entry.walltime_s,
        GLIDEIN_Supported_VOs=",".join(entry.communities),
        HAS_LICENCE=False,
        MyAddress=_FRONTEND,
        GLIDEIN_ResourceName=entry.name,
        GLIDEIN_Gatekeeper=f"ce.{entry.site.lower()}.{DOMAIN}:9619",
        GlideFactoryConfigPerEntryMaxGlideins=entry.max_pilots,
        GlideFactoryConfigPerEntryMaxHeld=MAX_HELD,
        GlideClientMonitorJobsIdle=ceil(request.proportional),
        GlideClientMonitorJobsIdleOld=ceil(request.proportional * 4 / 5),
        GlideClientMonitorJobsIdleUnique=request.unique,
        GlideClientMonitorJobsIdleEffective=request.effective,
        GlideFactoryMonitorClientMonitorInfoAge=_age(pool, entry),
        GlideFactoryMonitorTotalStatusIdle=total.pending + total.staging,
        GlideFactoryMonitorTotalStatusPending=total.pending,
        GlideFactoryMonitorTotalStatusWait=total.staging,
        GlideFactoryMonitorTotalStatusRunning=total.running,
        GlideFactoryMonitorTotalStatusHeld=total.held,
    )
    return ad | _cores(pool, entry, group, total.running)


def _cores(pool: Simulation, entry: Entry, group: str, running: int) -> feign.Ad:
    """What the frontend group sees of its pilots' cores, and what is asked of the entry in all.

    The factory reckons in cores that it expects of a pilot, which here are those that it has.
    """
    pilots = [pilot for pilot in pool.pilots[entry] if pilot.group == group]
    cores, free = entry.cores * len(pilots), sum(pilot.cores for pilot in pilots)
    asked = sum(pool.frontends.requests[entry, each].idle for each in entry.groups)
    most = entry.max_pilots * len(entry.groups)
    return {
        "GlideClientMonitorGlideinsTotalCores": cores,
        "GlideClientMonitorGlideinsIdleCores": free,
        "GlideClientMonitorGlideinsRunningCores": cores - free,
        "GlideFactoryMonitorTotalStatusRunningCores": running * entry.cores,
        "GlideFactoryMonitorTotalRequestedIdle": asked,
        "GlideFactoryMonitorTotalRequestedAdjustedIdle": asked,
        "GlideFactoryMonitorTotalRequestedMaxGlideins": most,
        "GlideFactoryMonitorTotalRequestedIdleCores": asked * entry.cores,
        "GlideFactoryMonitorTotalRequestedMaxCores": most * entry.cores,
    }


def _factory_limits(pool: Simulation, entry: Entry, group: str) -> dict[str, tuple[int, int]]:
    limits = {}
    most = scenario.PER_FRONTEND.get(entry.name)
    if most is not None and (count := pool.of_frontend(entry, group)) >= most:
        limits["TotalGlideinsPerEntry"] = count, most
    return limits


def _age(pool: Simulation, entry: Entry) -> int:
    """How old the frontend's wish is which the factory knows."""
    since = [time.begins_h for time in scenario.SILENT if time.holds(entry, pool.hour)]
    return 60 + round((pool.hour - since[0]) * 3600) // STEP_S * STEP_S if since else 60


def monitors(pool: Simulation) -> list[feign.Ad]:
    """The frontends' own ads."""
    return [
        feign.glidefrontendmonitor(
            frontend,
            tuple(sorted({g.partition(".")[2] for e in pool.entries for g in e.groups
                          if g.partition(".")[0] == frontend})),
            idle=jobs, idle_600=jobs * 4 // 5, idle_3600=jobs // 2, MyAddress=_FRONTEND,
        )
        for frontend, jobs in sorted(pool.frontends.jobs_idle.items())
    ]  # fmt: skip
