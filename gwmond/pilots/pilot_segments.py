"""A pilot's life, cut where anything begins or ends, and each segment divided.

Units: times are microseconds, amounts are micros (10^-6 of one core, chip or canonical unit for
one second); inside, cores, memory and GPUs are in thousandths, so that sums are exact.

Source of the rules: the 2022 accounting report, "Further clarification of Pilot overhead and
canonical units"; design page, section 3.  In a segment with runs in progress

- ``idle = canonical(C - sum c, M - sum m)``, never below 0, is the pilot's own (overhead);
- the rest goes to the runs in proportion to their cores; where none has cores, by memory;
  where none has memory either, equally;
- of the GPUs, those that runs hold go to them, in proportion to what they hold and never more
  than there are; the others are the pilot's own, and there is no remainder.

Without runs in progress the whole segment is the pilot's own, a canonical unit or not.

The total is C core-seconds (``resource``) or U canonical seconds (``canonical``), of GPUs G
chip-seconds in both.  U is canonical(C, M), and at least 1 where C is (``Step.least``).
Invariants: the parts of a segment sum to its total, none is negative, and the parts of its pieces
sum to its own, wherever it is cut (see shares).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import sub
from typing import NamedTuple

from gwmond.model.facts import Evidence, Size
from gwmond.model.pilot_facts import KINDS, Interval, Kind, Measure, PilotLife, Run, Step
from gwmond.model.shares import MILLI, accrued, cascade, milli
from gwmond.model.times import HOUR_US
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource, canonical, pilot_units

NOTHING = Size(0, 0, 0)
_CPU = [kind for kind in KINDS if kind[0] == "cpu"]


class Parts(NamedTuple):
    """What an interval brought: the pilot's own micros, and those of each run in progress."""

    own: int
    runs: tuple[int, ...]


class Estimated(NamedTuple):
    """Which of ``Estimates`` hold at a time."""

    cpu: bool = False
    gpu: bool = False
    runs: bool = False


class Segment(NamedTuple):
    """A stretch of a pilot's life in which nothing changes.

    ``running`` is sorted by key, ``least`` is that of ``Step``.  ``known`` is false where another
    run may still turn up; ``estimated``: whether the pilot's own time rests on an estimate, of
    CPU and of GPUs, and the canonical time of what runs (see ``Estimates``).
    """

    start_us: int
    end_us: int
    size: Size
    running: tuple[Run, ...]
    known: bool
    estimated: Estimated = Estimated()
    least: int = 1

    @property
    def described(self) -> tuple[object, ...]:
        """All that the division of this segment depends on, besides its times."""
        return self.size, self.least, self.running, self.estimated

    @property
    def finished(self) -> bool:
        """Whether every run in it has an outcome."""
        return all(run.outcome is not None for run in self.running)


def sizes(life: PilotLife) -> list[Step]:
    """Return the resources over time, sorted, the first from the start of the life on."""
    steps = sorted(life.steps) or [Step(life.start_us, NOTHING)]
    return [steps[0]._replace(at_us=min(steps[0].at_us, life.start_us)), *steps[1:]]


def cut(life: PilotLife, window: Interval | None = None) -> list[Segment]:
    """Return the segments of a life, or of the part of it within ``window``, in order.

    Time is cut where a run, a size, an estimate or what is known begins or ends.  What a
    run has outside of the life does not count (clocks of hosts differ).
    """
    start, until = life.start_us, life.effective_end_us
    if window is not None:
        start, until = max(start, window[0]), min(until, window[1])
    if start >= until:
        return []
    steps = sizes(life)
    runs = sorted(life.runs, key=_order)
    lasting = [(run.start_us, until if run.end_us is None else run.end_us, run) for run in runs]
    spans = [span for span in lasting if max(span[0], start) < min(span[1], until)]
    edges = {start, until, life.known_us, *(step.at_us for step in steps)}
    edges.update(edge for begin, end, _ in spans for edge in (begin, end))
    edges.update(
        edge for intervals in life.estimated for interval in intervals for edge in interval
    )
    cuts = sorted(edge for edge in edges if start <= edge <= until)

    waiting = sorted(range(len(spans)), key=lambda i: spans[i][0], reverse=True)
    running: list[int] = []
    segments = []
    current = 0
    for begin, end in pairwise(cuts):
        while current + 1 < len(steps) and steps[current + 1].at_us <= begin:
            current += 1
        running = [i for i in running if spans[i][1] > begin]
        while waiting and spans[waiting[-1]][0] <= begin:
            insort(running, waiting.pop())
        segments.append(
            Segment(
                begin,
                end,
                steps[current].size,
                tuple(spans[i][2] for i in running),
                end <= life.known_us,
                Estimated(*[_covers(intervals, begin) for intervals in life.estimated]),
                steps[current].least,
            )
        )
    return segments


def _covers(intervals: Iterable[Interval], time_us: int) -> bool:
    return any(first <= time_us < last for first, last in intervals)


def evidence(segment: Segment, resource: Resource, measure: Measure) -> list[Evidence]:
    """Return on what amounts rest: the pilot's own first, then those of each running run."""
    by = segment.estimated
    own = by.cpu if resource == "cpu" else by.gpu
    found: list[Evidence] = ["estimated" if own else "measured"]
    sized = by.runs and (resource, measure) == ("cpu", "canonical")
    for run in segment.running:
        outcome = run.outcome
        estimated = sized or (outcome is not None and outcome.evidence == "estimated")
        found.append("estimated" if estimated else "measured")
    return found


def _order(run: Run) -> tuple[object, ...]:
    """Sort by key; what follows only makes the order total, should a key be given twice."""
    end = run.end_us
    return (
        run.key,
        run.start_us,
        (end is None, end or 0),
        run.size,
        (run.outcome is not None, run.outcome or ()),
    )


def idle_units(segment: Segment, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB) -> int:
    """Return the canonical units that are free beside the running runs."""
    cores = milli(segment.size.cores) - sum(milli(a.size.cores) for a in segment.running)
    memory = milli(segment.size.memory_mib) - sum(milli(a.size.memory_mib) for a in segment.running)
    return canonical(cores / MILLI, memory / MILLI, memory_per_unit_mib)


@lru_cache(maxsize=4096)
def total_rate(
    size: Size, resource: Resource, measure: Measure, memory_per_unit_mib: int, least: int = 1
) -> int:
    """Return what a pilot of this size brings, in thousandths of a unit (``least``: see Step)."""
    if resource == "gpu":
        return milli(size.gpus)
    if measure == "resource":
        return milli(size.cores)
    units = pilot_units if least else canonical
    return (
        units(milli(size.cores) / MILLI, milli(size.memory_mib) / MILLI, memory_per_unit_mib)
        * MILLI
    )


class Meter:
    """What a segment has brought up to a time: the pilot's own, and each running run's.

    ``rate`` is that of a segment with nothing running, else of what runs share, in proportion
    to their ``weights``; ``idle`` are the units beside them.  Of GPUs, which are ``free`` to be
    held or not, the first weight is the pilot's own.

    The part of an interval within the segment is the difference of two readings (see shares).
    """

    __slots__ = ("_free", "_idle", "_rate", "_weights")

    def __init__(
        self, rate: int, weights: list[int] | None = None, idle: int = 0, *, free: bool = False
    ) -> None:
        self._rate, self._weights, self._idle, self._free = rate, weights, idle, free

    def readings(self, times_us: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the micros up to some times: the pilot's own first, then those of each run."""
        rate, idle, weights = self._rate, self._idle, self._weights
        if weights is None:
            return [(accrued(rate, at),) for at in times_us]
        if not self._free and len(weights) == 1:  # no other to share with
            return [(idle * at, accrued(rate, at)) for at in times_us]
        if not self._free:
            return [(idle * at, *cascade(accrued(rate, at), weights)) for at in times_us]
        if not any(weights):
            return [(0,) * len(weights)] * len(times_us)
        return [tuple(cascade(accrued(rate, at), weights)) for at in times_us]


def meters(
    segment: Segment, amounts: Iterable[Kind], memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> list[Meter]:
    """Return the meters of some kinds of amounts; those that read the same are the same."""
    size, running = segment.size, segment.running
    idle = idle_units(segment, memory_per_unit_mib) if running else 0
    weights = _weights(segment) if running else None
    made: dict[tuple[Resource, int], Meter] = {}
    found = []
    for resource, measure in amounts:
        rate = total_rate(size, resource, measure, memory_per_unit_mib, segment.least)
        meter = made.get((resource, rate))
        if meter is None:
            if resource == "gpu" and running:
                held = [milli(run.size.gpus) for run in running]
                meter = Meter(rate, [max(0, rate - sum(held)), *held], free=True)
            else:
                meter = Meter(rate - idle * MILLI, weights, idle)
            made[resource, rate] = meter
        found.append(meter)
    return found


def kinds(segment: Segment) -> Sequence[Kind]:
    """Return what a segment's size has: of GPUs only where there are any."""
    return KINDS if segment.size.gpus > 0 else _CPU


def by_hours(interval: Interval) -> tuple[range, list[int]]:
    """Return the hours (``epoch // 3600``) of an interval, and its begin, full hours and end.

    >>> by_hours((3_599_000_000, 3_601_000_000))
    (range(0, 2), [3599000000, 3600000000, 3601000000])
    """
    start, end = interval
    hours = range(start // HOUR_US, -(-end // HOUR_US))
    return hours, [start, *[hour * HOUR_US for hour in hours[1:]], end]


def readings(
    segment: Segment, times_us: Sequence[int], memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> Iterator[tuple[Resource, Measure, list[tuple[int, ...]]]]:
    """Yield of each kind what the segment has brought up to some times (see ``Meter``).

    For the pilot's own and for each running run, in this order; none of it ever falls.
    """
    pairs = kinds(segment)
    last: Meter | None = None
    for (resource, measure), meter in zip(
        pairs, meters(segment, pairs, memory_per_unit_mib), strict=True
    ):
        if meter is not last:
            last, found = meter, list(zip(*meter.readings(times_us), strict=True))
        yield resource, measure, found


def parts(
    segment: Segment,
    interval: Interval,
    resource: Resource,
    measure: Measure,
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> Parts:
    """Divide the amount of ``interval``, which must lie within the segment."""
    [meter] = meters(segment, [(resource, measure)], memory_per_unit_mib)
    before, after = meter.readings(interval)
    own, *shares = map(sub, after, before)
    return Parts(own, tuple(shares))


def _weights(segment: Segment) -> list[int]:
    """Return in which proportion the running runs share cores."""
    by_cores = [milli(run.size.cores) for run in segment.running]
    if any(by_cores):
        return by_cores
    by_memory = [milli(run.size.memory_mib) for run in segment.running]
    return by_memory if any(by_memory) else [1] * len(segment.running)
