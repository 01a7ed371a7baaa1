"""When a host's clock was set to summer time or back, while a pilot lived.

What is known are its offsets at a few moments.  Where two that follow one another differ, the
clock was set in between:

1. Lines of a log are in order.  Where the time they show goes back by nearly as much as the clock
   was set back, that happened between the two lines.
2. Of the time zones that have such a change between these moments, most change at one moment.
3. Else it is taken to be in the middle.

Units: moments are seconds since the epoch; an *offset* is what the clock was ahead of UTC by (s);
a *wall* time is what it showed, as seconds since 1970-01-01 00:00 of the same clock.
"""

from __future__ import annotations

import zoneinfo
from collections import Counter, defaultdict
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Offsets: TypeAlias = tuple[tuple[int, int], ...]
"""Moments, and the offset that held at each."""

MAX_KNOWN = 64
LATE_S = 60
"""By how much a line may be earlier than the one before: several processes write into a log."""
_LONGEST_S = 366 * 86400
"""No pilot lives as long."""
_LAST_YEAR = 2100
_WEEK_S = 7 * 86400
_EVER = 1 << 62


@lru_cache(256)
def steps(known: Offsets) -> Offsets:
    """Return from when on each offset held; the first held always before."""
    points = sorted(known)
    found = [(-_EVER, points[0][1])]
    for (before, old), (after, new) in pairwise(points):
        if old != new:
            found.append((_moment(before, after, old, new), new))
    return tuple(found)


def placed(known: Offsets, wall: int, after: int | None) -> int:
    """Return the moment of a wall time: of two the first that is not before ``after``.

    What no clock showed is placed as near as can be.
    """
    found = steps(known)
    ends = [*(begin for begin, _ in found[1:]), _EVER]
    ranked: list[tuple[int, bool, int]] = []
    for (begin, offset), end in zip(found, ends, strict=True):
        at = wall - offset
        outside = max(begin - at, at - end + 1, 0)
        ranked.append((outside, after is not None and at < after - LATE_S, at))
    return min(ranked)[2]


def narrowed(known: Offsets, walls: Iterable[int]) -> Offsets:
    """Return also the moments between which a log shows that the clock was set back.

    ``walls`` are those of its lines, in their order.  Times that go back by less than half of the
    difference are none of it.
    """
    gaps = [
        (before, old, after, new)
        for (before, old), (after, new) in pairwise(sorted(known))
        if new < old
    ]
    within = [(before, after) for before, _, after, _ in gaps]
    previous: int | None = None
    for wall in walls:
        if previous is not None and wall < previous:
            for number, (_, old, _, new) in enumerate(gaps):
                if (old - new) // 2 <= previous - wall < old - new:
                    low = max(within[number][0], previous - old)
                    high = min(within[number][1], wall - new)
                    if low < high:
                        within[number] = low, high
        previous = wall
    found = list(known)
    for (before, old, after, new), (low, high) in zip(gaps, within, strict=True):
        if len(found) + 2 <= MAX_KNOWN:
            found += [(low, old)] if low > before else []
            found += [(high, new)] if high < after else []
    return tuple(found)


def _moment(before: int, after: int, old: int, new: int) -> int:
    """Return when the clock was set, after ``before`` and not after ``after``."""
    counts: Counter[int] = Counter()
    if after - before <= _LONGEST_S:
        for year in range(_year(before), _year(after) + 1):
            if year <= _LAST_YEAR:
                changes = changes_in(year).get((old, new), {})
                counts.update({at: n for at, n in changes.items() if before < at <= after})
    if not counts:
        return (before + after) // 2
    return min(counts, key=lambda at: (-counts[at], at))


def _year(moment: int) -> int:
    return datetime.fromtimestamp(min(moment, 1 << 32), UTC).year


@lru_cache(128)
def changes_in(year: int) -> dict[tuple[int, int], dict[int, int]]:
    """Return all changes in a year by offset before and after: when, and in how many zones.

    Empty where this host has no data on time zones.
    """
    found: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    first, last = (
        int(datetime(number, 1, 1, tzinfo=UTC).timestamp()) for number in (year, year + 1)
    )
    for name in zoneinfo.available_timezones():
        try:
            zone = zoneinfo.ZoneInfo.no_cache(name)
        except (OSError, ValueError, KeyError):
            continue
        moments = [*range(first, last, _WEEK_S), last]
        offsets = [_offset(at, zone) for at in moments]
        for (begin, end), (old, new) in zip(pairwise(moments), pairwise(offsets), strict=True):
            if old != new:
                found[old, new][_between(begin, end, zone)] += 1
    return {kind: dict(moments) for kind, moments in found.items()}


def _between(begin: int, end: int, zone: tzinfo) -> int:
    """Return the first moment with another offset than at ``begin``."""
    old = _offset(begin, zone)
    while end - begin > 1:
        middle = (begin + end) // 2
        if _offset(middle, zone) == old:
            begin = middle
        else:
            end = middle
    return end


def _offset(moment: int, zone: tzinfo) -> int:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0
