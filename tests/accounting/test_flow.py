from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gwmond.accounting.flow import SCALE, Assignment, DemandClass, Share, assign
from gwmond.facts import EntryKey
from tests.examples import examples

KEYS = [EntryKey("site", f"e{i}") for i in range(6)]
E0, E1, E2, E3, E4, E5 = KEYS


def demand(
    key: str, units: int, edges: Mapping[EntryKey, int], absorbers: Mapping[EntryKey, int] = {}
) -> DemandClass:
    return DemandClass(key, units, edges, absorbers)


class Lp:
    """The same flow as a linear program: an independent check with nothing in common."""

    def __init__(
        self,
        classes: Sequence[DemandClass],
        spare: Mapping[EntryKey, int],
        absorb: Mapping[EntryKey, int],
    ) -> None:
        self.edges = [
            (i, "absorb", e, most)
            for i, c in enumerate(classes)
            for e, most in c.absorbers.items()
            if e in absorb
        ] + [
            (i, "spare", e, most)
            for i, c in enumerate(classes)
            for e, most in c.edges.items()
            if e in spare
        ]
        self.sinks = [("absorb", e) for e in absorb] + [("spare", e) for e in spare]
        self.room = [absorb[e] if kind == "absorb" else spare[e] for kind, e in self.sinks]
        rows = [[float(i == j) for i, *_ in self.edges] for j in range(len(classes))]
        rows += [self.into(sink) for sink in self.sinks]
        self.a_ub = np.array(rows).reshape(len(rows), len(self.edges))
        self.b_ub = np.array([*(c.units for c in classes), *self.room], dtype=float)
        self.bounds: list[tuple[float, float | None]] = [(0, most) for *_, most in self.edges]

    def into(self, *sinks: tuple[str, EntryKey]) -> list[float]:
        return [float((kind, e) in sinks) for _, kind, e, _ in self.edges]

    def maximum(
        self, goal: Sequence[float], equal: Sequence[tuple[Sequence[float], float]] = ()
    ) -> float:
        if not self.edges:
            return 0.0
        found = linprog(
            -np.array(goal),
            A_ub=self.a_ub,
            b_ub=self.b_ub,
            A_eq=np.array([row for row, _ in equal]) if equal else None,
            b_eq=np.array([value for _, value in equal]) if equal else None,
            bounds=self.bounds,
        )
        assert found.success, found.message
        return -float(found.fun or 0)

    def absorbed(self) -> float:
        return self.maximum(self.into(*(s for s in self.sinks if s[0] == "absorb")))

    def total(self) -> float:
        return self.maximum(self.into(*self.sinks))

    def most_even(self) -> dict[EntryKey, float]:
        """Raise the smallest ratio as far as it goes, freeze who can not go on, and repeat."""
        spares = [s for s in self.sinks if s[0] == "spare"]
        room = dict(zip(self.sinks, self.room, strict=True))
        open_, fixed = set(spares), dict[tuple[str, EntryKey], float]()
        if not self.edges:
            return {e: 0.0 for _, e in spares}
        a, t = self.absorbed(), self.total()
        # one more variable: the common ratio
        a_ub = np.hstack([self.a_ub, np.zeros((len(self.a_ub), 1))])
        whole = [
            ([*self.into(*self.sinks), 0.0], t),
            ([*self.into(*(s for s in self.sinks if s[0] == "absorb")), 0.0], a),
        ]

        def solve(goal: list[float], at_least: dict[tuple[str, EntryKey], float]) -> float:
            more, bound = [], []
            for s in spares:
                row = [-x for x in self.into(s)]
                if s in fixed:
                    more.append([*row, 0.0])
                    bound.append(-fixed[s] + 1e-9)
                elif s in at_least:
                    more.append([*row, 0.0])
                    bound.append(-at_least[s] + 1e-9)
                else:
                    more.append([*row, float(room[s])])
                    bound.append(0.0)
            found = linprog(
                -np.array(goal),
                A_ub=np.vstack([a_ub, np.array(more)]),
                b_ub=np.concatenate([self.b_ub, bound]),
                A_eq=np.array([row for row, _ in whole]),
                b_eq=np.array([value for _, value in whole]),
                bounds=[*self.bounds, (0, None)],
            )
            assert found.success, found.message
            return -float(found.fun or 0)

        while open_:
            ratio = solve([0.0] * len(self.edges) + [1.0], {})
            floor = {s: ratio * room[s] for s in open_}
            stuck = [s for s in open_ if solve([*self.into(s), 0.0], floor) < floor[s] + 1e-5]
            assert stuck
            for s in stuck:
                fixed[s] = floor[s]
            open_ -= set(stuck)
        return {e: fixed["spare", e] for _, e in spares}


@st.composite
def networks(
    draw: st.DrawFn, most: int = 30
) -> tuple[list[DemandClass], dict[EntryKey, int], dict[EntryKey, int]]:
    keys = KEYS[: draw(st.integers(1, len(KEYS)))]
    units = st.integers(0, most)
    spare = draw(st.dictionaries(st.sampled_from(keys), units))
    absorb = draw(st.dictionaries(st.sampled_from(keys), units))
    classes = []
    for i in range(draw(st.integers(0, 6))):
        edges = draw(st.dictionaries(st.sampled_from(keys), units))
        absorbers = draw(st.dictionaries(st.sampled_from(keys), units))
        classes.append(DemandClass(f"class{i}", draw(units), edges, absorbers))
    return classes, spare, absorb


def test_demand_without_room_and_room_without_demand_flow_nothing() -> None:
    """No classes, no room, or no edges give an empty flow, not an error."""
    assert assign([], {}, {}).total_assigned == 0
    assert assign([], {E0: 5}, {}).entries == {E0: 0}
    lonely = assign([demand("a", 5, {E0: 5})], {}, {E0: 5})
    assert (lonely.total_assigned, lonely.total_absorbed) == (0, 0)
    assert lonely.classes == {"a": Share(0, 0)}


def test_one_unit_is_shared_among_equal_entries() -> None:
    """One unit that fits three equal entries is divided in three, exactly."""
    found = assign([demand("a", 1, {E0: 1, E1: 1, E2: 1})], {E0: 9, E1: 9, E2: 9}, {})
    assert sorted(found.entries.values()) == [333, 333, 334]
    assert found.total_assigned == SCALE


def test_entries_fill_in_proportion_to_their_spare() -> None:
    """Demand that could go anywhere leaves all entries filled to the same ratio."""
    found = assign([demand("a", 30, {E0: 30, E1: 30})], {E0: 10, E1: 50}, {})
    assert found.entries == {E0: 5 * SCALE, E1: 25 * SCALE}


def test_a_job_counts_once_however_many_sites_it_matches() -> None:
    """Ten units that match six entries are ten units of bottleneck."""
    found = assign([demand("a", 10, dict.fromkeys(KEYS, 10))], dict.fromkeys(KEYS, 100), {})
    assert found.total_assigned == 10 * SCALE


def test_demand_that_can_go_elsewhere_makes_room_for_demand_that_can_not() -> None:
    """The flow is maximal although first come, first served would not be."""
    classes = [demand("a", 10, {E0: 10, E1: 10}), demand("b", 10, {E0: 10})]
    found = assign(classes, {E0: 10, E1: 10}, {})
    assert found.entries == {E0: 10 * SCALE, E1: 10 * SCALE}
    assert found.classes == {"a": Share(0, 10 * SCALE), "b": Share(0, 10 * SCALE)}
    carried = {bundle.keys: bundle.entries for bundle in found.bundles}
    assert carried == {("a",): {E1: 10 * SCALE}, ("b",): {E0: 10 * SCALE}}


def test_what_can_not_be_divided_goes_to_the_same_sink_in_any_order() -> None:
    """The thousandth of a unit that is left over has one place, for spare and absorbers alike."""
    classes = [demand("a", 2, dict.fromkeys(KEYS[:3], 2), dict.fromkeys(KEYS[:3], 1))]
    room = dict.fromkeys(KEYS[:3], 9)
    found = assign(classes, room, dict.fromkeys(KEYS[:3], 1))
    assert found.absorbed == {E0: 667, E1: 667, E2: 666}
    for keys in ([E2, E1, E0], [E1, E2, E0]):
        assert assign(classes, room, dict.fromkeys(keys, 1)).absorbed == found.absorbed
        alone = assign([classes[0]._replace(absorbers={})], dict.fromkeys(keys, 9), {})
        assert alone.entries == {E0: 667, E1: 667, E2: 666}


def test_absorbers_go_first() -> None:
    """What free slots and pending pilots take is no bottleneck, although spare has room."""
    found = assign([demand("a", 10, {E0: 10}, {E0: 10})], {E0: 100}, {E0: 7})
    assert found.absorbed == {E0: 7 * SCALE}
    assert found.entries == {E0: 3 * SCALE}
    assert found.classes == {"a": Share(7 * SCALE, 3 * SCALE)}


def test_an_absorber_takes_the_class_that_spare_can_not() -> None:
    """Absorbers are saturated by whom leaves the most for spare capacity."""
    classes = [demand("a", 10, {E0: 10}, {E1: 10}), demand("b", 10, {}, {E1: 10})]
    found = assign(classes, {E0: 10}, {E1: 10})
    assert found.total_absorbed == 10 * SCALE
    assert found.total_assigned == 10 * SCALE
    assert found.classes == {"a": Share(0, 10 * SCALE), "b": Share(10 * SCALE, 0)}


def test_an_edge_carries_no_more_than_it_says() -> None:
    """Whole jobs only: an edge of 8 leaves the rest of an entry with 11 spare empty."""
    found = assign([demand("a", 80, {E0: 8})], {E0: 11}, {})
    assert found.entries == {E0: 8 * SCALE}


def test_the_constrained_are_filled_as_far_as_they_go_and_the_rest_evenly() -> None:
    """Where one ratio for all is not feasible, the flow splits at the minimum cut."""
    classes = [demand("a", 2, {E0: 2}), demand("b", 30, {E1: 30, E2: 30})]
    found = assign(classes, {E0: 20, E1: 20, E2: 20}, {})
    assert found.entries == {E0: 2 * SCALE, E1: 15 * SCALE, E2: 15 * SCALE}


def test_alike_demand_of_two_schedds_gets_the_same_proportion() -> None:
    """Classes that differ by a factor only share what flows in that proportion."""
    found = assign(
        [demand("a", 10, {E0: 10, E1: 10}), demand("b", 30, {E0: 30, E1: 30})],
        {E0: 120, E1: 80},
        {E0: 8},
    )
    assert found.classes == {"a": Share(0, 10 * SCALE), "b": Share(0, 30 * SCALE)}
    (bundle,) = found.bundles
    assert (bundle.keys, bundle.weights) == (("a", "b"), (10, 30))
    assert bundle.entries == {E0: 24 * SCALE, E1: 16 * SCALE}


def test_scarce_room_is_shared_by_alike_classes() -> None:
    """When not all fits, alike classes are served alike, not first come first served."""
    classes = [demand(k, 10, {E0: 10}, {E1: 10}) for k in "abcd"]
    found = assign(classes, {E0: 20}, {E1: 10})
    assert set(found.classes.values()) == {Share(2500, 5000)}


def test_more_units_than_int32_holds_at_full_scale() -> None:
    """Huge pools are computed with a coarser grain, and totals stay exact."""
    for huge in (4_000_001, 40_000_001, 400_000_001):
        found = assign([demand("a", huge, {E0: huge, E1: huge})], {E0: huge, E1: huge}, {})
        assert found.total_assigned == huge * SCALE
        uneven = abs(found.entries[E0] - found.entries[E1])
        assert uneven == (0 if huge < 100_000_000 else SCALE)
    three = dict.fromkeys(KEYS[:3], 2_000_000)
    assert assign([demand("a", 6_000_000, three)], three, {}).total_assigned == 6_000_000 * SCALE
    wide = assign([demand("a", 7, {E0: 7, E1: 7})], {E0: 10**10, E1: 6 * 10**10}, {E2: 10**12})
    assert wide.entries == {E0: 1 * SCALE, E1: 6 * SCALE}
    with pytest.raises(ValueError, match="too many"):
        assign([demand("a", 2**31, {E0: 2**31})], {E0: 2**31}, {})


def test_keys_of_classes_must_differ() -> None:
    """Two classes of one key would hide each other's share."""
    with pytest.raises(ValueError, match="differ"):
        assign([demand("a", 1, {}), demand("a", 2, {})], {}, {})


def check(
    found: Assignment,
    classes: Sequence[DemandClass],
    spare: Mapping[EntryKey, int],
    absorb: Mapping[EntryKey, int],
) -> None:
    assert sum(found.entries.values()) == found.total_assigned
    assert sum(found.absorbed.values()) == found.total_absorbed
    assert sum(share.assigned for share in found.classes.values()) == found.total_assigned
    assert sum(share.absorbed for share in found.classes.values()) == found.total_absorbed
    assert found.total_assigned % SCALE == 0
    assert found.total_absorbed % SCALE == 0
    for key, flow in found.entries.items():
        assert 0 <= flow <= spare[key] * SCALE
        assert flow == sum(bundle.entries.get(key, 0) for bundle in found.bundles)
    for key, flow in found.absorbed.items():
        assert 0 <= flow <= absorb[key] * SCALE
    for item in classes:
        share = found.classes[item.key]
        assert share.absorbed >= 0
        assert share.assigned >= 0
        assert share.absorbed + share.assigned <= item.units * SCALE
        assert share.assigned <= sum(item.edges.values()) * SCALE
        assert share.absorbed <= sum(item.absorbers.values()) * SCALE
    by_key = {item.key: item for item in classes}
    for bundle in found.bundles:
        for name, weight in zip(bundle.keys, bundle.weights, strict=True):
            for entry, flow in bundle.entries.items():
                part = Fraction(flow * weight, sum(bundle.weights))
                assert part <= by_key[name].edges[entry] * SCALE


@settings(max_examples=examples(150))
@given(networks())
def test_the_flow_is_the_maximum_that_a_linear_program_finds(
    network: tuple[list[DemandClass], dict[EntryKey, int], dict[EntryKey, int]],
) -> None:
    """Absorbed and total flow equal those of an independent linear program."""
    classes, spare, absorb = network
    found = assign(classes, spare, absorb)
    check(found, classes, spare, absorb)
    lp = Lp(classes, spare, absorb)
    assert found.total_absorbed == round(lp.absorbed() * SCALE)
    assert found.total_absorbed + found.total_assigned == round(lp.total() * SCALE)


@settings(max_examples=examples(80))
@given(networks())
def test_the_flow_is_the_most_even_that_a_linear_program_finds(
    network: tuple[list[DemandClass], dict[EntryKey, int], dict[EntryKey, int]],
) -> None:
    """Each entry's flow is that of the lexicographically most even ratios."""
    classes, spare, absorb = network
    spare = {key: units for key, units in spare.items() if units > 0}
    found = assign(classes, spare, absorb)
    even = Lp(classes, spare, absorb).most_even()
    for key, flow in found.entries.items():
        assert flow == pytest.approx(even[key] * SCALE, abs=len(spare) + 0.5)


@settings(max_examples=examples(100))
@given(networks(), st.randoms(use_true_random=False))
def test_the_order_of_the_inputs_does_not_matter(
    network: tuple[list[DemandClass], dict[EntryKey, int], dict[EntryKey, int]], random: Random
) -> None:
    """Shuffled classes, edges and entries give the same flow, and so does a second call."""
    classes, spare, absorb = network

    def shuffled(items: Mapping[EntryKey, int]) -> dict[EntryKey, int]:
        pairs = list(items.items())
        random.shuffle(pairs)
        return dict(pairs)

    other = [DemandClass(c.key, c.units, shuffled(c.edges), shuffled(c.absorbers)) for c in classes]
    random.shuffle(other)
    assert assign(other, shuffled(spare), shuffled(absorb)) == assign(classes, spare, absorb)


@settings(max_examples=examples(100))
@given(networks(), st.data())
def test_another_site_never_lowers_a_total(
    network: tuple[list[DemandClass], dict[EntryKey, int], dict[EntryKey, int]], data: st.DataObject
) -> None:
    """With one site more the total does not fall, nor the bottleneck if it absorbs nothing."""
    classes, spare, absorb = network
    new = EntryKey("new", "entry")
    units = st.integers(0, 30)
    more = [
        c._replace(
            edges={**c.edges, new: data.draw(units)},
            absorbers={**c.absorbers, new: data.draw(units)},
        )
        for c in classes
    ]
    before = assign(classes, spare, absorb)
    plain = assign(more, {**spare, new: data.draw(units)}, absorb)
    assert plain.total_absorbed == before.total_absorbed
    assert plain.total_assigned >= before.total_assigned
    both = assign(more, {**spare, new: data.draw(units)}, {**absorb, new: data.draw(units)})
    assert both.total_absorbed >= before.total_absorbed
    assert (
        both.total_absorbed + both.total_assigned >= before.total_absorbed + before.total_assigned
    )


def test_many_different_ratios_still_take_few_rounds() -> None:
    """A hundred entries, each with a ratio of its own, are divided right."""
    keys = [EntryKey("s", f"{i:03}") for i in range(100)]
    classes = [demand(f"{i:03}", i, {key: i}) for i, key in enumerate(keys)]
    found = assign(classes, dict.fromkeys(keys, 100), {})
    assert found.entries == {key: i * SCALE for i, key in enumerate(keys)}
