"""A pilot's life, cut where anything begins or ends, and each segment divided.

Units: times are microseconds, amounts are micros (10^-6 of one core, chip or canonical unit for
one second); inside, cores, memory and GPUs are in thousandths, so that sums are exact.

Source of the rules: the 2022 accounting report, "Further clarification of Pilot overhead and
canonical units"; design page, section 3.  In a segment with runs in progress

- ``idle = canonical(C - sum c, M - sum m)``, never below 0, is the pilot's own (overhead);
- the rest goes to the runs in proportion to their cores; where none has cores, by memory;
  where none has memory either, equally;
- a run that only sends its output, and whose pilot gives its cores to the next job meanwhile, is
  in progress no more (``Run.sends_us``);
- of the GPUs, those that runs hold go to them, in proportion to what they hold and never more
  than there are; the others are the pilot's own, and there is no remainder.

Without runs in progress the whole segment is the pilot's own, a canonical unit or not.

The total is C core-seconds (``resource``) or U canonical seconds (``canonical``), of GPUs G
chip-seconds in both.  U is canonical(C, M), and at least 1 where C is (``SizeStep.least``).
Invariants: the parts of a segment sum to its total, none is negative, and the parts of its pieces
sum to its own, wherever it is cut (see shares).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from gwmond.model.facts import Size
from gwmond.model.pilot_life import KINDS, Interval, Kind, Measure, PilotLife, Run, SizeStep
from gwmond.model.shares import MILLI, accrued, cascade, milli
from gwmond.model.times import HOUR_US
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource, canonical, pilot_units

NOTHING = Size(0, 0, 0)
_CPU = tuple(kind for kind in KINDS if kind[0] == "cpu")


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

    ``running`` is sorted by key, ``least``: see ``SizeStep``.  ``known`` is false where another
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


def sizes(life: PilotLife) -> list[SizeStep]:
    """Return the resources over time, sorted, the first from the start of the life on."""
    steps = sorted(life.steps) or [SizeStep(life.start_us, NOTHING)]
    if steps[0].at_us > life.start_us:
        steps[0] = steps[0]._replace(at_us=life.start_us)
    return steps


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
    lasting = (
        (run.start_us, until if (end_us := run.held_until_us) is None else end_us, run)
        for run in life.runs
    )
    spans = [span for span in lasting if max(span[0], start) < min(span[1], until)]
    if len(spans) > 1:
        spans.sort(key=lambda span: _order(span[2]))
    known_us = life.known_us
    edges = {start, until, known_us, *[step.at_us for step in steps]}
    for begin, end, _ in spans:
        edges.update((begin, end))
    anywhere, estimated = any(life.estimated), Estimated()
    if anywhere:
        edges.update(at for intervals in life.estimated for within in intervals for at in within)
    cuts = sorted([edge for edge in edges if start <= edge <= until])

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
        if anywhere:
            estimated = Estimated(*[_covers(intervals, begin) for intervals in life.estimated])
        at = steps[current]
        runs_now = tuple([spans[i][2] for i in running])
        segments.append(
            Segment(begin, end, at.size, runs_now, end <= known_us, estimated, at.least)
        )
    return segments


def _covers(intervals: Iterable[Interval], time_us: int) -> bool:
    return any(first <= time_us < last for first, last in intervals)


def rests_on_estimate(
    estimated: Estimated, resource: Resource, measure: Measure, *, own: bool
) -> bool:
    """Return whether the pilot's ``own`` time, or that of its runs, rests on an estimate of it."""
    if own:
        return estimated.cpu if resource == "cpu" else estimated.gpu
    return estimated.runs and (resource, measure) == ("cpu", "canonical")


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


@lru_cache(maxsize=4096)
def total_rate(
    size: Size, resource: Resource, measure: Measure, memory_per_unit_mib: int, least: int = 1
) -> int:
    """Return the thousandths of a unit of a pilot of this size; ``least``: see ``SizeStep``."""
    if resource == "gpu":
        return milli(size.gpus)
    if measure == "resource":
        return milli(size.cores)
    units = pilot_units if least else canonical
    return (
        units(milli(size.cores) / MILLI, milli(size.memory_mib) / MILLI, memory_per_unit_mib)
        * MILLI
    )


def offered(
    steps: Sequence[SizeStep], kind: Kind, interval: Interval, memory_per_unit_mib: int
) -> int:
    """Return the micros that a pilot of these sizes has to offer in an interval of its life.

    It has the first size from the start of its life on.
    """
    if kind[0] == "gpu" and not any(step.size.gpus for step in steps):
        return 0  # few pilots have any
    start, until = interval
    amount, first = 0, min(start, until)
    for index, step in enumerate(steps):
        last = steps[index + 1].at_us if index + 1 < len(steps) else until
        last = min(max(last, first), until)
        rate = total_rate(step.size, *kind, memory_per_unit_mib, step.least)
        amount += accrued(rate, last) - accrued(rate, first)
        first = last
    return amount


class Meter(NamedTuple):
    """What a segment has brought up to a time: the pilot's own, and each running run's.

    ``rate`` is that of a segment with nothing running, else of what runs share, in proportion
    to their ``weights``; ``idle`` are the units beside them.  Of GPUs, which are ``free`` to be
    held or not, the first weight is the pilot's own.

    The part of an interval within the segment is the difference of two readings (see shares).
    """

    rate: int
    weights: Sequence[int] | None = None
    idle: int = 0
    free: bool = False

    def readings(self, times_us: Sequence[int]) -> list[Sequence[int]]:
        """Return the micros up to some times: the pilot's own first, then those of each run."""
        weights = self.weights
        amounts = [accrued(self.rate, at) for at in times_us]
        if weights is None:
            return [amounts]
        if self.free:
            if not any(weights):
                return [[0] * len(amounts)] * len(weights)
            return list(zip(*(cascade(amount, weights) for amount in amounts), strict=True))
        own = [self.idle * at for at in times_us]
        if len(weights) == 1:  # no other to share with
            return [own, amounts]
        return [own, *zip(*(cascade(amount, weights) for amount in amounts), strict=True)]


@lru_cache(maxsize=1024)
def meters(
    size: Size,
    least: int,
    held: tuple[Size, ...],
    amounts: Sequence[Kind],
    memory_per_unit_mib: int,
) -> tuple[tuple[Meter, tuple[Kind, ...]], ...]:
    """Return the meters of some kinds of amounts, each with the kinds that read the same.

    ``held``: what each run has of the pilot's ``size``; ``least``: see ``SizeStep``.
    """
    cores = [milli(run.cores) for run in held]
    memory = [milli(run.memory_mib) for run in held]
    idle = 0
    if held:
        free_cores, free_memory = (
            milli(size.cores) - sum(cores),
            milli(size.memory_mib) - sum(memory),
        )
        idle = canonical(free_cores / MILLI, free_memory / MILLI, memory_per_unit_mib)
    made: dict[tuple[Resource, int], tuple[Meter, list[Kind]]] = {}
    for kind in amounts:
        resource, measure = kind
        rate = total_rate(size, resource, measure, memory_per_unit_mib, least)
        if (same := made.get((resource, rate))) is not None:
            same[1].append(kind)
            continue
        if not held:
            meter = Meter(rate)
        elif resource == "gpu":
            gpus = [milli(run.gpus) for run in held]
            meter = Meter(rate, [max(0, rate - sum(gpus)), *gpus], free=True)
        else:
            meter = Meter(rate - idle * MILLI, _weights(cores, memory), idle)
        made[resource, rate] = meter, [kind]
    return tuple((meter, tuple(alike)) for meter, alike in made.values())


def _meters(
    segment: Segment, amounts: Sequence[Kind], memory_per_unit_mib: int
) -> tuple[tuple[Meter, tuple[Kind, ...]], ...]:
    held = tuple([run.size for run in segment.running])
    return meters(segment.size, segment.least, held, amounts, memory_per_unit_mib)


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
) -> Iterator[tuple[Sequence[Kind], list[Sequence[int]]]]:
    """Yield what the segment has brought up to some times (see ``Meter``), with of which kinds.

    For the pilot's own and for each running run, in this order; none of it ever falls.
    """
    for meter, alike in _meters(segment, kinds(segment), memory_per_unit_mib):
        yield alike, meter.readings(times_us)


def parts(
    segment: Segment,
    interval: Interval,
    resource: Resource,
    measure: Measure,
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> Parts:
    """Divide the amount of ``interval``, which must lie within the segment."""
    [(meter, _)] = _meters(segment, ((resource, measure),), memory_per_unit_mib)
    own, *shares = (after - before for before, after in meter.readings(interval))
    return Parts(own, tuple(shares))


def _weights(cores: list[int], memory: list[int]) -> list[int]:
    """Return in which proportion runs share a pilot's cores."""
    if any(cores):
        return cores
    return memory if any(memory) else [1] * len(cores)
