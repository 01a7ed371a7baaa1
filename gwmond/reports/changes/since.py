"""Since when more is lost, and what a change did: pure statistics of hourly series.

A loss is looked for as a stretch of time in which a larger share is lost than in the rest of the
period.  How likely chance makes such a stretch is asked of the series itself: its blocks of hours
are put into random orders (a permutation test of the scan statistic), so that bursts within a block
and rates that differ by site do no harm; what lasts longer than a block, such as a campaign of
jobs, does begin then.  Of many series those are told of which at most one in twenty is due to
chance (Benjamini and Hochberg 1995).

The effect of a change is a difference in differences: how much more the share rose where it was
than at sites without one.  These are placebos: how far they differ among themselves, beside what
their own blocks explain, widens the interval (as Conley and Taber 2011 do, for one changed group).

Units: amounts are counts, or canonical hours; positions are hours since the period began.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = "NDArray[np.float64]"

FALSE = 0.05
"""So many of what is told are due to chance, at most, on average."""
FEWEST_BLOCKS = 16
"""Of fewer no order is rare enough."""
FEWEST_PLACEBOS = 5
_FEWEST_LOST = 8.0
"""Of less nothing is told: counts, or canonical hours."""
_ORDERS = ((99, 4), (999, 1), (19_999, 0))
"""So many orders are tried, and more if no more of them than that reach what was found."""
_AT_ONCE = 1000
_SEED = 1
_Z = 1.959964  # of a normal distribution 95 % are within


class HourlyShare(NamedTuple):
    """Of each hour what was lost, and of how much."""

    lost: Sequence[float]
    whole: Sequence[float]


class Stretch(NamedTuple):
    """From ``first`` to before ``end`` a share ``within`` was lost, else ``before``.

    ``chance``: how likely the rest of the series makes one like it.  ``is_seen``: there was
    something earlier of which less was lost.
    """

    first: int
    end: int
    chance: float
    before: float
    within: float
    is_seen: bool

    def overlaps(self, other: Stretch) -> bool:
        """Return whether both have an hour in common."""
        return self.first < other.end and other.first < self.end


class Effect(NamedTuple):
    """By how much a share rose more than at sites without the change, and its 95 % interval."""

    rise: float
    low: float
    high: float
    placebos: int


def stretch(series: HourlyShare, block: int) -> Stretch | None:
    """Return the stretch with the largest excess; None where there is too little data.

    ``block``: of how many hours; the last one is whole, hours before the first are left out.
    """
    import numpy as np  # noqa: PLC0415 (slow to load)

    lost, whole = (np.asarray(values, dtype=float) for values in series)
    cut = len(lost) % block
    x, n = (values[cut:].reshape(-1, block).sum(1) for values in (lost, whole))
    some = n > 0.1 * n.mean()
    if some.sum() < FEWEST_BLOCKS or x[some].sum() < _FEWEST_LOST:
        return None
    x, n, at = x[some], n[some], np.flatnonzero(some)
    excess = x - x.sum() / n.sum() * n
    draw = np.random.default_rng(_SEED)
    best, first, length = _largest(excess[None], n[None])
    chance = 1.0
    for orders, few in _ORDERS:
        reached = 0
        for begin in range(0, orders, _AT_ONCE):
            number = min(_AT_ONCE, orders - begin)
            order = draw.random((number, len(x))).argsort(1)
            drawn, *_ = _largest(excess[order], n[order])
            reached += int((drawn >= best[0] * (1 - 1e-12)).sum())
        chance = (1 + reached) / (1 + orders)
        if reached > few:
            break
    begin = cut + int(at[first[0]]) * block
    end = cut + (int(at[first[0] + length[0] - 1]) + 1) * block
    begin, end = _exactly(lost, whole, begin, end, block)
    inside = slice(begin, end)
    outer_lost = lost.sum() - lost[inside].sum()
    outer = whole.sum() - whole[inside].sum()
    before = float(outer_lost / outer) if outer else 0.0
    within = float(lost[inside].sum() / whole[inside].sum())
    return Stretch(begin, end, chance, before, within, bool(whole[:begin].any()))


def _largest(excess: Floats, n: Floats) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return of each row the largest standardised excess of a stretch, its begin and length."""
    import numpy as np  # noqa: PLC0415

    rows, blocks = excess.shape
    total = n[0].sum()
    zero = np.zeros((rows, 1))
    sums, sizes = (np.hstack([zero, values.cumsum(1)]) for values in (excess, n))
    best, first, length = np.full(rows, -np.inf), np.zeros(rows, int), np.zeros(rows, int)
    for number in range(1, blocks):
        size = sizes[:, number:] - sizes[:, :-number]
        height = (sums[:, number:] - sums[:, :-number]) / np.sqrt(size * (total - size))
        at = height.argmax(1)
        highest = height[np.arange(rows), at]
        better = highest > best
        best, first = np.where(better, highest, best), np.where(better, at, first)
        length = np.where(better, number, length)
    return best, first, length


def _exactly(lost: Floats, whole: Floats, begin: int, end: int, block: int) -> tuple[int, int]:
    """Return the begin, and then the end, within a block at which two rates fit best.

    Something is lost in the first hour, and in the last one.
    """
    total = float(whole.sum())

    def fit(first: int, last: int) -> float:
        k, n = float(lost[first:last].sum()), float(whole[first:last].sum())
        rest, others = float(lost.sum()) - k, total - n
        if not 0 < n < total or k * others <= rest * n:
            return float("-inf")
        return sum(
            part * log(part / of)
            for good, of in ((k, n), (rest, others))
            for part in (good, of - good)
            if part > 0
        )

    size = len(lost)
    begins = range(max(0, begin - block), min(end, begin + block + 1))
    begin = max((at for at in begins if lost[at]), key=lambda at: fit(at, end), default=begin)
    ends = range(max(begin + 1, end - block), min(size, end + block) + 1)
    last = max((at for at in ends if lost[at - 1]), key=lambda at: fit(begin, at), default=end)
    return begin, size if last > size - block else last


def told(chances: Sequence[float]) -> list[bool]:
    """Return which are told of so many that were looked at (Benjamini and Hochberg)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    last = max(
        (n for n, at in enumerate(order, 1) if chances[at] <= FALSE * n / len(order)), default=0
    )
    chosen = set(order[:last])
    return [at in chosen for at in range(len(chances))]


def effect(
    changed: HourlyShare, others: Sequence[HourlyShare], before: slice, after: slice, block: int
) -> Effect | None:
    """Return what a change did; None where there is too little data, or too few placebos."""
    mine = _rise(changed, before, after, block)
    placebos = [one for series in others if (one := _rise(series, before, after, block))]
    if mine is None or len(placebos) < FEWEST_PLACEBOS:
        return None
    weights = [1 / error**2 for _, error in placebos]
    mean = sum(w * rise for w, (rise, _) in zip(weights, placebos, strict=True)) / sum(weights)
    free = len(placebos) - 1
    spread = sum(w * (one - mean) ** 2 for w, (one, _) in zip(weights, placebos, strict=True))
    wider = max(1.0, spread / free)
    error = sqrt(wider * (mine[1] ** 2 + 1 / sum(weights)))
    half = _t(free) * error
    rise = mine[0] - mean
    return Effect(rise, rise - half, rise + half, len(placebos))


def _rise(
    series: HourlyShare, before: slice, after: slice, block: int
) -> tuple[float, float] | None:
    """Return by how much the share rose, and its standard error by blocks."""
    first, second = (_rate(series, within, block) for within in (before, after))
    if first is None or second is None:
        return None
    return second[0] - first[0], sqrt(first[1] + second[1])


def _rate(series: HourlyShare, within: slice, block: int) -> tuple[float, float] | None:
    """Return a share and its variance: by blocks, at least that of so many independent events."""
    lost, whole = series.lost[within], series.whole[within]
    total = sum(whole)
    if total < _FEWEST_LOST or len(lost) < 2 * block:
        return None
    share = sum(lost) / total
    parts = range(0, len(lost), block)
    squares = [
        (sum(lost[at : at + block]) - share * sum(whole[at : at + block])) ** 2 for at in parts
    ]
    number = len(squares)
    clustered = sum(squares) / total**2 * number / max(1, number - 1)
    likely = (sum(lost) + 0.5) / (total + 1)
    return share, max(clustered, likely * (1 - likely) / total)


def _t(free: int) -> float:
    """Return the 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5)."""
    z = _Z
    return (
        z
        + (z**3 + z) / (4 * free)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    )
