"""What one job, and each slot or empty pilot, say of each other, clause by clause."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.demand.waiting_job import JobPlace
from gwmond.model.facts import EntryKey, Size, Template
from gwmond.sources.htcondor import ads, clauses, matching, pilot_ads
from gwmond.sources.htcondor.alike import Alike, References, Values, references
from gwmond.sources.htcondor.pilots import slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import classad2

    from gwmond.config.settings import Attributes, DemandOptions
    from gwmond.model.facts import Evidence, Pilot
    from gwmond.sources.htcondor.access import Access, Query

FREE, WHOLE = ("Cpus", "Memory", "GPUs"), ("TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs")
"""What a slot has left, and what its pilot has."""
SHOWN = ("State", "Draining", *FREE, *WHOLE, *slots.NO_RESOURCE)
_WITHIN = "TARGET.Request{0} <= MY.{0}"
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
    entries and groups of whose pilots START is too costly: their slots are left out; so are those
    of pilots that are ``silent`` (names): they do not run any more.
    """

    hosts: tuple[str, ...]
    templates: tuple[Template, ...]
    attributes: Attributes
    options: DemandOptions
    now: float
    ungrouped: tuple[str, ...] = ()
    site: str = ""
    aside: frozenset[tuple[EntryKey, str]] = frozenset()
    silent: frozenset[str] = frozenset()

    def fresh(self, access: Access, query: Query) -> list[classad2.ClassAd]:
        """Return what the collectors have of a kind, without ads that are too old."""
        answers = (access.collector_ads(host, query) for host in self.hosts)
        return [ad for answer in answers for ad in ads.fresh(answer, self.now)]


def slot_of(pilot: Pilot, free: Size) -> JobPlace:
    """Return what is free of a pilot as a slot, which takes jobs that are not too large."""
    return _BLANK._replace(
        entry=pilot.entry,
        group=pilot.group,
        size=free,
        whole=pilot.size or free,
        takes_jobs=pilot.accepting and bool(pilot.free),
        closed=not pilot.accepting,
        remaining_s=pilot.remaining_s,
    )


class EmptyPilot(NamedTuple):
    """What the empty pilots of an entry and a frontend group say.

    ``asked``: what its START asks of jobs only, where it is estimated; else None.
    """

    template: Template
    slot: Values
    asked: frozenset[str] | None


def free_slot(place: JobPlace, slot: Values) -> EmptyPilot:
    """Return what is free of a pilot like an empty pilot of that size."""
    template = Template(place.entry, "", "", place.size, place.remaining_s, "measured", place.group)
    return EmptyPilot(template, slot, None)


class Asking:
    """A job, or a group of jobs, as it is matched."""

    def __init__(self, ad: classad2.ClassAd) -> None:
        self.ad, self.alike, self.values = ad, Alike(ad), Values(ad)
        self.clauses = clauses.attribute_clauses(ad, "Requirements")
        self._told: dict[frozenset[str], Alike] = {}

    @cached_property
    def _wants(self) -> list[float]:
        """The cores, memory and GPUs that it asks for; 0 where that is not known."""
        return [ads.number(self.ad, f"Request{name}") or 0.0 for name in FREE]

    def at(self, pilot: EmptyPilot) -> JobPlace:
        """Return what it and an empty pilot say of each other (see ``matching``).

        A pilot refuses what is too large for it (HTCondor, WithinResourceLimits); ads of factories
        do not say so, nor does a job whose own clause is about that (condor_submit adds no other).
        """
        alike = self.alike
        if pilot.asked is not None:
            if pilot.asked not in self._told:
                defined = matching.without_undefined(self.ad, pilot.asked)
                self._told[pilot.asked] = alike if defined is self.ad else Alike(defined)
            alike = self._told[pilot.asked]
        place = job_place(alike, pilot.slot, self.clauses, pilot.template.evidence)
        if pilot.asked is not None:
            wants = zip(FREE, self._wants, pilot.template.size, strict=True)
            if large := [name for name, mine, has in wants if mine > has]:
                place = place._replace(refusals=(*place.refusals, *self._untold(large, place)))
        return empty_pilot(pilot.template, place)

    def _untold(self, large: Iterable[str], place: JobPlace) -> Iterator[str]:
        """Return clauses that refuse what is too large, where none of that kind refuses the job."""
        text = "".join((*(self.clauses[i] for i in place.blocked), *place.refusals)).lower()
        return (_WITHIN.format(name) for name in large if f"request{name.lower()}" not in text)


class EmptyPilots:
    """Empty pilots, with which jobs and groups of jobs are matched clause by clause."""

    def __init__(self, templates: Sequence[Template]) -> None:
        self.slots = [Values(ads.parse(template.ad)) for template in templates]
        self.every = [
            EmptyPilot(template, slot, asked if template.evidence == "estimated" else None)
            for template, slot in zip(templates, self.slots, strict=True)
            for asked in (matching.asked_of_jobs(slot.ad),)
        ]

    def places(self, asking: Asking) -> tuple[JobPlace, ...]:
        """Return each with what it and a job say of each other."""
        return tuple(map(asking.at, self.every))


def matched(template: Template, *, sure: bool) -> JobPlace:
    """Return the empty pilot of a template that matches a job; not ``sure``: it may."""
    return empty_pilot(template, _BLANK._replace(evidence="measured" if sure else "estimated"))


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


def slot_place(
    alike: Alike, slot: Values, needs: tuple[str, ...], terms: ExplainTerms
) -> JobPlace | None:
    """Return a slot with what is free of it, and whether a job can have it; None: no job can."""
    attributes = terms.attributes
    names = (*SHOWN, *attributes.site, *attributes.entry, *attributes.frontend, *attributes.group)
    rests_on = References(tuple(map(str.lower, names)), True)
    shown = alike.once("shown", rests_on, slot, lambda: _shown(slot.ad, attributes))
    if shown is None:
        return None
    dies = ads.first_number(slot.ad, attributes.die)
    place = job_place(alike, slot, needs, "measured")
    if shown.closed and place.blocked:
        place = job_place(alike, emptied(slot), needs, "measured")
    return shown._replace(
        blocked=place.blocked,
        refusals=place.refusals,
        remaining_s=None if dies is None else max(0, int(dies - terms.now)),
        only_full=not place.matches and _is_only_full(alike, slot, needs, place),
    )


def emptied(slot: Values) -> Values:
    """Return a slot as if no job ran on it, and it had no dynamic slots."""
    empty = ads.parse(str(slot.ad))
    for name in [name for name in empty.keys() if name.lower().startswith("child")]:  # noqa: SIM118
        del empty[name]
    for name, value in matching.totals(slot.ad).items():
        empty[name] = value
    return Values(empty)


def _is_only_full(alike: Alike, slot: Values, needs: tuple[str, ...], place: JobPlace) -> bool:
    """Return whether a slot would match if no job ran on it."""
    texts = [*(needs[i] for i in place.blocked), *place.refusals]
    left = alike.left
    for text in texts:
        names = references(text).names
        if left.isdisjoint(names) and left.isdisjoint(slot.closure(names).names):
            return False  # a clause that is about something else
    names = (*references(*texts).names, *(f"totalslot{name}" for name in left), "assignedgpus")
    rests_on = References(tuple(dict.fromkeys(names)), references(*texts).complete)

    def fits() -> bool:
        return job_place(alike, emptied(slot), needs, "measured").matches

    return alike.once(("emptied", place), rests_on, slot, fits)


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
        closed=bool(ads.truth(ad, "Draining")),
    )


def job_place(alike: Alike, slot: Values, needs: tuple[str, ...], evidence: Evidence) -> JobPlace:
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
        topic = clause, own, estimated
        return alike.once(topic, references(clause), slot, lambda: met(clause, own=own))

    def those(answer: bool | None) -> tuple[int, ...]:
        def indexes() -> tuple[int, ...]:
            return tuple(i for i, clause in enumerate(needs) if once(clause, own=False) is answer)

        return alike.once((needs, estimated, answer), references(*needs), slot, indexes)

    def refusals() -> tuple[str, ...]:
        own = clauses.attribute_clauses(slot.ad, "Requirements")
        return tuple(clause for clause in own if once(clause, own=True) is False)

    return _BLANK._replace(
        blocked=those(False),
        refusals=alike.once((text, estimated), refused, slot, refusals),
        evidence="estimated" if ungrouped else evidence,
        untold=those(None) if estimated else (),
    )
