"""How long something will take: a simple rule, and how far the same rule was off lately.  Pure.

The rule goes by a rate: so many are ahead, so many go in an hour.  It is tried at moments of the
last days, of which it is known by now how long they took.  By the part by which these tries were
off, the interval is made (split conformal prediction: Vovk, Gammerman and Shafer 2005).  So it is
as wide as the past was uncertain, and nothing is said where too little was tried.

Units: seconds; times are epoch seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import exp, inf, log
from statistics import median
from typing import NamedTuple

from gwmond.model.demand.idle_history import Begun, nearest_rank
from gwmond.model.times import HOUR_S

FEWEST = 50
"""Of fewer tries nothing is said."""
LOOKED_BACK_S = 96 * HOUR_S
HORIZON_S = 12 * HOUR_S
"""Of levels: what takes longer is only said to take longer."""
_EVERY_S = HOUR_S / 2
_A_MOMENT = 3
_HALF, _NINE = 0.8, 0.98
"""Up to which part of the tries: tries of one hour are alike, so 0.75 and 0.95 are too narrow."""
_FLOOR_S = 120.0
"""So much is added to both times, so that seconds more or less are no large part."""


class Tried(NamedTuple):
    """What the rule would have said at a moment, and how long it took (inf: over the horizon)."""

    said_s: float
    took_s: float


class Forecast(NamedTuple):
    """How long it takes: half of such cases are below ``middle_s``.

    Half are in ``half``, nine of ten in ``nine_tenths``.  Infinite: longer than ``HORIZON_S``.
    ``number``: of how many tries.
    """

    number: int
    middle_s: float
    half: tuple[float, float]
    nine_tenths: tuple[float, float]


def forecast(
    said_s: float | None, tried: Sequence[Tried], horizon_s: float = inf
) -> Forecast | None:
    """Return how long it takes, of which the rule says ``said_s``; None: too little data.

    What is longer than the horizon is infinite.
    """
    if said_s is None or len(tried) < FEWEST:
        return None
    off = sorted(
        inf if one.took_s == inf else log((one.took_s + _FLOOR_S) / (one.said_s + _FLOOR_S))
        for one in tried
    )

    def at(part: float) -> float:
        took_s = max(0.0, (said_s + _FLOOR_S) * exp(nearest_rank(off, part)) - _FLOOR_S)
        return took_s if took_s <= horizon_s else inf

    half, nine_tenths = ((at(1 - part), at(part)) for part in (_HALF, _NINE))
    return Forecast(len(off), at(0.5), half, nine_tenths)


# --- When a job starts -----------------------------------------------------------------------


class Starts:
    """Jobs of one user that began, the latest of some days."""

    def __init__(self, begun: Sequence[Begun]) -> None:
        self._begun = sorted(begun, key=lambda one: one.start_s)
        self._starts = [one.start_s for one in self._begun]

    def _since(self, at_s: float, back_s: float) -> int:
        return bisect_left(self._starts, at_s) - bisect_left(self._starts, at_s - back_s)

    def said_s(self, at_s: float, waited_s: float, ahead: int | None) -> float | None:
        """Return when a job starts, by the rule: so many are ahead, so many start in an hour.

        Where it is not known how many are ahead: half of those that had waited as long.  None
        where none began before.
        """
        if not self._since(at_s, LOOKED_BACK_S):
            return None
        if ahead is not None:
            an_hour = max(self._since(at_s, HOUR_S), self._since(at_s, 6 * HOUR_S) / 12, 1 / 24)
            return (ahead + 1) / an_hour * HOUR_S
        before = self._begun[: bisect_left(self._starts, at_s)]
        waits = (one.start_s - one.queued_s for one in before)
        longer = [wait - waited_s for wait in waits if wait > waited_s]
        return median(longer) if longer else None

    def tried(self, now_s: float, *, counted: bool) -> list[Tried]:
        """Return what the rule would have said; ``counted``: with how many were ahead then."""
        return list(self._tried(now_s, counted))

    def _tried(self, now_s: float, counted: bool) -> Iterator[Tried]:
        at_s = now_s - _EVERY_S
        while self._starts and at_s > max(self._starts[0], now_s - LOOKED_BACK_S):
            waiting = sorted(b for b in self._begun if b.queued_s <= at_s < b.start_s)
            step = max(1, len(waiting) // _A_MOMENT)
            for ahead in range(0, len(waiting), step):
                job = waiting[ahead]
                said = self.said_s(at_s, at_s - job.queued_s, ahead if counted else None)
                if said is not None:
                    yield Tried(said, job.start_s - at_s)
            at_s -= _EVERY_S


# --- When a level falls to nothing -----------------------------------------------------------


class Level(NamedTuple):
    """What is left at a time: free units, waiting jobs; None: not known."""

    time_s: float
    left: float | None


class Levels:
    """One level over time, in the order of time."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._levels = [level for level in levels if level.left is not None]
        self._times = [level.time_s for level in self._levels]

    def falls_by(self, at_s: float) -> float | None:
        """Return how much less is left each second: the faster rate of the last hour and of six.

        None where it is not known how it was an hour ago.
        """
        now = self._before(at_s)
        if now is None or now.left is None:
            return None
        rates = []
        for back_s in (HOUR_S, 6 * HOUR_S):
            then = self._before(at_s - back_s)
            if then is not None and then.left is not None and now.time_s > then.time_s:
                rates.append((then.left - now.left) / (now.time_s - then.time_s))
        return max(rates, default=None)

    def said_s(self, at_s: float) -> float | None:
        """Return when nothing is left, by that rate; None where it is not known, or does not fall.

        None, too, where nothing is left.
        """
        now, fastest = self._before(at_s), self.falls_by(at_s)
        if now is None or not now.left or fastest is None or fastest <= 0:
            return None
        return now.left / fastest

    def _before(self, at_s: float) -> Level | None:
        """Return what was left at a time; None where nobody has looked within an hour before."""
        place = bisect_left(self._times, at_s + 1)
        level = self._levels[place - 1] if place else None
        return level if level is not None and level.time_s > at_s - HOUR_S else None

    def tried(self, now_s: float) -> list[Tried]:
        """Return what the rule would have said, of moments whose horizon is over."""
        found = []
        at_s = now_s - HORIZON_S
        while self._times and at_s > max(self._times[0], now_s - LOOKED_BACK_S):
            said = self.said_s(at_s)
            if said is not None:
                found.append(Tried(said, self.took_s(at_s)))
            at_s -= _EVERY_S
        return found

    def took_s(self, at_s: float) -> float:
        """Return after how long nothing was left; infinite: not within the horizon."""
        first, last = bisect_left(self._times, at_s), bisect_left(self._times, at_s + HORIZON_S)
        empty = (level.time_s for level in self._levels[first:last] if not level.left)
        return next(empty, inf) - at_s
