"""Source: one job of a schedd, and what each clause says of it and of each slot and entry.

One projected query fetches the job: grouped by its number, so that the schedd adds what its
Requirements refer to (see ``demand``).  Slots are asked for with only those attributes to which
the job or a START expression refers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gwmond.model.demand.waiting_job import ConcurrencyLimit, Examined, WaitingJob
from gwmond.model.facts import EntryKey
from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads, clauses, demand, matching, pilot_ads, rejections
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.alike import Alike, Values
from gwmond.sources.htcondor.edits import edits
from gwmond.sources.htcondor.pilots import slots
from gwmond.sources.htcondor.places import (
    SHOWN,
    Asking,
    EmptyPilots,
    ExplainTerms,
    free_slot,
    slot_place,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    import classad2

    from gwmond.config.settings import Attributes, DemandOptions
    from gwmond.model.facts import DemandGroup, Pilot, Template
    from gwmond.sources.htcondor.access import Access, Daemon

NUMBER = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,10}))?")
_NAMES = (
    *("ClusterId", "ProcId", "GlobalJobId", "Owner", "User", "JobStatus", "QDate"),
    *("EnteredCurrentStatus", "NumShadowStarts", "HoldReason", "HoldReasonCode"),
    *("RemoveReason", "DeferralTime", "LastVacateTime", "LastMatchTime"),
    *("LastRejMatchReason", "LastRejMatchTime", "AutoClusterId", "JobUniverse"),
    *("JobPrio", "AccountingGroup", "RemoteHost", "ConcurrencyLimits"),
)
"""What is asked of a job besides what matching needs."""
FEW_GROUPS = 200
MOST_PLACES = 50_000
"""How many groups of idle jobs are analysed clause by clause, and how often, at most (5 s)."""
_TRIED, _TRIED_OF_GROUPS = 40, 5
"""With so many pilots that differ changes of a job are tried, and of a group of jobs."""
ASKED = (
    *(*SHOWN, "Requirements", "Start", "Name", "MyAddress"),
    *("LastHeardFrom", "ClassAdLifetime", "ConcurrencyLimits"),
)
"""What is asked of a slot besides that to which jobs, START and the configuration refer."""
_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_GPUS, _REQUEST = "availablegpus", "request"
_MOST_TIMES = 3
"""So often slots are asked for: again for what those refer to that were found."""
_REJECTION = rejections.SAID
_NEXT, _PAUSED = "JobMaterializeNextProcId", "JobMaterializePaused"


def find(
    access: Access, schedd: Daemon, number: str, terms: ExplainTerms
) -> tuple[tuple[WaitingJob, str] | None, int]:
    """Return a job and the text of its ad; None: the queue has no such job.

    ``number`` is ``cluster.proc``, or ``cluster`` for its first job.
    """
    attributes, options, refers = terms.attributes, terms.options, _referred(terms.templates)
    ad = next(iter(access.job_ads(schedd, query(number, refers, attributes, options))), None)
    if ad is None:
        return None, 0
    if ads.text(ad, _REJECTION[0]) is None:
        _add_rejection(access, schedd, ad)
    identity = demand.identity_of(ad, grouping_of(terms))
    job = _job(ad, schedd.name, refers, attributes)._replace(identity=identity)
    return (job, ads.source_text(ad, ad.keys())), 1


def planned(
    access: Access, text: str, terms: ExplainTerms
) -> tuple[tuple[WaitingJob, str] | None, int]:
    """Return a job that is not submitted yet, and the text of its ad; None: that is no ad.

    ``text`` is an ad in either syntax.
    """
    del access
    ad = ads.parse_any(text)
    if ad is None:
        return None, 0
    for name, default in _PLANNED.items():
        if name not in ad:
            ad[name] = default
    job = _job(ad, "", _referred(terms.templates), terms.attributes)
    return (job._replace(number="", status=0, since=None, submitted=None), _told(ad)), 1


def readable(text: str) -> str:
    """Return the ad that a text in either syntax says, without secrets and files; empty: none."""
    ad = ads.parse_any(text)
    return "" if ad is None else _told(ad, _FILES)


def _told(ad: classad2.ClassAd, but: AbstractSet[str] = frozenset()) -> str:
    unsaid = ads.SECRET | but
    return ads.source_text(ad, (name for name in ad.keys() if name.lower() not in unsaid))  # noqa: SIM118


_FILES = {"iwd", "in", "out", "err"}
_PLANNED = {"JobUniverse": 5, "RequestCpus": 1, "Requirements": True}


class Unmade(NamedTuple):
    """A cluster of which a schedd makes the jobs as others end (late materialization).

    ``made`` of ``total`` are there, or were; ``paused``: it makes no more, as for a hold.
    """

    made: int
    total: int
    paused: bool


def find_unmade(
    access: Access, schedd: Daemon, number: str, terms: ExplainTerms
) -> tuple[Unmade | None, int]:
    """Return the cluster of a job that is still to be made; None: the schedd has no such."""
    del terms
    cluster, _, proc = number.partition(".")
    constraint = f"ClusterId == {cluster} && ProcId is undefined"
    names = "ClusterId", "ProcId", "TotalSubmitProcs", _NEXT, _PAUSED
    asked = Query("unmaterialized", "", constraint, names)
    for ad in access.cluster_ads(schedd, asked):
        made, total = ads.count(ad, _NEXT), ads.count(ad, "TotalSubmitProcs")
        if made is not None and total is not None and made <= int(proc or 0) < total:
            return Unmade(made, total, bool(ads.integer(ad, _PAUSED))), 1
    return None, 0


def examine(
    access: Access, job: WaitingJob, text: str, terms: ExplainTerms
) -> tuple[Examined, int]:
    """Return a job and all places, and how many ads were read; ``text`` is that of its ad."""
    asking, pilots = Asking(ads.parse(text)), EmptyPilots(terms.templates)
    values = fetch_slots(access, [asking.ad], pilots.slots, terms)
    seen = [(slot_place(asking.alike, slot, job.clauses, terms), slot) for slot in values]
    places = Counter(place for place, _ in seen if place is not None)
    free = [free_slot(place, slot) for place, slot in seen if place and place.takes_jobs]
    empty = pilots.places(asking)
    places.update(empty)
    counted = (place._replace(number=number) for place, number in places.items())
    job = job._replace(edits=edits(asking, terms.attributes, pilots, empty, _TRIED, free))
    job = job._replace(limits=_limits(asking.ad, values))
    return Examined(job, tuple(sorted(counted, key=repr))), len(values)


def _limits(job: classad2.ClassAd, slots: Iterable[Values]) -> tuple[ConcurrencyLimit, ...]:
    """Return a job's concurrency limits, with its need and the use by claims."""
    needs = _amounts(job)
    used = [_amounts(slot.ad) for slot in slots] if needs else []
    return tuple(
        ConcurrencyLimit(name, amount, sum(amounts.get(name, 0) for amounts in used))
        for name, amount in needs.items()
    )


def _amounts(ad: classad2.ClassAd) -> dict[str, float]:
    """Return how much an ad has of each limit: of ``name:2`` two, of ``name`` one."""
    amounts: dict[str, float] = {}
    for part in (ads.text(ad, "ConcurrencyLimits") or "").lower().split(","):
        name, _, amount = part.strip().partition(":")
        if name:
            amounts[name] = float(amount) if _AMOUNT.fullmatch(amount) else 1.0
    return amounts


def examine_groups(
    groups: Sequence[DemandGroup], terms: ExplainTerms
) -> tuple[tuple[Examined, ...], int]:
    """Return groups of idle jobs; each clause was tried with every empty pilot."""
    refers, says = _referred(terms.templates), terms.attributes
    pilots, examined = EmptyPilots(terms.templates), []
    for group in groups:
        asking = Asking(ads.parse(group.ad))
        job = _job(asking.ad, group.schedd, refers, says)
        places = pilots.places(asking)
        job = job._replace(status=1, universe=5, accounting_group=group.accounting_group)
        job = job._replace(edits=edits(asking, says, pilots, places, _TRIED_OF_GROUPS))
        examined.append(Examined(job._replace(size=group.size, lacks=()), places))
    return tuple(examined), len(groups)


Kind: TypeAlias = tuple[EntryKey, str]


def leaving_kinds(pilots: Iterable[Pilot], templates: Iterable[Template]) -> tuple[Kind, ...]:
    """Return entries and frontend groups of which no pilot takes jobs, and no empty one is known.

    That is so where all of them retire or are drained, and none was seen before.
    """
    there = [pilot for pilot in pilots if not pilot.failed]
    usable = {(template.entry, template.group) for template in templates}
    usable.update((pilot.entry, pilot.group) for pilot in there if pilot.accepting)
    return tuple(sorted({(pilot.entry, pilot.group) for pilot in there} - usable))


def examine_lost(
    access: Access, kinds: Sequence[Kind], groups: Sequence[DemandGroup], terms: ExplainTerms
) -> tuple[tuple[Examined, ...], int]:
    """Return groups as ``examine_groups`` does, tried also with slots of pilots of ``kinds``.

    Collectors are asked only if there are such kinds.
    """
    examined, number = examine_groups(groups, terms)
    if not kinds:
        return examined, number
    says = terms.attributes
    entries = {key.entry for key, _ in kinds}
    sites = {key.site for key, _ in kinds if key.site == key.entry}  # pilots may say one of both
    named = [ads.named(entries, name) for name in says.entry]
    named += [ads.named(sites, name) for name in says.site]
    alikes = [Alike(ads.parse(group.ad)) for group in groups]
    values = fetch_slots(access, [a.job for a in alikes], (), terms, f"({' || '.join(named)})")
    every = []
    for group, alike in zip(examined, alikes, strict=True):
        seen = (slot_place(alike, slot, group.job.clauses, terms) for slot in values)
        places = Counter(p for p in seen if p is not None and (p.entry, p.group) in kinds)
        slot_places = (place._replace(number=number) for place, number in places.items())
        every.append(Examined(group.job, (*group.places, *slot_places)))
    return tuple(every), number + len(values)


def _referred(templates: Sequence[Template]) -> list[str]:
    """Return the job attributes to which any START refers."""
    return sorted({name for template in templates for name in template.refers}, key=str.lower)


def grouping_of(terms: ExplainTerms) -> demand.JobGrouping:
    """Return by what polls group jobs."""
    start = demand.StartKeys(tuple(_referred(terms.templates))).without(terms.ungrouped).usable()
    return demand.JobGrouping(terms.attributes, terms.options, start)


def query(
    number: str, refers: Sequence[str], attributes: Attributes, options: DemandOptions
) -> Query:
    """Return the query for a job (``cluster.proc``), with attributes to which START refers."""
    parts = NUMBER.fullmatch(number)
    if parts is None:
        raise QueryError(ProblemName.BAD_CONSTRAINT, f"{number!r} is no cluster.proc")
    constraint = f"ClusterId == {parts[1]} && ProcId == {parts[2] or 0}"
    keys = demand.keys(demand.JobGrouping(attributes, options))
    usable = [name for name in refers if name.lower() not in ads.SECRET]
    names = {name.lower(): name for name in (*keys, *usable, *_NAMES)}
    return Query("job", "", constraint, tuple(names.values()))


def _add_rejection(access: Access, schedd: Daemon, ad: classad2.ClassAd) -> None:
    """Put in why a job of its submitter was rejected that the negotiator cannot tell apart.

    A rejection is of all such jobs, but only the one that was asked for carries it.
    """
    if ads.count(ad, rejections.ALIKE[0]) is None:
        return
    alike = " && ".join(
        f"{name} =?= {ad.lookup(name) if name in ad else 'undefined'}" for name in rejections.ALIKE
    )
    names = (*rejections.ALIKE, *_REJECTION)
    query = Query("rejection", "", f"{alike} && {_REJECTION[0]} isnt undefined", names, 1)
    for row in access.job_ads(schedd, query):
        for name in _REJECTION:
            ad[name] = row.lookup(name)


def fetch_slots(
    access: Access,
    jobs: Iterable[classad2.ClassAd],
    pilots: Iterable[Values],
    terms: ExplainTerms,
    only: str = "",
) -> list[Values]:
    """Return the slots of all collectors (``only`` those of a constraint), each once.

    With what is said of each, and to what the two sides refer.  ``pilots`` are like the slots: what
    their expressions refer to is asked for; where slots refer to more, that is asked for, too.
    """
    referred = {name for job in jobs for name in Values(job).closure(("requirements",)).names}
    needed = set(referred)
    for pilot in pilots:
        needed.update(pilot.closure(("requirements", *referred)).names)
    if _GPUS in needed:
        needed.add("assignedgpus")
    values: list[Values] = []
    for _ in range(_MOST_TIMES):
        query = _slot_query(needed, terms.attributes, only)
        values = [Values(ad) for ad in _of_all(access, query, terms)]
        asked = needed | {name.lower() for name in query.projection}
        needed |= _refers(values, referred, terms)
        if needed <= asked:
            break
    return values


def _slot_query(names: Iterable[str], attributes: Attributes, only: str) -> Query:
    asked = {name.lower(): name for name in (*ASKED, *pilot_ads.configured(attributes))}
    requests = {name.removeprefix(_REQUEST) for name in names if name.startswith(_REQUEST)}
    totals = {f"totalslot{resource}" for resource in requests}
    for name in sorted({*names, *requests, *totals} - ads.SECRET):
        asked.setdefault(name, name)
    query = slots.query(attributes)
    constraint = f"{query.constraint} && {only}" if only else query.constraint
    return query._replace(constraint=constraint, projection=tuple(asked.values()))


def _of_all(access: Access, query: Query, terms: ExplainTerms) -> list[classad2.ClassAd]:
    """Return the fresh ads of all collectors, each once: several may have the same."""
    says = terms.attributes

    def counts(ad: classad2.ClassAd) -> bool:
        if terms.silent and slots.startd_of(ads.text(ad, "Name") or "") in terms.silent:
            return False
        kind = (pilot_ads.entry_of(ad, says), pilot_ads.group_of(ad, says)) if terms.aside else None
        return kind not in terms.aside

    every = [ad for ad in terms.fresh(access, query) if counts(ad)]
    several = len(terms.hosts) > 1
    return list(ads.latest(every, "Name", "MyAddress").values()) if several else every


def _refers(values: Iterable[Values], referred: Iterable[str], terms: ExplainTerms) -> set[str]:
    """Return all to which slots refer, of those that are looked at; of each START once."""
    names: set[str] = set()
    seen = set()
    for slot in values:
        start = slot["requirements"], slot["start"], slot[_GPUS], slot["assignedgpus"]
        if start in seen:
            continue
        if terms.site in ("", *pilot_ads.entry_of(slot.ad, terms.attributes)):
            seen.add(start)
            names.update(slot.closure(("requirements", *referred)).names)
            names.update(name.lower() for name in matching.devices(slot.ad))
    return names


def _job(
    ad: classad2.ClassAd, schedd: str, refers: Sequence[str], attributes: Attributes
) -> WaitingJob:
    referred = {*Values(ad).closure(("requirements",)).names, *(name.lower() for name in refers)}
    referred -= ads.SECRET
    words = {name: text for name in sorted(referred) if (text := ads.text(ad, name)) is not None}
    has, says = {name.lower() for name in ad.keys()}, attributes  # noqa: SIM118 (as in matching)
    lengths = (*says.walltime_seconds, *says.walltime_minutes)
    by = next((name for name in lengths if ads.number(ad, name) is not None), "")
    return WaitingJob(
        number=f"{ads.count(ad, 'ClusterId')}.{ads.count(ad, 'ProcId')}",
        schedd=schedd,
        global_id=ads.text(ad, "GlobalJobId") or "",
        user=ads.label(ad, ("User", "Owner")) or "",
        submitter=_submitter(ad),
        accounting_group=ads.label(ad, (attributes.accounting_group,)) or "",
        status=ads.integer(ad, "JobStatus") or 0,
        universe=ads.integer(ad, "JobUniverse") or 0,
        priority=ads.integer(ad, "JobPrio") or 0,
        submitted=_epoch(ad, "QDate"),
        since=_epoch(ad, "EnteredCurrentStatus"),
        runs=ads.count(ad, "NumShadowStarts") or 0,
        size=demand.size_of(ad)[0],
        walltime_s=demand.walltime_of(ad, attributes),
        hold_reason=ads.text(ad, "HoldReason") or ads.text(ad, "RemoveReason") or "",
        hold_code=ads.integer(ad, "HoldReasonCode"),
        rejection=(ads.text(ad, "LastRejMatchReason") or "").strip(),
        rejected=_epoch(ad, "LastRejMatchTime"),
        deferred_until=_epoch(ad, "DeferralTime"),
        clauses=clauses.attribute_clauses(ad, "Requirements"),
        words=tuple((name, ads.printable(text)) for name, text in words.items()),
        lacks=tuple(name for name in refers if name.lower() not in has | ads.SECRET),
        vacated=_epoch(ad, "LastVacateTime"),
        matched=_epoch(ad, "LastMatchTime"),
        has_host=ads.text(ad, "RemoteHost") is not None,
        walltime_by=by,
        walltime_unit_s=60 if by in says.walltime_minutes else 1,
    )


def _submitter(ad: classad2.ClassAd) -> str:
    """Return who submitted it, as the schedd names them to the negotiator."""
    user = ads.label(ad, ("User", "Owner")) or ""
    group = ads.label(ad, ("AccountingGroup",))
    return user if group is None else f"{group}@{user.partition('@')[2]}"


def _epoch(ad: classad2.ClassAd, name: str) -> int | None:
    value = ads.integer(ad, name)
    return value if value is not None and value > 0 else None
