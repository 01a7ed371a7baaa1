"""Maximum flow of demand to free slots, pending pilots and spare capacity.

Units: what comes in is in whole canonical units, what goes out in 1/``SCALE`` of a unit.

Sources are demand classes (idle jobs); sinks are, for each entry, an *absorber* (free slots of
running pilots and pending pilots) and its *spare capacity*.  Source of the rules: design page,
section 4.

- Absorption is taken off first: ``A`` is the maximum flow to absorbers alone.  The flows that
  sinks can receive form a polymatroid, so every flow which fills the absorbers with ``A`` extends
  to a maximum flow of the whole network: what spare capacity could really have run is
  ``B = maxflow(both) - A``, whichever way the absorbers were filled.
- Among all these maximum flows the one is taken whose ratios flow / spare are lexicographically
  most even (the smallest as large as possible, then the next, ...).  It is unique (see network).
- Absorbers are filled in the same most even way, so that what is reported of them is unique too.

Invariants: all arithmetic is on integers; totals are exact maximum flows (multiples of ``SCALE``);
the ratios are most even up to the rounding to 1/``SCALE`` unit a sink; the result does not depend
on the order of the inputs.  Of classes with different edges the split between *classes* is one of
several possible; classes whose edges are alike up to a factor get the same proportion.

Where a capacity does not fit SciPy's int32, the flow is computed with a coarser grain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gwmond.accounting.apportion import apportion
from gwmond.accounting.network import INT32_MAX, Ints, Network, fairest, reach, solve
from gwmond.facts import EntryKey

SCALE = 1000
"""Results are in 1/SCALE canonical units: fine enough to share one unit among many entries."""


class DemandClass(NamedTuple):
    """Idle jobs which may go to the same sinks, in whole canonical units.

    The value of an edge is the largest number of units that this class may send there.
    """

    key: str
    units: int
    edges: Mapping[EntryKey, int]
    absorbers: Mapping[EntryKey, int]


class Share(NamedTuple):
    """What became of one class's units, in 1/SCALE units."""

    absorbed: int
    assigned: int


class Bundle(NamedTuple):
    """Classes whose edges are alike up to a factor, and their common flow to spare capacity.

    Class ``keys[i]`` carries ``weights[i] / sum(weights)`` of each flow (1/SCALE units).
    """

    keys: tuple[str, ...]
    weights: tuple[int, ...]
    entries: Mapping[EntryKey, int]


class Assignment(NamedTuple):
    """The flow, in 1/SCALE units.

    Invariants: the values of ``entries`` sum to ``total_assigned``, those of ``absorbed`` to
    ``total_absorbed``; so do the shares of ``classes``; no entry gets more than its spare.
    """

    entries: Mapping[EntryKey, int]
    absorbed: Mapping[EntryKey, int]
    classes: Mapping[str, Share]
    bundles: tuple[Bundle, ...]
    total_absorbed: int
    total_assigned: int


class _Merged(NamedTuple):
    """Normalised classes: units, sinks and capacities divided by their greatest divisor."""

    units: int
    sinks: tuple[int, ...]
    caps: tuple[int, ...]


def _merge(
    classes: Iterable[DemandClass],
    absorbers: Mapping[EntryKey, int],
    spares: Mapping[EntryKey, int],
    limits: Sequence[int],
) -> list[tuple[_Merged, list[tuple[str, int]]]]:
    """Return the distinct networks of classes, each with its members and their factors, sorted.

    No edge needs to carry more than its class has or its sink takes, and no class can send more
    than its edges carry.  Classes which then differ by a factor only are one class: a flow of the
    sum splits in proportion, within the bounds of each.
    """
    bundles: dict[_Merged, list[tuple[str, int]]] = {}
    for item in classes:
        found: list[tuple[int, int]] = []
        for index, edges in ((absorbers, item.absorbers), (spares, item.edges)):
            for key, most in edges.items():
                if (sink := index.get(key)) is not None:
                    bound = min(most, item.units, limits[sink])
                    if bound > 0:
                        found.append((sink, bound))
        if not found:
            continue
        found.sort()
        sinks, caps = zip(*found, strict=True)
        units = min(item.units, sum(caps))
        factor = math.gcd(units, *caps)
        merged = _Merged(units // factor, sinks, tuple(cap // factor for cap in caps))
        bundles.setdefault(merged, []).append((item.key, factor))
    return sorted((merged, sorted(members)) for merged, members in bundles.items())


def _network(bundles: Sequence[tuple[_Merged, list[tuple[str, int]]]], sinks: int) -> Network:
    factors = [sum(factor for _, factor in members) for _, members in bundles]
    degree = [len(merged.sinks) for merged, _ in bundles]
    supply = [merged.units * f for (merged, _), f in zip(bundles, factors, strict=True)]
    head = [sink for merged, _ in bundles for sink in merged.sinks]
    cap = [c for merged, _ in bundles for c in merged.caps]
    return Network(
        np.array(supply, dtype=np.int64),
        np.repeat(np.arange(len(bundles), dtype=np.int64), degree),
        np.array(head, dtype=np.int64),
        np.array(cap, dtype=np.int64) * np.repeat(np.array(factors, dtype=np.int64), degree),
        np.zeros(sinks, dtype=np.int64),
    )


def _grain(net: Network, limit: Ints) -> int:
    largest = max(int(a.max(initial=0)) for a in (net.supply, net.cap, limit))
    for grain in (SCALE, SCALE // 10, SCALE // 100, 1):
        if largest * grain <= INT32_MAX:
            return grain
    raise ValueError(f"{largest} canonical units are too many for the flow")


def assign(
    classes: Iterable[DemandClass],
    spare: Mapping[EntryKey, int],
    absorb: Mapping[EntryKey, int],
) -> Assignment:
    """Assign demand to absorbers first, then to spare capacity, as evenly as possible.

    ``spare`` and ``absorb`` are whole canonical units by entry; entries without room may be left
    out.  Keys of classes must differ.
    """
    classes = list(classes)
    absorber_keys = sorted(key for key, units in absorb.items() if units > 0)
    spare_keys = sorted(key for key, units in spare.items() if units > 0)
    limits = [absorb[key] for key in absorber_keys] + [spare[key] for key in spare_keys]
    many = len(absorber_keys)
    bundles = _merge(
        classes,
        {key: i for i, key in enumerate(absorber_keys)},
        {key: many + i for i, key in enumerate(spare_keys)},
        limits,
    )
    shares = {item.key: Share(0, 0) for item in classes}
    if len(shares) != len(classes):
        raise ValueError("keys of demand classes must differ")
    net = _network(bundles, len(limits))
    grain = _grain(net, np.minimum(np.array(limits, dtype=np.int64), reach(net)))
    net = Network(net.supply * grain, net.tail, net.head, net.cap * grain, net.direct)
    is_absorber = np.arange(len(limits)) < many
    weight = np.array(limits, dtype=np.int64) * grain
    nothing = np.zeros_like(weight)
    absorbed = fairest(net, np.where(is_absorber, weight, 0), nothing)
    assigned = fairest(net, np.where(is_absorber, 0, weight), absorbed)
    edge = solve(net, absorbed + assigned).edge * (SCALE // grain)
    return _collect(bundles, shares, net, edge, absorber_keys, spare_keys)


def _collect(
    bundles: Sequence[tuple[_Merged, list[tuple[str, int]]]],
    shares: dict[str, Share],
    net: Network,
    edge: Ints,
    absorber_keys: Sequence[EntryKey],
    spare_keys: Sequence[EntryKey],
) -> Assignment:
    """Sum the flow of the edges by sink and by class."""
    many = len(absorber_keys)
    into = np.zeros(many + len(spare_keys), dtype=np.int64)
    np.add.at(into, net.head, edge)
    ends = np.searchsorted(net.tail, np.arange(len(bundles) + 1))
    out: list[Bundle] = []
    for i, (_, members) in enumerate(bundles):
        heads, flows = net.head[ends[i] : ends[i + 1]], edge[ends[i] : ends[i + 1]]
        factors = [factor for _, factor in members]
        taken = int(flows[heads < many].sum())
        totals = apportion(int(flows.sum()), factors)
        for (key, _), total, part in zip(members, totals, apportion(taken, totals), strict=True):
            shares[key] = Share(part, total - part)
        carried = (heads >= many) & (flows > 0)
        out.append(
            Bundle(
                tuple(key for key, _ in members),
                tuple(factors),
                {
                    spare_keys[head - many]: value
                    for head, value in zip(
                        heads[carried].tolist(), flows[carried].tolist(), strict=True
                    )
                },
            )
        )
    return Assignment(
        entries={key: int(into[many + i]) for i, key in enumerate(spare_keys)},
        absorbed={key: int(into[i]) for i, key in enumerate(absorber_keys)},
        classes=shares,
        bundles=tuple(out),
        total_absorbed=int(into[:many].sum()),
        total_assigned=int(into[many:].sum()),
    )
