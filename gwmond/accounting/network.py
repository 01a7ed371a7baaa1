"""Flow networks of sources and sinks, and the most even maximum flow into some of the sinks.

Units: whole numbers of whatever the caller counts.

The flows that sinks can receive form a polymatroid.  Of all maximum flows the one whose ratios
flow / weight are lexicographically most even is unique, and is found by the decomposition
algorithm (S. Fujishige, Lexicographically optimal base of a polymatroid with respect to a weight
vector, Math. Oper. Res. 5, 1980): try one common ratio; where that is not feasible, a minimum cut
splits sources and sinks into two problems that do not exchange anything, and each is tried again.
All problems of one round are solved in one SciPy call, so there are about as many calls as the
logarithm of the number of different ratios.

SciPy's ``maximum_flow`` takes int32 capacities (it silently wraps larger ones) and holds the GIL
while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from gwmond.accounting.apportion import apportion

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Network:
    """Sources with a supply, edges sorted by (tail, head) with a capacity, and sinks.

    ``direct`` is what flows into a sink from sources that were cut off in an earlier round.
    """

    supply: Ints
    tail: Ints
    head: Ints
    cap: Ints
    direct: Ints


@dataclass(frozen=True, slots=True)
class Flow:
    """A maximum flow by edge and by sink, and its minimum cut nearest to the sources."""

    edge: Ints
    inflow: Ints
    source_side: Bools  # of the sources: on the source side of the cut
    sink_side: Bools  # of the sinks: likewise


def reach(net: Network) -> Ints:
    """Return the most that could arrive at each sink if sources had no bound."""
    sums = net.direct.copy()
    np.add.at(sums, net.head, net.cap)
    return sums


def solve(net: Network, limit: Ints) -> Flow:
    """Return a maximum flow where sink ``j`` takes at most ``limit[j]``.

    A limit above what can arrive is cut down, so only what can really flow must fit int32.
    """
    sources, sinks = len(net.supply), len(limit)
    limit = np.minimum(limit, reach(net))
    last = sources + sinks + 1  # vertex 0 is the source, then sources, sinks, the sink
    out = np.bincount(net.tail, minlength=sources)
    indptr = np.concatenate(
        (
            [0, last - 1],
            last - 1 + np.cumsum(out),
            last - 1 + len(net.cap) + np.arange(1, sinks + 1),
        )
    )
    indptr = np.append(indptr, indptr[-1])
    indices = np.concatenate(
        (np.arange(1, last), net.head + sources + 1, np.full(sinks, last, dtype=np.int64))
    )
    data = np.concatenate((net.supply, net.direct, net.cap, limit)).astype(np.int32)
    graph = csr_array(
        (data, indices.astype(np.int32), indptr.astype(np.int32)), shape=(last + 1, last + 1)
    )
    flow = maximum_flow(graph, 0, last).flow.tocoo()
    used = flow.data > 0
    row = flow.row[used].astype(np.int64)
    col = flow.col[used].astype(np.int64)
    value = flow.data[used].astype(np.int64)

    middle = (row > 0) & (col < last)
    position = np.searchsorted(
        net.tail * sinks + net.head, (row[middle] - 1) * sinks + (col[middle] - sources - 1)
    )
    edge = np.zeros(len(net.cap), dtype=np.int64)
    edge[position] = value[middle]
    begin = np.zeros(last + 1, dtype=np.int64)
    begin[col[row == 0]] = value[row == 0]
    end = np.zeros(last + 1, dtype=np.int64)
    end[row[col == last]] = value[col == last]

    source_side = net.supply > begin[1 : sources + 1]
    sink_side = net.direct > begin[sources + 1 : last]
    forward, backward = edge < net.cap, edge > 0
    count = -1
    while count != (count := int(source_side.sum() + sink_side.sum())):
        sink_side[net.head[forward & source_side[net.tail]]] = True
        source_side[net.tail[backward & sink_side[net.head]]] = True
    return Flow(edge, end[sources + 1 : last], source_side, sink_side)


def fairest(net: Network, weight: Ints, fixed: Ints) -> Ints:
    """Return the most even maximum flow into the sinks that have a weight.

    ``weight`` is both capacity and weight of the sinks to be filled; ``fixed`` is what the other
    sinks must get, which must be feasible.
    """
    chosen = np.zeros_like(weight)
    if not weight.any():
        return chosen
    total = int(solve(net, weight + fixed).inflow.sum() - fixed.sum())
    source_part = np.zeros(len(net.supply), dtype=np.int64)
    sink_part = np.zeros(len(weight), dtype=np.int64)
    parts = {0: total}
    names = 1
    while parts:
        want = np.zeros_like(weight)
        for part, amount in parts.items():
            members = np.flatnonzero((sink_part == part) & (weight > 0))
            want[members] = apportion(amount, [int(w) for w in weight[members]])
        limit = np.where(sink_part >= 0, want + fixed, 0)
        flow = solve(net, limit)
        supply, cap, direct = net.supply.copy(), net.cap.copy(), net.direct.copy()
        open_parts: dict[int, int] = {}
        for part, amount in parts.items():
            sources, sinks = source_part == part, sink_part == part
            missing = int((limit - flow.inflow)[sinks].sum())
            if missing == 0:
                chosen[sinks] = want[sinks]
                source_part[sources], sink_part[sinks] = -1, -1
                continue
            starved = sinks & ~flow.sink_side
            source_part[sources & ~flow.source_side] = names
            sink_part[starved] = names
            open_parts[names] = int(want[starved].sum()) - missing
            open_parts[part] = amount - open_parts[names]
            names += 1
        # The cut: edges from the source side to starved sinks are full, those back are empty.
        same = source_part[net.tail] == sink_part[net.head]
        full = ~same & flow.source_side[net.tail] & ~flow.sink_side[net.head]
        full &= source_part[net.tail] >= 0
        np.subtract.at(supply, net.tail[full], cap[full])
        np.add.at(direct, net.head[full], cap[full])
        cap[~same | (source_part[net.tail] < 0)] = 0
        supply[source_part < 0] = 0
        direct[sink_part < 0] = 0
        net = Network(supply, net.tail, net.head, cap, direct)
        parts = open_parts
    return chosen
