from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gwmond.model.entries.evaluation import (
    SCALE,
    Capacity,
    DemandTotals,
    EntryTime,
    Evaluation,
    IdleJobs,
    JobCounts,
    MatchedKind,
    Part,
    entry_states,
    overall,
    residual,
)
from gwmond.model.entries.waiting import Waiting
from gwmond.model.facts import EntryKey, Limit, Pilot, Size, Verdict
from gwmond.model.states import State
from gwmond.model.units import Resource
from gwmond.sites.capacity import capacities, provisioned
from gwmond.sites.pending import measured
from gwmond.sites.site_time import Facts, Settings, evaluate
from tests.build.facts import (
    A2,
    BIG,
    GPU,
    NOW,
    SMALL,
    A,
    B,
    C,
    facts,
    group,
    peak,
    pilot,
    request,
    template,
    totals,
)


def row(found: Facts, key: EntryKey = A, resource: Resource = "cpu") -> EntryTime:
    evaluation = evaluate(found, NOW)
    assert residual(evaluation) == 0
    return evaluation.rows[key, resource]


def said(found: EntryTime) -> str:
    """State, reason and units of each part; where there is none, of the row, without units."""
    parts = [(f"{of.state} {of.reason}".strip(), of.amount) for of in found.parts]
    named = f"{found.state} {found.reason}".strip()
    assert not parts or parts[0][0] == named
    assert all(amount % SCALE == 0 for _, amount in parts)
    return ", ".join(f"{name} {amount // SCALE}" for name, amount in parts) or named


OPEN = totals(request(A, requested_idle=0))
HUNDRED = peak({A: 100})
JOBS = [group(30)]

# Each case changes one thing in an entry of 100 units, 16 in use, with 30 units of idle jobs.
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "demand that could run here is a bottleneck, the rest is insufficient demand": (
        {},
        "provisioning_bottleneck nothing_requested 30, insufficient_demand 54",
    ),
    "more demand than spare is a bottleneck as large as the spare": (
        {"groups": [group(1000)]},
        "provisioning_bottleneck nothing_requested 84",
    ),
    "no demand at all is insufficient": ({"groups": []}, "insufficient_demand 84"),
    "demand that does not match is insufficient": (
        {"verdicts": {("any", A.entry): Verdict.NO}},
        "insufficient_demand 84",
    ),
    "demand that pending pilots elsewhere and free slots absorb is no bottleneck": (
        {"pilots": [pilot(), pilot(free=[Size(8, 16000)] * 4)]},
        "insufficient_demand 84",
    ),
    "an entry in use up to its capacity is full": (
        {"capacities": {(A, "cpu"): Capacity(16, "pledge")}},
        "full",
    ),
    "an entry in use up to its peak is full if more is requested": (
        {"capacities": peak({A: 16}), "totals": totals(request(A, requested_idle=2))},
        "full",
    ),
    "an entry in use up to its peak has room where nothing is requested": (
        {"capacities": peak({A: 16}), "totals": totals(request(A, max_pilots=12))},
        "provisioning_bottleneck nothing_requested 30, insufficient_demand 50",
    ),
    "that room is one pilot where there is no limit": (
        {"capacities": peak({A: 10}), "totals": totals(request(A, max_pilots=None))},
        "provisioning_bottleneck nothing_requested 8",
    ),
    "without demand the peak is the capacity": (
        {"capacities": peak({A: 16}), "groups": []},
        "full",
    ),
    "an entry in use beyond its capacity is full": (
        {"capacities": {(A, "cpu"): Capacity(10, "pledge")}},
        "full",
    ),
    "pilots within the grace fill the site, with demand or without": (
        {"waiting": {A: Waiting(0, 2, "measured")}},
        "filling 84",
    ),
    "one pilot beyond the grace says that there is no room": (
        {"waiting": {A: Waiting(1, 20, "measured")}},
        "saturated",
    ),
    "a downtime takes all the spare": ({"totals": totals(request(A, down=True))}, "down 84"),
    "a downtime goes before waiting pilots": (
        {
            "totals": totals(request(A, down=True, pending=9)),
            "waiting": {A: Waiting(1, 8, "measured")},
        },
        "down 84",
    ),
    "pilots unknown: the whole capacity is unknown, whatever else is known": (
        {"pilots": None, "totals": totals(request(A, down=True))},
        "unknown pilots 100",
    ),
    "glideresource ads unknown": ({"totals": None, "no_totals": True}, "unknown pending 84"),
    "glideresource ads unknown, but the factory's queue was read": (
        {"totals": None, "no_totals": True, "waiting": {A: measured(3, 0)}},
        "filling 84",
    ),
    "an ad that does not tell how many wait": (
        {"totals": totals(request(A, pending=None))},
        "unknown pending 84",
    ),
    "an unknown queue goes before a downtime": (
        {"totals": totals(request(A, pending=None, down=True))},
        "unknown pending 84",
    ),
    "no ad, but the slots carry a factory": ({"totals": {}}, "unknown no_resource_ad 84"),
    "no ad, and only one of the pilots carries a factory": (
        {"totals": {}, "pilots": [pilot(), pilot(factory="")]},
        "unknown no_resource_ad 84",
    ),
    "a queue that was read and is empty makes nobody wait": (
        {"totals": {}, "waiting": {A: measured(0, 0)}},
        "provisioning_bottleneck unexplained 30, insufficient_demand 54",
    ),
    "no ad, but other entries have one": (
        {"totals": totals(request(B)), "pilots": [pilot(factory=""), pilot(factory="")]},
        "unknown no_resource_ad 84",
    ),
    "a plain pool has no factory, and no pilot ever waits": (
        {"totals": {}, "pilots": [pilot(factory=""), pilot(factory="")]},
        "provisioning_bottleneck no_factory 30, insufficient_demand 54",
    ),
    "nothing tells the capacity": (
        {"capacities": {(A, "cpu"): Capacity(0, "none")}},
        "unknown no_capacity",
    ),
    "a schedd is stale: the flow of the others is proven, the rest is not guessed": (
        {"demand_complete": False},
        "provisioning_bottleneck nothing_requested 30, unknown demand 54",
    ),
    "a schedd is stale and the others have nothing": (
        {"demand_complete": False, "groups": []},
        "unknown demand 84",
    ),
    "demand, but no pilot known to match it against": ({"templates": []}, "unknown no_template 84"),
    "without any demand a template is not missed": (
        {"templates": [], "groups": []},
        "insufficient_demand 84",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_state_table(case: str) -> None:
    """Each row of the design's table, with its precedence and its partition of the spare."""
    change, expected = CASES[case]
    base: dict[str, Any] = {
        "capacities": HUNDRED,
        "pilots": [pilot(), pilot()],
        "totals": OPEN,
        "groups": JOBS,
    }
    assert said(row(facts(**(base | change)))) == expected


LIMITED: dict[str, Any] = {"max_pilots": 30, "running": 2, "total_running": 12, "requested_idle": 0}
"""20 pilots of 8 units are left to us: the limit is 160 units."""

LIMITED_ADS = totals(request(A, **LIMITED))

IN_STATE: dict[str, tuple[dict[str, Any], Callable[[int], str]]] = {
    "provisioning_bottleneck": (
        {},
        lambda n: f"provisioning_bottleneck nothing_requested 30, insufficient_demand {n - 30}",
    ),
    "insufficient_demand": ({"groups": []}, lambda n: f"insufficient_demand {n}"),
    "filling": ({"waiting": {A: Waiting(0, 2, "measured")}}, lambda n: f"filling {n}"),
    "saturated": ({"waiting": {A: Waiting(1, 0, "measured")}}, lambda _: "saturated"),
    "down": ({"totals": totals(request(A, **LIMITED, down=True))}, lambda n: f"down {n}"),
    "unknown": ({"groups": [], "demand_complete": False}, lambda n: f"unknown demand {n}"),
}
"""What brings an entry with 16 units in use into each state, and how its spare is divided then."""


@pytest.mark.parametrize("state", IN_STATE)
@pytest.mark.parametrize(("evidence", "units"), [("pledge", 100), ("peak", 64), ("limit", 160)])
def test_every_state_rests_on_the_first_capacity_that_exists(
    state: str, evidence: str, units: int
) -> None:
    """A pledge of 100 units, a peak of 64, a limit of 160: spare is what 16 in use leave."""
    change, parts = IN_STATE[state]
    capacity = known_capacity(evidence, [pilot(), pilot()])
    assert capacity == (units, evidence)
    scene: dict[str, Any] = {
        "groups": JOBS,
        "pilots": [pilot(), pilot()],
        "totals": LIMITED_ADS,
        "capacities": {(A, "cpu"): capacity},
    }
    found = row(facts(**(scene | change)))
    spare = 0 if state == "saturated" else units - 16
    assert (found.capacity, found.state) == (capacity, state)
    assert (found.provisioned, found.spare) == (16, spare)
    assert said(found) == parts(spare)


@pytest.mark.parametrize(
    ("known", "evidence"), [("pledge", "above_pledge"), ("peak", "peak"), ("limit", "limit")]
)
def test_an_entry_is_full_whatever_its_capacity_rests_on(known: str, evidence: str) -> None:
    """20 pilots of 8 units are all that the limit leaves, and more than was pledged or ran."""
    running = [pilot()] * 20
    capacity = known_capacity(known, running)
    assert capacity == (160, evidence)
    found = row(
        facts(capacities={(A, "cpu"): capacity}, pilots=running, totals=LIMITED_ADS, groups=JOBS)
    )
    assert said(found) == "full"


def known_capacity(evidence: str, running: list[Pilot]) -> Capacity:
    """The capacity where nothing that goes before this evidence exists, and all that follows."""
    return capacities(
        [A],
        "cpu",
        used=provisioned(running, "cpu"),
        pledges={A: Size(100, 200_000)} if evidence == "pledge" else {},
        site_pledges={},
        peaks={} if evidence == "limit" else {A: 64},
        totals=LIMITED_ADS,
    )[A]


def test_every_state_is_in_the_table() -> None:
    """The cases cover all states."""
    assert {expected.split()[0] for _, expected in CASES.values()} == {*State}


def test_unknown_pilots_are_absent_not_zero() -> None:
    """Where pilots are not known neither is what is in use, nor what became of the demand."""
    found = evaluate(facts(capacities=HUNDRED, pilots=None, groups=JOBS), NOW)
    assert found.rows[A, "cpu"].provisioned is None
    assert found.rows[A, "cpu"].spare == 100
    assert found.demand == {("schedd1", "cpu"): DemandTotals(30 * SCALE, None, None, None)}
    assert found.jobs[A].assigned is None
    assert found.jobs[A].ours == JobCounts(30, 30, 30)


def test_a_few_pilots_at_a_time_do_not_hide_a_bottleneck() -> None:
    """10,008 units, 50,000 jobs, one pilot at a time: within the grace all of it fills."""
    scene: dict[str, Any] = {
        "capacities": peak({A: 10_008}),
        "pilots": [pilot(started=NOW - 60)],
        "totals": totals(request(A, pending=1, requested_idle=1)),
        "waiting": {A: Waiting(0, 1, "measured")},
        "groups": [group(50_000)],
    }
    assert said(row(facts(**scene))) == "filling 10000"
    long = facts(**scene)._replace(long_filling=frozenset({A}))
    found = row(long)
    assert said(found) == "provisioning_bottleneck few_requested 9992, filling 8"
    assert found.evidence == "measured"
    limited = totals(request(A, pending=1, limits=(Limit("GlideClientLimitIdle", "1"),)))
    assert row(long._replace(totals=limited)).reason == "frontend_limit"


@pytest.mark.parametrize(
    ("change", "state", "parts"),
    [
        ({"groups": [group(16)]}, "filling", {"filling": 16, "insufficient_demand": 976}),
        ({}, "provisioning_bottleneck", {"filling": 16, "provisioning_bottleneck": 84}),
        ({"groups": []}, "filling", {"filling": 16, "insufficient_demand": 976}),
        ({"groups": [], "demand_complete": False}, "filling", {"filling": 16, "unknown": 976}),
        ({"templates": []}, "filling", {"filling": 992}),  # it is not known how large they will be
        ({"waiting": {A: Waiting(1, 1, "measured")}}, "saturated", {}),
        ({"waiting": {A: Waiting(0, 0, "measured")}}, "provisioning_bottleneck", {"filling": 0}),
        ({"waiting": {A: Waiting(0, 900, "measured")}}, "filling", {"filling": 992}),
        ({"totals": totals(request(A, down=True))}, "down", {"down": 992}),
    ],
)
def test_the_rest_of_an_entry_that_fills_for_long_is_judged_as_if_none_waited(
    change: dict[str, Any], state: str, parts: dict[str, int]
) -> None:
    """1000 units, 8 in use; two pilots wait, which are 16 units and take as many jobs first."""
    base: dict[str, Any] = {
        "capacities": peak({A: 1000}),
        "pilots": [pilot()],
        "totals": totals(request(A, pending=2)),
        "waiting": {A: Waiting(0, 2, "measured")},
        "groups": [group(100)],
    }
    found = row(facts(**(base | change))._replace(long_filling=frozenset({A})))
    assert found.state == state
    units = {part.state.value: part.amount // SCALE for part in found.parts}
    assert {name: units.get(name, 0) for name in parts} == parts


def test_an_entry_of_pilots_below_one_unit_is_not_nothing() -> None:
    """The limit is 1000 pilots of 1 core and 1900 MiB, 20 run, 500 jobs wait: a bottleneck."""
    small = Size(1, 1900)
    ads = totals(request(A, max_pilots=1000, running=20, total_running=20, pilot_size=small))
    running = [pilot(size=small)] * 20
    capacity = capacities(
        [A],
        "cpu",
        used=provisioned(running, "cpu"),
        pledges={},
        site_pledges={},
        peaks={},
        totals=ads,
    )
    found = row(
        facts(
            capacities={(A, "cpu"): capacity[A]},
            pilots=running,
            totals=ads,
            groups=[group(500, small)],
            templates=[template(A, small)],
        )
    )
    assert (found.capacity, found.provisioned) == (Capacity(1000, "limit"), 20)
    expected = "provisioning_bottleneck nothing_requested 500, insufficient_demand 480"
    assert said(found) == expected


def test_sites_share_demand_by_their_spare() -> None:
    """A job that could run at two sites is half a bottleneck at each equal one."""
    found = evaluate(
        facts(
            capacities=peak({A: 10, B: 10, C: 40}),
            totals=totals(request(A), request(B), request(C)),
            groups=[group(3)],
        ),
        NOW,
    )
    parts = {key: of.parts[0].amount for (key, _), of in found.rows.items()}
    assert parts == {A: 500, B: 500, C: 2000}


def test_gpus_are_a_resource_of_their_own() -> None:
    """A GPU job is a bottleneck of both resources, a CPU job of one; no GPUs, no row."""
    found = evaluate(
        facts(
            capacities=peak({A: 80, B: 80}, {A: 20}),
            totals=totals(request(A), request(B)),
            templates=[template(A, GPU), template(B)],
            pilots=[pilot(A, size=GPU)],
            groups=[group(5, Size(2, 4000, 1))],
        ),
        NOW,
    )
    assert residual(found) == 0
    assert (B, "gpu") not in found.rows
    expected = "provisioning_bottleneck nothing_requested {}, insufficient_demand {}"
    assert said(found.rows[A, "gpu"]) == expected.format(5, 13)
    assert said(found.rows[A, "cpu"]) == expected.format(10, 62)
    assert found.rows[B, "cpu"].state is State.INSUFFICIENT_DEMAND
    assert found.demand == {
        ("schedd1", "cpu"): DemandTotals(10 * SCALE, 0, 10 * SCALE, 0),
        ("schedd1", "gpu"): DemandTotals(5 * SCALE, 0, 5 * SCALE, 0),
    }


@pytest.mark.parametrize(
    ("jobs", "size", "empty", "room", "bottleneck", "unmatched"),
    [
        (8, Size(1, 2048), Size(8, 16384), 16, 8, 0),
        (50, Size(8, 16384), Size(8, 16384), 8, 8, 392),
        (4, Size(5, 2000), BIG, 16, 16, 16),
        (4, Size(8, 2000), BIG, 8, 8, 24),
    ],
)
def test_a_job_needs_its_part_of_a_pilot(
    jobs: int, size: Size, empty: Size, room: int, bottleneck: int, unmatched: int
) -> None:
    """Whole jobs count in the units of the pilots that run them; 2 GB is 2000 or 2048 MiB."""
    found = evaluate(
        facts(
            capacities=peak({A: room}),
            totals=OPEN,
            templates=[template(A, empty)],
            groups=[group(jobs, size)],
        ),
        NOW,
    )
    assert residual(found) == 0
    parts = {part.state: part.amount for part in found.rows[A, "cpu"].parts}
    assert parts.pop(State.PROVISIONING_BOTTLENECK) == bottleneck * SCALE
    assert parts.pop(State.INSUFFICIENT_DEMAND, 0) == (room - bottleneck) * SCALE
    totalled = found.demand["schedd1", "cpu"]
    assert (totalled.assigned, totalled.unmatched) == (bottleneck * SCALE, unmatched * SCALE)


def test_jobs_with_gpus_need_their_cores_too() -> None:
    """Of four GPU jobs of 8 cores each one can run where 8 cores are spare."""
    for size in (Size(8, 16000, 1), Size(8, 16000, 4)):
        found = evaluate(
            facts(
                capacities=peak({A: 8}, {A: 4}),
                totals=OPEN,
                templates=[template(A, size)],
                groups=[group(4, Size(8, 16000, 1))],
            ),
            NOW,
        )
        assert found.rows[A, "gpu"].parts[0][::2] == (State.PROVISIONING_BOTTLENECK, SCALE)
        assert found.rows[A, "gpu"].parts[1][::2] == (State.INSUFFICIENT_DEMAND, 3 * SCALE)
        assert found.demand["schedd1", "gpu"] == DemandTotals(4 * SCALE, 0, SCALE, 3 * SCALE)


GROUPS = [template(A, signature="a", group="fe.voA"), template(A, signature="b", group="fe.voB")]
ONLY_B = {("any", "a"): Verdict.NO, ("any", "b"): Verdict.YES}


def test_each_frontend_group_of_an_entry_has_its_own_start() -> None:
    """Jobs that one group's pilots refuse and another's start are a bottleneck of the entry."""
    pilots = [pilot(A, group=g) for g in ("fe.voA", "fe.voB") for _ in range(3)]
    given = facts(
        capacities=peak({A: 200}),
        totals=OPEN,
        pilots=pilots,
        templates=GROUPS,
        verdicts=ONLY_B,
        groups=[group(100)],
    )
    expected = "provisioning_bottleneck nothing_requested 100, insufficient_demand 52"
    assert said(row(given)) == expected


@pytest.mark.parametrize(("owner", "absorbed"), [("fe.voA", 0), ("fe.voB", 16)])
def test_only_pilots_that_would_start_the_jobs_absorb_them(owner: str, absorbed: int) -> None:
    """Neither free slots nor pending pilots of a group that refuses the jobs take them."""
    given = facts(
        capacities=peak({A: 200, B: 100}),
        totals=totals(request(A), request(B)),
        pilots=[pilot(A, group=owner, free=[BIG])],
        waiting={A: Waiting(0, 1, "measured")},
        asked={A: {owner: 1}},
        templates=[*GROUPS, template(B, group="fe.voB")],
        verdicts=ONLY_B | {("any", B.entry): Verdict.YES},
        groups=[group(50)],
    )
    found = evaluate(given, NOW)
    assert found.demand["schedd1", "cpu"].absorbed == absorbed * SCALE
    bottleneck = f"provisioning_bottleneck nothing_requested {50 - absorbed}"
    assert said(found.rows[B, "cpu"]).startswith(f"{bottleneck}, ")


@pytest.mark.parametrize(
    ("wait", "down", "bottleneck"),
    [
        (Waiting(100, 0, "measured"), False, 800),
        (Waiting(1, 99, "measured"), False, 800),
        (Waiting(0, 100, "measured"), True, 800),
        (Waiting(0, 100, "measured"), False, 0),
    ],
)
def test_pilots_that_may_not_start_absorb_nothing(
    wait: Waiting, down: bool, bottleneck: int
) -> None:
    """Pilots stuck at a saturated entry, or at one in downtime, hide no bottleneck elsewhere."""
    found = evaluate(
        facts(
            capacities=peak({A: 800, B: 800}),
            totals=totals(request(A, down=down, pending=100), request(B)),
            waiting={A: wait},
            groups=[group(800)],
        ),
        NOW,
    )
    parts = {part.state: part.amount for part in found.rows[B, "cpu"].parts}
    assert parts.get(State.PROVISIONING_BOTTLENECK, 0) == bottleneck * SCALE


def test_only_entries_that_could_take_pilots_are_offered_to_the_flow() -> None:
    """Demand goes to the open entry, not to the ones that are down, filling or unknown."""
    keys = [A, A2, B, C]
    found = evaluate(
        facts(
            capacities=peak(dict.fromkeys(keys, 50)),
            totals=totals(request(A, down=True), request(A2), request(C)),
            waiting={A2: Waiting(0, 1, "measured")},
            groups=[group(40)],
            templates=[template(key, SMALL) for key in keys],
        ),
        NOW,
    )
    assert {key: of.state for (key, _), of in found.rows.items()} == {
        A: State.DOWN,
        A2: State.FILLING,
        B: State.UNKNOWN,
        C: State.PROVISIONING_BOTTLENECK,
    }
    assert found.demand["schedd1", "cpu"] == DemandTotals(40_000, 1_000, 39_000, 0)


def test_demand_is_totalled_by_schedd() -> None:
    """Each schedd's idle units are absorbed, assigned or unmatched, and nothing is left over."""
    found = evaluate(
        facts(
            capacities=HUNDRED,
            totals=OPEN,
            pilots=[pilot(free=[Size(8, 16000)])],
            groups=[
                group(70, schedd="one"),
                group(70, schedd="two"),
                group(5, Size(64, 2000), schedd="two", signature="huge"),
            ],
        ),
        NOW,
    )
    assert found.demand == {
        ("one", "cpu"): DemandTotals(70_000, 4_000, 46_000, 20_000),
        ("two", "cpu"): DemandTotals(390_000, 4_000, 46_000, 340_000),
    }


def test_idle_jobs_are_told_with_where_they_could_run() -> None:
    """One of three small jobs finds a free slot; a job too large finds nothing anywhere."""
    small, alike, huge = group(3), group(5, schedd="schedd2"), group(2, Size(64, 2000))
    given = facts(
        capacities=HUNDRED,
        totals=OPEN,
        pilots=[pilot(free=[Size(1, 2000)])],
        groups=[small, huge],
    )
    kinds = (MatchedKind(A, "frontend.main", sure=True),)
    assert set(evaluate(given, NOW).idle) == {
        IdleJobs(small, 3, 0, (A,), absorbed=1 / 3, free=True, kinds=kinds, assigned=2 / 3),
        IdleJobs(huge, 128, 0, (), absorbed=0.0, free=False, kinds=()),
    }
    both = evaluate(given._replace(groups=[small, alike]), NOW).idle
    assert [(idle.group, idle.kinds) for idle in both] == [(small, kinds), (alike, kinds)]


def test_only_what_is_free_now_is_a_free_slot() -> None:
    """What waits takes jobs too, and so does memory without cores for a job without cores."""
    given = facts(
        capacities=HUNDRED,
        totals=OPEN,
        waiting={A: Waiting(0, 1, "measured")},
        groups=[group(1)],
    )
    (waits,) = evaluate(given, NOW).idle
    assert (waits.absorbed, waits.free) == (1.0, False)
    slot = pilot(free=[Size(0, 4000)])
    given = given._replace(pilots=[slot], waiting={}, groups=[group(1, Size(0, 1000))])
    (coreless,) = evaluate(given, NOW).idle
    assert (coreless.absorbed, coreless.free) == (1.0, False)


@pytest.mark.parametrize(
    ("change", "evidence"),
    [
        ({}, "measured"),
        ({"verdicts": {("any", A.entry): Verdict.POSSIBLE}}, "estimated"),
        ({"templates": [template(A, evidence="estimated")]}, "estimated"),
        ({"templates": [template(A, evidence="estimated"), template(A)]}, "measured"),
        ({"templates": [template(A), template(A, evidence="estimated")]}, "measured"),
        ({"templates": [template(A, evidence="estimated")], "groups": []}, "measured"),
        (
            {
                "templates": [template(A, evidence="estimated")],
                "verdicts": {("any", A.entry): Verdict.NO},
            },
            "estimated",
        ),
        ({"waiting": {A: Waiting(0, 2, "estimated")}}, "estimated"),
        ({"waiting": {A: Waiting(2, 2, "estimated")}}, "estimated"),
        ({"waiting": {A: Waiting(0, 2, "measured")}}, "measured"),
        ({"pilots": None}, "measured"),
    ],
)
def test_estimates_that_decide_are_told(change: dict[str, Any], evidence: str) -> None:
    """A possible verdict that carries, an estimated template or queue make the row estimated."""
    base: dict[str, Any] = {"capacities": HUNDRED, "totals": OPEN, "groups": JOBS}
    assert row(facts(**(base | change))).evidence == evidence


@pytest.mark.parametrize(
    ("waiting", "verdict", "evidence"),
    [(1, Verdict.UNKNOWN, "estimated"), (1, Verdict.NO, "measured"), (0, None, "measured")],
)
def test_pilots_that_wait_may_take_the_jobs(
    waiting: int, verdict: Verdict | None, evidence: str
) -> None:
    """They do at B, of which nothing is known: then the bottleneck of A is an estimate."""
    found = facts(
        capacities=HUNDRED,
        totals=OPEN,
        groups=JOBS,
        waiting={B: Waiting(0, waiting, "measured")},
        templates=[template(A), template(B)],
        verdicts={("any", A.entry): Verdict.YES} | ({("any", B.entry): verdict} if verdict else {}),
    )
    assert row(found).state is State.PROVISIONING_BOTTLENECK
    assert row(found).evidence == evidence


@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, None])
def test_an_entry_of_which_no_start_is_known_is_not_known(verdict: Verdict | None) -> None:
    """Neither a bottleneck, as if jobs could run there, nor a lack of jobs; without jobs it is."""
    known = {("any", A.entry): verdict} if verdict else {}
    base: dict[str, Any] = {"capacities": HUNDRED, "totals": OPEN, "verdicts": known}
    found = row(facts(**base, groups=[group(200)]))
    assert (found.state, found.reason) == (State.UNKNOWN, "matching")
    assert {part.state for part in found.parts} == {State.UNKNOWN}
    found = row(facts(**base, groups=JOBS))  # what they cannot take nobody wants
    assert found.state is State.UNKNOWN
    assert {(part.state, part.amount // SCALE) for part in found.parts} == {
        (State.INSUFFICIENT_DEMAND, 70),
        (State.UNKNOWN, 30),
    }
    assert row(facts(**base, groups=[])).state is State.INSUFFICIENT_DEMAND


def test_a_possible_verdict_that_carries_nothing_estimates_nothing() -> None:
    """What is assigned to other entries does not make this one's state an estimate."""
    found = evaluate(
        facts(
            capacities=peak({A: 100, B: 100}),
            totals=totals(request(A), request(B)),
            groups=[group(10, signature="sure"), group(10, signature="maybe")],
            verdicts={
                ("sure", A.entry): Verdict.YES,
                ("sure", B.entry): Verdict.NO,
                ("maybe", A.entry): Verdict.NO,
                ("maybe", B.entry): Verdict.POSSIBLE,
            },
        ),
        NOW,
    )
    assert found.rows[A, "cpu"].evidence == "measured"
    assert found.rows[B, "cpu"].evidence == "estimated"


@pytest.mark.parametrize(
    ("ad", "pilots", "reason"),
    [
        ({"requested_idle": 0}, [], "nothing_requested"),
        ({"limits": (Limit("GlideClientLimitX", "count=1, limit=1"),)}, [], "frontend_limit"),
        ({"max_pilots": 30, "total_running": 10, "total_pending": 20}, [], "factory_limit"),
        ({"max_pilots": 30, "total_running": 10, "total_held": 20}, [], "nothing_requested"),
        ({"info_age_s": 7200}, [], "information_too_old"),
        ({"requested_idle": 5, "held": 7}, [], "held_pilots"),
        ({"requested_idle": 5}, [pilot(started=NOW - 60)], "ramp_up"),
        ({"requested_idle": 5}, [pilot(started=NOW - 900)], "not_submitted"),
        ({"requested_idle": 5}, [pilot(B, started=NOW - 60)], "not_submitted"),
        ({"requested_idle": 5, "submitted_wait": 5}, [], "not_acknowledged"),
        ({"jobs_matching": 0}, [], "no_match_in_frontend"),
        (
            {"jobs_effective": 0},
            [pilot(accepting=False)],
            "retiring_counted_as_available",
        ),
        ({"jobs_effective": 0}, [pilot(B, accepting=False)], "nothing_requested"),
        ({"jobs_effective": 0, "slots_idle": 4}, [], "idle_slots_counted"),
        ({"requested_idle": None}, [], "unexplained"),
    ],
)
def test_a_bottleneck_names_its_reason(ad: dict[str, Any], pilots: list[Any], reason: str) -> None:
    """The reason is found from the entry's own ads and pilots."""
    found = row(
        facts(capacities=HUNDRED, totals=totals(request(A, **ad)), pilots=pilots, groups=JOBS)
    )
    assert found.state is State.PROVISIONING_BOTTLENECK
    assert found.reason == found.parts[0].reason == reason


def test_settings_are_heeded() -> None:
    """The unit's memory, what is recent and what is too old are configured."""
    given = facts(
        capacities=HUNDRED,
        totals=totals(request(A, requested_idle=5, info_age_s=100)),
        pilots=[pilot(started=NOW - 60)],
        groups=JOBS,
    )

    def reason(settings: Settings) -> str:
        return evaluate(given, NOW, settings).rows[A, "cpu"].reason

    assert reason(Settings()) == "ramp_up"
    assert reason(Settings(recent_s=60)) == "not_submitted"
    assert reason(Settings(info_max_age_s=99)) == "information_too_old"
    assert evaluate(given, NOW, Settings(memory_per_unit_mib=4000)).rows[A, "cpu"].provisioned == 4


def test_our_counts_are_compared_with_the_frontends() -> None:
    """Each of matching, proportional and unique is ours minus theirs."""
    given = facts(
        capacities=peak({A: 100, B: 100}),
        totals=totals(
            request(A, jobs_matching=4, jobs_proportional=9, jobs_unique=0),
            request(B, jobs_matching=None, jobs_proportional=3, jobs_unique=1),
        ),
        groups=[group(10, signature="both"), group(2, signature="only")],
        verdicts={
            ("both", A.entry): Verdict.YES,
            ("both", B.entry): Verdict.YES,
            ("only", A.entry): Verdict.YES,
            ("only", B.entry): Verdict.NO,
        },
    )
    found = evaluate(given, NOW).jobs
    assert found[A].ours == JobCounts(12, 7, 2)
    assert found[B].ours == JobCounts(10, 5, 0)
    assert (
        found[A].matching_excess,
        found[A].proportional_excess,
        found[A].unique_excess,
    ) == (8, -2, 2)
    assert (
        found[B].matching_excess,
        found[B].proportional_excess,
        found[B].unique_excess,
    ) == (None, 2, -1)
    # filled to the same ratio: 6 of each entry's 100
    assert (found[A].assigned, found[B].assigned) == (6.0, 6.0)
    partial = evaluate(given._replace(demand_complete=False), NOW).jobs
    assert partial[A].matching_excess is None
    assert (found[A].whole, partial[A].whole) == (True, False)


def test_jobs_of_an_entry_without_a_template_are_not_known() -> None:
    """Nothing tells whether they match; where there are no jobs at all there are none."""
    given = facts(capacities=peak({A: 100, B: 100}), groups=[group(10)], templates=[template(A)])
    found = evaluate(given, NOW).jobs
    assert {key: job_counts.whole for key, job_counts in found.items()} == {A: True, B: False}
    assert (found[A].assigned, found[B].assigned) == (10, 0)
    full = evaluate(facts(capacities=peak({A: 8}), pilots=[pilot(A)], groups=[group(10)]), NOW)
    assert full.jobs[A].assigned == 0
    none = evaluate(given._replace(groups=[]), NOW).jobs
    assert {key: job_counts.whole for key, job_counts in none.items()} == {A: True, B: True}


def test_no_jobs_of_ours_are_fewer_than_theirs() -> None:
    """An entry where none of our jobs could run is compared as zero."""
    found = evaluate(facts(capacities=HUNDRED, totals=totals(request(A, jobs_unique=1))), NOW)
    job_counts = found.jobs[A]
    assert job_counts.ours == JobCounts(0, 0, 0)
    assert (
        job_counts.matching_excess,
        job_counts.proportional_excess,
        job_counts.unique_excess,
    ) == (-5, -5, -1)
    assert job_counts.assigned == 0


def test_a_single_unit_of_demand_counts() -> None:
    """One job of one unit is idle, and assigned."""
    found = evaluate(facts(capacities=HUNDRED, totals=OPEN, groups=[group(1)]), NOW)
    assert found.demand == {("schedd1", "cpu"): DemandTotals(SCALE, 0, SCALE, 0)}


def test_an_entry_of_which_no_capacity_is_told_is_unknown() -> None:
    """It is not full, though it has nothing to spare."""
    found = row(facts(entries=[A], totals=OPEN))
    assert said(found) == "unknown no_capacity"
    assert found.capacity == Capacity(0, "none")


def test_the_least_rest_of_the_spare_is_told() -> None:
    """A job of 999 thousandths of a unit leaves one thousandth: demand is insufficient for it."""
    found = facts(
        capacities=peak({A: 1}),
        totals=OPEN,
        templates=[template(A, Size(999, 1998000))],
        groups=[group(1, Size(0.999, 1))],
    )
    assert [(part.state, part.amount) for part in row(found).parts] == [
        (State.PROVISIONING_BOTTLENECK, 999),
        (State.INSUFFICIENT_DEMAND, 1),
    ]


def test_entries_are_known_by_their_pilots_ads_and_queues() -> None:
    """An entry that only a pilot, an ad or the queue tells of has a row as well."""
    found = evaluate(
        facts(
            pilots=[pilot(A)],
            totals=totals(request(B)),
            waiting={C: Waiting(0, 1, "measured")},
            entries=[A2],
        ),
        NOW,
    )
    assert {key for key, _ in found.rows} == {A, B, C, A2}


# --- states of entries and sites


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], State.UNKNOWN),
        ([State.DOWN, State.DOWN], State.DOWN),
        ([State.DOWN, State.FULL], State.FULL),
        ([State.FULL, State.INSUFFICIENT_DEMAND], State.INSUFFICIENT_DEMAND),
        ([State.INSUFFICIENT_DEMAND, State.UNKNOWN], State.UNKNOWN),
        ([State.UNKNOWN, State.SATURATED], State.SATURATED),
        ([State.SATURATED, State.FILLING], State.FILLING),
        ([State.FILLING, State.PROVISIONING_BOTTLENECK], State.PROVISIONING_BOTTLENECK),
    ],
)
def test_the_overall_state_is_what_is_proven_and_can_be_acted_on(
    states: list[State], expected: State
) -> None:
    """Each state yields to the one before it, in any order of entries."""
    assert overall(states) is expected
    assert overall(reversed(states)) is expected


def line(key: EntryKey, resource: Resource, state: State, units: int = 10) -> EntryTime:
    part = (Part(state, "", units * SCALE),) if units else ()
    return EntryTime(key, resource, state, "", Capacity(units, "peak"), 0, units, part, "measured")


def test_states_of_entries() -> None:
    """An entry's state is of its resources; nothing says nothing."""
    rows = [
        line(A, "cpu", State.FULL),
        line(A, "gpu", State.PROVISIONING_BOTTLENECK, 2),
        line(A2, "cpu", State.DOWN),
        line(B, "cpu", State.UNKNOWN, 0),
        line(B, "gpu", State.FULL, 2),
        line(C, "cpu", State.UNKNOWN, 0),
    ]
    found = Evaluation({(r.entry, r.resource): r for r in rows}, {}, {})
    assert entry_states(found) == {
        A: State.PROVISIONING_BOTTLENECK,
        A2: State.DOWN,
        B: State.FULL,
        C: State.UNKNOWN,
    }


@pytest.mark.parametrize(
    "broken",
    [
        line(A, "cpu", State.DOWN)._replace(spare=9),
        line(A, "cpu", State.DOWN)._replace(provisioned=1),
        line(A, "cpu", State.DOWN)._replace(parts=()),
        line(A, "cpu", State.SATURATED, 0)._replace(provisioned=1),
        line(A, "cpu", State.FULL, 0)._replace(capacity=Capacity(1, "peak")),
        line(A, "cpu", State.DOWN)._replace(
            parts=(Part(State.DOWN, "", 11 * SCALE), Part(State.UNKNOWN, "", -SCALE))
        ),
    ],
)
def test_a_broken_partition_leaves_a_residual(broken: EntryTime) -> None:
    """The residual is zero only if parts, use, spare and capacity agree."""
    assert residual(Evaluation({(A, "cpu"): broken}, {}, {})) > 0


def test_broken_demand_leaves_a_residual() -> None:
    """Demand that does not sum up, or is assigned twice, is seen."""
    for demand_totals in (DemandTotals(10, 1, 2, 3), DemandTotals(10, 8, 8, -6)):
        assert residual(Evaluation({}, {("s", "cpu"): demand_totals}, {})) > 0


def test_late_pilots_make_their_entry_estimated() -> None:
    """Whatever its state is; that of others is measured."""
    full = peak({A: 8, B: 8})
    pilots = [pilot(key, size=BIG) for key in (A, B)]
    known = facts(capacities=full, pilots=pilots, totals=totals(request(A), request(B)))
    found = evaluate(known._replace(late={A}), NOW)
    rows = {key: found.rows[key, "cpu"] for key in (A, B)}
    assert {row.state for row in rows.values()} == {State.FULL}
    assert [rows[key].evidence for key in (A, B)] == ["estimated", "measured"]
