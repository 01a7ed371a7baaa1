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

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import lcm
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from gwmond.model.entries.evaluation import JobCounts
from gwmond.model.facts import Berth, DemandGroup, EntryKey, Template, Verdict
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource
from gwmond.sites.absorb import Absorption, Places, Rest, Shape, absorption, of_group
from gwmond.sites.need import Need, need_at, own_need
from gwmond.sites.program import DemandClass, Edge

Verdicts: TypeAlias = Mapping[tuple[str, str], Verdict]
"""By (signature of the group, signature of the template)."""


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
    templates = sorted(templates, key=lambda template: (template.entry, template.group))
    fitting: dict[Shape, list[tuple[Template, Need]]] = {}
    known: dict[tuple[str, Shape], Match] = {}
    matches: list[Match] = []
    for group in sorted((group for group in groups if group.jobs > 0), key=_order):
        shape = Shape(group.size, group.walltime_s)
        if shape not in fitting:
            fitting[shape] = _fitting(shape, templates, memory_per_unit_mib)
        kind = (group.signature, shape)
        if kind not in known:
            known[kind] = _match(group, fitting[shape], verdicts, memory_per_unit_mib)
        matches.append(known[kind]._replace(key=f"{len(matches):08}", group=group))
    return tuple(matches)


def _order(group: DemandGroup) -> tuple[object, ...]:
    walltime = -1 if group.walltime_s is None else group.walltime_s
    return (group.schedd, group.accounting_group, group.signature, group.size, walltime, group.jobs)


def _fitting(
    shape: Shape, templates: Iterable[Template], memory_per_unit_mib: int
) -> list[tuple[Template, Need]]:
    """Return the templates that a job fits and in whose lifetime it may end."""
    needs = {
        size: need_at(shape.size, size, memory_per_unit_mib) for size in {t.size for t in templates}
    }
    return [
        (template, need)
        for template in templates
        if (need := needs[template.size]) is not None
        and (
            shape.walltime_s is None
            or template.lifetime_s is None
            or shape.walltime_s <= template.lifetime_s
        )
    ]


def _match(
    group: DemandGroup,
    fitting: Sequence[tuple[Template, Need]],
    verdicts: Verdicts,
    memory_per_unit_mib: int,
) -> Match:
    """Return where a group could run, of the templates that it fits."""
    offers: list[Offer] = []
    best: dict[EntryKey, tuple[bool, Need]] = {}
    unknown: dict[EntryKey, Need] = {}
    for template, need in fitting:
        verdict = verdicts.get((group.signature, template.signature), Verdict.UNKNOWN)
        if verdict is Verdict.UNKNOWN:
            most = unknown.get(template.entry, need)
            unknown[template.entry] = Need(*map(max, most, need))
        if verdict in (Verdict.NO, Verdict.UNKNOWN):
            continue
        sure = verdict is Verdict.YES and template.evidence == "measured"
        offer = Offer(template, need, sure)
        offers.append(offer)
        found = (not offer.sure, need)
        best[template.entry] = min(best.get(template.entry, found), found)
    needs = {key: need for key, (_, need) in best.items()}
    own = min(needs.values(), default=None) or min((need for _, need in fitting), default=None)
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
    wanted: defaultdict[Shape, set[Berth]] = defaultdict(set)
    alike: dict[int, dict[Berth, Need]] = {}  # groups that match alike have the same offers
    for item in matches:
        berths = alike.get(id(item.offers))
        if berths is None:
            berths = alike[id(item.offers)] = _berths(item, judges)
            wanted[item.shape].update(berths)
    holding = absorption(wanted, places, memory_per_unit_mib)
    at_berth: defaultdict[Berth, list[Rest]] = defaultdict(list)
    for rest in holding.rests:
        at_berth[rest.berth].append(rest)
    known: dict[int, DemandClass] = {}
    for item in matches:
        if id(item.offers) not in known:
            known[id(item.offers)] = _class(item, spare, alike[id(item.offers)], holding, at_berth)
    return Demand(
        tuple(
            known[id(item.offers)]._replace(key=item.key, jobs=item.group.jobs) for item in matches
        ),
        holding.units,
    )


def _class(
    item: Match,
    spare: Mapping[Resource, Mapping[EntryKey, int]],
    berths: Mapping[Berth, Need],
    holding: Absorption,
    rests: Mapping[Berth, Iterable[Rest]],
) -> DemandClass:
    """Return the class of a group's jobs; ``berths``: what a job counts as where it may run."""
    holds = holding.holds[item.shape]
    own_rests = (Rest(berth, item.shape) for berth in berths)
    beside = (
        (rest, need, fitting)
        for berth, need in berths.items()
        for rest in rests.get(berth, ())
        if (fitting := holding.rests[rest].fit.get(item.shape, 0))
    )
    return DemandClass(
        key=item.key,
        jobs=item.group.jobs,
        own=item.own,
        spare={
            key: Edge(jobs, need, need)
            for key, need in item.needs.items()
            if (jobs := _fitting_into(spare, key, need)) > 0
        },
        free={
            berth: Edge(hold.jobs, need, hold.takes)
            for berth, need in berths.items()
            if (hold := holds.get(berth)) is not None
        },
        possible=item.possible,
        leaves={rest: 1 / holding.rests[rest].jobs for rest in own_rests if rest in holding.rests},
        beside={
            rest: Edge(fitting, need, Need(1 / fitting, holds[rest.berth].takes.gpu))
            for rest, need, fitting in beside
        },
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
    found: defaultdict[EntryKey, defaultdict[Template, tuple[Berth, ...]]] = defaultdict(
        lambda: defaultdict(tuple)
    )
    for berth in sorted(places):
        for template in of_group(by_entry[berth.entry], berth.group):
            found[berth.entry][template] += (berth,)
    return found


def _berths(
    item: Match, judges: Mapping[EntryKey, Mapping[Template, tuple[Berth, ...]]]
) -> dict[Berth, Need]:
    """Return the berths that may take a group's jobs, and the need of a job there."""
    found: dict[Berth, Need] = {}
    for offer in item.offers:
        for berth in judges.get(offer.template.entry, {}).get(offer.template, ()):
            found[berth] = min(found.get(berth, offer.need), offer.need)
    return found
