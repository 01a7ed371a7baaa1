"""A pilot's life, cut where anything begins or ends, and each segment divided.

Units: times are microseconds, amounts are micros (10^-6 of one core, chip or canonical unit for
one second); inside, cores, memory and GPUs are in thousandths, so that sums are exact.

Source of the rules: the 2022 accounting report, "Further clarification of Pilot overhead and
canonical units"; design page, section 3.  In a segment with running attempts

- ``idle = canonical(C - sum c, M - sum m)``, never below 0, is the pilot's own (overhead);
- the rest goes to the attempts in proportion to their cores; where none has cores, by memory;
  where none has memory either, equally;
- of the GPUs, those that attempts hold go to them, in proportion to what they hold and never more
  than there are; the others are the pilot's own, and there is no remainder.

Without running attempts the whole segment is the pilot's own, a canonical unit or not.

The total is C core-seconds (``resource``) or canonical(C, M) canonical seconds (``canonical``), of
GPUs G chip-seconds in both.  Invariants: the parts of a segment sum to its total, none is
negative, and the parts of its pieces sum to its own, wherever it is cut (see shares).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from itertools import pairwise
from operator import sub
from typing import NamedTuple

from gwmond.accounting.pilot_facts import Attempt, Interval, Measure, PilotLife, Resources, Step
from gwmond.accounting.shares import MILLI, accrued, cascade, milli
from gwmond.units import DEFAULT_MEMORY_MIB, Resource, canonical

NOTHING = Resources(0, 0, 0)


class Parts(NamedTuple):
    """What an interval brought: the pilot's own micros, and those of each running attempt."""

    own: int
    attempts: tuple[int, ...]


class Segment(NamedTuple):
    """A stretch of a pilot's life in which nothing changes.

    ``running`` is sorted by key.  ``known`` is false where another attempt may still turn up;
    ``estimated`` is about the pilot's own time.
    """

    start_us: int
    end_us: int
    size: Resources
    running: tuple[Attempt, ...]
    known: bool
    estimated: bool

    @property
    def described(self) -> tuple[object, ...]:
        """All that the division of this segment depends on, besides its times."""
        return self.size, self.running, self.estimated

    @property
    def finished(self) -> bool:
        """Whether every attempt that runs in it has an outcome."""
        return all(attempt.outcome is not None for attempt in self.running)


def sizes(life: PilotLife) -> list[Step]:
    """Return the resources over time, sorted, the first from the start of the life on."""
    steps = sorted(life.steps) or [Step(life.start_us, NOTHING)]
    return [Step(min(steps[0].at_us, life.start_us), steps[0].size), *steps[1:]]


def cut(life: PilotLife, window: Interval | None = None) -> list[Segment]:
    """Return the segments of a life, or of the part of it within ``window``, in order.

    Time is cut where an attempt, a size, an estimate or what is known begins or ends.  What an
    attempt has outside of the life does not count (clocks of hosts differ).
    """
    start, until = life.start_us, life.until_us
    if window is not None:
        start, until = max(start, window[0]), min(until, window[1])
    if start >= until:
        return []
    steps = sizes(life)
    attempts = sorted(life.attempts, key=_order)
    lasting = [(of.start_us, until if of.end_us is None else of.end_us, of) for of in attempts]
    spans = [span for span in lasting if max(span[0], start) < min(span[1], until)]
    edges = {start, until, life.known_us, *(step.at_us for step in steps)}
    edges.update(edge for begin, end, _ in spans for edge in (begin, end))
    edges.update(edge for interval in life.estimated for edge in interval)
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
                any(first <= begin < last for first, last in life.estimated),
            )
        )
    return segments


def _order(attempt: Attempt) -> tuple[object, ...]:
    """Sort by key; what follows only makes the order total, should a key be given twice."""
    end = attempt.end_us
    return (
        attempt.key,
        attempt.start_us,
        (end is None, end or 0),
        attempt.size,
        (attempt.outcome is not None, attempt.outcome or ()),
    )


def idle_units(segment: Segment, q: int = DEFAULT_MEMORY_MIB) -> int:
    """Return the canonical units that are free beside the running attempts."""
    cores = milli(segment.size.cores) - sum(milli(a.size.cores) for a in segment.running)
    memory = milli(segment.size.memory_mib) - sum(milli(a.size.memory_mib) for a in segment.running)
    return canonical(cores / MILLI, memory / MILLI, q)


def total_rate(size: Resources, resource: Resource, measure: Measure, q: int) -> int:
    """Return what a pilot of this size brings, in thousandths of a unit."""
    if resource == "gpu":
        return milli(size.gpus)
    if measure == "resource":
        return milli(size.cores)
    return canonical(milli(size.cores) / MILLI, milli(size.memory_mib) / MILLI, q) * MILLI


class Meter:
    """What a segment has brought up to a time: the pilot's own, and each running attempt's.

    The part of an interval within the segment is the difference of two readings (see shares).
    """

    def __init__(
        self, segment: Segment, resource: Resource, measure: Measure, q: int = DEFAULT_MEMORY_MIB
    ) -> None:
        rate = total_rate(segment.size, resource, measure, q)
        self._idle = 0
        self._weights: list[int] | None = None
        self._free = False
        self._rate = rate
        if not segment.running:
            return
        if resource == "gpu":
            held = [milli(attempt.size.gpus) for attempt in segment.running]
            self._weights = [max(0, rate - sum(held)), *held]
            self._free = True
        else:
            self._idle = idle_units(segment, q)
            self._rate = rate - self._idle * MILLI
            self._weights = _weights(segment)

    def read(self, time_us: int) -> list[int]:
        """Return the micros up to a time: the pilot's own first, then those of each attempt."""
        amount = accrued(self._rate, time_us)
        weights = self._weights
        if weights is None:
            return [amount]
        if self._free:
            return cascade(amount, weights) if any(weights) else [0] * len(weights)
        return [self._idle * time_us, *cascade(amount, weights)]


def parts(
    segment: Segment,
    interval: Interval,
    resource: Resource,
    measure: Measure,
    q: int = DEFAULT_MEMORY_MIB,
) -> Parts:
    """Divide the amount of ``interval``, which must lie within the segment."""
    meter = Meter(segment, resource, measure, q)
    start, end = interval
    own, *shares = map(sub, meter.read(end), meter.read(start))
    return Parts(own, tuple(shares))


def _weights(segment: Segment) -> list[int]:
    """Return in which proportion the running attempts share cores."""
    by_cores = [milli(attempt.size.cores) for attempt in segment.running]
    if any(by_cores):
        return by_cores
    by_memory = [milli(attempt.size.memory_mib) for attempt in segment.running]
    return by_memory if any(by_memory) else [1] * len(segment.running)


def by_hours(interval: Interval) -> Iterator[tuple[int, Interval]]:
    """Cut an interval at the full hours (UTC); an hour is ``epoch // 3600``.

    >>> list(by_hours((3_599_000_000, 3_601_000_000)))
    [(0, (3599000000, 3600000000)), (1, (3600000000, 3601000000))]
    """
    start, end = interval
    while start < end:
        hour = start // HOUR_US
        stop = min(end, (hour + 1) * HOUR_US)
        yield hour, (start, stop)
        start = stop


HOUR_US = 3_600_000_000
