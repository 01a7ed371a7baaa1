"""The state of each entry: why does a site not run more of our pilots?

Units: capacity, use and spare are whole canonical units; parts and flows are in 1/``SCALE`` unit;
times are seconds.

Source of the rules: design page, section 4.  For each entry and resource the state is the first
that holds of

=========================== =============================================== =====================
state                       when                                            spare goes to
=========================== =============================================== =====================
``unknown``                 running pilots or waiting pilots are unknown,   unknown
                            or it stands for many (``names.OTHER_ENTRY``)
``down``                    every ad of the entry says downtime             down
``saturated``               a pilot has waited longer than the grace        (there is none)
``filling``                 pilots wait, none longer than the grace         filling; of an entry
                                                                            that fills for long
                                                                            only what they will
                                                                            fill, the rest is
                                                                            judged as below
``unknown``                 the capacity is not known                       (there is none)
``full``                    no spare                                        (there is none)
``provisioning_bottleneck`` demand is assigned here                         its flow; the rest as
                                                                            in the next rows
``unknown``                 a schedd did not answer, or there is demand     unknown
                            but no template to match it with
``unknown``                 of some jobs it is not known whether they       as much as these
                            match                                           jobs would take
``insufficient_demand``     no demand is assigned here                      insufficient_demand
=========================== =============================================== =====================

Pilots that wait where those before them come to nothing (``EntryTotals.barren``) say neither that
the site is saturated nor that it fills: such an entry is judged as if none waited.

An entry fills for long when it has done so for longer than the grace, while pilots kept starting:
it has room, and a few pilots are requested at a time (reason ``few_requested``).

An entry that is full by its peak, while nothing is requested, is offered to the flow with what the
next limit leaves: if demand is assigned there the peak was no capacity, else it stays full.

Besides, only entries that get past ``full``, or fill for long, are offered.  If only part of
the demand is known, the flow of the known part is proven and stays a bottleneck; what would be
insufficient demand is unknown instead.  As much insufficient demand as free slots are untaken has
the reason ``idle_slots_untaken`` (see ``untaken``).

``evaluation.residual`` measures the invariants.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from gwmond.model.entries.evaluation import SCALE, Capacity, EntryTime, Evaluation, Part, Taken
from gwmond.model.entries.waiting import Waiting
from gwmond.model.facts import DemandGroup, EntryKey, EntryTotals, Evidence, Pilot, Template
from gwmond.model.names import OTHER_ENTRY
from gwmond.model.sizes import units_of_pilot
from gwmond.model.states import State
from gwmond.model.units import DEFAULT_MEMORY_MIB, RESOURCES, Resource
from gwmond.sites.absorb import Pending, pending_by_group, pending_pilots, places
from gwmond.sites.capacity import beyond, limit, provisioned
from gwmond.sites.demand import Match, Verdicts, demand, match
from gwmond.sites.demand_totals import demand_totals, entry_jobs, idle_jobs
from gwmond.sites.flow import Assignment, assign
from gwmond.sites.reasons import TOO_MANY_NAMES, UNTAKEN, Signs, explain
from gwmond.sites.untaken import note, untaken


class Settings(NamedTuple):
    """A pilot that started ``recent_s`` ago at most is a recent one.

    ``untaken_s``: slots that are free beside matching jobs for this long are untaken.
    """

    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
    recent_s: int = 900
    info_max_age_s: int = 1800
    untaken_s: int = 600


class Facts(NamedTuple):
    """The input of one evaluation.

    ``entries`` are those known from before; entries of pilots and ads are added to them.
    ``pilots`` is None if the collector did not answer, ``totals`` if there was no answer to the
    query for glideresource ads; an entry that is not in ``totals`` has no live ad.  ``waiting``
    has the entries whose queue is known.  ``groups`` are those of the schedds that answered;
    ``demand_complete`` is false if any did not.  ``doubtful`` are entries of which not all running
    pilots are surely seen, with the reason: they count as if their pilots were not known.  ``late``
    are those with a pilot of which an update is overdue: what is said of them is estimated.
    ``long_filling`` are those that have been filling for longer than the grace.  ``taken`` is that
    of the evaluation before, ``resting`` are pilots as in ``untaken``; None as long as pilots have
    not been watched for a grace.  ``left_out``: schedds whose idle jobs frontends do not count, and
    why; ``unseen``: that they count none at all, in words, or empty.  ``coming`` are pilots that
    run by the factory's count and are about to register: an estimate, as that count is older.
    """

    entries: AbstractSet[EntryKey]
    pilots: Sequence[Pilot] | None
    totals: Mapping[EntryKey, EntryTotals] | None
    waiting: Mapping[EntryKey, Waiting]
    capacities: Mapping[tuple[EntryKey, Resource], Capacity]
    groups: Sequence[DemandGroup]
    demand_complete: bool
    templates: Sequence[Template]
    verdicts: Verdicts
    doubtful: Mapping[EntryKey, str] = MappingProxyType({})
    asked: Pending = MappingProxyType({})
    long_filling: AbstractSet[EntryKey] = frozenset()
    taken: Taken = MappingProxyType({})
    resting: Sequence[Pilot] | None = None
    left_out: Mapping[str, str] = MappingProxyType({})
    unseen: str = ""
    late: AbstractSet[EntryKey] = frozenset()
    coming: Pending = MappingProxyType({})

    @property
    def has_factory(self) -> bool:
        """Whether GlideinWMS provisions the pool: there is an ad, or a pilot of a factory."""
        return bool(self.totals) or any(pilot.factory for pilot in self.pilots or ())

    @property
    def all_entries(self) -> list[EntryKey]:
        """All entries that there are, sorted."""
        ours = (pilot.entry for pilot in self.pilots or ())
        return sorted({*self.entries, *ours, *(self.totals or ()), *self.waiting})


class _Decision(NamedTuple):
    """A state that does not depend on the flow."""

    state: State
    reason: str = ""
    evidence: Evidence = "measured"


def evaluate(facts: Facts, now_s: int, settings: Settings | None = None) -> Evaluation:
    """Return the state of each entry now; of ``gpu`` only where the entry has any."""
    settings = settings or Settings()
    memory_per_unit_mib = settings.memory_per_unit_mib
    pilots = facts.pilots or ()
    entries = facts.all_entries
    matches = match(facts.groups, facts.templates, facts.verdicts, memory_per_unit_mib)
    coming = _coming(facts)
    pending = _summed(pending_by_group(_starting(facts), facts.asked), coming)
    free = places(pilots, pending, facts.templates)

    rows, full, spare = _rows(facts, entries, pending, memory_per_unit_mib)

    offered = _evidence(facts.templates)
    demanded = demand(matches, spare, free, facts.templates, memory_per_unit_mib)
    flow = assign(demanded.classes, spare, demanded.free)
    uncertain = flow.uncertain | _may_be_taken(matches, pending, coming)
    signs = _signs(facts, pending, now_s, settings)
    for key in _left_out(facts, matches, flow):
        signs[key] = signs[key]._replace(left_out=True)
    taken = note(facts.taken, flow.taken, now_s, settings.untaken_s)
    if facts.resting is not None:
        unsure = frozenset[EntryKey]().union(*(item.possible for item in matches))
        idle = untaken(taken, facts.resting, unsure, now_s, settings.untaken_s, memory_per_unit_mib)
        rows = {at: row._replace(untaken=idle.get(at, 0)) for at, row in rows.items()}
    for resource in RESOURCES:
        wanting = [item for item in matches if item.own.units(resource) > 0]
        needed = bool(wanting)
        unmatched = Counter[EntryKey]()
        for item in wanting:
            for key, most in item.unknown.items():
                unmatched[key] += math.ceil(item.group.jobs * most.units(resource) * SCALE)
        for key in spare[resource]:
            if (row := full.get((key, resource))) is not None and not flow.units[key, resource]:
                rows[key, resource] = row._replace(untaken=rows[key, resource].untaken)
                continue
            missing = "" if facts.demand_complete else "demand"
            evidence: Evidence = "estimated" if (key, resource) in uncertain else "measured"
            if needed:
                if not missing and key not in offered:
                    missing = "no_template"
                evidence = "estimated" if offered.get(key) == "estimated" else evidence
            rows[key, resource] = _after_flow(
                rows[key, resource],
                flow.units[key, resource],
                missing,
                signs[key],
                evidence,
                unmatched[key],
            )
    pilots_known = facts.pilots is not None
    totals = demand_totals(matches, flow, pilots_known)
    jobs = flow.jobs if pilots_known else None
    job_totals = facts.totals or {}
    counted = entry_jobs(entries, matches, jobs, job_totals, facts.demand_complete, offered)
    waiting = idle_jobs(matches, demanded.classes, flow, places(pilots, {}, ()))
    asking = {group.schedd for group in facts.groups}
    left_out = {name: why for name, why in sorted(facts.left_out.items()) if name in asking}
    further = left_out, facts.unseen, frozenset(coming)
    return Evaluation(dict(sorted(rows.items())), totals, counted, taken, waiting, *further)


_Rows: TypeAlias = dict[tuple[EntryKey, Resource], EntryTime]
_Spare: TypeAlias = dict[Resource, dict[EntryKey, int]]


def _rows(
    facts: Facts, entries: Iterable[EntryKey], pending: Pending, memory_per_unit_mib: int
) -> tuple[_Rows, _Rows, _Spare]:
    """Return all rows before the flow, those that are full unless it assigns something, and spare.

    The spare units are those that the flow is offered.
    """
    rows, full = _Rows(), _Rows()
    spare: _Spare = {resource: {} for resource in RESOURCES}
    has_factory = facts.has_factory
    for resource in RESOURCES:
        used = provisioned(facts.pilots or (), resource, memory_per_unit_mib)
        fills = _fills(facts, pending, resource, memory_per_unit_mib)
        for key in entries:
            row = _before_flow(facts, has_factory, key, resource, used.get(key, 0), fills.get(key))
            if (more := _unasked(facts, row, memory_per_unit_mib)) is not None:
                full[key, resource], row = row, more
            if row.capacity.units > 0 or resource == "cpu":
                rows[key, resource] = row
            if (open_units := row.spare - sum(part.amount for part in row.parts) // SCALE) > 0:
                spare[resource][key] = open_units
    return rows, full, spare


def _starting(facts: Facts) -> dict[EntryKey, int]:
    """Return the pending pilots that may start: not at entries that are down, saturated, barren."""
    closed = _closed(facts)
    return {
        key: wait.pending
        for key, wait in facts.waiting.items()
        if wait.pending > 0 and wait.beyond == 0 and key not in closed
    }


def _coming(facts: Facts) -> Pending:
    """Return the pilots that are about to register, which take jobs as pending ones do."""
    closed = _closed(facts)
    return {key: groups for key, groups in facts.coming.items() if key not in closed}


def _summed(pending: Pending, coming: Pending) -> dict[EntryKey, Counter[str]]:
    """Return all pilots that are on their way, by entry and frontend group."""
    return {
        key: Counter(pending.get(key, {})) + Counter(coming.get(key, {}))
        for key in sorted(pending.keys() | coming.keys())
    }


def _closed(facts: Facts) -> set[EntryKey]:
    return {key for key, totals in (facts.totals or {}).items() if totals.down or totals.barren}


def _fills(
    facts: Facts, pending: Pending, resource: Resource, memory_per_unit_mib: int
) -> dict[EntryKey, int]:
    """Return the units that pending pilots will fill, of entries that fill for long.

    An entry is left out if no template has their size: all of its spare may be theirs.
    """
    units: Counter[EntryKey] = Counter()
    for berth, template, count in pending_pilots(pending, facts.templates):
        if berth.entry in facts.long_filling:
            units[berth.entry] += count * units_of_pilot(
                template.size, resource, memory_per_unit_mib
            )
    return dict(units)


def _left_out(facts: Facts, matches: Iterable[Match], flow: Assignment) -> Iterator[EntryKey]:
    """Return the entries whose demand is mostly that of schedds which frontends leave out."""
    if not facts.left_out:
        return iter(())
    every, left_out = Counter[EntryKey](), Counter[EntryKey]()
    for item in matches:
        if share := flow.classes.get((item.key, "cpu")):
            jobs = dict.fromkeys(item.entries, share.assigned)
            every.update(jobs)
            left_out.update(jobs if item.group.schedd in facts.left_out else {})
    return (key for key, units in left_out.items() if 2 * units > every[key])


def _before_flow(
    facts: Facts,
    has_factory: bool,
    key: EntryKey,
    resource: Resource,
    used: int,
    fills: int | None,
) -> EntryTime:
    """Return the row of an entry, with the parts of its spare that the flow does not divide.

    ``fills``: the units that pending pilots will fill, if not all of the spare is filling.
    """
    capacity = facts.capacities.get((key, resource), Capacity(0, "none"))
    capacity = capacity._replace(units=max(capacity.units, used))
    seen = facts.pilots is not None and key not in facts.doubtful
    spare = capacity.units - (used if seen else 0)
    decision = _unknown(facts, has_factory, key) or _waiting(facts, key)
    if decision is not None and decision.state is State.SATURATED:
        spare = 0
    if decision is None and capacity.evidence == "none":
        decision = _Decision(State.UNKNOWN, "no_capacity")
    if decision is None and spare == 0:
        decision = _Decision(State.FULL)
    parts: tuple[Part, ...] = ()
    if decision is not None and spare > 0:
        is_part = decision.state is State.FILLING and fills is not None
        taken = min(spare, fills) if is_part and fills is not None else spare
        parts = (Part(decision.state, decision.reason, taken * SCALE),) if taken > 0 else ()
    return EntryTime(
        key,
        resource,
        decision.state if decision else State.INSUFFICIENT_DEMAND,
        decision.reason if decision else "",
        capacity,
        used if seen else None,
        spare,
        parts,
        "estimated" if key in facts.late else decision.evidence if decision else "measured",
    )


def _unasked(facts: Facts, row: EntryTime, memory_per_unit_mib: int) -> EntryTime | None:
    """Return the row that a full entry has if its peak is no capacity; None if the peak is one.

    Where nothing is requested nobody has asked the site for more than runs.  The limit is one.
    """
    totals, used = (facts.totals or {}).get(row.entry), row.capacity.units
    is_peak = row.state is State.FULL and row.capacity.evidence == "peak"
    if not is_peak or totals is None or totals.requested_idle != 0:
        return None
    most = limit(totals, row.resource, memory_per_unit_mib)
    units = beyond(totals, used, row.resource, memory_per_unit_mib) or 0
    if units <= used or (most is not None and most <= used):
        return None
    return row._replace(
        state=State.INSUFFICIENT_DEMAND,
        capacity=Capacity(units, "limit"),
        spare=units - used,
        evidence="estimated",
    )


def _unknown(facts: Facts, has_factory: bool, key: EntryKey) -> _Decision | None:
    """Return ``unknown`` if running or waiting pilots of the entry are.

    Where the queue itself was not read an ad can still say that none waits.  An entry without an
    ad is unknown if the pool has a factory at all; in a plain pool no pilot ever waits.
    """
    reason = ""
    if key == OTHER_ENTRY:
        reason = TOO_MANY_NAMES
    elif facts.pilots is None:
        reason = "pilots"
    elif key in facts.doubtful:
        reason = facts.doubtful[key]
    elif key not in facts.waiting:
        if facts.totals is None:
            reason = "pending"
        elif key in facts.totals:
            reason = "" if facts.totals[key].pending == 0 else "pending"
        elif has_factory:
            reason = "no_resource_ad"
    return _Decision(State.UNKNOWN, reason) if reason else None


def _waiting(facts: Facts, key: EntryKey) -> _Decision | None:
    totals = (facts.totals or {}).get(key)
    wait = facts.waiting.get(key)
    if totals is not None and totals.down:
        return _Decision(State.DOWN)
    barren = totals is not None and totals.barren
    if wait is not None and wait.pending > 0 and not barren:
        state = State.SATURATED if wait.beyond > 0 else State.FILLING
        return _Decision(state, "", wait.evidence)
    return None


def _after_flow(
    row: EntryTime, flow: int, missing: str, signs: Signs, evidence: Evidence, unmatched: int
) -> EntryTime:
    """Divide the rest of an entry's spare; ``flow`` of it could have been used.

    ``unmatched``: what jobs take of which it is not known whether they could run there.
    """
    parts: list[Part] = []
    if flow > 0:
        parts.append(Part(State.PROVISIONING_BOTTLENECK, explain(signs), flow))
    parts += row.parts  # what pending pilots will fill
    if (rest := row.spare * SCALE - sum(part.amount for part in parts)) > 0:
        state = State.UNKNOWN if missing else State.INSUFFICIENT_DEMAND
        # First, as a pilot of that entry might be given such a job.
        unsure = 0 if missing else min(unmatched, rest)
        parts += [Part(State.UNKNOWN, "matching", unsure)] if unsure > 0 else []
        rest -= unsure
        if not missing and row.untaken and rest > 0:
            parts.append(Part(state, UNTAKEN, min(row.untaken, rest)))
            rest -= min(row.untaken, rest)
        parts += [Part(state, missing, rest)] if rest > 0 else []
    state, reason, _ = parts[0]
    if "estimated" in {row.evidence, evidence}:
        evidence = "estimated"
    return row._replace(state=state, reason=reason, parts=tuple(parts), evidence=evidence)


def _evidence(templates: Iterable[Template]) -> dict[EntryKey, Evidence]:
    """Return the best evidence that there is of each entry's empty pilots."""
    best: dict[EntryKey, Evidence] = {}
    for template in templates:
        if best.get(template.entry) != "measured":
            best[template.entry] = template.evidence
    return best


def _may_be_taken(
    matches: Iterable[Match], pending: Pending, coming: Pending
) -> frozenset[tuple[EntryKey, Resource]]:
    """Return where jobs match of which it is not certain whether pilots on their way take them.

    Of pilots that wait at entries of which nothing is known no job is absorbed.  How many are
    ``coming`` is an estimate.
    """
    starting = pending.keys()
    taken = (
        item.entries
        for item in matches
        if not starting.isdisjoint(item.unknown) or not coming.keys().isdisjoint(item.needs)
    )
    entries = {key for some in taken for key in some}
    return frozenset((key, resource) for key in entries for resource in RESOURCES)


def _signs(
    facts: Facts, pending: Pending, now_s: int, settings: Settings
) -> defaultdict[EntryKey, Signs]:
    """Return the signs from which the reason of a bottleneck follows, for each entry."""
    pilots = facts.pilots or ()
    retiring = Counter(pilot.entry for pilot in pilots if not pilot.accepting)
    recent = Counter(p.entry for p in pilots if p.started > now_s - settings.recent_s)
    plain = Signs(has_factory=facts.has_factory, info_max_age_s=settings.info_max_age_s)
    signs: defaultdict[EntryKey, Signs] = defaultdict(lambda: plain)
    for key in facts.all_entries:
        signs[key] = plain._replace(
            retiring=retiring[key],
            started=recent[key],
            fills_long=key in pending and key in facts.long_filling,
        )
    for key, totals in (facts.totals or {}).items():
        existing = (totals.total_running, totals.total_pending)  # held ones do not count
        signs[key] = signs[key]._replace(
            limits=totals.limits,
            info_age_s=totals.info_age_s,
            held=totals.held,
            submitted_wait=totals.submitted_wait,
            requested_idle=totals.requested_idle,
            total_pilots=sum(count for count in existing if count is not None),
            max_pilots=totals.max_pilots,
            jobs_matching=totals.jobs_matching,
            jobs_effective=totals.jobs_effective,
            slots_idle=totals.slots_idle,
            unregistered=totals.unregistered is not None and totals.unregistered.most,
            held_most=totals.held_lately is not None and totals.held_lately.most,
        )
    return signs
