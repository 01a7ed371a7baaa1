"""The linear program of the demand: how many jobs of each class go to which sink.

Units: jobs are counted, possibly in fractions; needs and room are canonical units.

A sink is the spare capacity of an entry, or a *berth* (free slots and pending pilots of one
frontend group at an entry).  ``flow`` says what is asked of the program, and why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import floor, gcd, lcm
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gwmond.model.facts import Berth, EntryKey
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.need import Need

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_SLACK = 1e-7  # HiGHS is exact to this
_ALL = 1 - 1e-13
_PRICE = 1e-9
_PRIORITY = 1000.0  # of a unit absorbed over a unit assigned
_EFFORT = 500_000  # edges x rounds: a huge pool is evened out less thoroughly
_ROUNDS = 50


class Edge(NamedTuple):
    """At most ``jobs`` of a class may go to a sink; each counts as ``need`` and takes ``takes``.

    They differ at a berth, where what is free is not an empty pilot.
    """

    jobs: int
    need: Need
    takes: Need


class DemandClass(NamedTuple):
    """Idle jobs that take the same of the same sinks.

    ``own`` is what a job counts as where it is not placed: the least that it takes anywhere.
    ``possible`` are entries of which it is not certain that the jobs could run there.
    """

    key: str
    jobs: int
    own: Need
    spare: Mapping[EntryKey, Edge]
    free: Mapping[Berth, Edge]
    possible: frozenset[EntryKey] = frozenset()


_Choice: TypeAlias = tuple[Need, tuple[tuple[int, Edge], ...]]
"""What a job counts as, and its edges by the number of their sink."""


class Bundle(NamedTuple):
    """Classes with the same choice, as one."""

    members: tuple[DemandClass, ...]
    jobs: int


class Program(NamedTuple):
    """The matrix: a column is an edge; rows are bundles, then each sink's cpu, then its gpu.

    Berths come before entries.  ``need`` and ``takes`` have a row for each resource; ``room`` is
    what each sink has of it.
    """

    bundles: Sequence[Bundle]
    berths: Sequence[Berth]
    entries: Sequence[EntryKey]
    source: Ints
    sink: Ints
    most: Floats
    weight: Floats
    need: Floats
    takes: Floats
    room: Floats

    @property
    def assigned(self) -> NDArray[np.bool_]:
        """Whether an edge leads to spare capacity."""
        return self.sink >= len(self.berths)

    @property
    def supply(self) -> Floats:
        """The jobs of each bundle."""
        return np.array([bundle.jobs for bundle in self.bundles], dtype=np.float64)

    def coordinates(self) -> tuple[Floats, Ints, Ints]:
        """Return the values, rows and columns of the matrix."""
        edges = np.arange(len(self.source))
        first, sinks = len(self.bundles), self.room.shape[1]
        values = np.concatenate((np.ones(len(edges)), *self.takes))
        rows = np.concatenate((self.source, first + self.sink, first + sinks + self.sink))
        used = values > 0
        return values[used], rows[used], np.tile(edges, 3)[used]


def build(
    classes: Sequence[DemandClass],
    spare: Mapping[Resource, Mapping[EntryKey, int]],
    free: Mapping[Berth, Need],
) -> Program:
    berths = sorted(free)
    entries = sorted(set().union(*(spare[resource] for resource in RESOURCES)))
    berth_at = {berth: at for at, berth in enumerate(berths)}
    entry_at = {key: at for at, key in enumerate(entries, len(berths))}
    alike: defaultdict[_Choice, list[DemandClass]] = defaultdict(list)
    for item in classes:
        chosen = [(berth_at[at], edge) for at, edge in item.free.items() if at in berth_at]
        chosen += [(entry_at[at], edge) for at, edge in item.spare.items() if at in entry_at]
        chosen = [(at, edge) for at, edge in chosen if edge.jobs > 0]
        if chosen and item.jobs > 0:
            alike[item.own, tuple(sorted(chosen))].append(item)
    bundles: list[Bundle] = []
    table: list[tuple[float, ...]] = []
    for own, edges in sorted(alike):
        members, weight = alike[own, edges], own.cpu + own.gpu
        table += [
            (len(bundles), at, edge.jobs, weight, *edge.need, *edge.takes) for at, edge in edges
        ]
        bundles.append(Bundle(tuple(members), sum(item.jobs for item in members)))
    columns = np.array(table, dtype=np.float64).reshape(len(table), 8).T
    held = [free[berth] for berth in berths]
    room = np.array(
        [
            [need.units(r) for need in held] + [float(spare[r].get(key, 0)) for key in entries]
            for r in RESOURCES
        ]
    ).reshape(len(RESOURCES), len(berths) + len(entries))
    source, sink = columns[0].astype(np.int64), columns[1].astype(np.int64)
    made = Program(
        *(bundles, berths, entries, source, sink),
        *(columns[2], columns[3], columns[4:6], columns[6:8], room),
    )
    return made._replace(room=_usable(made))


def _usable(program: Program) -> Floats:
    """Return the room of each sink, of entries only what whole jobs could use."""
    room = program.room.copy()
    for resource, takes in enumerate(program.takes):
        needs: defaultdict[int, set[float]] = defaultdict(set)
        for sink, value in zip(program.sink.tolist(), takes.tolist(), strict=True):
            if value > 0 and sink >= len(program.berths):
                needs[sink].add(value)
        for sink, values in needs.items():
            step = _step(frozenset(values))
            room[resource, sink] = float(floor(Fraction(room[resource, sink]) / step) * step)
    return room


@lru_cache(maxsize=4096)
def _step(needs: frozenset[float]) -> Fraction:
    """Return the largest amount of which all needs are multiples."""
    exact = [Fraction(need).limit_denominator(100_000) for need in needs]
    whole = lcm(*(need.denominator for need in exact))
    return Fraction(gcd(*(int(need * whole) for need in exact)), whole)


def _solve(
    cost: Floats, matrix: tuple[Floats, Ints, Ints], bound: Floats, most: Floats
) -> tuple[Floats, Floats] | None:
    """Return the solution of a linear program and the prices of its rows; None if it failed."""
    from scipy.optimize import linprog  # noqa: PLC0415 (slow to import; few commands poll)
    from scipy.sparse import coo_array  # noqa: PLC0415

    values, rows, columns = matrix
    sparse: Any = coo_array((values, (rows, columns)), shape=(len(bound), len(cost))).tocsr()
    bounds: Any = np.stack((np.zeros(len(cost)), most), axis=1)
    found = linprog(  # the stubs know neither sparse matrices nor arrays of bounds
        cost,
        A_ub=sparse,
        b_ub=bound,
        bounds=bounds,
        method="highs-ds",
    )
    if found.x is None or found.status != 0:
        return None
    return np.maximum(found.x, 0.0), -found.ineqlin.marginals


def largest(program: Program) -> Floats:
    """Return the jobs of each edge in a largest assignment."""
    worth = program.weight * np.where(program.assigned, 1.0, _PRIORITY)
    bound = np.concatenate((program.supply, *program.room))
    solved = _solve(-worth, program.coordinates(), bound, program.most)
    if solved is None:  # no jobs at all are a solution, so this is HiGHS's fault
        raise ArithmeticError("the linear program of the demand was not solved")
    return solved[0]


def most_even(program: Program, jobs: Floats) -> Floats:
    """Return the jobs of each edge in the most even of the largest assignments.

    ``level`` is the ratio at which a row of an entry is fixed; those of ``open_`` are not yet.
    """
    edges, sinks = len(jobs), program.room.shape[1]
    first = len(program.bundles)
    values, rows, columns = program.coordinates()
    room = np.concatenate(tuple(program.room))
    weight, assigned = program.weight, program.assigned
    totals = [-float((weight * jobs)[part].sum()) * _ALL for part in (~assigned, assigned)]
    of_entry = np.tile(np.arange(sinks) >= len(program.berths), 2)
    filled = np.bincount(rows, minlength=first + 2 * sinks)[first:] > 0
    open_ = of_entry & filled & (room > 0)
    level = np.where(of_entry, 0.0, 1.0)
    fixed = (np.flatnonzero(~assigned), np.flatnonzero(assigned))
    for _ in range(max(1, min(_ROUNDS, _EFFORT // edges))):
        if not open_.any():
            break
        at = np.flatnonzero(open_)
        part, parts = _parts(program, open_)
        last = [np.full(len(e), first + len(room) + i) for i, e in enumerate(fixed)]
        matrix = (
            np.concatenate((values, -room[at], *(-weight[e] for e in fixed))),
            np.concatenate((rows, first + at, *last)),
            np.concatenate((columns, edges + part, *fixed)),
        )
        limit = np.where(open_, 0.0, level * room + _SLACK)
        solved = _solve(
            np.concatenate((np.zeros(edges), np.ones(parts))),
            matrix,
            np.concatenate((program.supply, limit, totals)),
            np.concatenate((program.most, np.ones(parts))),
        )
        if solved is None:
            break
        found, prices = solved
        jobs, ratios = found[:edges], found[edges:][part]
        paid = prices[first + at] * room[at]
        largest = np.zeros(parts)
        np.maximum.at(largest, part, paid)
        done = (paid > _PRICE) | (paid >= largest[part]) | (ratios <= _PRICE)
        level[at[done]] = ratios[done]
        open_[at[done]] = False
    return jobs


def _parts(program: Program, open_: NDArray[np.bool_]) -> tuple[Ints, int]:
    """Return which part of the pool each open row belongs to, and how many parts there are.

    Rows are of one part if demand, or what takes it, connects them.
    """
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    _, rows, columns = program.coordinates()
    first, size = len(program.bundles), program.room.shape[1]
    berth = np.tile(np.arange(size) < len(program.berths), 2)
    joins = np.concatenate((np.zeros(first, dtype=np.bool_), open_ | berth))[rows]
    source = program.source[columns[joins]]
    total = first + 2 * size
    graph = coo_array((np.ones(len(source)), (source, rows[joins])), shape=(total, total))
    _, label = connected_components(graph, directed=False)
    _, part = np.unique(label[first:][open_], return_inverse=True)
    return part, int(part.max()) + 1
