"""Source: ads of frontends in the user collector, one for each entry and frontend group.

A glidefrontendmonitor ad says besides how many idle jobs a frontend counts in all.

Attribute names as GlideWMS's frontend writes them (glideinFrontendInterface.py, ResourceClassad):
GlideClientMonitor* are the frontend's counts of jobs and *slots*; GlideFactoryMonitorStatus* the
factory's counts of this client's pilots; GlideFactoryMonitorTotal* the same over all clients;
GlideClientLimit<X>, GlideClientCurbCurb<X> and GlideFactoryMonitorStatus_GlideFactoryLimit<X> say
that a limit is hit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.digits import is_number
from gwmond.model.facts import EntryKey, EntryRequest, FrontendJobs, Limit, Problem, Size, Template
from gwmond.model.freshest import freshest
from gwmond.model.monitor import EntryMonitor
from gwmond.model.problem_names import ProblemName
from gwmond.model.units import MAX_CORES, MAX_MEMORY_MIB
from gwmond.sources.htcondor import ads, monitors
from gwmond.sources.htcondor.access import CollectorSource, Query
from gwmond.sources.htcondor.matching import TEMPLATE_USED, template_from_glideresource
from gwmond.sources.htcondor.monitors import FactoryEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

    from gwmond.config.settings import Attributes

_DECIMAL = re.compile(r"[0-9]+\.?[0-9]*")
_STATUS = "GlideFactoryMonitorStatus"
_CLIENT = "GlideClientMonitor"
_LIMITS = (
    "GlideClientLimit",
    "GlideClientCurbCurb",
    "GlideinMonitorStatus_GlideFactoryLimit",
    _STATUS + "_GlideFactoryLimit",
)
LIMITS_USED = tuple(f"{prefix}*" for prefix in _LIMITS)
"""As attributes that a query uses: what a limit is of is the end of its name."""

_CORES = ("GLIDEIN_ESTIMATED_CPUS", "GLIDEIN_CPUS")
_MEMORY = ("GLIDEIN_MaxMemMBs", "GLIDEIN_ESTIMATED_MEMORY")
_MEMORY_A_CORE = ("GLIDEIN_MemMBsPerCPU", "GLIDEIN_MaxMemMBsPerCpu")
_GPUS = ("GLIDEIN_GPUS", "GLIDEIN_Resource_GPUs")
_USED = (
    *("Name", "GlideFactoryName", "GlideClientName", "GlideFrontendName", "GlideGroupName"),
    *("GLIDEIN_In_Downtime", "GLIDEIN_Max_Walltime", "GLIDEIN_Resource_Slots"),
    *(*_CORES, *_MEMORY, *_MEMORY_A_CORE, *_GPUS, "ClassAdLifetime", "LastHeardFrom"),
    *(_CLIENT + name for name in ("JobsIdle", "JobsIdleUnique", "JobsIdleEffective")),
    *(*monitors.RESOURCE_NAMES, *LIMITS_USED, *TEMPLATE_USED),
)


QUERY = Query("glideresource", "Any", 'MyType == "glideresource"', (), used=_USED)
"""For whole ads, for they hold the entry's attributes that jobs may ask for."""

FRONTENDS = Query(
    "frontendmonitor",
    "Any",
    'MyType == "glidefrontendmonitor"',
    (
        *("Name", "GlideFrontendName", "LastHeardFrom", "ClassAdLifetime"),
        *(f"GlideFrontend_IdleJobs_{age}" for age in ("Total", "600", "3600")),
    ),
)
"""For frontends' own monitoring ads."""


class Requests(NamedTuple):
    """What the ads said, and an estimated template for each entry and frontend group.

    ``entries`` has each entry's own numbers once for each of its factories.
    """

    requests: tuple[EntryRequest, ...]
    templates: tuple[Template, ...]
    problems: tuple[Problem, ...]
    entries: tuple[FactoryEntry, ...] = ()


def decode(
    resource_ads: Sequence[classad2.ClassAd], attributes: Attributes, source: str, now: float
) -> Requests:
    """Turn glideresource ads into requests; those older than their lifetime are dropped."""
    requests: list[EntryRequest] = []
    templates: dict[tuple[EntryKey, str], Template] = {}
    problems: list[Problem] = []
    entries: list[FactoryEntry] = []
    for ad in ads.fresh(resource_ads, now):
        numbers = monitors.of_entry_in_resource(ad)
        request = _request(ad, numbers, attributes)
        if request is None:
            problems.append(
                Problem(source, ProblemName.NO_ENTRY, ads.text(ad, "Name") or "no name")
            )
            continue
        requests.append(request)
        name, factory, site = request.entry.entry, request.factory, request.entry.site
        entries.append(FactoryEntry(name, factory, numbers, site, request.last_heard))
        berth = request.entry, request.group
        if berth not in templates and request.pilot_size is not None:
            lifetime_s = ads.count(ad, "GLIDEIN_Max_Walltime")
            templates[berth] = template_from_glideresource(
                ad, request.entry, request.pilot_size, lifetime_s, request.group
            )
    latest = freshest(entries, lambda entry: (entry.entry, entry.factory)).values()
    return Requests(tuple(requests), tuple(templates.values()), tuple(problems), tuple(latest))


def _request(
    ad: classad2.ClassAd, numbers: EntryMonitor, attributes: Attributes
) -> EntryRequest | None:
    name = ads.label(ad, ("GlideFactoryName", "Name")) or ""
    entry_name, _, factory = name.partition("@")
    site = ads.label(ad, attributes.site)
    if not entry_name:
        return None
    entry = EntryKey(site or entry_name, ads.label(ad, attributes.entry) or entry_name)
    client = ads.label(ad, ("GlideClientName",)) or _client(ad)
    return EntryRequest(
        entry=entry,
        group=client,
        factory=factory.removesuffix("@" + client),
        down=ads.truth(ad, "GLIDEIN_In_Downtime") or False,
        whole=numbers,
        limits=limits(ad),
        jobs_matching=ads.count(ad, _CLIENT + "JobsIdleMatching"),
        jobs_proportional=ads.count(ad, _CLIENT + "JobsIdle"),
        jobs_unique=ads.count(ad, _CLIENT + "JobsIdleUnique"),
        jobs_effective=ads.count(ad, _CLIENT + "JobsIdleEffective"),
        slots_idle=ads.count(ad, _CLIENT + "GlideinsIdle"),
        pilot_size=_pilot_size(ad),
        last_heard=ads.integer(ad, "LastHeardFrom") or 0,
        monitor=monitors.of_resource(ad),
        here_contradicts=monitors.here_contradicts(ad),
    )


def _client(ad: classad2.ClassAd) -> str:
    frontend = ads.text(ad, "GlideFrontendName") or ""
    group = ads.text(ad, "GlideGroupName") or ""
    return ".".join(part for part in (frontend, group) if part)


def _pilot_size(ad: classad2.ClassAd) -> Size | None:
    """Return what a pilot of the entry is expected to be; GLIDEIN_CPUS may say "auto"."""
    cores = _positive(ad, _CORES, MAX_CORES)
    memory = _positive(ad, _MEMORY, MAX_MEMORY_MIB)
    if memory is None:
        per_core = _positive(ad, _MEMORY_A_CORE, MAX_MEMORY_MIB)
        memory = None if per_core is None or cores is None else per_core * cores
    if cores is None or memory is None or memory > MAX_MEMORY_MIB:
        return None
    return Size(cores, memory, _gpus(ad))


def _gpus(ad: classad2.ClassAd) -> int:
    """Return the GPUs of a pilot: of ``GLIDEIN_Resource_Slots``, such as ``GPUs,2,type=main``.

    Without a number the pilot takes what it finds, which is one at least.
    """
    for resource in (ads.text(ad, "GLIDEIN_Resource_Slots") or "").split(";"):
        name, *rest = (part.strip() for part in resource.split(","))
        if name.lower() == "gpus":
            number = rest[0] if rest else ""
            return min(int(number), int(MAX_CORES)) if is_number(number) else 1
    return int(_positive(ad, _GPUS, MAX_CORES) or 0)


def _positive(ad: classad2.ClassAd, names: tuple[str, ...], most: float) -> float | None:
    """Return the first positive number; GlideinWMS writes some numbers as strings."""
    for name in names:
        value = ads.number(ad, name)
        if value is None and (text := ads.text(ad, name)) is not None:
            value = float(text) if _DECIMAL.fullmatch(text.strip()) else None
        if value is not None and 0 < value <= most:
            return value
    return None


def limits(ad: classad2.ClassAd) -> tuple[Limit, ...]:
    """Return every limit or curb that the ad says is hit, by the attribute that says so."""
    return tuple(
        Limit(ads.printable(name), ads.printable(str(value)))
        for name in sorted(ad.keys(), key=str.lower)
        if name.startswith(_LIMITS) and (value := ads.evaluate(ad, name)) not in (None, 0, "")
    )


def decode_frontends(own_ads: Sequence[classad2.ClassAd], now: float) -> tuple[FrontendJobs, ...]:
    """Turn frontends' own ads into how many idle jobs each counts in all."""
    return tuple(
        FrontendJobs(
            ads.text(ad, "GlideFrontendName") or ads.text(ad, "Name") or "",
            *(ads.count(ad, f"GlideFrontend_IdleJobs_{age}") for age in ("Total", "600", "3600")),
        )
        for ad in ads.fresh(own_ads, now)
    )


SOURCES = (
    CollectorSource(
        "glideresource",
        lambda _: QUERY,
        lambda answer, t: decode(answer, t.attributes, t.name, t.now),
        whole=True,
    ),
    CollectorSource(
        "frontendmonitor",
        lambda _: FRONTENDS,
        lambda answer, t: decode_frontends(answer, t.now),
    ),
)
