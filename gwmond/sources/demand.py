"""Source: idle jobs of one schedd, grouped there; no job is fetched.

QueryOpts.GroupBy makes the schedd return one row for each combination of the projected
attributes, with JobCount; with Requirements among them it adds the job attributes that
Requirements refers to, so that a row can be matched as it is.

Demand is idle jobs (JobStatus 1) of the vanilla (5; container and docker jobs too) and parallel
(11) universes.  Jobs of a late-materialization cluster that do not exist yet are counted from
their cluster's ad, unless its materialization is paused by a hold; a schedd whose own ad says that
it has none (JobsUnmaterialized) is not asked for them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gwmond.facts import DemandGroup, JobCount, Problem, Size
from gwmond.sources import ads
from gwmond.sources.access import Query
from gwmond.sources.child import QueryError
from gwmond.units import DEFAULT_MEMORY_MIB, MAX_CORES, MAX_MEMORY_MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import classad2

    from gwmond.config import Attributes, Demand
    from gwmond.sources.access import Access, Daemon

IDLE = "JobStatus == 1 && (JobUniverse == 5 || JobUniverse == 11)"
FACTORIES = (
    "ProcId is undefined && JobMaterializeDigestFile isnt undefined"
    " && (JobUniverse == 5 || JobUniverse == 11)"
    " && (JobMaterializePaused is undefined || JobMaterializePaused == 0)"
    " && TotalSubmitProcs > JobMaterializeNextProcId"
)
MAX_WALLTIME_S = 10 * 366 * 86400
_REQUESTS = ("RequestCpus", "RequestMemory", "RequestGPUs")
_NOT_MATCHED = frozenset(("id", "jobcount", "jobids", "jobstatus", "jobuniverse", "servertime"))
# Each job has its own: never a key to group by, whatever the configuration says.
_OF_ONE_JOB = frozenset(
    ("clusterid", "procid", "globaljobid", "qdate", "enteredcurrentstatus", "out", "err", "iwd")
)


class ScheddDemand(NamedTuple):
    """What one schedd's queue asks for; ``complete`` is false when groups were left out."""

    groups: tuple[DemandGroup, ...]
    counts: tuple[JobCount, ...]
    rows: int
    complete: bool
    problems: tuple[Problem, ...]


def query(attributes: Attributes, demand: Demand) -> Query:
    """Return the GroupBy query for idle jobs."""
    constraint = f"{IDLE} && ({demand.constraint})" if demand.constraint else IDLE
    names = (*_keys(attributes, demand), *_constrained(demand.constraint))
    return Query("demand", "", constraint, tuple(dict.fromkeys(names)))


def factories_query(attributes: Attributes, demand: Demand, refs: Iterable[str] = ()) -> Query:
    """Return the query for clusters that have jobs still to materialize."""
    constraint = f"{FACTORIES} && ({demand.constraint})" if demand.constraint else FACTORIES
    names = (*_keys(attributes, demand), "TotalSubmitProcs", "JobMaterializeNextProcId", *refs)
    return Query("unmaterialized", "", constraint, tuple(dict.fromkeys(names)))


def _constrained(constraint: str) -> list[str]:
    """Return the attributes of a constraint: GroupBy finds nothing unless they are projected."""
    if not constraint:
        return []
    try:
        return _references(ads.parse(f"[Requirements = {constraint}]"))
    except Exception as error:  # ClassAdException, which has no base that could be named here
        raise QueryError("bad_constraint", f"{constraint}: {error}") from None


def _keys(attributes: Attributes, demand: Demand) -> tuple[str, ...]:
    wanted = (
        *("JobStatus", "JobUniverse", "Requirements", *_REQUESTS, attributes.accounting_group),
        *(*attributes.walltime_minutes, *attributes.walltime_seconds, *demand.attributes),
    )
    usable = (n for n in wanted if n.lower() not in ads.SECRET and n.lower() not in _OF_ONE_JOB)
    return tuple(dict.fromkeys(usable))


def fetch(
    access: Access, schedd: Daemon, attributes: Attributes, demand: Demand, *, factories: bool
) -> ScheddDemand:
    """Ask one schedd, and decode what it says; ``factories`` says whether to ask for clusters."""
    rows = access.job_ads(schedd, query(attributes, demand))
    clusters = fetch_clusters(access, schedd, attributes, demand) if factories else ()
    return decode(rows, clusters, schedd.name, attributes, demand)


def fetch_clusters(
    access: Access, schedd: Daemon, attributes: Attributes, demand: Demand
) -> Sequence[classad2.ClassAd]:
    """Ask for cluster ads; once more, for what their Requirements refer to, where there are any."""
    clusters = access.cluster_ads(schedd, factories_query(attributes, demand))
    if not clusters:
        return clusters
    refs = sorted({ref for ad in clusters for ref in _references(ad)})
    return access.cluster_ads(schedd, factories_query(attributes, demand, refs))


def decode(
    rows: Sequence[classad2.ClassAd],
    clusters: Sequence[classad2.ClassAd],
    schedd: str,
    attributes: Attributes,
    demand: Demand,
) -> ScheddDemand:
    """Turn rows and cluster ads into demand groups; alike ones are added up."""
    groups: dict[tuple[str, str], DemandGroup] = {}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    problems: list[Problem] = []
    for ad, jobs, status in _with_counts(rows, clusters):
        if jobs <= 0:
            continue
        accounting_group = ads.text(ad, attributes.accounting_group) or ""
        counts[accounting_group, status] += jobs
        group = _group(ad, jobs, schedd, accounting_group, attributes, problems)
        key = accounting_group, group.signature
        if before := groups.get(key):
            group = group._replace(jobs=before.jobs + jobs)
        groups[key] = group
    kept = sorted(groups.values(), key=lambda g: (-g.jobs, g.signature, g.accounting_group))
    if len(kept) > demand.max_groups:
        detail = f"{schedd}: {len(kept)} groups, {demand.max_groups} are matched"
        problems.append(Problem(schedd, "too_many_groups", detail))
    return ScheddDemand(
        groups=tuple(kept[: demand.max_groups]),
        counts=tuple(JobCount(schedd, g, s, n) for (g, s), n in sorted(counts.items())),
        rows=len(rows) + len(clusters),
        complete=len(kept) <= demand.max_groups,
        problems=tuple(problems),
    )


def _with_counts(
    rows: Sequence[classad2.ClassAd], clusters: Sequence[classad2.ClassAd]
) -> Iterable[tuple[classad2.ClassAd, int, str]]:
    for ad in rows:
        yield ad, ads.count(ad, "JobCount") or 0, "idle"
    for ad in clusters:
        total = ads.count(ad, "TotalSubmitProcs") or 0
        yield ad, total - (ads.count(ad, "JobMaterializeNextProcId") or 0), "unmaterialized"


def _group(
    ad: classad2.ClassAd,
    jobs: int,
    schedd: str,
    accounting_group: str,
    attributes: Attributes,
    problems: list[Problem],
) -> DemandGroup:
    drop = {*_OF_ONE_JOB, attributes.accounting_group.lower()}
    drop -= set(map(str.lower, _references(ad)))
    drop |= {*_NOT_MATCHED, "totalsubmitprocs", "jobmaterializenextprocid"}
    names = [
        name
        for name in ad.keys()  # noqa: SIM118 (a ClassAd's iterator is not its keys)
        if name.lower() not in drop and name.lower() not in ads.SECRET
    ]
    text = ads.source_text(ad, names)
    cores = _request(ad, "RequestCpus", MAX_CORES)
    memory = _request(ad, "RequestMemory", MAX_MEMORY_MIB)
    gpus = _request(ad, "RequestGPUs", MAX_CORES) or 0
    if cores is None or memory is None:
        missing = "RequestCpus" if cores is None else "RequestMemory"
        problems.append(Problem(schedd, "bad_request", f"{missing} of {jobs} jobs is no number"))
        cores = 1 if cores is None else cores
        memory = DEFAULT_MEMORY_MIB * cores if memory is None else memory
    minutes = ads.first_number(ad, attributes.walltime_minutes)
    seconds = ads.first_number(ad, attributes.walltime_seconds)
    if seconds is None and minutes is not None:
        seconds = minutes * 60
    return DemandGroup(
        schedd=schedd,
        accounting_group=accounting_group,
        signature=ads.signature(text),
        ad=text,
        jobs=jobs,
        size=Size(cores, memory, int(gpus)),
        walltime_s=None if seconds is None or not 0 < seconds <= MAX_WALLTIME_S else int(seconds),
    )


def _request(ad: classad2.ClassAd, name: str, most: float) -> float | None:
    """Return what each job asks for; no slot has more than ``most``, whatever is asked."""
    value = ads.number(ad, name)
    return None if value is None or value < 0 else min(value, most)


def _references(ad: classad2.ClassAd) -> list[str]:
    """Return the job attributes that Requirements may refer to, secrets excepted."""
    try:
        expression = ad.lookup("Requirements")
        names = [*ad.internalRefs(expression), *ad.externalRefs(expression)]
    except (KeyError, TypeError, UnicodeDecodeError):
        return []
    plain = {name[3:] if name.lower().startswith("my.") else name for name in names}
    return [name for name in plain if name and "." not in name and name.lower() not in ads.SECRET]
