"""Source: idle jobs of one schedd, grouped there; no job is fetched.

QueryOpts.GroupBy makes the schedd return one row for each combination of the projected
attributes, with JobCount; with Requirements among them it adds the job attributes that
Requirements refers to, so that a row can be matched as it is.

The job attributes to which pilots' START expressions refer are keys, too.  Where one has a value of
its own for nearly every job there would be as many groups as jobs: it is left out, and reported.

Demand is idle jobs (JobStatus 1) of the vanilla (5; container and docker jobs too) and parallel
(11) universes.  Jobs of a late-materialization cluster that do not exist yet are counted from
their cluster's ad, unless its materialization is paused by a hold; a schedd whose own ad says that
it has none (JobsUnmaterialized) is not asked for them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gwmond.model.facts import DemandGroup, JobCount, Problem, Size
from gwmond.model.names import OTHER
from gwmond.model.problem_names import ProblemName
from gwmond.model.units import DEFAULT_MEMORY_MIB, MAX_CORES, MAX_MEMORY_MIB
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.matching import UNGROUPED

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    import classad2

    from gwmond.config.settings import Attributes, DemandOptions
    from gwmond.model.facts import Rejection, Stalled
    from gwmond.sources.htcondor.access import Access, Daemon

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
_FEW_GROUPS = 100
# Each job has its own: never a key to group by, whatever the configuration says.
_OF_ONE_JOB = frozenset(
    ("clusterid", "procid", "globaljobid", "qdate", "enteredcurrentstatus", "out", "err", "iwd")
)


class ScheddDemand(NamedTuple):
    """What one schedd's queue asks for; ``complete`` is false when groups were left out.

    ``stalled``: running jobs that use no CPU; None: not known.
    """

    groups: tuple[DemandGroup, ...]
    counts: tuple[JobCount, ...]
    rows: int
    complete: bool
    problems: tuple[Problem, ...]
    ungrouped: tuple[str, ...] = ()
    stalled: tuple[Stalled, ...] | None = None


class StartKeys(NamedTuple):
    """Job attributes to which START expressions refer: those to group by, and those left out."""

    grouped: tuple[str, ...] = ()
    ungrouped: tuple[str, ...] = ()

    def without(self, names: Iterable[str]) -> StartKeys:
        """Return the keys with some more left out."""
        more = {name.lower() for name in names}
        out = {*self.ungrouped, *(name for name in self.grouped if name.lower() in more)}
        return StartKeys(
            tuple(name for name in self.grouped if name.lower() not in more),
            tuple(sorted(out, key=str.lower)),
        )

    def usable(self) -> StartKeys:
        """Return the keys without what each job has of its own, and without secrets."""
        kept = tuple(name for name in self.grouped if name.lower() not in ads.SECRET)
        return self._replace(grouped=kept).without(_OF_ONE_JOB)


NO_KEYS = StartKeys()
GroupKey: TypeAlias = tuple[str, str]
"""An accounting group, and the signature of a group of its jobs."""


class JobGrouping(NamedTuple):
    """By what idle jobs are grouped: the configuration's keys, and those of START."""

    attributes: Attributes
    options: DemandOptions
    start: StartKeys = NO_KEYS


class Apart(NamedTuple):
    """The accounting groups that are kept apart, and how many more may be (``Names``)."""

    names: frozenset[str]
    room: int


ALL_APART = Apart(frozenset(), 10**9)


def query(grouping: JobGrouping) -> Query:
    """Return the GroupBy query for idle jobs.

    Keys of START are only known by their names, so the rows that they may make are limited.
    """
    options, grouped = grouping.options, grouping.start.grouped
    constraint = f"{IDLE} && ({options.constraint})" if options.constraint else IDLE
    names = distinct((*keys(grouping), *grouped, *constrained(options.constraint)))
    return Query("demand", "", constraint, names, options.max_groups + 1 if grouped else -1)


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return names once each, whatever their case."""
    by_lower: dict[str, str] = {}
    for name in names:
        by_lower.setdefault(name.lower(), name)
    return tuple(by_lower.values())


def factories_query(grouping: JobGrouping, refs: Iterable[str] = ()) -> Query:
    """Return the query for clusters that have jobs still to materialize."""
    own = grouping.options.constraint
    names = (
        *(*keys(grouping), "TotalSubmitProcs", "JobMaterializeNextProcId"),
        *(*grouping.start.grouped, *refs),
    )
    constraint = f"{FACTORIES} && ({own})" if own else FACTORIES
    return Query("unmaterialized", "", constraint, distinct(names))


def constrained(constraint: str) -> list[str]:
    """Return the attributes of a constraint: GroupBy finds nothing unless they are projected."""
    if not constraint:
        return []
    try:
        return references(ads.parse(f"[Requirements = {constraint}]"))
    except Exception as error:  # ClassAdException, which has no base that could be named here
        raise QueryError(ProblemName.BAD_CONSTRAINT, f"{constraint}: {error}") from None


def keys(grouping: JobGrouping) -> tuple[str, ...]:
    """Return the attributes of every query for jobs: size, wall time, group, those for matching."""
    attributes = grouping.attributes
    names = (
        *("JobStatus", "JobUniverse", "Requirements", *_REQUESTS, attributes.accounting_group),
        *(*attributes.walltime_minutes, *attributes.walltime_seconds, *grouping.options.attributes),
    )
    usable = (n for n in names if n.lower() not in ads.SECRET and n.lower() not in _OF_ONE_JOB)
    return tuple(dict.fromkeys(usable))


def fetch_rows(
    access: Access, schedd: Daemon, grouping: JobGrouping
) -> tuple[Sequence[classad2.ClassAd], JobGrouping]:
    """Ask for groups of idle jobs, and return by what they could be grouped as well."""
    grouping = grouping._replace(start=grouping.start.usable())
    rows = access.job_ads(schedd, query(grouping))
    while names := _differing(rows, grouping):
        grouping = grouping._replace(start=grouping.start.without(names))
        rows = access.job_ads(schedd, query(grouping))
    if grouping.start.grouped and len(rows) > grouping.options.max_groups:
        rows = access.job_ads(schedd, query(grouping)._replace(limit=-1))  # not because of START
    return rows, grouping


def _differing(rows: Sequence[classad2.ClassAd], grouping: JobGrouping) -> list[str]:
    """Return the keys of START that make too many groups.

    Those with a value of their own for more than half of the jobs; if there are still too many
    groups, the one with the most values.
    """
    others = {name.lower() for name in keys(grouping)}
    by_start = [name for name in grouping.start.grouped if name.lower() not in others]
    if len(rows) <= _FEW_GROUPS or not by_start:
        return []
    jobs = sum(ads.count(ad, "JobCount") or 0 for ad in rows)
    values = {name: len({ads.expression_text(ad, name) or "" for ad in rows}) for name in by_start}
    many = [name for name, count in values.items() if count > max(_FEW_GROUPS, jobs / 2)]
    if not many and len(rows) > grouping.options.max_groups:
        most = max(by_start, key=lambda name: values[name])
        many = [most] if values[most] > 1 else []
    return many


def fetch_clusters(
    access: Access, schedd: Daemon, grouping: JobGrouping
) -> Sequence[classad2.ClassAd]:
    """Ask for cluster ads; once more, for what their Requirements refer to, where there are any."""
    clusters = access.cluster_ads(schedd, factories_query(grouping))
    if not clusters:
        return clusters
    refs = sorted({ref for ad in clusters for ref in references(ad)})
    return access.cluster_ads(schedd, factories_query(grouping, refs))


def decode(
    rows: Sequence[classad2.ClassAd],
    clusters: Sequence[classad2.ClassAd],
    schedd: str,
    grouping: JobGrouping,
    apart: Apart = ALL_APART,
    rejected: Mapping[GroupKey, tuple[Rejection, ...]] | None = None,
) -> ScheddDemand:
    """Turn rows and cluster ads into demand groups; alike ones are added up.

    ``rejected``: what the negotiator said of some of them.

    Accounting groups that are not kept ``apart`` are one here, and each has its share of the groups
    that are matched: however many groups one makes of its jobs, those of others are matched.
    """
    attributes, options, start = grouping
    groups: dict[GroupKey, DemandGroup] = {}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    problems = [
        Problem(schedd, ProblemName.START_ATTRIBUTE, f"{name}: other for (nearly) every job")
        for name in start.ungrouped
    ]
    for ad, jobs, status in _with_counts(rows, clusters):
        if jobs <= 0:
            continue
        accounting_group = ads.label(ad, (attributes.accounting_group,)) or ""
        counts[accounting_group, status] += jobs
        group = _group(ad, jobs, schedd, accounting_group, grouping, problems)
        key = accounting_group, group.signature
        before = groups.get(key)
        number = jobs + (before.jobs if before else 0)
        groups[key] = group._replace(jobs=number, rejections=(rejected or {}).get(key, ()))
    kept = by_share(_together(groups.values(), counts, apart))
    if len(kept) > options.max_groups:
        detail = f"{schedd}: {len(kept)} groups, {options.max_groups} are matched"
        problems.append(Problem(schedd, ProblemName.TOO_MANY_GROUPS, detail))
    return ScheddDemand(
        groups=tuple(kept[: options.max_groups]),
        counts=tuple(JobCount(schedd, g, s, n) for (g, s), n in sorted(counts.items())),
        rows=len(rows) + len(clusters),
        complete=len(kept) <= options.max_groups,
        problems=tuple(problems),
        ungrouped=start.ungrouped,
    )


def _together(
    groups: Iterable[DemandGroup], counts: Mapping[tuple[str, str], int], apart: Apart
) -> list[DemandGroup]:
    """Return groups; of the accounting groups, those that are not kept apart become one.

    The largest new ones are kept apart as long as there is room.
    """
    jobs: Counter[str] = Counter()
    for (name, _), number in counts.items():
        jobs[name] += number
    new = sorted(jobs.keys() - apart.names, key=lambda name: (-jobs[name], name))
    other = set(new[apart.room :])
    merged: dict[GroupKey, DemandGroup] = {}
    for group in groups:
        name = OTHER if group.accounting_group in other else group.accounting_group
        if before := merged.get((name, group.signature)):
            group = group.plus(before)  # noqa: PLW2901
        merged[name, group.signature] = group._replace(accounting_group=name)
    return list(merged.values())


def by_share(groups: Iterable[DemandGroup]) -> list[DemandGroup]:
    """Return each accounting group's largest group, then each one's second, and so on."""
    place: Counter[str] = Counter()
    ranked = []
    for group in sorted(groups, key=lambda g: (-g.jobs, g.signature, g.accounting_group)):
        ranked.append((place[group.accounting_group], group))
        place[group.accounting_group] += 1
    return [group for _, group in sorted(ranked, key=lambda pair: pair[0])]  # stable


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
    grouping: JobGrouping,
    problems: list[Problem],
) -> DemandGroup:
    text = _text(ad, grouping)
    size, wrong = size_of(ad)
    if wrong:
        detail = f"{wrong[0]} of {jobs} jobs is no number"
        problems.append(Problem(schedd, ProblemName.BAD_REQUEST, detail))
    return DemandGroup(
        schedd=schedd,
        accounting_group=accounting_group,
        signature=ads.signature(text),
        ad=text,
        jobs=jobs,
        size=size,
        walltime_s=walltime_of(ad, grouping.attributes),
        identity=identity_of(ad, grouping),
        wants=ads.wants_of(ad),
        sample=_sample(ad),
    )


def _sample(ad: classad2.ClassAd) -> str:
    """Return one of a row's jobs (JobIds: ``4.0 ... 4.9``), or the cluster of a cluster's ad."""
    match = re.match(r"[0-9]{1,10}\.[0-9]{1,10}", ads.text(ad, "JobIds") or "")
    if match is None:
        return str(ads.count(ad, "ClusterId") or "")
    return match[0]


def key_of(ad: classad2.ClassAd, grouping: JobGrouping) -> GroupKey:
    """Return to which group the jobs of a row belong."""
    name = ads.label(ad, (grouping.attributes.accounting_group,)) or ""
    return name, ads.signature(_text(ad, grouping))


def _text(ad: classad2.ClassAd, grouping: JobGrouping) -> str:
    """Return what matching needs of a row, as the text of an ad."""
    attributes, _, start = grouping
    keys = {name.lower() for name in start.grouped}
    drop = {*_OF_ONE_JOB, attributes.accounting_group.lower()}
    drop -= set(map(str.lower, references(ad)))
    drop |= {*_NOT_MATCHED, "totalsubmitprocs", "jobmaterializenextprocid"}
    drop -= keys
    names = [
        name
        for name in ad.keys()  # noqa: SIM118 (a ClassAd's iterator is not its keys)
        if name.lower() not in drop and name.lower() not in ads.SECRET
    ]
    return _with_keys(ads.source_text(ad, names), start, {name.lower() for name in names})


def identity_of(ad: classad2.ClassAd, grouping: JobGrouping) -> str:
    """Return an identity of the values to which a job's Requirements and START refer.

    What it does not have makes no difference: so it does not change as other pilots come.
    """
    referred = {name.lower() for name in references(ad)}
    own = {*_OF_ONE_JOB, *_NOT_MATCHED, grouping.attributes.accounting_group.lower()} - referred
    names = {name.lower() for name in (*keys(grouping), *grouping.start.grouped)} - own
    present = (
        name
        for name in names | referred
        if ads.expression_text(ad, name) not in (None, "", "undefined")
    )
    return ads.signature(ads.source_text(ad, present))


def walltime_of(ad: classad2.ClassAd, attributes: Attributes) -> int | None:
    """Return for how long a job says that it will run (seconds); None if it says nothing usable."""
    minutes = ads.first_number(ad, attributes.walltime_minutes)
    seconds = ads.first_number(ad, attributes.walltime_seconds)
    if seconds is None and minutes is not None:
        seconds = minutes * 60
    return None if seconds is None or not 0 < seconds <= MAX_WALLTIME_S else int(seconds)


def size_of(ad: classad2.ClassAd) -> tuple[Size, tuple[str, ...]]:
    """Return what a job asks for, and which requests are no number: of these it is the default."""
    cores = _request(ad, "RequestCpus", MAX_CORES)
    memory = _request(ad, "RequestMemory", MAX_MEMORY_MIB)
    gpus = _request(ad, "RequestGPUs", MAX_CORES) or 0
    wrong = [n for n, v in (("RequestCpus", cores), ("RequestMemory", memory)) if v is None]
    cores = 1 if cores is None else cores
    memory = DEFAULT_MEMORY_MIB * cores if memory is None else memory
    return Size(cores, memory, int(gpus)), tuple(wrong)


def _with_keys(text: str, start: StartKeys, present: set[str]) -> str:
    """Return a group's text with what is known of keys of START that its jobs do not have."""
    more = [f"{name} = {value}" for name, value in known(start, present).items()]
    return "; ".join((text.removesuffix("]"), *more)) + "]" if more else text


def known(start: StartKeys, present: Container[str]) -> dict[str, str]:
    """Return what is known of jobs besides the attributes that are ``present`` (in lower case)."""
    absent = {name: "undefined" for name in start.grouped if name.lower() not in present}
    return absent | ({UNGROUPED: "true"} if start.ungrouped else {})


def _request(ad: classad2.ClassAd, name: str, most: float) -> float | None:
    """Return what each job asks for; no slot has more than ``most``, whatever is asked."""
    value = ads.number(ad, name)
    return None if value is None or value < 0 else min(value, most)


def references(ad: classad2.ClassAd) -> list[str]:
    """Return the job attributes that Requirements may refer to, secrets excepted."""
    names = ads.referred(ad, "Requirements")
    plain = {name[3:] if name.lower().startswith("my.") else name for name in names}
    return [name for name in plain if name and "." not in name and name.lower() not in ads.SECRET]
