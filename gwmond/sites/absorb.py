"""Free slots and pending pilots, which take jobs without any new request.

Units: canonical units; jobs and pilots are counted; times are seconds.

Source of the rules: design page, section 4.  A free slot of an accepting pilot takes as many jobs
as fit (the minimum over cores, memory and GPUs), if the time left is enough for the walltime of the
job.  A pending pilot counts as an empty one.

What jobs leave of a place that they fill is too little for another of them, but smaller jobs may
fit into the *rest*: beside a job of 5 cores a pilot of 8 cores runs three of 1 core.

The pilots of an entry differ by the frontend group for which they run: their START expressions
differ, and their sizes may.  So places are counted by entry and group (a *berth*).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gwmond.model.facts import Berth, EntryKey, Pilot, Size, Template
from gwmond.model.shares import apportion
from gwmond.model.sizes import units_of
from gwmond.sites.need import Need, footprint


class FreePlace(NamedTuple):
    """A free size, and for how many seconds (None: without limit)."""

    size: Size
    remaining_s: int | None


class Shape(NamedTuple):
    """All of a job that decides whether it fits: its size and its walltime (None: not known)."""

    size: Size
    walltime_s: int | None


Places: TypeAlias = Mapping[Berth, Mapping[FreePlace, int]]
"""By entry and frontend group: how many there are of each place."""

Pending: TypeAlias = Mapping[EntryKey, Mapping[str, int]]
"""Pending pilots of an entry by frontend group; the group is empty where it is not known."""

CHUNK = 250_000  # places x shapes at a time, so that memory stays small
_RESTS = 8  # so many shapes of a berth, the largest, leave a rest that counts


def places(pilots: Iterable[Pilot], pending: Pending, templates: Iterable[Template]) -> Places:
    """Return the places that take jobs without any new request.

    A pending pilot is a place of the size of its group's template; of several templates, of the
    largest of the measured ones (if any is).
    """
    free: defaultdict[Berth, defaultdict[FreePlace, int]] = defaultdict(lambda: defaultdict(int))
    for pilot in pilots:
        if pilot.accepting:
            for size in pilot.free:
                free[Berth(pilot.entry, pilot.group)][FreePlace(size, pilot.remaining_s)] += 1
    for berth, best, count in pending_pilots(pending, templates):
        free[berth][FreePlace(best.size, best.lifetime_s)] += count
    return free


def pending_pilots(
    pending: Pending, templates: Iterable[Template]
) -> Iterator[tuple[Berth, Template, int]]:
    """Yield the size and number of pending pilots whose template is known."""
    by_entry: defaultdict[EntryKey, list[Template]] = defaultdict(list)
    for template in templates:
        by_entry[template.entry].append(template)
    for key, counts in pending.items():
        for group, count in counts.items():
            if count > 0 and (candidates := of_group(by_entry[key], group)):
                yield Berth(key, group), max(candidates, key=_rank), count


def of_group(templates: Sequence[Template], group: str) -> list[Template]:
    """Return the templates of a frontend group; all templates if none is known to be its own."""
    return [template for template in templates if template.group == group] or list(templates)


def _rank(template: Template) -> tuple[object, ...]:
    lifetime = -1 if template.lifetime_s is None else template.lifetime_s
    return (template.evidence == "measured", template.size, lifetime, template.signature)


def pending_by_group(pending: Mapping[EntryKey, int], asked: Pending) -> Pending:
    """Divide each entry's pending pilots among frontend groups, as their ads count them.

    ``pending`` comes from the best source, such as the factory's queue; ``asked`` from the
    glideresource ads, one for each group.  If no ad counts any, the group is not known.
    """
    divided: dict[EntryKey, dict[str, int]] = {}
    for key, count in pending.items():
        groups = sorted((g, n) for g, n in asked.get(key, {}).items() if n > 0) or [("", 1)]
        shares = apportion(count, [n for _, n in groups])
        divided[key] = {group: share for (group, _), share in zip(groups, shares, strict=True)}
    return divided


class Room(NamedTuple):
    """How many jobs of a shape alone the places of a berth take, and what each job takes there.

    A place is divided by how many such jobs fit into it, as an empty pilot is.
    """

    jobs: int
    takes: Need


class Rest(NamedTuple):
    """What jobs of a shape leave of the places of a berth that they fill."""

    berth: Berth
    shape: Shape


class Beside(NamedTuple):
    """``jobs`` fill the places of a berth; so many of each other shape (``fit``) go beside them."""

    jobs: int
    fit: Mapping[Shape, int]


class Absorption(NamedTuple):
    """What berths take of jobs.

    ``holds``: what each shape finds at each berth; ``units``: all that the berths have; ``rests``:
    what fits beside jobs that fill a berth, where anything does.
    """

    holds: Mapping[Shape, Mapping[Berth, Room]]
    units: Mapping[Berth, Need]
    rests: Mapping[Rest, Beside]


def absorption(
    allowed: Mapping[Shape, Iterable[Berth]], free: Places, memory_per_unit_mib: int
) -> Absorption:
    """Return how many jobs of each shape the places take, at the berths where they may run.

    A place that takes any of the jobs has its own canonical units, at least one.

    Remaining time is only compared with the walltimes that occur, so places between two walltimes
    are counted together: the cost is distinct places x shapes, not pilots x groups.
    """
    at: defaultdict[Berth, list[Shape]] = defaultdict(list)
    for shape, berths in allowed.items():
        for berth in berths:
            if berth in free:
                at[berth].append(shape)
    walltimes = sorted({shape.walltime_s for shape in allowed if shape.walltime_s is not None})
    holds: dict[Shape, dict[Berth, Room]] = {shape: {} for shape in allowed}
    units: dict[Berth, Need] = {}
    rests: dict[Rest, Beside] = {}
    for berth, shapes in at.items():
        counted: defaultdict[tuple[Size, int], int] = defaultdict(int)
        for (size, left), count in free[berth].items():
            enough = len(walltimes) if left is None else bisect_right(walltimes, left)
            counted[size, enough] += count
        grid = _grid(counted, shapes, walltimes, memory_per_unit_mib)
        held, everything = _fit(grid)
        rests |= {Rest(berth, shape): beside for shape, beside in _rests(grid, shapes)}
        for shape, hold in zip(shapes, held, strict=True):
            if hold.jobs > 0:
                holds[shape][berth] = hold
        if everything.cpu > 0:
            units[berth] = everything
    return Absorption(holds, units, rests)


class _Grid(NamedTuple):
    """Places (``free``, ``enough``, ``many``, ``own`` units) and shapes (``asked``, ``wall``).

    Walltimes are compared by their rank: a place takes a shape if ``enough`` is at least ``wall``.
    """

    free: NDArray[np.float64]
    enough: NDArray[np.int64]
    many: NDArray[np.float64]
    own: NDArray[np.float64]
    asked: NDArray[np.float64]
    wall: NDArray[np.int64]

    def pieces(self) -> Iterator[_Grid]:
        """Yield some places after the other, with all shapes."""
        rows = max(1, CHUNK // len(self.wall))
        for start in range(0, len(self.own), rows):
            part = slice(start, start + rows)
            yield self._replace(
                free=self.free[part],
                enough=self.enough[part],
                many=self.many[part],
                own=self.own[part],
            )

    def whole(self, free: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many jobs of each shape fit each size, by dimension; infinite: of 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = np.floor_divide(free[:, None, :], self.asked[None, :, :])
        fits[:, self.asked <= 0] = np.inf
        return fits

    @property
    def lasts(self) -> NDArray[np.bool_]:
        """Whether each place lasts as long as each shape."""
        return self.enough[:, None] >= self.wall[None, :]


def _grid(
    counted: Mapping[tuple[Size, int], int],
    shapes: Sequence[Shape],
    walltimes: Sequence[int],
    memory_per_unit_mib: int,
) -> _Grid:
    walls = [0 if s.walltime_s is None else bisect_right(walltimes, s.walltime_s) for s in shapes]
    return _Grid(
        free=np.array([size for size, _ in counted], dtype=np.float64),
        enough=np.array([index for _, index in counted], dtype=np.int64),
        many=np.array(list(counted.values()), dtype=np.float64),
        own=np.array(
            [max(1, units_of(size, "cpu", memory_per_unit_mib)) for size, _ in counted],
            dtype=np.float64,
        ),
        asked=np.array(
            [footprint(shape.size, memory_per_unit_mib) for shape in shapes], dtype=np.float64
        ),
        wall=np.array(walls, dtype=np.int64),
    )


def _rests(grid: _Grid, shapes: Sequence[Shape]) -> Iterator[tuple[Shape, Beside]]:
    """Yield what fits beside jobs of the largest shapes, of each alone, where anything does.

    Jobs with GPUs take the cores that they use, and no others: the rest of these is still there.
    """
    order = [at for at, shape in enumerate(shapes) if shape.size.gpus <= 0]
    order.sort(key=lambda at: (shapes[at].size, grid.wall[at]), reverse=True)
    large = order[:_RESTS] if len(shapes) > 1 else []
    jobs, fit = np.zeros(len(large)), np.zeros((len(large), len(shapes)))
    for piece in grid.pieces() if large else ():
        lasts = piece.lasts
        fills = np.where(lasts, piece.whole(piece.free).min(axis=2), 0.0)
        for index, at in enumerate(large):
            filled = fills[:, at]
            rest = np.maximum(piece.free - filled[:, None] * piece.asked[at], 0.0)
            more = np.where(lasts & (filled[:, None] > 0), piece.whole(rest).min(axis=2), 0)
            jobs[index] += piece.many @ filled
            fit[index] += piece.many @ more
    for at, number, fitting in zip(large, jobs.tolist(), fit.tolist(), strict=True):
        if beside := {shape: int(n) for shape, n in zip(shapes, fitting, strict=True) if n}:
            yield shapes[at], Beside(int(number), beside)


def _fit(grid: _Grid) -> tuple[list[Room], Need]:
    """Return what each shape alone finds in the places, and the units of places that take any."""
    jobs, by_cpu, by_gpu, cpu, gpu = np.zeros((5, len(grid.wall)))
    all_cpu = all_gpu = 0.0
    for piece in grid.pieces():
        free, count, own = piece.free, piece.many, piece.own
        whole = piece.whole(free)
        fits = (whole.min(axis=2) >= 1) & piece.lasts
        number = np.where(fits, count[:, None], 0.0)
        with np.errstate(invalid="ignore"):  # no GPU is asked for: 0 x infinity
            jobs += np.where(fits, count[:, None] * whole.min(axis=2), 0).sum(axis=0)
            by_cpu += np.where(fits, count[:, None] * whole[:, :, :2].min(axis=2), 0).sum(axis=0)
            by_gpu += np.where(fits, count[:, None] * whole[:, :, 2], 0).sum(axis=0)
        cpu += own @ number
        gpu += free[:, 2] @ number
        used = np.where(fits.any(axis=1), count, 0.0)
        all_cpu += float(own @ used)
        all_gpu += float(free[:, 2] @ used)
    sums = (array.tolist() for array in (jobs, cpu, by_cpu, gpu, by_gpu))
    held = list(map(_room, *sums))
    return held, Need(all_cpu, all_gpu)


@lru_cache(65536)
def _room(jobs: float, cpu: float, by_cpu: float, gpu: float, by_gpu: float) -> Room:
    """Return what jobs find; there are few different ones.  ``by_gpu`` is infinite without GPUs."""
    return Room(int(jobs), Need(cpu / by_cpu, gpu / by_gpu) if jobs else Need(0.0))
