"""Facts with defaults, so that a test names only what it is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gwmond.model.entries.evaluation import Capacity
from gwmond.model.entries.waiting import Waiting
from gwmond.model.facts import (
    DemandGroup,
    EntryKey,
    EntryRequest,
    EntryTotals,
    Evidence,
    Limit,
    Pilot,
    Size,
    Template,
    Verdict,
)
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.model.units import Resource
from gwmond.sites.demand import Verdicts
from gwmond.sites.entry_totals import combine
from gwmond.sites.site_time import Facts

NOW = 1_700_000_000

A = EntryKey("Alpha", "alpha-ce1")
A2 = EntryKey("Alpha", "alpha-ce2")
B = EntryKey("Beta", "beta-ce1")
C = EntryKey("Gamma", "gamma-ce1")

SMALL = Size(1, 2000)
BIG = Size(8, 16000)
GPU = Size(8, 16000, 2)


def pilot(
    entry: EntryKey = A,
    *,
    size: Size = BIG,
    free: Sequence[Size] = (),
    accepting: bool = True,
    remaining_s: int | None = None,
    started: int = NOW - 86400,
    factory: str = "factory",
    group: str = "frontend.main",
) -> Pilot:
    return Pilot(
        name="pilot",
        started=started,
        entry=entry,
        group=group,
        factory=factory,
        size=size,
        free=tuple(free),
        jobs=(),
        accepting=accepting,
        remaining_s=remaining_s,
        last_heard=NOW,
    )


def group(
    jobs: int = 1,
    size: Size = SMALL,
    *,
    signature: str = "any",
    schedd: str = "schedd1",
    walltime_s: int | None = None,
    accounting_group: str = "users",
) -> DemandGroup:
    return DemandGroup(schedd, accounting_group, signature, "[]", jobs, size, walltime_s)


def template(
    entry: EntryKey = A,
    size: Size = BIG,
    *,
    lifetime_s: int | None = None,
    evidence: Evidence = "measured",
    signature: str | None = None,
    group: str = "frontend.main",
) -> Template:
    named = signature or entry.entry
    return Template(entry, "[]", named, size, lifetime_s, evidence, group)


def verdicts(
    groups: Iterable[DemandGroup], templates: Iterable[Template], **no: Iterable[EntryKey]
) -> Verdicts:
    """Everything matches, but groups whose signature is named at the entries given."""
    return by_group(
        {
            (g.signature, t.signature): (
                Verdict.NO if t.entry in no.get(g.signature, ()) else Verdict.YES
            )
            for g in groups
            for t in templates
        }
    )


def by_group(pairs: Mapping[tuple[str, str], Verdict]) -> Verdicts:
    """Verdicts by the signatures of a group and of a template."""
    rows: defaultdict[str, dict[str, Verdict]] = defaultdict(dict)
    for (group, template), verdict in pairs.items():
        rows[group][template] = verdict
    return rows


def request(
    entry: EntryKey = A,
    *,
    group: str = "frontend.main",
    factory: str = "glidein@factory",
    down: bool = False,
    pending: int | None = 0,
    running: int | None = 10,
    held: int | None = 0,
    submitted_wait: int | None = 0,
    requested_idle: int | None = 0,
    requested_max: int | None = 100,
    total_pending: int | None = 0,
    total_running: int | None = 10,
    total_held: int | None = 0,
    max_pilots: int | None = 1000,
    limits: tuple[Limit, ...] = (),
    info_age_s: int | None = 60,
    jobs_matching: int | None = 5,
    jobs_proportional: int | None = 5,
    jobs_unique: int | None = 0,
    jobs_effective: int | None = 5,
    slots_idle: int | None = 0,
    pilot_size: Size | None = BIG,
    last_heard: int = NOW,
) -> EntryRequest:
    return EntryRequest(
        entry=entry,
        group=group,
        factory=factory,
        down=down,
        whole=EntryMonitor(
            Monitor(
                status_pending=total_pending, status_running=total_running, status_held=total_held
            ),
            max_pilots=max_pilots,
        ),
        limits=limits,
        jobs_matching=jobs_matching,
        jobs_proportional=jobs_proportional,
        jobs_unique=jobs_unique,
        jobs_effective=jobs_effective,
        slots_idle=slots_idle,
        pilot_size=pilot_size,
        last_heard=last_heard,
        monitor=Monitor(
            status_pending=pending,
            status_running=running,
            status_held=held,
            status_wait=submitted_wait,
            asked_idle=requested_idle,
            asked_max=requested_max,
            client_info_age=info_age_s,
        ),
    )


def totals(*requests: EntryRequest) -> dict[EntryKey, EntryTotals]:
    return combine(requests)


def peak(cpu: Mapping[EntryKey, int], gpu: Mapping[EntryKey, int] | None = None) -> Capacities:
    found: Capacities = {(key, "cpu"): Capacity(units, "peak") for key, units in cpu.items()}
    found |= {(key, "gpu"): Capacity(units, "peak") for key, units in (gpu or {}).items()}
    return found


Capacities = dict[tuple[EntryKey, Resource], Capacity]


def facts(
    *,
    capacities: Mapping[tuple[EntryKey, Resource], Capacity] | None = None,
    pilots: Sequence[Pilot] | None = (),
    totals: Mapping[EntryKey, EntryTotals] | None = None,
    no_totals: bool = False,
    waiting: Mapping[EntryKey, Waiting] | None = None,
    groups: Sequence[DemandGroup] = (),
    templates: Sequence[Template] | None = None,
    verdicts: Mapping[tuple[str, str], Verdict] | None = None,
    demand_complete: bool = True,
    entries: Iterable[EntryKey] = (),
    asked: Mapping[EntryKey, Mapping[str, int]] | None = None,
) -> Facts:
    """By default every entry of ``capacities`` has a template, and every group matches all."""
    capacities = capacities or {}
    keys = {*entries, *(key for key, _ in capacities)}
    if templates is None:
        templates = [template(key) for key in sorted(keys)]
    if verdicts is None:
        verdicts = {(g.signature, t.signature): Verdict.YES for g in groups for t in templates}
    return Facts(
        entries=frozenset(keys),
        pilots=pilots,
        totals=None if no_totals else (totals or {}),
        waiting=waiting or {},
        capacities=capacities,
        groups=groups,
        demand_complete=demand_complete,
        templates=templates,
        verdicts=by_group(verdicts),
        asked=asked or {},
    )
