"""What a child process does: one query and its decoding.  The fork server has this module loaded.

Each function returns plain facts and the number of ads that were read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gwmond.model.facts import FrontendJobs
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import (
    ads,
    advertised,
    demand,
    factory,
    frontend,
    glideresource,
    matching,
    monitors,
    schedds,
    slots,
    startds,
)
from gwmond.sources.htcondor.access import Access, Daemon, Query
from gwmond.sources.recording import recording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gwmond.config.settings import Attributes, Demand
    from gwmond.model.facts import Pilot, Template

T = TypeVar("T")
Counted = tuple[T, int]

_COLLECTOR_START = "COLLECTOR_StartTime"
_RENEWED_TWICE = 3
"""UpdatesTotal of an ad that was renewed twice."""


class CollectorInfo(NamedTuple):
    """Since when a collector runs (epoch), and its version.

    ``own_ad``: it holds an ad of itself.  Without, its master tells since when it runs; None where
    that is not known, but other ads show that it does not run since a moment ago.
    """

    started: int | None
    version: str
    own_ad: bool = True


def collector_slots(
    access: Access, host: str, attributes: Attributes, now: float
) -> Counted[slots.Slots]:
    """Ask a collector for its slots."""
    found = access.collector_ads(host, slots.query(attributes))
    return slots.decode(found, attributes, host, now), len(found)


def collector_startds(
    access: Access, host: str, attributes: Attributes, now: float
) -> Counted[startds.Startds]:
    """Ask a collector for its startds."""
    found = access.collector_ads(host, startds.query(attributes))
    return startds.decode(found, attributes, now), len(found)


def collector_requests(
    access: Access, host: str, attributes: Attributes, now: float
) -> Counted[glideresource.Requests]:
    """Ask a collector for its glideresource ads."""
    found = access.collector_ads(host, glideresource.query())
    return glideresource.decode(found, attributes, host, now), len(found)


def collector_frontends(access: Access, host: str, now: float) -> Counted[tuple[FrontendJobs, ...]]:
    """Ask a collector for its glidefrontendmonitor ads."""
    found = access.collector_ads(host, frontend.query())
    return frontend.decode(found, now), len(found)


def collector_schedds(access: Access, host: str, now: float) -> Counted[schedds.Schedds]:
    """Ask a collector for its schedds."""
    found = access.collector_ads(host, schedds.query())
    return schedds.decode(found, now), len(found)


def collector_submitters(access: Access, host: str, now: float) -> Counted[schedds.Schedds]:
    """Ask a collector for its submitters."""
    found = access.collector_ads(host, schedds.submitters_query())
    return schedds.decode_submitters(found, now), len(found)


def collector_info(access: Access, host: str, now: float) -> Counted[CollectorInfo]:
    """Ask a collector about itself.

    Its ad has no start time, but its statistics' age.  Just after a start it has no ad at all; but
    where CLASSAD_LIFETIME is below COLLECTOR_UPDATE_INTERVAL its ad is missing most of the time.
    """
    found = access.collector_ads(host, collector_query())
    if not found:
        return CollectorInfo(_by_masters(access, host, now), "", own_ad=False), 0
    started: list[int] = []
    for ad in found:
        updated, lifetime = (ads.integer(ad, f"Stats{n}") for n in ("LastUpdateTime", "Lifetime"))
        if updated is not None and lifetime is not None:
            started.append(updated - lifetime)
    version = ads.text(found[0], "CondorVersion") or ""
    return CollectorInfo(max(started, default=None), version), len(found)


def _by_masters(access: Access, host: str, now: float) -> int | None:
    """Return since when a collector runs, by ads of masters; now, if they do not tell.

    Its own master's ad tells; else a collector counts the updates of each ad since it was started,
    and a master sends only those of MASTER_UPDATE_INTERVAL.
    """
    names = ("Name", _COLLECTOR_START, "UpdatesTotal")
    constraint = f"{_COLLECTOR_START} isnt undefined || UpdatesTotal >= {_RENEWED_TWICE}"
    try:
        found = access.collector_ads(host, Query("masters", "Master", constraint, names))
    except QueryError:
        return int(now)
    started = [at for ad in found if (at := ads.integer(ad, _COLLECTOR_START)) is not None]
    if started:
        return max(started)
    return None if found else int(now)


def collector_query() -> Query:
    """Return the query for a collector's own ad."""
    names = ("Name", "StatsLastUpdateTime", "StatsLifetime", "CondorVersion")
    return Query("collector", "Collector", "", names)


def slot_templates(
    access: Access, host: str, samples: Sequence[slots.Sample], attributes: Attributes, now: float
) -> Counted[tuple[Template, ...]]:
    """Ask a collector for the whole ads of sample slots."""
    found = access.collector_ads(host, matching.samples_query(s.slot for s in samples))
    return matching.templates_from_slots(found, samples, attributes, now), len(found)


def schedd_demand(
    access: Access,
    schedd: Daemon,
    attributes: Attributes,
    options: Demand,
    factories: bool,
    start: demand.StartKeys,
    apart: demand.Apart,
) -> Counted[demand.ScheddDemand]:
    """Ask a schedd for its idle jobs, grouped."""
    result = demand.fetch(
        access, schedd, attributes, options, factories=factories, start=start, apart=apart
    )
    return result, result.rows


def factory_clients(
    access: Access, host: str, now: float
) -> Counted[tuple[factory.FactoryClient, ...]]:
    """Ask a WMS collector for glidefactoryclient ads."""
    found = access.collector_ads(host, factory.clients_query())
    return factory.decode_clients(found, now), len(found)


def factory_entries(
    access: Access, host: str, now: float
) -> Counted[tuple[monitors.FactoryEntry, ...]]:
    """Ask a WMS collector for glidefactory ads."""
    found = access.collector_ads(host, factory.entries_query())
    return factory.decode_entries(found, now), len(found)


def client_asks(access: Access, host: str, now: float) -> Counted[tuple[factory.ClientAsk, ...]]:
    """Ask a WMS collector for glideclient ads."""
    found = access.collector_ads(host, factory.asks_query())
    return factory.decode_asks(found, now), len(found)


def advertised_failures(
    access: Access, host: str, attributes: Attributes, now: float
) -> Counted[tuple[Pilot, ...]]:
    """Ask a factory's collector for pilots that tell that their validation failed."""
    found = access.collector_ads(host, advertised.masters_query(attributes))
    return tuple(advertised.pilots(slots.fresh(found, now), attributes)), len(found)


def factory_queue(
    access: Access, schedd: Daemon, grace_s: float, now: float
) -> Counted[factory.Queue]:
    """Ask a factory's schedd for its pilots, grouped."""
    result = factory.fetch_queue(access, schedd, grace_s, now)
    return result, len(result.counts)


def record_slots(
    access: Access, host: str, attributes: Attributes, now: float
) -> Counted[tuple[list[recording.Ad], tuple[slots.Sample, ...]]]:
    """Ask a collector for its slots, for a recording; also which can stand for their entries."""
    query = slots.query(attributes)
    found = access.collector_ads(host, query)
    samples = slots.decode(found, attributes, host, now).samples
    return (recording.dump(found, query.attributes), samples), len(found)


def record_collector(
    access: Access, host: str, query: Query, refers: Iterable[str] = ()
) -> Counted[list[recording.Ad]]:
    """Ask a collector, for a recording; ``refers`` is what jobs ask for of whole ads."""
    found = access.collector_ads(host, query)
    return recording.dump(found, (*query.attributes, *refers)), len(found)


def record_jobs(access: Access, schedd: Daemon, query: Query) -> Counted[list[recording.Ad]]:
    """Ask a schedd for groups of jobs, for a recording."""
    found = access.job_ads(schedd, query)
    return recording.dump(found, (*query.attributes, "JobCount")), len(found)


def record_demand(
    access: Access,
    schedd: Daemon,
    attributes: Attributes,
    options: Demand,
    start: demand.StartKeys,
) -> Counted[tuple[list[recording.Ad], tuple[str, ...], set[str]]]:
    """Ask a schedd for its idle jobs, grouped, for a recording.

    Also what was left out, and which attributes of pilots the jobs refer to.  Rows carry what
    their jobs do not have, as a replay cannot ask for it.
    """
    rows, start = demand.fetch_rows(access, schedd, attributes, options, start)
    names = (*demand.query(attributes, options, start).attributes, "JobCount")
    dumped = recording.dump(rows, names)
    kept = [ad | demand.known(start, {name.lower() for name in ad}) for ad in dumped]
    return (kept, start.ungrouped, recording.referred(rows, names)), len(kept)


def record_clusters(
    access: Access, schedd: Daemon, attributes: Attributes, options: Demand
) -> Counted[tuple[list[recording.Ad], set[str]]]:
    """Ask a schedd for clusters with jobs to materialize, for a recording.

    Also which attributes of pilots they refer to.
    """
    found = demand.fetch_clusters(access, schedd, attributes, options)
    names = demand.factories_query(attributes, options).attributes
    return (recording.dump(found, names), recording.referred(found, names)), len(found)
