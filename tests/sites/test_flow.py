from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TypeVar

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gwmond.model.entries.evaluation import SCALE
from gwmond.model.facts import Berth, EntryKey
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites import program
from gwmond.sites.flow import Assignment, Share, assign
from gwmond.sites.need import Need
from gwmond.sites.program import DemandClass, Edge
from tests.examples import examples

T = TypeVar("T")
V = TypeVar("V")

KEYS = [EntryKey("site", f"e{i}") for i in range(6)]
E0, E1, E2, E3, E4, E5 = KEYS
B0, B1 = Berth(E0, "main"), Berth(E1, "main")
ONE = Need(1)
Spare = dict[Resource, Mapping[EntryKey, int]]


def edge(jobs: int, cpu: float = 1, gpu: float = 0) -> Edge:
    return Edge(jobs, Need(cpu, gpu), Need(cpu, gpu))


def demand(
    key: str,
    jobs: int,
    spare: Mapping[EntryKey, Edge],
    free: Mapping[Berth, Edge] = {},
    own: Need = ONE,
) -> DemandClass:
    return DemandClass(key, jobs, own, spare, free)


def anywhere(keys: Sequence[EntryKey], jobs: int = 1000) -> dict[EntryKey, Edge]:
    return {key: edge(jobs) for key in keys}


def cpu(room: Mapping[EntryKey, int]) -> Spare:
    return {"cpu": room, "gpu": {}}


def cores(found: Assignment) -> dict[EntryKey, int]:
    return {key: units for (key, resource), units in found.units.items() if resource == "cpu"}


def share(found: Assignment, key: str, resource: Resource = "cpu") -> Share:
    return found.classes[key, resource]


def test_no_version_of_highs_prints_a_banner_where_json_and_csv_go(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """highspy 1.16 has one, when its constructor enables callbacks."""
    enable = highspy.Highs.enableCallbacks

    def with_banner(solver: highspy.Highs) -> None:
        if solver.getOptionValue("output_flag")[1]:
            print("Running HiGHS", flush=True)
        enable(solver)

    monkeypatch.setattr(highspy.Highs, "enableCallbacks", with_banner)
    found = assign([demand("a", 5, {E0: edge(5)})], cpu({E0: 10 * SCALE}), {})
    assert cores(found) == {E0: 5 * SCALE}
    assert capfd.readouterr().out == ""


def test_demand_without_room_and_room_without_demand_assign_nothing() -> None:
    """No classes, no room, or no edges are no error."""
    nowhere: Spare = {"cpu": {}, "gpu": {}}
    assert assign([], nowhere, {}).units == {}
    assert cores(assign([], cpu({E0: 5}), {})) == {E0: 0}
    lonely = assign([demand("a", 5, anywhere([E0]))], nowhere, {B1: Need(5)})
    assert share(lonely, "a") == Share(0, 0, 5 * SCALE)


def test_one_unit_is_shared_among_equal_entries() -> None:
    """One unit that fits three equal entries is divided in three, exactly."""
    found = assign([demand("a", 1, anywhere(KEYS[:3]))], cpu(dict.fromkeys(KEYS[:3], 9)), {})
    assert sorted(cores(found).values()) == [333, 333, 334]


def test_entries_fill_in_proportion_to_their_spare() -> None:
    """Demand that could go anywhere leaves all entries filled to the same ratio."""
    found = assign([demand("a", 30, anywhere([E0, E1]))], cpu({E0: 10, E1: 50}), {})
    assert cores(found) == {E0: 5 * SCALE, E1: 25 * SCALE}
    assert found.jobs == {E0: 5, E1: 25}


def test_a_job_counts_once_however_many_sites_it_matches() -> None:
    """Ten units that match six entries are ten units of bottleneck."""
    found = assign([demand("a", 10, anywhere(KEYS))], cpu(dict.fromkeys(KEYS, 100)), {})
    assert sum(cores(found).values()) == 10 * SCALE


def test_demand_that_can_go_elsewhere_makes_room_for_demand_that_cannot() -> None:
    """The assignment is the largest, although first come, first served would not be."""
    classes = [demand("a", 10, anywhere([E0, E1])), demand("b", 10, anywhere([E0]))]
    found = assign(classes, cpu({E0: 10, E1: 10}), {})
    assert cores(found) == {E0: 10 * SCALE, E1: 10 * SCALE}
    assert share(found, "a") == share(found, "b") == Share(0, 10 * SCALE, 0)


def test_berths_go_first() -> None:
    """What free slots and pending pilots take is no bottleneck, although spare has room."""
    found = assign([demand("a", 10, anywhere([E0]), {B0: edge(10)})], cpu({E0: 100}), {B0: Need(7)})
    assert cores(found) == {E0: 3 * SCALE}
    assert found.free == {B0: 7}
    assert share(found, "a") == Share(7 * SCALE, 3 * SCALE, 0)


def test_a_berth_takes_the_class_that_spare_cannot() -> None:
    """Berths are filled by whom leaves the most for spare capacity."""
    classes = [demand("a", 10, anywhere([E0]), {B1: edge(10)}), demand("b", 10, {}, {B1: edge(10)})]
    found = assign(classes, cpu({E0: 10}), {B1: Need(10)})
    assert (share(found, "a"), share(found, "b")) == (
        Share(0, 10 * SCALE, 0),
        Share(10 * SCALE, 0, 0),
    )


def test_an_entry_takes_whole_jobs() -> None:
    """A job of 8 units leaves the rest of an entry with 11 spare empty, whoever else is alike."""
    eight = {E0: edge(1, 8)}
    alone = assign([demand("a", 80, eight, own=Need(8))], cpu({E0: 11}), {})
    assert cores(alone) == {E0: 8 * SCALE}
    two = [demand("a", 80, eight, own=Need(8)), demand("b", 9, {**eight, E1: edge(0, 8)})]
    assert cores(assign(two, cpu({E0: 11, E1: 1}), {}))[E0] == 8 * SCALE


def test_a_job_takes_other_units_at_other_entries() -> None:
    """What is assigned counts as what it takes there; what is left, as the least anywhere."""
    choice = {E0: edge(1, 8), E1: edge(4, 5)}
    found = assign([demand("a", 9, choice, own=Need(5))], cpu({E0: 8, E1: 20}), {})
    assert cores(found) == {E0: 8 * SCALE, E1: 20 * SCALE}
    assert share(found, "a") == Share(0, 28 * SCALE, 20 * SCALE)


def test_no_entry_is_preferred_because_jobs_waste_more_of_it() -> None:
    """Where jobs take 8 units each or 1, both entries get some, to the same ratio."""
    found = assign([demand("a", 10, {E0: edge(10, 8), E1: edge(10)})], cpu({E0: 80, E1: 10}), {})
    assert found.jobs == {E0: 5, E1: 5}


def test_jobs_with_gpus_take_cores_and_gpus_together() -> None:
    """Four jobs of 8 cores and a GPU, cores for one: one GPU is a bottleneck, not four."""
    found = assign(
        [demand("a", 4, {E0: edge(1, 8, 1)}, own=Need(8, 1))], {"cpu": {E0: 8}, "gpu": {E0: 4}}, {}
    )
    assert found.units == {(E0, "cpu"): 8 * SCALE, (E0, "gpu"): SCALE}
    assert share(found, "a", "gpu") == Share(0, SCALE, 3 * SCALE)


def test_jobs_with_and_without_gpus_share_the_cores() -> None:
    """Both run beside each other, and no core is given twice."""
    classes = [
        demand("gpu", 4, {E0: edge(4, 2, 1)}, own=Need(2, 1)),
        demand("cpu", 50, anywhere([E0])),
    ]
    found = assign(classes, {"cpu": {E0: 20}, "gpu": {E0: 4}}, {})
    assert found.units == {(E0, "cpu"): 20 * SCALE, (E0, "gpu"): 4 * SCALE}
    assert share(found, "cpu") == Share(0, 12 * SCALE, 38 * SCALE)


def test_the_constrained_are_filled_as_far_as_they_go_and_the_rest_evenly() -> None:
    """Where one ratio for all is not feasible, the others are as even as they can be."""
    classes = [demand("a", 2, anywhere([E0])), demand("b", 30, anywhere([E1, E2]))]
    found = assign(classes, cpu({E0: 20, E1: 20, E2: 20}), {})
    assert cores(found) == {E0: 2 * SCALE, E1: 15 * SCALE, E2: 15 * SCALE}


def test_each_ratio_is_the_least_that_the_greater_ones_leave() -> None:
    """What only the first takes fills it to 8 of 10; the rest is spread over two, 4 and 2."""
    for first, second, third in itertools.permutations(KEYS[:3]):
        found = assign(
            [
                demand("a", 8, anywhere([first])),
                demand("b", 4, anywhere([first, second])),
                demand("c", 2, anywhere([second, third])),
            ],
            cpu(dict.fromkeys(KEYS[:3], 10)),
            {},
        )
        assert found.jobs == {first: 8, second: 4, third: 2}


def test_alike_demand_of_two_schedds_gets_the_same_proportion() -> None:
    """Classes that differ in their number of jobs only share in that proportion."""
    both = anywhere([E0, E1])
    found = assign([demand("a", 10, both), demand("b", 30, both)], cpu({E0: 12, E1: 8}), {})
    assert share(found, "a") == Share(0, 5 * SCALE, 5 * SCALE)
    assert share(found, "b") == Share(0, 15 * SCALE, 15 * SCALE)


def test_scarce_room_is_shared_by_alike_classes() -> None:
    """When not all fits, alike classes are served alike, not first come first served."""
    classes = [demand(k, 10, anywhere([E0]), {B1: edge(10)}) for k in "abcd"]
    found = assign(classes, cpu({E0: 20}), {B1: Need(10)})
    assert set(found.classes.values()) == {Share(2500, 5000, 2500)}


def test_a_possible_match_that_carries_is_uncertain() -> None:
    """Only entries that get any of the uncertain jobs are."""
    sure, maybe = demand("a", 5, anywhere([E0])), demand("b", 5, anywhere([E1]))
    maybe = maybe._replace(possible=frozenset((E0, E1)))
    found = assign([sure, maybe], cpu({E0: 9, E1: 9}), {})
    assert found.uncertain == {(E1, "cpu")}


@pytest.mark.parametrize("huge", [4_000_001, 40_000_001, 4_000_000_001])
def test_huge_pools_are_exact(huge: int) -> None:
    """No number of units is too large, and none is lost."""
    found = assign([demand("a", huge, anywhere([E0, E1], huge))], cpu({E0: huge, E1: huge}), {})
    assert sum(cores(found).values()) == huge * SCALE
    assert abs(cores(found)[E0] - cores(found)[E1]) <= SCALE


def test_keys_of_classes_must_differ() -> None:
    """Two classes of one key would hide each other's share."""
    with pytest.raises(ValueError, match="differ"):
        assign([demand("a", 1, {}), demand("a", 2, {})], cpu({}), {})


@pytest.mark.usefixtures("_solved")
def test_many_different_ratios_are_found_at_once() -> None:
    """A hundred entries, each with a ratio and demand of its own, are divided right."""
    keys = [EntryKey("s", f"{i:03}") for i in range(100)]
    classes = [demand(f"{i:03}", i, anywhere([key])) for i, key in enumerate(keys)]
    found = assign(classes, cpu(dict.fromkeys(keys, 100)), {})
    assert cores(found) == {key: i * SCALE for i, key in enumerate(keys)}


@pytest.fixture(scope="module", params=["whole", "by columns", "with stops"])
def _solved(request: pytest.FixtureRequest) -> Iterator[None]:
    """The program is given to HiGHS at once, or one edge of each bundle after the other.

    HiGHS may stop on the way, once or twice before each solution.
    """
    stops = itertools.cycle((True, False, True, True, False))

    class Stopping(program._silent_solver()):  # type: ignore[misc]
        def run(self) -> object:
            self.setOptionValue("simplex_iteration_limit", 0 if next(stops) else 2**31 - 1)
            return super().run()

    with pytest.MonkeyPatch.context() as patch:
        if request.param != "whole":
            patch.setattr(program, "_ALL_AT_ONCE", 0)
            patch.setattr(program, "_AT_ONCE", 1)
        if request.param == "with stops":
            patch.setattr(program, "_silent_solver", lambda: Stopping)
        yield


# --- random pools against what has nothing in common with it

Pool = tuple[list[DemandClass], Spare, dict[Berth, Need]]


@st.composite
def pools(draw: st.DrawFn, *, jobs: int = 12, alike: bool = False, keys: int = 4) -> Pool:
    """Draw a small pool; ``alike``: a job takes one unit everywhere, and no GPUs."""
    there = KEYS[: draw(st.integers(1, keys))]
    units = st.integers(0, jobs)
    spare: Spare = {
        "cpu": draw(st.dictionaries(st.sampled_from(there), units)),
        "gpu": {} if alike else draw(st.dictionaries(st.sampled_from(there), st.integers(0, 4))),
    }
    free = {
        Berth(key, "main"): Need(amount, draw(st.integers(0, 2)))
        for key, amount in draw(
            st.dictionaries(st.sampled_from(there), st.integers(1, 9), max_size=2)
        ).items()
    }
    takes = st.just(1.0) if alike else st.sampled_from([1.0, 1.0, 0.5, 2.0, 4.0, 8 / 3])
    classes = []
    for i in range(draw(st.integers(0, 4))):
        gpu = 0.0 if alike else draw(st.sampled_from([0.0, 0.0, 1.0]))
        needs = {key: Need(draw(takes), gpu) for key in there if draw(st.booleans())}
        edges = {
            key: edge(int(min(room) + 1e-9), *need)
            for key, need in needs.items()
            if (
                room := [
                    spare[r].get(key, 0) / need.units(r) for r in RESOURCES if need.units(r) > 0
                ]
            )
        }
        holds = {}
        for berth, held in free.items():
            if draw(st.booleans()):
                need = Need(draw(takes), gpu)
                most = min(held.units(r) / need.units(r) for r in RESOURCES if need.units(r) > 0)
                holds[berth] = edge(int(most + 1e-9), *need)
        own = min((*needs.values(), *(e.need for e in holds.values())), default=Need(1, gpu))
        classes.append(demand(f"class{i}", draw(units), edges, holds, own))
    return classes, spare, free


def _edges(item: DemandClass) -> list[tuple[EntryKey | Berth, Edge]]:
    return [*item.free.items(), *item.spare.items()]


class Lp:
    """The same rules as dense linear programs, solved entry by entry without prices."""

    def __init__(self, pool: Pool) -> None:
        self.classes, self.spare, self.free = pool
        self.columns: list[tuple[int, EntryKey | Berth, Edge]] = [
            (i, key, item)
            for i, c in enumerate(self.classes)
            for key, item in _edges(c)
            if item.jobs > 0
        ]
        self.a = [[float(i == j) for i, *_ in self.columns] for j in range(len(self.classes))]
        self.b = [float(c.jobs) for c in self.classes]
        self.rows = [(key, r) for r in RESOURCES for key in self.spare[r]]
        for row in self.rows:
            self.a.append(self.takes(*row))
            self.b.append(float(self.spare[row[1]][row[0]]))
        for berth, r in itertools.product(self.free, RESOURCES):
            self.a.append(self.takes(berth, r))
            self.b.append(self.free[berth].units(r))
        self.c = [sum(self.classes[i].own) for i, *_ in self.columns]
        self.to_free = [c * isinstance(k, Berth) for c, (_, k, _) in zip(self.c, self.columns)]  # noqa: B905

    def takes(self, key: EntryKey | Berth, resource: Resource) -> list[float]:
        return [
            e.takes.units(resource) if k == key and type(k) is type(key) else 0.0
            for _, k, e in self.columns
        ]

    def least(
        self, goal: Sequence[float], more: Sequence[tuple[Sequence[float], float]] = ()
    ) -> float:
        """Minimise; ``more`` are further rows.  Columns behind those of edges are free."""
        extra = len(goal) - len(self.columns)
        found = linprog(
            goal,
            A_ub=np.array([*([*row, *[0.0] * extra] for row in self.a), *(row for row, _ in more)]),
            b_ub=np.array([*self.b, *(bound for _, bound in more)]),
            bounds=[*((0, e.jobs) for *_, e in self.columns), *[(None, None)] * extra],
        )
        assert found.success, found.message
        return float(found.fun or 0)

    def absorbed(self) -> float:
        return -self.least([-c for c in self.to_free]) if self.columns else 0.0

    def total(self) -> float:
        """Return what is placed in all, if as much as possible is absorbed."""
        if not self.columns:
            return 0.0
        first = ([-c for c in self.to_free], 1e-9 - self.absorbed())
        return -self.least([-c for c in self.c], [first])

    def most_even(self) -> dict[tuple[EntryKey, Resource], float]:
        """Lower the largest ratio as far as possible, fix whom that leaves no choice, repeat."""
        rows = [(k, r) for k, r in self.rows if self.spare[r][k] > 0 and any(self.takes(k, r))]
        goals = [
            ([-c for c in self.to_free], 1e-8 - self.absorbed()),
            ([-c for c in self.c], 1e-8 - self.total()),
        ]
        fixed: dict[tuple[EntryKey, Resource], float] = {}
        while len(fixed) < len(rows):
            bounds = [
                *(([*row, 0.0], b) for row, b in goals),
                *(([*self.takes(*row), 0.0], level + 1e-8) for row, level in fixed.items()),
            ]
            open_ = [row for row in rows if row not in fixed]
            ratio = self.least(
                [*[0.0] * len(self.columns), 1.0],
                [*bounds, *(([*self.takes(k, r), -float(self.spare[r][k])], 0) for k, r in open_)],
            )
            at_most = [
                *goals,
                *((self.takes(*row), level + 1e-8) for row, level in fixed.items()),
                *((self.takes(k, r), ratio * self.spare[r][k] + 1e-8) for k, r in open_),
            ]
            found = {
                (k, r): ratio * self.spare[r][k]
                for k, r in open_
                if self.least(self.takes(k, r), at_most) > ratio * self.spare[r][k] - 1e-5
            }
            assert found
            fixed |= found
        return fixed


def check(found: Assignment, pool: Pool) -> None:
    """Sums are exact, and nothing is exceeded."""
    classes, spare, _ = pool
    for resource in RESOURCES:
        shares = {key: s for (key, r), s in found.classes.items() if r == resource}
        into = {key: units for (key, r), units in found.units.items() if r == resource}
        assert into.keys() == spare[resource].keys()
        assert sum(into.values()) == sum(s.assigned for s in shares.values())
        assert all(0 <= units <= spare[resource][key] * SCALE for key, units in into.items())
        assert all(min(s) >= 0 for s in shares.values())
        for item in classes:
            if item.own.units(resource) > 0:
                least = item.jobs * item.own.units(resource) * SCALE
                assert sum(shares[item.key]) >= least - 2
    for item in classes:
        if {e.need for e in (*item.spare.values(), *item.free.values())} <= {ONE}:
            assert abs(sum(share(found, item.key)) - item.jobs * SCALE) <= 2


def placed(found: Assignment, classes: Sequence[DemandClass]) -> tuple[float, float]:
    """Return the units of uniform demand absorbed, and in all."""
    shares = [share(found, item.key) for item in classes if item.own.cpu > 0]
    absorbed = sum(s.absorbed for s in shares)
    return absorbed / SCALE, (absorbed + sum(s.assigned for s in shares)) / SCALE


@pytest.mark.usefixtures("_solved")
@settings(max_examples=examples(60))
@given(pools())
def test_the_assignment_is_the_most_even_that_another_program_finds(pool: Pool) -> None:
    """Each entry gets what the rule says, found without prices; room for fractions only."""
    classes, spare, free = pool
    whole = [  # needs of one unit, so that all the spare can be used
        item._replace(spare={k: e._replace(need=ONE, takes=ONE) for k, e in item.spare.items()})
        for item in classes
        if item.own.gpu == 0
    ]
    ours: Pool = (whole, {"cpu": spare["cpu"], "gpu": {}}, free)
    found = assign(*ours)
    even = Lp(ours).most_even()
    for (key, resource), units in found.units.items():
        assert units == pytest.approx(even.get((key, resource), 0) * SCALE, abs=2)


@pytest.mark.usefixtures("_solved")
@settings(max_examples=examples(60))
@given(pools())
def test_sums_are_exact(pool: Pool) -> None:
    """What entries get is what classes are assigned; no entry gets more than its spare."""
    check(assign(*pool), pool)


def best(pool: Pool) -> tuple[float, float]:
    """Try every assignment of whole jobs: the most that is absorbed, and then in all."""
    classes, spare, free = pool

    def ways(item: DemandClass) -> list[tuple[tuple[EntryKey | Berth, Edge, int], ...]]:
        edges = _edges(item)
        counts = itertools.product(*(range(min(e.jobs, item.jobs) + 1) for _, e in edges))
        return [
            tuple((key, e, n) for (key, e), n in zip(edges, count, strict=True) if n)
            for count in counts
            if sum(count) <= item.jobs
        ]

    found = (0.0, 0.0)
    for chosen in itertools.product(*map(ways, classes)):
        used: dict[tuple[EntryKey | Berth, bool, Resource], float] = {}
        absorbed = total = 0.0
        for item, way in zip(classes, chosen, strict=True):
            for key, e, n in way:
                units = n * (item.own.cpu + item.own.gpu)
                absorbed += units * isinstance(key, Berth)
                total += units
                for r in RESOURCES:
                    at = key, isinstance(key, Berth), r
                    used[at] = used.get(at, 0.0) + n * e.takes.units(r)
        if all(
            amount
            <= 1e-9 + (free[key].units(r) if isinstance(key, Berth) else spare[r].get(key, 0))
            for (key, _, r), amount in used.items()
        ):
            found = max(found, (absorbed, total))
    return found


@pytest.mark.usefixtures("_solved")
@settings(max_examples=examples(60))
@given(pools(jobs=4, alike=True, keys=2))
def test_the_assignment_is_as_large_as_whole_jobs_allow(pool: Pool) -> None:
    """Where each job takes a unit, trying everything finds no larger one, and no smaller."""
    found = assign(*pool)
    assert placed(found, pool[0]) == pytest.approx(best(pool), abs=0.002)


@settings(max_examples=examples(60))
@given(pools(jobs=3, keys=2))
def test_fractions_of_jobs_gain_less_than_one_job_a_sink(pool: Pool) -> None:
    """The assignment is never below what whole jobs can do, nor a pilot beyond it."""
    classes, spare, free = pool
    found = assign(*pool)
    own = sum(
        item.own.units(r) * item.jobs * SCALE - share(found, item.key, r).unmatched
        for item in classes
        for r in RESOURCES
        if item.own.units(r) > 0
    )
    edges = [e for item in classes for e in (*item.spare.values(), *item.free.values())]
    sinks = len(free) + sum(len(spare[r]) for r in RESOURCES)
    largest = max((sum(item.own) for item in classes), default=0)
    absorbed, total = best(pool)
    assert own / SCALE >= total - 0.01 or found_more_absorbed(found, absorbed)
    assert own / SCALE <= total + largest * sinks + 0.01 or not edges


def found_more_absorbed(found: Assignment, absorbed: float) -> bool:
    """Return whether fractions absorb more: then less may be left for spare capacity."""
    return sum(s.absorbed for s in found.classes.values()) / SCALE > absorbed


@pytest.mark.usefixtures("_solved")
@settings(max_examples=examples(60))
@given(pools(), st.randoms(use_true_random=False))
def test_the_order_of_the_inputs_does_not_matter(pool: Pool, random: Random) -> None:
    """Shuffled classes, edges and entries give the same assignment, and so does a second call."""
    classes, spare, free = pool

    def shuffled(items: Mapping[T, V]) -> dict[T, V]:
        pairs = list(items.items())
        random.shuffle(pairs)
        return dict(pairs)

    other = [c._replace(spare=shuffled(c.spare), free=shuffled(c.free)) for c in classes]
    random.shuffle(other)
    again = assign(other, {r: shuffled(spare[r]) for r in RESOURCES}, shuffled(free))
    assert again == assign(*pool)
