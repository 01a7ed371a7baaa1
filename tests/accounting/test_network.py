"""The network by itself, on numbers so small that every flow can be tried."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.accounting.network import Ints, Network, fairest, reach, solve
from tests.examples import examples


def network(supply: list[int], edges: dict[tuple[int, int], int], sinks: int) -> Network:
    pairs = sorted(edges)
    return Network(
        np.array(supply, dtype=np.int64),
        np.array([tail for tail, _ in pairs], dtype=np.int64),
        np.array([head for _, head in pairs], dtype=np.int64),
        np.array([edges[pair] for pair in pairs], dtype=np.int64),
        np.zeros(sinks, dtype=np.int64),
    )


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


@st.composite
def networks(draw: st.DrawFn) -> tuple[Network, Ints]:
    sources, sinks = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    pairs = st.tuples(st.integers(0, sources - 1), st.integers(0, sinks - 1))
    edges = draw(st.dictionaries(pairs, st.integers(0, 4), max_size=12))
    supply = draw(st.lists(st.integers(0, 5), min_size=sources, max_size=sources))
    limit = draw(st.lists(st.integers(0, 6), min_size=sinks, max_size=sinks))
    return network(supply, edges, sinks), ints(*limit)


def rank(net: Network, of: set[int]) -> int:
    """The most that can flow into the sinks ``of``, by trying every cut (no flow needed)."""
    sources = range(len(net.supply))
    cuts = chain.from_iterable(combinations(sources, n) for n in range(len(net.supply) + 1))
    supply: list[int] = net.supply.tolist()
    edges: list[tuple[int, int, int]] = np.stack((net.tail, net.head, net.cap), axis=1).tolist()
    return min(
        sum(supply[i] for i in cut)
        + sum(cap for tail, head, cap in edges if tail not in cut and head in of)
        for cut in cuts
    )


def most(net: Network, limit: Ints) -> int:
    """The maximum flow: over all sets of sinks, the least of what reaches them and others take."""
    sinks = range(len(limit))
    sets = chain.from_iterable(combinations(sinks, n) for n in range(len(limit) + 1))
    return min(rank(net, set(of)) + sum(int(limit[j]) for j in sinks if j not in of) for of in sets)


def test_an_empty_network_has_an_empty_flow() -> None:
    """No sources, no edges or no sinks are not an error."""
    for net, limit in (
        (network([], {}, 0), ints()),
        (network([3], {}, 1), ints(5)),
        (network([], {}, 1), ints(5)),
    ):
        assert int(solve(net, limit).inflow.sum()) == 0
        assert int(fairest(net, limit, np.zeros_like(limit)).sum()) == 0


@settings(max_examples=examples(150))
@given(networks())
def test_flow_is_maximal_and_within_bounds(given_: tuple[Network, Ints]) -> None:
    """The flow's value is that of the least cut, and it is a flow."""
    net, limit = given_
    flow = solve(net, limit)
    assert int(flow.inflow.sum()) == most(net, limit) == int(flow.edge.sum())
    assert (flow.edge >= 0).all()
    assert (flow.edge <= net.cap).all()
    assert (flow.inflow <= np.minimum(limit, reach(net))).all()
    out = np.zeros_like(net.supply)
    np.add.at(out, net.tail, flow.edge)
    assert (out <= net.supply).all()
    into = np.zeros_like(limit)
    np.add.at(into, net.head, flow.edge)
    assert (into == flow.inflow).all()


@settings(max_examples=examples(150))
@given(networks(), st.data())
def test_the_fairest_flow_is_a_maximum_with_the_others_as_fixed(
    given_: tuple[Network, Ints], data: st.DataObject
) -> None:
    """It takes all that is left beside the fixed, to the unit, and can flow together with it."""
    net, limit = given_
    chosen = data.draw(st.lists(st.booleans(), min_size=len(limit), max_size=len(limit)))
    some = np.array(chosen, dtype=np.bool_)
    fixed = fairest(net, np.where(some, 0, limit), np.zeros_like(limit))
    even = fairest(net, np.where(some, limit, 0), fixed)
    assert int(fixed.sum()) == most(net, np.where(some, 0, limit))
    assert int((fixed + even).sum()) == most(net, limit)
    assert (even[~some] == 0).all()
    assert (fixed[some] == 0).all()
    assert int(solve(net, fixed + even).inflow.sum()) == int((fixed + even).sum())


@settings(max_examples=examples(100))
@given(networks(), st.sampled_from([60, 3600]))
def test_no_exchange_makes_the_fairest_flow_more_even(
    given_: tuple[Network, Ints], grain: int
) -> None:
    """Moving flow from a fuller sink to an emptier one is impossible, up to the rounding.

    That is the local test of optimality, which is enough on the base of a polymatroid.
    """
    small, weight = given_
    net = Network(small.supply * grain, small.tail, small.head, small.cap * grain, small.direct)
    even = fairest(net, weight * grain, np.zeros_like(weight))
    step = len(weight) + 1
    for rich in np.flatnonzero(even >= step):
        for poor in np.flatnonzero(weight > 0):
            lower = (even[poor] + step) * weight[rich] < (even[rich] - step) * weight[poor]
            if rich != poor and lower:
                moved = even.copy()
                moved[rich] -= step
                moved[poor] += step
                assert int(solve(net, moved).inflow.sum()) < int(moved.sum())


def test_limits_beyond_int32_do_not_wrap() -> None:
    """A sink may take more than int32 holds, if no more than that can arrive."""
    net = network([7], {(0, 0): 7, (0, 1): 7}, 2)
    assert solve(net, ints(2**40, 2**40)).inflow.sum() == 7
    assert fairest(net, ints(10**12, 6 * 10**12), ints(0, 0)).tolist() == [1, 6]
