"""Reads what a factory and a frontend group advertise to each other, by kind of ad.

Names as in GlideinWMS: ResourceClassad in frontend/glideinFrontendInterface.py writes
GlideClientMonitor* and copies the factory's GlideinMonitor* as GlideFactoryMonitor*;
createGlideinClientMonitoringFile in factory/glideFactoryInterface.py writes GlideinMonitor*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.sources.htcondor import ads

if TYPE_CHECKING:
    from collections.abc import Mapping

    import classad2

FACTORY = "GlideinMonitor"
_FACTORY_IN_RESOURCE = "GlideFactoryMonitor"
_CLIENT = "GlideClientMonitor"
_LIMITS = ("PerEntryMaxIdle", "PerEntryMaxHeld", "PerEntryMaxGlideins")

_STATUS = {
    "status_idle": "StatusIdle",
    "status_running": "StatusRunning",
    "status_held": "StatusHeld",
    "status_wait": "StatusWait",
    "status_pending": "StatusPending",
    "status_stage_in": "StatusStageIn",
    "status_idle_other": "StatusIdleOther",
    "status_stage_out": "StatusStageOut",
    "status_running_cores": "StatusRunningCores",
}
_REQUESTED = {
    "requested_idle": "RequestedIdle",
    "requested_adjusted_idle": "RequestedAdjustedIdle",
    "requested_max": "RequestedMaxGlideins",
    "requested_idle_cores": "RequestedIdleCores",
    "requested_max_cores": "RequestedMaxCores",
}
# The frontend's numbers as the factory heard them; it says nothing of failed slots.  Only the
# factory's own ads have them (a WMS collector's), no glideresource ad: nor the age of information.
_HEARD = {
    "client_info_age": "ClientMonitorInfoAge",
    "client_jobs_idle": "ClientMonitorJobsIdle",
    "client_jobs_running": "ClientMonitorJobsRunning",
    "client_jobs_here": "ClientMonitorJobsRunHere",
    "client_slots_total": "ClientMonitorGlideTotal",
    "client_slots_idle": "ClientMonitorGlideIdle",
    "client_slots_running": "ClientMonitorGlideRunning",
    "client_cores_total": "ClientMonitorCoresTotal",
    "client_cores_idle": "ClientMonitorCoresIdle",
    "client_cores_running": "ClientMonitorCoresRunning",
}
# The same by the frontend itself.  What it reports to the factory as Idle is the straight count,
# which it publishes as JobsIdleMatching; its own JobsIdle is the proportional one.
_OWN = {
    "client_jobs_idle": "JobsIdleMatching",
    "client_jobs_running": "JobsRunning",
    "client_jobs_here": "JobsRunningHere",
    "client_slots_total": "GlideinsTotal",
    "client_slots_idle": "GlideinsIdle",
    "client_slots_running": "GlideinsRunning",
    "client_slots_failed": "GlideinsFailed",
    "client_cores_total": "GlideinsTotalCores",
    "client_cores_idle": "GlideinsIdleCores",
    "client_cores_running": "GlideinsRunningCores",
    "asked_idle": "GlideinsRequestIdle",
    "asked_max": "GlideinsRequestMaxRun",
    "client_jobs_old": "JobsIdleOld",
}
ENTRY_NAMES = (
    *(f"{FACTORY}Total{name}" for name in (_STATUS | _REQUESTED | _HEARD).values()),
    *(f"GlideinConfig{name}" for name in _LIMITS),
)
CLIENT_NAMES = tuple(FACTORY + name for name in (_STATUS | _REQUESTED | _HEARD).values())
RESOURCE_NAMES = (
    *(_CLIENT + name for name in _OWN.values()),
    *(
        _FACTORY_IN_RESOURCE + total + name
        for total in ("", "Total")
        for name in (_STATUS | _REQUESTED).values()
    ),
    *(f"GlideFactoryConfig{name}" for name in _LIMITS),
)
"""What is read of glidefactoryclient and of glideresource ads."""


class FactoryEntry(NamedTuple):
    """An entry of a factory by its own ad, or by the copy in a glideresource ad.

    ``factory`` is ``glidein@factory``; ``last_heard`` seconds since the epoch.
    """

    entry: str
    factory: str
    numbers: EntryMonitor = EntryMonitor()
    site: str = ""
    last_heard: int = 0


def of_factory(ad: classad2.ClassAd, prefix: str = FACTORY) -> Monitor:
    """Return what a factory's ad has; the frontend's part as the factory heard it, too."""
    return _read(ad, prefix, _STATUS | _REQUESTED | _HEARD)


def of_resource(ad: classad2.ClassAd) -> Monitor:
    """Return both parts of a glideresource ad; jobs that run here only if that may be true."""
    own = _read(ad, _CLIENT, _OWN)
    if here_contradicts(ad):
        own = own._replace(client_jobs_here=None)
    return own.over(_read(ad, _FACTORY_IN_RESOURCE, _STATUS | _REQUESTED))


def here_contradicts(ad: classad2.ClassAd) -> bool:
    """Return whether no job is said to run on slots that are claimed.

    Upstream's defect: the frontend compares names of factories with and without a port
    (countRealRunning, frontend/glideinFrontendLib.py).  The factory has heard the true number.
    """
    here, claimed = (
        ads.count(ad, _CLIENT + name) for name in ("JobsRunningHere", "GlideinsRunning")
    )
    return here == 0 and bool(claimed)


def of_entry(ad: classad2.ClassAd) -> EntryMonitor:
    """Return the entry's numbers of a glidefactory ad."""
    return EntryMonitor(of_factory(ad, FACTORY + "Total"), *_limits(ad, "GlideinConfig"))


def of_entry_in_resource(ad: classad2.ClassAd) -> EntryMonitor:
    """Return the copy of the entry's numbers in a glideresource ad, which lacks the frontends'."""
    total = _read(ad, _FACTORY_IN_RESOURCE + "Total", _STATUS | _REQUESTED)
    return EntryMonitor(total, *_limits(ad, "GlideFactoryConfig"))


def _limits(ad: classad2.ClassAd, config: str) -> tuple[int | None, ...]:
    return tuple(ads.count(ad, config + name) for name in _LIMITS)


def _read(ad: classad2.ClassAd, prefix: str, names: Mapping[str, str]) -> Monitor:
    return Monitor(**{field: ads.count(ad, prefix + name) for field, name in names.items()})
