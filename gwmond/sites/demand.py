"""From idle jobs to demand classes: where jobs could run, and how many could go there.

Units: canonical units; jobs are counted; times are seconds.

Source of the rules: design page, sections 2 and 4.

- A *template* is an empty pilot of an entry and a frontend group.  A job may go to an entry if it
  may run on one of its templates: matching does not say no, the job fits, and its walltime fits the
  template's lifetime.  Where the verdict is missing, or START is not known, nothing is known.
- A job's need at an entry is ``need.need_at`` of the template.  If it matches several, it is the
  least of them; certain matches come first.
- Free slots and pending pilots take only jobs that match their own frontend group's template.
- An edge carries whole jobs: as many as the spare capacity holds.  A job with GPUs goes only where
  GPUs and cores are spare.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import lcm
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from gwmond.model.entries.evaluation import JobCounts
from gwmond.model.facts import Berth, DemandGroup, EntryKey, Template, Verdict
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource
from gwmond.sites.absorb import Absorption, Places, Rest, Room, Shape, absorption, of_group
from gwmond.sites.need import Need, need_at, own_need
from gwmond.sites.program import DemandClass, Edge

Verdicts: TypeAlias = Mapping[str, Mapping[str, Verdict]]
"""By the signature of the group, then of the template.

Rows that are one object are looked at once, so equal ones should be.
"""
_NOTHING: Mapping[str, Verdict] = MappingProxyType({})
_NO_REST: Mapping[Rest, Any] = MappingProxyType({})


_ROUNDING = 1e-9


class Offer(NamedTuple):
    """A template on which a job could run, and what it takes there.

    ``sure``: it certainly matches, and the template is a live slot.
    """

    template: Template
    need: Need
    sure: bool


class Match(NamedTuple):
    """A group and the templates on which it could run.

    ``own`` is the least that a job takes of an empty pilot: of those that it matches, else of those
    that it fits, else its request.  ``needs``: its need at each entry; ``possible``: entries with
    uncertain matches only; ``unknown``: entries of which nothing is known, and none matches, with
    the most that a job may take there.

    Invariant: keys of matches differ, and do not depend on the order of the groups.
    """

    key: str
    group: DemandGroup
    offers: tuple[Offer, ...]
    needs: Mapping[EntryKey, Need]
    possible: frozenset[EntryKey]
    own: Need
    unknown: Mapping[EntryKey, Need] = MappingProxyType({})

    @property
    def entries(self) -> tuple[EntryKey, ...]:
        """The entries where the group could run, sorted."""
        return tuple(self.needs)

    @property
    def shape(self) -> Shape:
        """What decides whether one of its jobs fits."""
        return Shape(self.group.size, self.group.walltime_s)


class Demand(NamedTuple):
    """Classes of jobs, and the room of berths, ready for ``flow.assign``."""

    classes: tuple[DemandClass, ...]
    free: Mapping[Berth, Need]


def match(
    groups: Iterable[DemandGroup],
    templates: Iterable[Template],
    verdicts: Verdicts,
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> tuple[Match, ...]:
    """Return where each group that has jobs could run."""
    fits = _Fits(templates, memory_per_unit_mib)
    kinds: dict[tuple[int, int], Match] = {}
    matches: list[Match] = []
    for group in sorted((group for group in groups if group.jobs > 0), key=_order):
        fitting = fits.of(Shape(group.size, group.walltime_s))
        row = verdicts.get(group.signature, _NOTHING)
        kind = id(row), id(fitting)
        if kind not in kinds:
            kinds[kind] = _match(group, fitting, row, memory_per_unit_mib)
        matches.append(kinds[kind]._replace(key=f"{len(matches):08}", group=group))
    return tuple(matches)


def _order(group: DemandGroup) -> tuple[object, ...]:
    walltime = -1 if group.walltime_s is None else group.walltime_s
    return (group.schedd, group.accounting_group, group.signature, group.size, walltime, group.jobs)


class _Fits:
    """The templates that jobs fit and in whose lifetime they may end; one list for alike shapes."""

    def __init__(self, templates: Iterable[Template], memory_per_unit_mib: int) -> None:
        self._templates = sorted(templates, key=lambda template: (template.entry, template.group))
        self._memory_per_unit_mib = memory_per_unit_mib
        self._sizes = dict.fromkeys(template.size for template in self._templates)
        self._lifetimes = sorted(
            {t.lifetime_s for t in self._templates if t.lifetime_s is not None}
        )
        self._made: dict[object, list[tuple[Offer, Offer]]] = {}
        self._known: dict[Shape, list[tuple[Offer, Offer]]] = {}

    def of(self, shape: Shape) -> list[tuple[Offer, Offer]]:
        """Return the offer of each template: where a job matches, and where that is possible."""
        if shape not in self._known:
            self._known[shape] = self._of(shape)
        return self._known[shape]

    def _of(self, shape: Shape) -> list[tuple[Offer, Offer]]:
        size, walltime_s = shape
        needs = {to: need_at(size, to, self._memory_per_unit_mib) for to in self._sizes}
        ends = 0 if walltime_s is None else bisect_left(self._lifetimes, walltime_s)
        alike = tuple(needs.values()), ends
        if alike not in self._made:
            self._made[alike] = [
                (
                    Offer(template, need, template.evidence == "measured"),
                    Offer(template, need, False),
                )
                for template in self._templates
                if (need := needs[template.size]) is not None
                and (
                    walltime_s is None
                    or template.lifetime_s is None
                    or walltime_s <= template.lifetime_s
                )
            ]
        return self._made[alike] or []  # where they fit nowhere, their sizes differ


def _match(
    group: DemandGroup,
    fitting: Sequence[tuple[Offer, Offer]],
    verdicts: Mapping[str, Verdict],
    memory_per_unit_mib: int,
) -> Match:
    """Return where a group could run, of the templates that it fits."""
    offers: list[Offer] = []
    best: dict[EntryKey, tuple[bool, Need]] = {}
    unknown: dict[EntryKey, Need] = {}
    for matching, possible in fitting:
        template, need, _ = matching
        verdict = verdicts.get(template.signature, Verdict.UNKNOWN)
        if verdict is Verdict.UNKNOWN:
            most = unknown.get(template.entry, need)
            unknown[template.entry] = Need(*map(max, most, need))
        if verdict in (Verdict.NO, Verdict.UNKNOWN):
            continue
        offer = matching if verdict is Verdict.YES else possible
        offers.append(offer)
        candidate = (not offer.sure, need)
        best[template.entry] = min(best.get(template.entry, candidate), candidate)
    needs = {key: need for key, (_, need) in best.items()}
    own = min(needs.values(), default=None) or min(
        (offer.need for offer, _ in fitting), default=None
    )
    return Match(
        key="",
        group=group,
        offers=tuple(offers),
        needs=needs,
        possible=frozenset(key for key, (unsure, _) in best.items() if unsure),
        own=own or own_need(group.size, memory_per_unit_mib),
        unknown={key: most for key, most in unknown.items() if key not in needs},
    )


def job_counts(matches: Iterable[Match]) -> dict[EntryKey, JobCounts]:
    """Return the counts of each entry where at least one job could run."""
    sets: defaultdict[tuple[EntryKey, ...], int] = defaultdict(int)
    for item in matches:
        sets[item.entries] += item.group.jobs
    by_size: defaultdict[EntryKey, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for entries, jobs in sets.items():
        for key in entries:
            by_size[key][len(entries)] += jobs
    whole = lcm(*{len(entries) for entries in sets if entries})  # exact, and faster than fractions
    return {
        key: JobCounts(
            matching=sum(jobs.values()),
            proportional=-(-sum(n * (whole // size) for size, n in jobs.items()) // whole),
            unique=jobs.get(1, 0),
        )
        for key, jobs in sorted(by_size.items())
    }


def demand(
    matches: Sequence[Match],
    spare: Mapping[Resource, Mapping[EntryKey, int]],
    places: Places,
    templates: Iterable[Template],
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> Demand:
    """Return the classes of jobs, with the entries and berths where they could run.

    ``spare`` are the canonical units that entries could still provide, for both resources.
    """
    judges = _judges(places, templates)
    by_shape: defaultdict[Shape, set[Berth]] = defaultdict(set)
    alike: dict[int, dict[Berth, Need]] = {}  # groups that match alike have the same offers
    kinds: dict[tuple[int, Shape], Match] = {}
    for item in matches:
        if id(item.offers) not in alike:
            alike[id(item.offers)] = _berths(item, judges)
        kinds[id(item.offers), item.shape] = item
    for offers, shape in kinds:
        by_shape[shape].update(alike[offers])
    holding = absorption(by_shape, places, memory_per_unit_mib)
    edges = _Edges(spare, holding)
    classes = {kind: edges.of(item, alike[id(item.offers)]) for kind, item in kinds.items()}
    return Demand(
        tuple(
            classes[id(item.offers), item.shape]._replace(key=item.key, jobs=item.group.jobs)
            for item in matches
        ),
        holding.units,
    )


class _Edges:
    """Where jobs may go; what is the same for many kinds of jobs is made once."""

    def __init__(
        self, spare: Mapping[Resource, Mapping[EntryKey, int]], holding: Absorption
    ) -> None:
        self._spare, self._holding = spare, holding
        self._rests: defaultdict[Berth, list[Rest]] = defaultdict(list)
        for rest in holding.rests:
            self._rests[rest.berth].append(rest)
        same: dict[tuple[int, ...], Mapping[Berth, Room]] = {}
        self._holds = {
            shape: same.setdefault(tuple(map(id, (*holds, *holds.values()))), holds)
            for shape, holds in holding.holds.items()
        }
        self._to_spare: dict[int, dict[EntryKey, Edge]] = {}
        self._to_free: dict[tuple[int, int], dict[Berth, Edge]] = {}

    def of(self, item: Match, berths: Mapping[Berth, Need]) -> DemandClass:
        """Return the class of a group; ``berths``: what a job counts as where it may run."""
        holds, rests = self._holds[item.shape], self._holding.rests
        if id(item.needs) not in self._to_spare:
            self._to_spare[id(item.needs)] = {
                key: Edge(jobs, need, need)
                for key, need in item.needs.items()
                if (jobs := _fitting_into(self._spare, key, need)) > 0
            }
        free = id(berths), id(holds)
        if free not in self._to_free:
            self._to_free[free] = {
                berth: Edge(hold.jobs, need, hold.takes)
                for berth, need in berths.items()
                if (hold := holds.get(berth)) is not None
            }
        with_rests = [berth for berth in self._rests if berth in berths]
        own_rests = (Rest(berth, item.shape) for berth in with_rests)
        beside = (
            (rest, berths[berth], fitting)
            for berth in with_rests
            for rest in self._rests[berth]
            if (fitting := rests[rest].fit.get(item.shape, 0))
        )
        return DemandClass(
            key=item.key,
            jobs=item.group.jobs,
            own=item.own,
            spare=self._to_spare[id(item.needs)],
            free=self._to_free[free],
            possible=item.possible,
            leaves={rest: 1 / rests[rest].jobs for rest in own_rests if rest in rests} or _NO_REST,
            beside={
                rest: Edge(fitting, need, Need(1 / fitting, holds[rest.berth].takes.gpu))
                for rest, need, fitting in beside
            }
            or _NO_REST,
        )


def _fitting_into(
    spare: Mapping[Resource, Mapping[EntryKey, int]], key: EntryKey, need: Need
) -> int:
    """Return how many whole jobs the spare capacity of an entry holds."""
    jobs = spare["cpu"].get(key, 0) / need.cpu
    if need.gpu > 0:
        jobs = min(jobs, spare["gpu"].get(key, 0) / need.gpu)
    return int(jobs + _ROUNDING)


def _judges(
    places: Places, templates: Iterable[Template]
) -> Mapping[EntryKey, Mapping[Template, tuple[Berth, ...]]]:
    """Return the berths for which each template decides what may run there, by entry."""
    by_entry: defaultdict[EntryKey, list[Template]] = defaultdict(list)
    for template in templates:
        by_entry[template.entry].append(template)
    judges: defaultdict[EntryKey, defaultdict[Template, tuple[Berth, ...]]] = defaultdict(
        lambda: defaultdict(tuple)
    )
    for berth in sorted(places):
        for template in of_group(by_entry[berth.entry], berth.group):
            judges[berth.entry][template] += (berth,)
    return judges


def _berths(
    item: Match, judges: Mapping[EntryKey, Mapping[Template, tuple[Berth, ...]]]
) -> dict[Berth, Need]:
    """Return the berths that may take a group's jobs, and the need of a job there."""
    needs: dict[Berth, Need] = {}
    for offer in item.offers:
        for berth in judges.get(offer.template.entry, {}).get(offer.template, ()):
            needs[berth] = min(needs.get(berth, offer.need), offer.need)
    return needs
