"""What would absorb demand without any new request: free slots and pending pilots.

Units: canonical units are whole; jobs and pilots are counted; times are seconds.

Source of the rules: design page, section 4.  A free slot of an accepting pilot takes as many jobs
as fit, the least over cores, memory and GPUs, if the time left suffices for the job's walltime.  A
pending pilot counts as an empty one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from gwmond.accounting.resources import need_of, units_of
from gwmond.facts import EntryKey, Pilot, Size, Template
from gwmond.units import Resource


class Place(NamedTuple):
    """A free size, and for how many seconds (None: without limit)."""

    size: Size
    remaining_s: int | None


class Shape(NamedTuple):
    """All of a job that decides whether it fits: its size and its walltime (None: not told)."""

    size: Size
    walltime_s: int | None


Places: TypeAlias = Mapping[EntryKey, Mapping[Place, int]]
"""By entry: how many there are of each place."""

_CHUNK = 250_000  # places x shapes at a time, so that memory stays small


def places(
    pilots: Iterable[Pilot], pending: Mapping[EntryKey, int], templates: Iterable[Template]
) -> Places:
    """Return the places that take jobs without any new request.

    A pending pilot is a place of the size of its entry's template; of several templates of an
    entry, of the largest of the measured ones (if any is).  Pilots that wait at an entry which is
    down or saturated count as well: they were asked for this demand, and stay in the queue.
    """
    found: defaultdict[EntryKey, defaultdict[Place, int]] = defaultdict(lambda: defaultdict(int))
    for pilot in pilots:
        if pilot.accepting:
            for size in pilot.free:
                found[pilot.entry][Place(size, pilot.remaining_s)] += 1
    best: dict[EntryKey, Template] = {}
    for template in templates:
        old = best.get(template.entry)
        if old is None or _rank(template) > _rank(old):
            best[template.entry] = template
    for key, count in pending.items():
        if count > 0 and key in best:
            found[key][Place(best[key].size, best[key].lifetime_s)] += count
    return found


def _rank(template: Template) -> tuple[object, ...]:
    lifetime = -1 if template.lifetime_s is None else template.lifetime_s
    return (template.evidence == "measured", template.size, lifetime, template.signature)


class Absorption(NamedTuple):
    """``jobs``: how many of a shape alone the entry's places take; ``units``: what they hold."""

    jobs: Mapping[Shape, Mapping[EntryKey, int]]
    units: Mapping[EntryKey, int]


def absorption(
    wanted: Mapping[Shape, Iterable[EntryKey]], found: Places, resource: Resource, q: int
) -> Absorption:
    """Return what the places take of jobs of each shape, at the entries where these may run.

    What a place holds is the most units that one shape alone could put there, and at least its own
    canonical units (nothing if no shape fits): a shape which takes up memory rather than cores is
    so absorbed as far as it really fits.

    Remaining time is only compared to the walltimes that there are, so places which differ by
    less are counted together: the cost is distinct places x shapes, not pilots x groups.
    """
    at: defaultdict[EntryKey, list[Shape]] = defaultdict(list)
    for shape, keys in wanted.items():
        for key in keys:
            if key in found:
                at[key].append(shape)
    walltimes = sorted({shape.walltime_s for shape in wanted if shape.walltime_s is not None})
    jobs: dict[Shape, dict[EntryKey, int]] = {shape: {} for shape in wanted}
    units: dict[EntryKey, int] = {}
    for key, shapes in at.items():
        counted: defaultdict[tuple[Size, int], int] = defaultdict(int)
        for (size, left), count in found[key].items():
            enough = len(walltimes) if left is None else bisect_right(walltimes, left)
            counted[size, enough] += count
        taken, held = _fit(counted, shapes, walltimes, resource, q)
        for shape, many in zip(shapes, taken, strict=True):
            if many > 0:
                jobs[shape][key] = many
        if held > 0:
            units[key] = held
    return Absorption(jobs, units)


def _fit(
    counted: Mapping[tuple[Size, int], int],
    shapes: Sequence[Shape],
    walltimes: Sequence[int],
    resource: Resource,
    q: int,
) -> tuple[list[int], int]:
    """Return how many jobs of each shape alone fit, and the units that the places hold."""
    everything = list(counted.items())
    rows = max(1, _CHUNK // len(shapes))
    taken = np.zeros(len(shapes), dtype=np.int64)
    held = 0
    asked = np.array([_footprint(shape.size, q) for shape in shapes], dtype=np.float64)
    walls = [0 if s.walltime_s is None else bisect_right(walltimes, s.walltime_s) for s in shapes]
    wall = np.array(walls, dtype=np.int64)
    each = np.array([need_of(shape.size, resource, q) for shape in shapes], dtype=np.int64)
    for start in range(0, len(everything), rows):
        some = everything[start : start + rows]
        free = np.array([size for (size, _), _ in some], dtype=np.float64)
        enough = np.array([index for (_, index), _ in some], dtype=np.int64)
        count = np.array([many for _, many in some], dtype=np.int64)
        own = np.array([units_of(size, resource, q) for (size, _), _ in some], dtype=np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = np.floor_divide(free[:, None, :], asked[None, :, :])
        whole[:, asked <= 0] = np.inf
        fitting = np.maximum(whole.min(axis=2), 0).astype(np.int64)
        fitting[enough[:, None] < wall[None, :]] = 0
        most = (fitting * each[None, :]).max(axis=1)
        taken += count @ fitting
        held += int(count @ np.where(most > 0, np.maximum(most, own), 0))
    return taken.tolist(), held


def _footprint(size: Size, q: int) -> Size:
    """Return what one job takes; one that asks for neither cores nor memory takes one unit."""
    if size.cores <= 0 and size.memory_mib <= 0:
        return Size(1, q, size.gpus)
    return size
