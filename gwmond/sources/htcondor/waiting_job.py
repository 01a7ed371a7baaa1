"""Source: one job of a schedd, and what each clause says of it and of each slot and entry.

One projected query fetches the job: grouped by its number, so that the schedd adds what its
Requirements refer to (see ``demand``).  Slots are asked for with only those attributes to which
the job or a START expression refers.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gwmond.model.facts import EntryKey, Size
from gwmond.model.problem_names import ProblemName
from gwmond.model.waiting_job import Examined, JobPlace, WaitingJob
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads, clauses, demand, matching, pilot_ads, rejections, slots
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.alike import Alike, References, Values, references

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import classad2

    from gwmond.config.settings import Attributes, DemandOptions
    from gwmond.model.facts import DemandGroup, Evidence, Pilot, Template
    from gwmond.sources.htcondor.access import Access, Daemon

NUMBER = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,10}))?")
_NAMES = (
    *("ClusterId", "ProcId", "GlobalJobId", "Owner", "User", "JobStatus", "QDate"),
    *("EnteredCurrentStatus", "NumShadowStarts", "HoldReason", "HoldReasonCode"),
    *("RemoveReason", "DeferralTime", "LastVacateTime", "LastMatchTime"),
    *("LastRejMatchReason", "LastRejMatchTime", "AutoClusterId", "JobUniverse"),
    *("JobPrio", "AccountingGroup", "RemoteHost"),
)
"""What is asked of a job besides what matching needs."""
_NUMERIC = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")
FEW_GROUPS = 200
MOST_PLACES = 50_000
"""How many groups of idle jobs are analysed clause by clause, and how often, at most (2 s)."""
FREE, WHOLE = ("Cpus", "Memory", "GPUs"), ("TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs")
"""What a slot has left, and what its pilot has."""
_SHOWN = ("State", "Draining", *FREE, *WHOLE, *slots.NO_RESOURCE)
_ASKED = (
    *(*_SHOWN, "Requirements", "Start", "Name", "MyAddress"),
    *("LastHeardFrom", "ClassAdLifetime"),
)
"""What is asked of a slot besides that to which jobs, START and the configuration refer."""
_GPUS, _REQUEST = "availablegpus", "request"
_MOST_TIMES = 3
"""So often slots are asked for: again for what those refer to that were found."""
_REJECTION = rejections.SAID
_NEXT, _PAUSED = "JobMaterializeNextProcId", "JobMaterializePaused"
_NO_SIZE = Size(0, 0)
_parsed = lru_cache(4096)(ads.expression)
_BLANK = JobPlace(
    "slot", EntryKey("", ""), "", _NO_SIZE, _NO_SIZE, False, (), (), "measured", None, 1
)


class ExplainTerms(NamedTuple):
    """What jobs are matched with, and by which settings.

    ``hosts``: the collectors whose slots count; ``templates``: ads of empty pilots; ``now`` (epoch
    s): the time at which ads have to be fresh; ``ungrouped``: what START refers to, and each job
    has of its own; ``site``: the site, or entry, that is looked at (empty: all); ``aside``: the
    entries and groups of whose pilots START is too costly: their slots are left out.
    """

    hosts: tuple[str, ...]
    templates: tuple[Template, ...]
    attributes: Attributes
    options: DemandOptions
    now: float
    ungrouped: tuple[str, ...] = ()
    site: str = ""
    aside: frozenset[tuple[EntryKey, str]] = frozenset()


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
    alike = Alike(ads.parse(text))
    pilots = [Values(ads.parse(template.ad)) for template in terms.templates]
    found = fetch_slots(access, [alike.job], pilots, terms)
    seen = (slot_place(alike, slot, job.clauses, terms) for slot in found)
    places = Counter(place for place in seen if place is not None)
    places.update(
        empty_pilot(template, place(alike, slot, job.clauses, template.evidence))
        for template, slot in zip(terms.templates, pilots, strict=True)
    )
    counted = (place._replace(number=number) for place, number in places.items())
    if not any(one.matches for one in places):
        job = job._replace(quoted=_quoted(job, alike, [*found, *pilots]))
    return Examined(job, tuple(sorted(counted, key=repr))), len(found)


def _quoted(job: WaitingJob, alike: Alike, slots: Sequence[Values]) -> tuple[tuple[str, str], ...]:
    """Return the texts of a job that are numbers, with which more of its clauses would hold."""

    def met(one: Alike) -> int:
        return sum(-len(place(one, slot, job.clauses, "measured").blocked) for slot in slots)

    found, before = [], None
    names = {name.lower(): name for name in alike.job.keys()}  # noqa: SIM118 (as in matching)
    for name, word in job.words:
        if _NUMERIC.fullmatch(word):
            other = ads.parse(str(alike.job))
            other[name] = float(word)
            before = met(alike) if before is None else before
            if met(Alike(other)) > before:
                found.append((names.get(name, name), word))
    return tuple(found)


def examine_groups(
    groups: Sequence[DemandGroup], terms: ExplainTerms
) -> tuple[tuple[Examined, ...], int]:
    """Return groups of idle jobs; each clause was tried with every empty pilot."""
    templates, refers = terms.templates, _referred(terms.templates)
    pilots, found = EmptyPilots(templates), []
    for group in groups:
        ad = ads.parse(group.ad)
        job = _job(ad, group.schedd, refers, terms.attributes)
        places = pilots.places(ad, job.clauses)
        job = job._replace(status=1, universe=5, accounting_group=group.accounting_group)
        found.append(Examined(job._replace(size=group.size, lacks=()), places))
    return tuple(found), len(groups)


Kind: TypeAlias = tuple[EntryKey, str]


def leaving_kinds(pilots: Iterable[Pilot], templates: Iterable[Template]) -> tuple[Kind, ...]:
    """Return entries and frontend groups of which no pilot takes jobs, and no empty one is known.

    That is so where all of them retire or are drained, and none was seen before.
    """
    there = [pilot for pilot in pilots if not pilot.failed]
    known = {(template.entry, template.group) for template in templates}
    known.update((pilot.entry, pilot.group) for pilot in there if pilot.accepting)
    return tuple(sorted({(pilot.entry, pilot.group) for pilot in there} - known))


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
    found = fetch_slots(access, [a.job for a in alikes], (), terms, f"({' || '.join(named)})")
    every = []
    for one, alike in zip(examined, alikes, strict=True):
        seen = (slot_place(alike, slot, one.job.clauses, terms) for slot in found)
        places = Counter(p for p in seen if p is not None and (p.entry, p.group) in kinds)
        slots = (place._replace(number=number) for place, number in places.items())
        every.append(Examined(one.job, (*one.places, *slots)))
    return tuple(every), number + len(found)


class EmptyPilots:
    """Empty pilots, with which groups of idle jobs are matched clause by clause."""

    def __init__(self, templates: Sequence[Template]) -> None:
        self.slots = [Values(ads.parse(template.ad)) for template in templates]
        asked = (matching.asked_of_jobs(slot.ad) for slot in self.slots)
        self._known = list(zip(templates, self.slots, asked, strict=True))

    def places(self, job: classad2.ClassAd, wanted: tuple[str, ...]) -> tuple[JobPlace, ...]:
        """Return each with what it and a group of jobs say of each other (see ``matching``)."""
        alikes: dict[frozenset[str] | None, Alike] = {}
        found = []
        for template, slot, asked in self._known:
            of_ad = asked if template.evidence == "estimated" else None
            if of_ad not in alikes:
                told = job if of_ad is None else matching.without_undefined(job, of_ad)
                alikes[of_ad] = Alike(told)
            here = place(alikes[of_ad], slot, wanted, template.evidence)
            found.append(empty_pilot(template, here))
        return tuple(found)


def matched(template: Template, *, sure: bool) -> JobPlace:
    """Return the empty pilot of a template that matches a job; not ``sure``: it may."""
    return empty_pilot(template, _BLANK._replace(evidence="measured" if sure else "estimated"))


def _referred(templates: Sequence[Template]) -> list[str]:
    """Return the job attributes to which any START refers."""
    return sorted({name for template in templates for name in template.refers}, key=str.lower)


def grouping_of(terms: ExplainTerms) -> demand.JobGrouping:
    """Return by what polls group jobs."""
    start = demand.StartKeys(tuple(_referred(terms.templates))).without(terms.ungrouped).usable()
    return demand.JobGrouping(terms.attributes, terms.options, start)


def empty_pilot(template: Template, place: JobPlace) -> JobPlace:
    """Return a place as the empty pilot of an entry and a frontend group."""
    return place._replace(
        kind="pilot",
        entry=template.entry,
        group=template.group,
        size=template.size,
        whole=template.size,
        takes_jobs=True,
        remaining_s=template.lifetime_s,
        asks=tuple(name.lower() for name in template.refers),
    )


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
    wanted = {name for job in jobs for name in Values(job).closure(("requirements",)).names}
    needed = set(wanted)
    for pilot in pilots:
        needed.update(pilot.closure(("requirements", *wanted)).names)
    if _GPUS in needed:
        needed.add("assignedgpus")
    found: list[Values] = []
    for _ in range(_MOST_TIMES):
        query = _slot_query(needed, terms.attributes, only)
        found = [Values(ad) for ad in _of_all(access, query, terms)]
        asked = needed | {name.lower() for name in query.projection}
        needed |= _refers(found, wanted, terms)
        if needed <= asked:
            break
    return found


def _slot_query(names: Iterable[str], attributes: Attributes, only: str) -> Query:
    asked = {name.lower(): name for name in (*_ASKED, *pilot_ads.configured(attributes))}
    requests = {name.removeprefix(_REQUEST) for name in names if name.startswith(_REQUEST)}
    totals = {f"totalslot{resource}" for resource in requests}
    for name in sorted({*names, *requests, *totals} - ads.SECRET):
        asked.setdefault(name, name)
    query = slots.query(attributes)
    constraint = f"{query.constraint} && {only}" if only else query.constraint
    return query._replace(constraint=constraint, projection=tuple(asked.values()))


def _of_all(access: Access, query: Query, terms: ExplainTerms) -> list[classad2.ClassAd]:
    """Return the fresh ads of all collectors, each once: several may have the same."""
    found = (ads.fresh(access.collector_ads(host, query), terms.now) for host in terms.hosts)
    every = [ad for of_host in found for ad in of_host]
    if terms.aside:
        says = terms.attributes
        every = [
            ad
            for ad in every
            if (pilot_ads.entry_of(ad, says), pilot_ads.group_of(ad, says)) not in terms.aside
        ]
    several = len(terms.hosts) > 1
    return list(ads.latest(every, "Name", "MyAddress").values()) if several else every


def _refers(found: Iterable[Values], wanted: Iterable[str], terms: ExplainTerms) -> set[str]:
    """Return all to which slots refer, of those that are looked at; of each START once."""
    names: set[str] = set()
    seen = set()
    for slot in found:
        start = slot["requirements"], slot["start"], slot[_GPUS], slot["assignedgpus"]
        if start in seen:
            continue
        if terms.site in ("", *pilot_ads.entry_of(slot.ad, terms.attributes)):
            seen.add(start)
            names.update(slot.closure(("requirements", *wanted)).names)
            names.update(name.lower() for name in matching.devices(slot.ad))
    return names


def _job(
    ad: classad2.ClassAd, schedd: str, refers: Sequence[str], attributes: Attributes
) -> WaitingJob:
    referred = clauses.references(ad, "Requirements") | {name.lower() for name in refers}
    words = {name: text for name in sorted(referred) if (text := ads.text(ad, name)) is not None}
    has, says = {name.lower() for name in ad.keys()}, attributes  # noqa: SIM118 (as in matching)
    lengths = (*says.walltime_seconds, *says.walltime_minutes)
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
        walltime_by=next((n for n in lengths if ads.number(ad, n) is not None), ""),
    )


def _submitter(ad: classad2.ClassAd) -> str:
    """Return who submitted it, as the schedd names them to the negotiator."""
    user = ads.label(ad, ("User", "Owner")) or ""
    group = ads.label(ad, ("AccountingGroup",))
    return user if group is None else f"{group}@{user.partition('@')[2]}"


def _epoch(ad: classad2.ClassAd, name: str) -> int | None:
    value = ads.integer(ad, name)
    return value if value is not None and value > 0 else None


def slot_place(
    alike: Alike, slot: Values, wanted: tuple[str, ...], terms: ExplainTerms
) -> JobPlace | None:
    """Return a slot with what is free of it, and whether a job can have it; None: no job can."""
    attributes = terms.attributes
    names = (*_SHOWN, *attributes.site, *attributes.entry, *attributes.frontend, *attributes.group)
    rests_on = References(tuple(map(str.lower, names)), True)
    shown = alike.once("shown", rests_on, slot, lambda: _shown(slot.ad, attributes))
    if shown is None:
        return None
    dies = ads.first_number(slot.ad, attributes.die)
    said = place(alike, slot, wanted, "measured")
    return shown._replace(
        blocked=said.blocked,
        refusals=said.refusals,
        remaining_s=None if dies is None else max(0, int(dies - terms.now)),
        only_full=not said.matches and _is_only_full(alike, slot, wanted, said),
    )


def emptied(slot: Values) -> Values:
    """Return a slot as if no job ran on it."""
    empty = ads.parse(str(slot.ad))
    for name, value in matching.totals(slot.ad).items():
        empty[name] = value
    return Values(empty)


def _is_only_full(alike: Alike, slot: Values, wanted: tuple[str, ...], said: JobPlace) -> bool:
    """Return whether a slot would match if no job ran on it."""
    texts = [*(wanted[i] for i in said.blocked), *said.refusals]
    left = alike.left
    for text in texts:
        names = references(text).names
        if left.isdisjoint(names) and left.isdisjoint(slot.closure(names).names):
            return False  # a clause that is about something else
    names = (*references(*texts).names, *(f"totalslot{name}" for name in left), "assignedgpus")
    rests_on = References(tuple(dict.fromkeys(names)), references(*texts).complete)

    def fits() -> bool:
        return place(alike, emptied(slot), wanted, "measured").matches

    return alike.once(("emptied", said), rests_on, slot, fits)


def _shown(ad: classad2.ClassAd, attributes: Attributes) -> JobPlace | None:
    """Return a slot, with what is free of it; None where it is not for jobs."""
    size = pilot_ads.size_of(ad, FREE)
    if size is None or slots.is_no_resource(ad):
        return None
    return _BLANK._replace(
        entry=pilot_ads.entry_of(ad, attributes),
        group=pilot_ads.group_of(ad, attributes),
        size=size,
        whole=pilot_ads.size_of(ad, WHOLE) or size,
        takes_jobs=ads.text(ad, "State") == "Unclaimed" and not ads.truth(ad, "Draining"),
    )


def place(alike: Alike, slot: Values, wanted: tuple[str, ...], evidence: Evidence) -> JobPlace:
    """Return what a slot and the job say of each other; a clause that is undefined is not met.

    What a glideresource ad lacks proves nothing: there, only a clause that is false blocks.  Nor
    does what a group of jobs lacks by which it could not be grouped: it refutes no START.
    """
    estimated, ungrouped = evidence == "estimated", bool(ads.truth(alike.job, matching.UNGROUPED))
    text, refused = slot["requirements"]

    def met(clause: str, *, own: bool) -> bool | None:
        """Return whether a clause of the job, or of the slot's ``own``, is met; None: not told."""
        expression = _parsed(clause)
        sides = (slot.ad, alike.job) if own else (alike.job, slot.ad)
        untold = estimated or (own and ungrouped)
        value = expression and matching.holds(expression, *sides, untold=untold)
        return value if value is not None or untold else False

    def once(clause: str, *, own: bool) -> bool | None:
        what = clause, own, estimated
        return alike.once(what, references(clause), slot, lambda: met(clause, own=own))

    def those(said: bool | None) -> tuple[int, ...]:
        def found() -> tuple[int, ...]:
            return tuple(i for i, clause in enumerate(wanted) if once(clause, own=False) is said)

        return alike.once((wanted, estimated, said), references(*wanted), slot, found)

    def refusals() -> tuple[str, ...]:
        own = clauses.attribute_clauses(slot.ad, "Requirements")
        return tuple(clause for clause in own if once(clause, own=True) is False)

    return _BLANK._replace(
        blocked=those(False),
        refusals=alike.once((text, estimated), refused, slot, refusals),
        evidence="estimated" if ungrouped else evidence,
        untold=those(None) if estimated else (),
    )
