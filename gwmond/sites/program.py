"""The linear program of the demand: how many jobs of each class go to which sink.

Units: jobs are counted, possibly in fractions; needs and room are canonical units.

A sink is the spare capacity of an entry, a *berth* (free slots and pending pilots of one frontend
group at an entry), or the *rest* that jobs of one shape leave of a berth's places: its room grows
with the jobs there.  ``flow`` says what is asked of the program, and why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from math import floor, gcd, lcm
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gwmond.model.facts import Berth, EntryKey
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.absorb import Rest
from gwmond.sites.need import Need

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_SLACK = 1e-7  # HiGHS is exact to this
_ALL = 1 - 1e-13
_PRICE = 1e-9
_PRIORITY = 1000.0  # of a unit absorbed over a unit assigned
_EFFORT = 500_000  # edges x rounds: a huge pool is evened out less thoroughly
_ROUNDS = 50
_DUAL, _PRIMAL = 1, 4  # kSimplexStrategyDual and kSimplexStrategyPrimal of HiGHS
_ALL_AT_ONCE = 10_000  # edges
_AT_ONCE = 40  # edges of a bundle
_STEP = 7919  # a prime: bundles begin with other sinks


class Edge(NamedTuple):
    """At most ``jobs`` of a class may go to a sink; each counts ``need`` and occupies ``takes``.

    Both differ at a berth, because its free slots are not empty pilots.
    """

    jobs: int
    need: Need
    takes: Need


class DemandClass(NamedTuple):
    """Idle jobs with the same needs at the same sinks.

    ``own`` is what a job counts as where it is not placed: the least that it takes anywhere.
    ``possible`` are entries of which it is not certain that the jobs could run there.  ``leaves``:
    which part of a rest one job makes at its berth; ``beside``: the rests that take the jobs, of
    which each job takes a part of ``takes.cpu``.
    """

    key: str
    jobs: int
    own: Need
    spare: Mapping[EntryKey, Edge]
    free: Mapping[Berth, Edge]
    possible: frozenset[EntryKey] = frozenset()
    leaves: Mapping[Rest, float] = MappingProxyType({})
    beside: Mapping[Rest, Edge] = MappingProxyType({})


_Choice: TypeAlias = tuple[Need, tuple[tuple[int, Edge], ...], tuple[tuple[int, int, float], ...]]
"""What a job counts as, its edges by their sink's number, and what it leaves: rest, berth, part."""

_Coordinates: TypeAlias = tuple[Floats, Ints, Ints]
"""Values of a matrix, with their rows and columns."""


class Bundle(NamedTuple):
    """Classes with the same choice, as one."""

    members: tuple[DemandClass, ...]
    jobs: int


class Program(NamedTuple):
    """The matrix: a column is an edge; rows are bundles, then each sink's cpu, then its gpu.

    Berths come before rests, and these before entries.  ``need`` and ``takes`` have a row for each
    resource; ``room`` is what each sink has of it, and ``holder`` the sink whose room an edge takes
    of it: the GPUs in a rest are the berth's.  ``leaves`` are the parts of rests that edges to
    berths make, as coordinates.
    """

    bundles: Sequence[Bundle]
    berths: Sequence[Berth]
    rests: Sequence[Rest]
    entries: Sequence[EntryKey]
    source: Ints
    sink: Ints
    most: Floats
    weight: Floats
    need: Floats
    takes: Floats
    room: Floats
    holder: Ints
    leaves: _Coordinates

    @property
    def first_entry(self) -> int:
        """The number of the first sink that is an entry's spare capacity."""
        return len(self.berths) + len(self.rests)

    @property
    def assigned(self) -> NDArray[np.bool_]:
        """Whether an edge leads to spare capacity."""
        return self.sink >= self.first_entry

    @property
    def supply(self) -> Floats:
        """The jobs of each bundle."""
        return np.array([bundle.jobs for bundle in self.bundles], dtype=np.float64)

    def coordinates(self) -> _Coordinates:
        """Return the values, rows and columns of the matrix."""
        edges = np.arange(len(self.source))
        first, sinks = len(self.bundles), self.room.shape[1]
        values = np.concatenate((np.ones(len(edges)), *self.takes))
        held = (first + self.holder[0], first + sinks + self.holder[1])
        rows = np.concatenate((self.source, *held))
        used = values > 0
        parts, rests, by = self.leaves
        return (
            np.concatenate((values[used], -parts)),
            np.concatenate((rows[used], first + rests)),
            np.concatenate((np.tile(edges, 3)[used], by)),
        )


def build(
    classes: Sequence[DemandClass],
    spare: Mapping[Resource, Mapping[EntryKey, int]],
    free: Mapping[Berth, Need],
) -> Program:
    """Return the program; classes with the same choice are one bundle."""
    berths = sorted(free)
    rests = sorted(
        {rest for item in classes for rest in item.beside if rest.berth in free}, key=_rank
    )
    entries = sorted(set().union(*(spare[resource] for resource in RESOURCES)))
    sinks: list[Berth | Rest | EntryKey] = [*berths, *rests, *entries]
    sink_at = {sink: at for at, sink in enumerate(sinks)}
    alike = _alike(classes, sink_at)
    bundles: list[Bundle] = []
    tables: list[Floats] = [np.zeros((0, 8))]  # one for each bundle: tuples would be ten times that
    leaves: list[tuple[float, int, int]] = []
    number = 0
    for own, edges, left_by in sorted(alike):
        members = sorted(alike[own, edges, left_by], key=lambda item: item.key)
        weight = own.cpu + own.gpu
        column_of = {at: column for column, (at, _) in enumerate(edges, number)}
        leaves += [(part, rest, column_of[berth]) for rest, berth, part in left_by]
        table = [
            (len(bundles), at, edge.jobs, weight, *edge.need, *edge.takes) for at, edge in edges
        ]
        tables.append(np.array(table, dtype=np.float64))
        number += len(edges)
        bundles.append(Bundle(tuple(members), sum(item.jobs for item in members)))
    columns = np.concatenate(tables).T
    held = [free[berth] for berth in berths] + [Need(0.0)] * len(rests)
    room = np.array(
        [
            [need.units(r) for need in held] + [float(spare[r].get(key, 0)) for key in entries]
            for r in RESOURCES
        ]
    ).reshape(len(RESOURCES), len(sink_at))
    made_by = np.array(leaves, dtype=np.float64).reshape(len(leaves), 3).T
    source, sink = columns[0].astype(np.int64), columns[1].astype(np.int64)
    home = np.arange(len(sinks))
    home[len(berths) : len(berths) + len(rests)] = [sink_at[rest.berth] for rest in rests]
    made = Program(
        *(bundles, berths, rests, entries, source, sink),
        *(columns[2], columns[3], columns[4:6], columns[6:8], room),
        np.stack((sink, home[sink])),
        (made_by[0], made_by[1].astype(np.int64), made_by[2].astype(np.int64)),
    )
    return made._replace(room=_usable(made))


def _alike(
    classes: Sequence[DemandClass], sink_at: dict[Berth | Rest | EntryKey, int]
) -> Mapping[_Choice, list[DemandClass]]:
    """Return the classes that have jobs and somewhere to go, by their choice among the sinks."""
    alike: defaultdict[_Choice, list[DemandClass]] = defaultdict(list)
    same: defaultdict[tuple[object, ...], list[DemandClass]] = defaultdict(list)
    for item in classes:
        if item.jobs > 0:
            parts = item.spare, item.free, item.leaves, item.beside
            same[item.own, *map(id, parts)].append(item)
    for members in same.values():
        item = members[0]
        edges_to = (*item.free.items(), *item.beside.items(), *item.spare.items())
        chosen = [(sink_at[to], edge) for to, edge in edges_to if to in sink_at and edge.jobs > 0]
        if chosen:
            left = [
                (sink_at[rest], sink_at[rest.berth], part)
                for rest, part in item.leaves.items()
                if rest in sink_at
            ]
            alike[item.own, tuple(sorted(chosen)), tuple(sorted(left))] += members
    return alike


def _rank(rest: Rest) -> tuple[object, ...]:
    """Return what orders rests; a walltime that is not known is the least."""
    walltime = -1 if rest.shape.walltime_s is None else rest.shape.walltime_s
    return (rest.berth, rest.shape.size, walltime)


def _usable(program: Program) -> Floats:
    """Return the room of each sink; at entries only the room that whole jobs could use."""
    room = program.room.copy()
    for resource, takes in enumerate(program.takes):
        needs: defaultdict[int, set[float]] = defaultdict(set)
        whole = program.assigned & (takes > 0)
        sizes, size = np.unique(takes[whole], return_inverse=True)
        for pair in np.unique(program.sink[whole] * len(sizes) + size).tolist():
            needs[pair // len(sizes)].add(float(sizes[pair % len(sizes)]))
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


@cache
def _silent_solver() -> Any:
    """HiGHS's solver that never writes to standard output, which has our JSON, CSV and metrics.

    The constructor of highspy 1.16 prints a banner when it enables callbacks, before any option
    can be set from outside.
    """
    import highspy  # noqa: PLC0415 (few commands poll)

    class Silent(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Silent


def _solve(
    cost: Floats, matrix: _Coordinates, bound: Floats, most: Floats, begin: Ints
) -> tuple[Floats, Floats] | None:
    """Return the solution of a linear program and the prices of its rows; None if it failed.

    HiGHS is given the columns to ``begin`` with, which have a solution, then those that pay at the
    prices of its solution, until none does: this is the whole program's (column generation).
    """
    import highspy  # noqa: PLC0415 (few commands poll)

    values, rows, columns = _in_order(*matrix)
    del matrix  # of a large pool 50 MB
    start = np.searchsorted(columns, np.arange(len(cost) + 1))
    source = rows[start[:-1]]
    solver = _silent_solver()()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("threads", 1)
    program = highspy.HighsLp()
    program.num_row_ = len(bound)
    program.row_lower_, program.row_upper_ = np.full(len(bound), -highspy.kHighsInf), bound
    solver.passModel(program)
    used, new = np.zeros(0, dtype=np.int64), begin
    while len(new):
        sizes = start[new + 1] - start[new]
        first = np.cumsum(sizes) - sizes
        held = np.repeat(start[new] - first, sizes) + np.arange(sizes.sum())
        part = (cost[new], np.zeros(len(new)), most[new], len(held), first, rows[held])
        solver.addCols(len(new), *part, values[held])
        used = np.concatenate((used, new))
        if not _run(solver):
            return None
        solution = solver.getSolution()
        prices = -np.array(solution.row_dual)
        paid = prices[rows]
        paid *= values
        gain = -cost - np.bincount(columns, paid, len(cost))
        gain[used] = 0.0
        new = _few(source, np.flatnonzero(gain > _PRICE), gain)
        solver.setOptionValue("simplex_strategy", _PRIMAL)  # goes on from the solution before
    amounts = np.zeros(len(cost))
    amounts[used] = solution.col_value
    return np.maximum(amounts, 0.0), prices


def _run(solver: Any) -> bool:
    """Solve the program that HiGHS has, and return whether it could.

    It may stop on the way from the solution before (its issues 1528 and 1785), with the status
    Unknown.  Mostly it gets there when it is run again; else it begins anew.
    """
    import highspy  # noqa: PLC0415 (few commands poll)

    for start_anew in (False, False, True):
        if start_anew:
            solver.clearSolver()
            solver.setOptionValue("simplex_strategy", _DUAL)
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return True
    return False


def _in_order(values: Floats, rows: Ints, columns: Ints) -> _Coordinates:
    """Return a matrix column by column."""
    order = np.lexsort((rows, columns))
    return values[order], rows[order], columns[order]


def _few(source: Ints, columns: Ints, rank: Floats) -> Ints:
    """Return a few of these columns of each source, those of the highest rank."""
    order = columns[np.lexsort((-rank[columns], source[columns]))]
    place = np.arange(len(order)) - np.searchsorted(source[order], source[order])
    return np.sort(order[place < _AT_ONCE])


def _spread(program: Program) -> Ints:
    """Return the edges to begin with: all, or of very many a few of each bundle to other sinks."""
    edges = np.arange(len(program.source))
    if len(edges) <= _ALL_AT_ONCE:
        return edges
    turn = (program.sink + program.source) * _STEP % program.room.shape[1]
    return _few(program.source, edges, -turn.astype(np.float64))


def largest(program: Program) -> Floats:
    """Return the jobs of each edge in a largest assignment."""
    worth = program.weight * np.where(program.assigned, 1.0, _PRIORITY)
    bound = np.concatenate((program.supply, *program.room))
    solved = _solve(-worth, program.coordinates(), bound, program.most, _spread(program))
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
    of_entry = np.tile(np.arange(sinks) >= program.first_entry, 2)
    filled = np.bincount(rows, minlength=first + 2 * sinks)[first:] > 0
    open_ = of_entry & filled & (room > 0)
    level = np.where(of_entry, 0.0, 1.0)
    fixed = (np.flatnonzero(~assigned), np.flatnonzero(assigned))
    spread = _spread(program)
    for _ in range(max(1, min(_ROUNDS, _EFFORT // edges))):
        if not open_.any():
            break
        at = np.flatnonzero(open_)
        part, parts = _parts(program, open_)
        last = [np.full(len(e), first + len(room) + i) for i, e in enumerate(fixed)]
        limit = np.where(open_, 0.0, level * room + _SLACK)
        solved = _solve(
            np.concatenate((np.zeros(edges), np.ones(parts))),
            (
                np.concatenate((values, -room[at], *(-weight[e] for e in fixed))),
                np.concatenate((rows, first + at, *last)),
                np.concatenate((columns, edges + part, *fixed)),
            ),
            np.concatenate((program.supply, limit, totals)),
            np.concatenate((program.most, np.ones(parts))),
            np.concatenate((np.union1d(spread, np.flatnonzero(jobs)), edges + np.arange(parts))),
        )
        if solved is None:
            break
        solution, prices = solved
        jobs, ratios = solution[:edges], solution[edges:][part]
        paid = prices[first + at] * room[at]
        largest = np.zeros(parts)
        np.maximum.at(largest, part, paid)
        done = (paid > _PRICE) | (paid >= largest[part]) | (ratios <= _PRICE)
        level[at[done]] = ratios[done]
        open_[at[done]] = False
    return jobs


def _parts(program: Program, open_: NDArray[np.bool_]) -> tuple[Ints, int]:
    """Return the part of the pool to which each open row belongs, and the number of parts.

    Rows belong to one part if demand or sinks connect them.
    """
    _, rows, columns = program.coordinates()
    first, size = len(program.bundles), program.room.shape[1]
    free = np.tile(np.arange(size) < program.first_entry, 2)
    joins = np.concatenate((np.zeros(first, dtype=np.bool_), open_ | free))[rows]
    source = program.source[columns[joins]]
    total = first + 2 * size
    ends, label = (source, rows[joins]), np.arange(total)
    while True:  # each end of an edge takes the lesser label, which then takes its own label
        before = label
        lesser = np.minimum(*(label[end] for end in ends))
        label = label.copy()
        for end in ends:
            np.minimum.at(label, end, lesser)
        label = label[label]
        if (label == before).all():
            break
    _, part = np.unique(label[first:][open_], return_inverse=True)
    return part, int(part.max()) + 1
