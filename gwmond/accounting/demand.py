"""From idle jobs to demand classes: where jobs could run, and how many could go there.

Units: canonical units are whole; jobs are counted; times are seconds.

Source of the rules: design page, section 4.

- A job may go to an entry if matching does not say no, it fits an empty pilot (the template) and
  its walltime fits the template's lifetime.  A verdict that is missing counts as *possible*.
- Of ``cpu`` a job needs ``units.need`` of its cores and memory, of ``gpu`` its GPUs.  A job without
  GPUs never needs ``gpu``; one with GPUs needs ``cpu`` too, but only where GPUs are spare.
- An edge carries whole jobs: as many as the spare capacity holds, and as there are.

Each resource is a maximum flow of its own, so adding a site never lowers a total.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import fsum, lcm
from typing import NamedTuple, TypeAlias

from gwmond.accounting.absorb import Places, Shape, absorption
from gwmond.accounting.flow import SCALE, Assignment, DemandClass
from gwmond.accounting.resources import need_of
from gwmond.facts import DemandGroup, EntryKey, Template, Verdict
from gwmond.units import DEFAULT_MEMORY_MIB, Resource

Verdicts: TypeAlias = Mapping[tuple[str, str], Verdict]
"""By (signature of the group, signature of the template)."""


class Match(NamedTuple):
    """A group and the entries where it could run on an empty pilot; ``possible`` are uncertain.

    Invariant: keys of matches differ, and do not depend on the order of the groups.
    """

    key: str
    group: DemandGroup
    entries: tuple[EntryKey, ...]
    possible: frozenset[EntryKey]

    @property
    def shape(self) -> Shape:
        """Return what decides whether one of its jobs fits."""
        return Shape(self.group.size, self.group.walltime_s)


class JobCounts(NamedTuple):
    """Idle jobs of one entry, counted as the frontend counts them.

    ``matching`` counts a job at each entry where it could run; ``proportional`` divides it among
    them (rounded up once, at the end); ``unique`` are those that can run nowhere else.
    """

    matching: int
    proportional: int
    unique: int


class Demand(NamedTuple):
    """The classes of one resource, and what absorbers hold, ready for ``flow.assign``."""

    classes: tuple[DemandClass, ...]
    absorb: Mapping[EntryKey, int]


def match(
    groups: Iterable[DemandGroup], templates: Iterable[Template], verdicts: Verdicts
) -> tuple[Match, ...]:
    """Return where each group that has jobs could run."""
    templates = sorted(templates, key=lambda template: template.entry)
    fitting: dict[Shape, list[tuple[str, EntryKey]]] = {}
    known: dict[tuple[str, Shape], tuple[tuple[EntryKey, ...], frozenset[EntryKey]]] = {}
    matches: list[Match] = []
    for group in sorted((group for group in groups if group.jobs > 0), key=_order):
        shape = Shape(group.size, group.walltime_s)
        if shape not in fitting:
            fitting[shape] = [(t.signature, t.entry) for t in templates if _fits(shape, t)]
        kind = (group.signature, shape)
        if kind not in known:
            known[kind] = _entries(group.signature, fitting[shape], verdicts)
        matches.append(Match(f"{len(matches):08}", group, *known[kind]))
    return tuple(matches)


def _order(group: DemandGroup) -> tuple[object, ...]:
    walltime = -1 if group.walltime_s is None else group.walltime_s
    return (group.schedd, group.accounting_group, group.signature, group.size, walltime, group.jobs)


def _fits(shape: Shape, template: Template) -> bool:
    """Return whether one job fits an empty pilot, and may end within the pilot's lifetime."""
    return all(job <= empty for job, empty in zip(shape.size, template.size, strict=True)) and (
        shape.walltime_s is None
        or template.lifetime_s is None
        or shape.walltime_s <= template.lifetime_s
    )


def _entries(
    signature: str, templates: Iterable[tuple[str, EntryKey]], verdicts: Verdicts
) -> tuple[tuple[EntryKey, ...], frozenset[EntryKey]]:
    """Return the entries that are not excluded, in the order of the templates."""
    sure: dict[EntryKey, bool] = {}
    for of, key in templates:
        verdict = verdicts.get((signature, of), Verdict.POSSIBLE)
        if verdict is not Verdict.NO:
            sure[key] = verdict is Verdict.YES or sure.get(key, False)
    return tuple(sure), frozenset(key for key, is_sure in sure.items() if not is_sure)


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
    resource: Resource,
    spare: Mapping[Resource, Mapping[EntryKey, int]],
    places: Places,
    q: int = DEFAULT_MEMORY_MIB,
) -> Demand:
    """Return the classes of jobs that need ``resource``.

    ``spare`` are the canonical units that entries could still provide, for both resources.
    """
    wanted = [item for item in matches if need_of(item.group.size, resource, q) > 0]
    shapes: defaultdict[Shape, set[EntryKey]] = defaultdict(set)
    for item in wanted:
        shapes[item.shape].update(item.entries)
    absorbing = absorption(shapes, places, resource, q)
    classes: list[DemandClass] = []
    for item in wanted:
        size, jobs = item.group.size, item.group.jobs
        each = need_of(size, resource, q)
        edges: dict[EntryKey, int] = {}
        absorbers: dict[EntryKey, int] = {}
        holds = absorbing.jobs[item.shape]
        for key in item.entries:
            fitting = spare[resource].get(key, 0) // each
            if size.gpus:
                fitting = min(fitting, spare["gpu"].get(key, 0) // size.gpus)
            if fitting > 0:
                edges[key] = min(jobs, fitting) * each
            if (held := holds.get(key, 0)) > 0:
                absorbers[key] = min(jobs, held) * each
        classes.append(DemandClass(item.key, jobs * each, edges, absorbers))
    return Demand(tuple(classes), absorbing.units)


def carried(
    matches: Iterable[Match],
    assignment: Assignment,
    resource: Resource,
    q: int = DEFAULT_MEMORY_MIB,
) -> tuple[dict[EntryKey, float], frozenset[EntryKey]]:
    """Return the jobs assigned to each entry, and the entries where a *possible* match carries.

    Classes that were bundled carry each flow in proportion, so jobs are fractional.
    """
    by_key = {item.key: item for item in matches}
    jobs: defaultdict[EntryKey, list[float]] = defaultdict(list)
    uncertain: set[EntryKey] = set()
    for bundle in assignment.bundles:
        members = [by_key[key] for key in bundle.keys]
        whole = sum(bundle.weights) * SCALE
        a_unit = sum(
            (
                Fraction(weight, need_of(item.group.size, resource, q) * whole)
                for item, weight in zip(members, bundle.weights, strict=True)
            ),
            Fraction(),
        )
        for key, flow in bundle.entries.items():
            jobs[key].append(float(flow * a_unit))
            if any(key in item.possible for item in members):
                uncertain.add(key)
    return {key: fsum(parts) for key, parts in jobs.items()}, frozenset(uncertain)
