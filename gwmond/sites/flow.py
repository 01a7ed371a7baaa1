"""Which idle jobs free slots, pending pilots and spare capacity could have taken.

Units: jobs are counted, possibly in fractions; results are in 1/``SCALE`` canonical unit.

Source of the rules: design page, section 4.  This is a linear program (solved by HiGHS): its
variables are the jobs of each class at each sink, where a sink is the spare capacity of an entry, a
*berth* (free slots and pending pilots of one frontend group at an entry), or the *rest* that large
jobs leave of a berth's places (of 8 cores, 3 beside a job of 5).  A job takes other units at other
entries, and one that needs GPUs takes its cores with them, so this is no flow of one commodity.  In
this order,

1. berths take as much demand as they can: this demand is no bottleneck;
2. spare capacity takes as much of the rest as it can.  Both are counted in the least units that a
   job takes anywhere, so that no entry is preferred because jobs waste more of it;
3. of all such assignments the one is taken which fills entries most evenly: the largest ratio of
   what is assigned to what is spare is as small as possible, then the next, and so on.  Entries
   whose ratio cannot be smaller have a dual price (the complementary slackness of linear programs);
   they are fixed, and the program is solved again for the others.  Parts of the pool that share
   no demand are solved together, so few rounds are needed.

Only whole jobs run: a class sends no entry more jobs than fit into its spare alone, and where the
needs of all classes are multiples of some amount, so is the capacity that they can use.

Classes with the same choice are one; their members share in proportion to their jobs.  Of classes
with different choices the split between *classes* is one of several possible.

Invariants: what entries get sums to what classes are assigned, in whole 1/``SCALE`` units, and no
entry gets more than its spare; the result does not depend on the order of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gwmond.model.entries.evaluation import SCALE
from gwmond.model.facts import Berth, EntryKey
from gwmond.model.shares import apportion
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.need import Need
from gwmond.sites.program import DemandClass, Floats, Program, build, largest, most_even

_FINE = 10**9  # weights of shares are whole numbers of this part
_NOTHING = 1e-6  # of a job
_DIGITS = 5  # of numbers of jobs


class Share(NamedTuple):
    """What became of one class's demand of one resource, in 1/SCALE units; their sum is all."""

    absorbed: int
    assigned: int
    unmatched: int


class Placed(NamedTuple):
    """How many jobs of a class berths take, and how many spare capacity could take."""

    absorbed: float
    assigned: float


NOWHERE = Placed(0.0, 0.0)


class Assignment(NamedTuple):
    """Which jobs could have run where.

    ``placed``: the jobs of each class, by its key; ``units``: 1/SCALE units of each entry's spare
    that jobs could have used, zeros included; ``jobs``: how many jobs those are; ``free``: how many
    each berth takes, and ``taken`` what those of them take that are not beside others, in 1/SCALE
    units; ``uncertain``: entries and resources where a *possible* match carries any.
    """

    units: Mapping[tuple[EntryKey, Resource], int]
    classes: Mapping[tuple[str, Resource], Share]
    jobs: Mapping[EntryKey, float]
    free: Mapping[Berth, float]
    taken: Mapping[tuple[Berth, Resource], int]
    uncertain: frozenset[tuple[EntryKey, Resource]]
    placed: Mapping[str, Placed]


def assign(
    classes: Iterable[DemandClass],
    spare: Mapping[Resource, Mapping[EntryKey, int]],
    free: Mapping[Berth, Need],
) -> Assignment:
    """Assign demand to berths first, then to spare capacity, as evenly as possible.

    ``spare`` are whole canonical units by entry, ``free`` what each berth has.
    """
    classes = sorted(classes, key=lambda item: item.key)
    if len({item.key for item in classes}) != len(classes):
        raise ValueError("keys of demand classes must differ")
    program = build(classes, spare, free)
    jobs = most_even(program, largest(program)) if len(program.source) else np.zeros(0)
    return _collect(program, classes, jobs, spare)


def _collect(
    program: Program,
    classes: Sequence[DemandClass],
    jobs: Floats,
    spare: Mapping[Resource, Mapping[EntryKey, int]],
) -> Assignment:
    """Sum the jobs of the edges by sink and by class, in whole 1/SCALE units."""
    sinks, berths, first = program.room.shape[1], len(program.berths), program.first_entry
    count = np.bincount(program.sink, jobs, sinks).round(_DIGITS).tolist()
    units: dict[tuple[EntryKey, Resource], int] = {}
    shares: dict[tuple[str, Resource], Share] = {}
    taken: dict[tuple[Berth, Resource], int] = {}
    for row, resource in enumerate(RESOURCES):
        amounts = program.need[row] * jobs
        at_berths = np.bincount(program.holder[row], program.takes[row] * jobs, sinks)[:berths]
        for berth, amount in zip(program.berths, (at_berths * SCALE).tolist(), strict=True):
            taken[berth, resource] = int(amount + _NOTHING)
        into = np.bincount(program.sink, amounts, sinks)[first:]
        into = np.minimum(into, program.room[row, first:])
        rounded = _rounded(into.tolist())
        for key, amount in zip(program.entries, rounded, strict=True):
            if (limit := spare[resource].get(key)) is not None:
                units[key, resource] = min(amount, limit * SCALE)
        total = sum(units.get((key, resource), 0) for key in program.entries)
        shares |= _shares(program, classes, jobs, row, resource, total)
    possible = [
        frozenset().union(*(item.possible for item in bundle.members)) for bundle in program.bundles
    ]
    uncertain: set[tuple[EntryKey, Resource]] = set()
    for edge in np.flatnonzero(program.assigned & (jobs > _NOTHING)).tolist():
        key = program.entries[program.sink[edge] - first]
        if key in possible[program.source[edge]]:
            uncertain |= {
                (key, r) for row, r in enumerate(RESOURCES) if program.need[row, edge] > 0
            }
    free = dict(zip(program.berths, count[:berths], strict=True))
    for rest, number in zip(program.rests, count[berths:first], strict=True):
        free[rest.berth] += number
    return Assignment(
        units=units,
        classes=shares,
        jobs=dict(zip(program.entries, count[first:], strict=True)),
        free=free,
        taken=taken,
        uncertain=frozenset(uncertain),
        placed=_placed(program, jobs),
    )


def _placed(program: Program, jobs: Floats) -> dict[str, Placed]:
    """Return how many jobs of each class have a place."""
    many = len(program.bundles)
    free, spare = (
        np.bincount(program.source, np.where(to, jobs, 0), many).round(_DIGITS).tolist()
        for to in (~program.assigned, program.assigned)
    )
    return {
        item.key: Placed(*(placed * item.jobs / bundle.jobs for placed in (absorbed, assigned)))
        for bundle, absorbed, assigned in zip(program.bundles, free, spare, strict=True)
        for item in bundle.members
    }


def _shares(
    program: Program,
    classes: Sequence[DemandClass],
    jobs: Floats,
    row: int,
    resource: Resource,
    assigned: int,
) -> dict[tuple[str, Resource], Share]:
    """Return the fate of each class's demand of one resource; ``assigned`` is their sum."""
    many = len(program.bundles)
    amounts = program.need[row] * jobs
    to_spare = np.bincount(program.source, np.where(program.assigned, amounts, 0), many)
    to_free = np.bincount(program.source, np.where(program.assigned, 0, amounts), many)
    placed = np.minimum(np.bincount(program.source, jobs, many), program.supply)
    keys: list[str] = []
    taken: list[tuple[float, float, float]] = []
    for bundle, *sums in zip(
        program.bundles, to_free.tolist(), to_spare.tolist(), placed.tolist(), strict=True
    ):
        for item in bundle.members:
            if (own := item.own.units(resource)) > 0:
                part = item.jobs / bundle.jobs
                keys.append(item.key)
                left = (bundle.jobs - sums[2]) * part * own
                taken.append((sums[0] * part, sums[1] * part, left))
    shares = {
        (item.key, resource): Share(0, 0, round(item.jobs * item.own.units(resource) * SCALE))
        for item in classes
        if item.own.units(resource) > 0
    }
    idle = [round(sum(amounts) * SCALE) for amounts in taken]
    into = apportion(assigned, [round(spared * _FINE) for _, spared, _ in taken])
    free = _rounded([freed for freed, _, _ in reversed(taken)])[::-1]  # ties the other way round
    for key, whole, absorbed, spared in zip(keys, idle, free, into, strict=True):
        shares[key, resource] = Share(absorbed, spared, max(whole - absorbed - spared, 0))
    return shares


def _rounded(amounts: Sequence[float]) -> list[int]:
    """Return amounts in whole 1/SCALE units, which sum to the rounded sum."""
    total = round(sum(amounts) * SCALE)
    return apportion(total, [round(amount * _FINE) for amount in amounts])
