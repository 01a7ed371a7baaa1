"""How long an idle pilot should wait for a job before it ends: what wastes least.  Pure.

A pilot is idle until a job comes, after X seconds, or until it ends after its timeout of T.  S(t)
is the share of waits that last longer than t, by Kaplan and Meier: a wait that ended without a job
was cut off, so its X is longer.  E(T) is the mean of min(X, T): the integral of S from 0 to T.

After a job: a pilot that has ended must be replaced when jobs come again, and until another pilot
runs a job R is spent: validation, waiting, and pilots that failed or gave up before.  One wait
wastes W(T) = E(T) + R * S(T).  (Karlin, Manasse, Rudolph and Sleator's "ski rental", Algorithmica
3, 1988, with a known S.)

Before the first job: pilots are sent until one runs a job.  Each spends v before it is ready, then
waits.  The first job costs W(T) = (v + E(T)) / (1 - S(T)).

Beyond the longest waits nothing is known, and no timeout is advised.  Timeouts are of ``GRID_S``.
Their interval is of what is best in 200 samples of the pilots with replacement (Efron's bootstrap):
waits of one pilot are alike.

Units: seconds; waits count by the canonical units of their pilots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gwmond.advise.samples import Floats, Ratio, survival

GRID_S = (
    *(60, 90, 120, 180, 240, 300, 400, 600, 900, 1200, 1800, 2700, 3600),
    *(5400, 7200, 10800, 14400, 21600, 28800, 43200, 86400),
)
"""Timeouts as people set them; 400 and 1200 are GlideinWMS's (GLIDEIN_Max_Tail and _Max_Idle)."""
LEAST_WAITS, LEAST_PILOTS, STILL_WAITING = 30, 10, 10
"""Fewer say too little.  A timeout is judged by at least so many waits that reached it."""
_SAMPLES = 200
_BOUNDS = 0.02, 0.98
"""Quantiles of the samples for an interval of 90 %: 5 % and 95 % are too narrow for few waits."""
_FEW_CUT_OFF = 1.5
"""If the share that still waits is at most so many times that without any cut, few were cut."""


class WaitArrays(NamedTuple):
    """Waits of idle pilots, a place of each array for each wait.

    ``pilots``: a number of the pilot; ``came``: 1 if a job came, 0 if the wait was cut off.
    """

    pilots: Floats
    lengths_s: Floats
    came: Floats
    units: Floats


class Timeout(NamedTuple):
    """The timeout that wastes least, with the interval of 90 % of the samples.

    - ``open_ended``: the interval ends with the longest timeout that could be judged.
    - ``arrives``: share of waits in which a job comes by then.
    - ``curve``: W of each timeout that could be judged.
    - ``saved_s``: how much less W is than with the timeout that is compared; None if
      that could not be judged; its interval.
    """

    best_s: int
    interval_s: tuple[int, int]
    open_ended: bool
    arrives: float
    curve: tuple[tuple[int, float], ...]
    saved_s: float | None = None
    saved_interval_s: tuple[float, float] = (0.0, 0.0)


def best(
    waits: WaitArrays, cost: Ratio, now_s: float | None = None, *, first: bool = False
) -> Timeout | None:
    """Return the timeout that wastes least; None: too little is known.

    ``cost``: R, or v of waits for the ``first`` job; ``now_s``: the timeout to compare with.
    """
    order = np.lexsort((-waits.came, waits.lengths_s))
    pilots, lengths, came, units = (column[order] for column in waits)
    number = np.unique(pilots, return_inverse=True)[1]
    count = min(cost.number, int(number.max()) + 1)
    if cost.value is None or lengths.size < LEAST_WAITS or count < LEAST_PILOTS:
        return None
    grid = _judged(lengths, came)
    if not grid.size:
        return None
    compared = now_s is not None and now_s <= lengths[-1]
    points = np.append(grid, [now_s or 0.0]) if compared else grid
    draw, kinds = np.random.default_rng(1), int(number.max()) + 1
    drawn = draw.multinomial(kinds, np.full(kinds, 1 / kinds), _SAMPLES)[:, number]
    times = np.concatenate((np.ones((1, lengths.size)), drawn)).astype(np.float64)
    costs = np.append(cost.value, draw.normal(cost.value, cost.error, _SAMPLES))
    lasting, waste = wasted(lengths, came, times * units, np.maximum(costs, 0), points, first=first)
    choice = waste[:, : grid.size].argmin(axis=1)
    first, last = np.quantile(grid[choice[1:]], _BOUNDS, method="inverted_cdf")
    at = choice[0]
    timeout = Timeout(
        best_s=int(grid[at]),
        interval_s=(int(min(first, grid[at])), int(max(last, grid[at]))),
        open_ended=bool(max(last, grid[at]) == grid[-1]),
        arrives=float(1 - lasting[0, at]),
        curve=tuple((int(t), float(w)) for t, w in zip(grid, waste[0], strict=False)),
    )
    if not compared or not np.isfinite(waste[0, -1]):
        return timeout
    saved = waste[:, -1] - waste[:, at]
    low, high = np.quantile(saved[1:][np.isfinite(saved[1:])], _BOUNDS)
    return timeout._replace(saved_s=float(saved[0]), saved_interval_s=(float(low), float(high)))


def _judged(lengths: Floats, came: Floats) -> Floats:
    """Return the timeouts that can be judged: those that enough waits reached.

    Where nearly all waits ended with a job, longer ones are known too: no wait lasts so long.
    """
    lasting = survival(lengths, came)[1]
    usual = STILL_WAITING / lengths.size
    known_s = lengths[-STILL_WAITING]
    if came[-1] and lasting[-STILL_WAITING - 1] <= _FEW_CUT_OFF * usual:
        known_s = next((at for at in GRID_S if at >= lengths[-1]), GRID_S[-1])
    return np.array([at for at in GRID_S if at <= known_s], dtype=np.float64)


def wasted(
    lengths: Floats,
    came: Floats,
    weights: Floats,
    costs: Floats,
    points: Floats,
    *,
    first: bool = False,
) -> tuple[Floats, Floats]:
    """Return S and W at some times, a row for each row of ``weights`` and ``costs``.

    Lengths are in order; of equal ones those that were cut off are last.
    """
    left = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    steps = 1 - np.divide(weights * came, left, out=np.zeros_like(left), where=left > 0)
    lasting = np.cumprod(np.insert(steps, 0, 1.0, axis=1), axis=1)
    begins = np.insert(lengths, 0, 0.0)
    until = np.cumsum(lasting[:, :-1] * np.diff(begins), axis=1)
    until = np.insert(until, 0, 0.0, axis=1)
    at = np.searchsorted(lengths, points, side="right")
    idle = until[:, at] + lasting[:, at] * (points - begins[at])
    left_over = lasting[:, at]
    if not first:
        return left_over, idle + costs[:, None] * left_over
    spent, arrived = costs[:, None] + idle, 1 - left_over
    return left_over, np.divide(spent, arrived, out=np.full_like(spent, np.inf), where=arrived > 0)
