"""What must hold of any pool: capacity is neither invented nor lost, whatever is known."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.elapsed import Elapsed
from gwmond.model.entries.evaluation import SCALE, Capacity, Evaluation, residual
from gwmond.model.entries.waiting import Waiting
from gwmond.model.facts import DemandGroup, EntryKey, Pilot, Size, Verdict
from gwmond.model.states import State
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.integrate import integrate
from gwmond.sites.reasons import REASONS, UNKNOWN
from gwmond.sites.site_time import Facts, evaluate
from tests.build.facts import NOW, by_group, group, pilot, request, template, totals
from tests.examples import examples

T = TypeVar("T")

KEYS = [EntryKey(f"site{i // 2}", f"entry{i}") for i in range(5)]
NEW = EntryKey("new", "entry")
SIZES = st.sampled_from([Size(1, 2000), Size(8, 16000), Size(8, 16000, 2), Size(4, 3000)])
FREE = st.sampled_from([Size(0, 3000), Size(1, 2500), Size(4, 16000), Size(3, 9000, 1)])
JOBS = st.sampled_from([Size(1, 1000), Size(1, 4001), Size(4, 8000), Size(2, 3000, 1)])
SIGNATURES = ["j0", "j1", "j2"]
MAYBE = [Verdict.YES, Verdict.YES, Verdict.NO, Verdict.POSSIBLE]


@st.composite
def some_pilots(draw: st.DrawFn, keys: list[EntryKey]) -> list[Pilot]:
    return [
        pilot(
            draw(st.sampled_from(keys)),
            size=draw(SIZES),
            free=draw(st.lists(FREE, max_size=2)),
            accepting=draw(st.booleans()),
            remaining_s=draw(st.sampled_from([None, 100, 10_000])),
            started=NOW - draw(st.sampled_from([60, 90_000])),
            factory=draw(st.sampled_from(["", "factory"])),
        )
        for _ in range(draw(st.integers(0, 6)))
    ]


@st.composite
def demands(draw: st.DrawFn) -> list[DemandGroup]:
    return [
        group(
            draw(st.integers(0, 40)),
            draw(JOBS),
            signature=draw(st.sampled_from(SIGNATURES)),
            schedd=draw(st.sampled_from(["schedd1", "schedd2"])),
            walltime_s=draw(st.sampled_from([None, 3600])),
        )
        for _ in range(draw(st.integers(0, 6)))
    ]


CAPACITIES = st.builds(
    Capacity, st.integers(0, 60), st.sampled_from(["pledge", "peak", "limit"])
) | st.just(Capacity(0, "none"))


@st.composite
def pools(draw: st.DrawFn, *, all_open: bool = False, size: Size | None = None) -> Facts:
    """Any pool; with ``all_open`` a plain one, where every entry could take pilots.

    With a ``size`` all pilots are of it.
    """
    keys = KEYS[: draw(st.integers(1, len(KEYS)))]
    templates = [
        template(
            key,
            size or draw(SIZES),
            lifetime_s=draw(st.sampled_from([None, 1000, 86400])),
            evidence=draw(st.sampled_from(["measured", "estimated"])),
        )
        for key in keys
        if all_open or draw(st.booleans())
    ]
    verdicts = {
        (signature, key.signature): draw(st.sampled_from(MAYBE))
        for signature in SIGNATURES
        for key in templates
    }
    pilots = draw(some_pilots(keys))
    found = Facts(
        entries=frozenset(keys),
        pilots=[key._replace(factory="") for key in pilots],
        totals={},
        waiting={},
        capacities={(key, r): draw(CAPACITIES) for key in keys for r in RESOURCES},
        groups=draw(demands()),
        demand_complete=True,
        templates=templates,
        verdicts=by_group(verdicts),
    )
    if all_open:
        return found
    ads = [
        request(
            key,
            factory=draw(st.sampled_from(["one", "two"])),
            down=draw(st.booleans()),
            pending=draw(st.sampled_from([0, 0, 3, None])),
            requested_idle=draw(st.sampled_from([0, 5, None])),
            held=draw(st.sampled_from([0, 9])),
        )
        for key in draw(st.lists(st.sampled_from(keys), max_size=6))
    ]
    waits = st.builds(
        Waiting, st.integers(0, 1), st.integers(0, 3), st.sampled_from(["measured", "estimated"])
    )
    return found._replace(
        pilots=draw(st.sampled_from([pilots, pilots, pilots, None])),
        totals=draw(st.sampled_from([totals(*ads), totals(*ads), {}, None])),
        waiting=draw(st.dictionaries(st.sampled_from(keys), waits, max_size=2)),
        demand_complete=draw(st.booleans()),
    )


def in_total(found: Evaluation, resource: Resource) -> tuple[int, int, int]:
    """Absorbed, assigned and idle units over all schedds."""
    demand_totals = [
        demand_totals for (_, kind), demand_totals in found.demand.items() if kind == resource
    ]
    return (
        sum(t.absorbed or 0 for t in demand_totals),
        sum(t.assigned or 0 for t in demand_totals),
        sum(t.idle for t in demand_totals),
    )


def by_state(found: Evaluation, resource: Resource) -> Counter[State]:
    sums: Counter[State] = Counter()
    for (_, kind), row in found.rows.items():
        for part in row.parts:
            if kind == resource:
                sums[part.state] += part.amount
    return sums


@settings(max_examples=examples(150))
@given(pools())
def test_no_state_invents_or_loses_capacity(pool: Facts) -> None:
    """All parts of the spare sum to it, use and spare stay within capacity, always."""
    found = evaluate(pool, NOW)
    assert residual(found) == 0
    named = {"", *UNKNOWN, *(reason.name for reason in REASONS)}
    for (key, resource), row in found.rows.items():
        given_ = pool.capacities.get((key, resource), Capacity(0, "none"))
        assert row.capacity.units == max(given_.units, row.provisioned or 0)
        assert (row.provisioned is None) == (pool.pilots is None)
        assert {part.reason for part in row.parts} | {row.reason} <= named
        for part in row.parts:
            assert bool(part.reason) == (
                part.state in {State.PROVISIONING_BOTTLENECK, State.UNKNOWN}
            )
        if row.state in {State.SATURATED, State.FULL}:
            assert row.spare == 0
        if row.parts:
            assert row.state is row.parts[0].state


@settings(max_examples=examples(100))
@given(pools())
def test_the_bottleneck_exceeds_neither_demand_nor_spare(pool: Facts) -> None:
    """What is assigned is what entries call bottleneck, within demand and spare."""
    found = evaluate(pool, NOW)
    for resource in RESOURCES:
        absorbed, assigned, idle = in_total(found, resource)
        bottleneck = by_state(found, resource)[State.PROVISIONING_BOTTLENECK]
        spare = sum(row.spare * SCALE for (_, kind), row in found.rows.items() if kind == resource)
        assert bottleneck == assigned
        assert bottleneck <= spare
        assert absorbed + bottleneck <= idle


@settings(max_examples=examples(60))
@given(pools(all_open=True, size=Size(8, 16000, 2)), st.data())
def test_another_site_never_lowers_what_could_run(pool: Facts, data: st.DataObject) -> None:
    """Among pilots of one size, what is placed in all never falls.

    If the site absorbs nothing, neither does what is assigned.
    """
    new = template(NEW, Size(8, 16000, 2))
    larger = pool._replace(
        entries=pool.entries | {NEW},
        capacities={**pool.capacities, **{(NEW, r): data.draw(CAPACITIES) for r in RESOURCES}},
        templates=[*pool.templates, new],
        verdicts={
            s: {**pool.verdicts.get(s, {}), new.signature: data.draw(st.sampled_from(MAYBE))}
            for s in SIGNATURES
        },
    )
    absorbed, assigned = both(evaluate(pool, NOW))
    after = both(evaluate(larger, NOW))
    assert after[0] == absorbed
    assert after[1] >= assigned - 2  # both resources are rounded


def both(found: Evaluation) -> tuple[int, int]:
    """Absorbed and assigned units of both resources."""
    sums = [in_total(found, resource) for resource in RESOURCES]
    return sum(s[0] for s in sums), sum(s[1] for s in sums)


@settings(max_examples=examples(100))
@given(pools(), st.randoms(use_true_random=False))
def test_the_order_of_facts_does_not_matter(pool: Facts, random: Random) -> None:
    """Shuffled pilots, groups, templates and mappings give the very same evaluation."""

    def shuffled(items: list[T]) -> list[T]:
        random.shuffle(items)
        return items

    other = Facts(
        entries=frozenset(shuffled(list(pool.entries))),
        pilots=None if pool.pilots is None else shuffled(list(pool.pilots)),
        totals=None if pool.totals is None else dict(shuffled(list(pool.totals.items()))),
        waiting=dict(shuffled(list(pool.waiting.items()))),
        capacities=dict(shuffled(list(pool.capacities.items()))),
        groups=shuffled(list(pool.groups)),
        demand_complete=pool.demand_complete,
        templates=shuffled(list(pool.templates)),
        verdicts=dict(shuffled(list(pool.verdicts.items()))),
    )
    assert evaluate(other, NOW) == evaluate(pool, NOW)


@settings(max_examples=examples(100))
@given(pools(), st.integers(0, 10**6), st.booleans())
def test_counters_get_use_and_spare_times_elapsed(pool: Facts, ms: int, known: bool) -> None:
    """Over each entry all states sum to (use + spare) x time, or capacity x time if unknown."""
    found = evaluate(pool, NOW)
    increments = integrate(found, Elapsed(ms, known, "" if known else "reboot"), pool.entries)
    sums: Counter[tuple[EntryKey, Resource]] = Counter()
    for increment in increments:
        assert increment.amount > 0
        sums[increment.entry, increment.resource] += increment.amount
    for at, row in found.rows.items():
        units = (row.provisioned or 0) + row.spare if known else row.capacity.units
        assert sums[at] == units * SCALE * ms


@settings(max_examples=examples(60))
@given(pools(all_open=True))
def test_an_unknown_schedd_changes_no_bottleneck(pool: Facts) -> None:
    """What is proven by the schedds that answered stays; only insufficient demand is doubted."""
    known, partial = evaluate(pool, NOW), evaluate(pool._replace(demand_complete=False), NOW)
    for resource in RESOURCES:
        before, after = by_state(known, resource), by_state(partial, resource)
        assert after[State.PROVISIONING_BOTTLENECK] == before[State.PROVISIONING_BOTTLENECK]
        assert after[State.INSUFFICIENT_DEMAND] == 0
        assert after[State.UNKNOWN] == before[State.UNKNOWN] + before[State.INSUFFICIENT_DEMAND]
