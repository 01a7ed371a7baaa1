"""Numbers of which a bounded part is kept: every row had the same chance to be.  Pure.

Vitter's algorithm R (ACM TOMS 11, 1985), with the same random numbers each time.
"""

from __future__ import annotations

from array import array
from random import Random

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST = 1000
"""So many rows are kept of what one entry, or one group, has of a kind."""
Z = 1.6448536269514722
"""Of the normal distribution: 90 % of it is within so many standard deviations."""


class Reservoir:
    """Rows of so many numbers; ``seen``: of which so many rows were given."""

    __slots__ = ("_columns", "_kept", "_random", "seen")

    def __init__(self, columns: int) -> None:
        self._columns, self._kept, self._random = columns, array("d"), Random(columns)
        self.seen = 0

    def add(self, *row: float) -> None:
        self.seen += 1
        if self.seen <= MOST:
            self._kept.extend(row)
        elif (place := self._random.randrange(self.seen)) < MOST:
            first = place * self._columns
            self._kept[first : first + self._columns] = array("d", row)

    @property
    def columns(self) -> Floats:
        """The rows that are kept, column by column."""
        return np.array(self._kept).reshape(-1, self._columns).T


class Ratio:
    """The ratio of two sums over pilots, and its error; ``number`` of them have a divisor."""

    __slots__ = ("_squares", "_sums", "number")

    def __init__(self) -> None:
        self.number, self._sums, self._squares = 0, [0.0, 0.0], [0.0, 0.0, 0.0]

    def add(self, part: float, whole: float) -> None:
        self.number += 1 if whole > 0 else 0
        for at, value in enumerate((part, whole)):
            self._sums[at] += value
        for at, value in enumerate((part * part, part * whole, whole * whole)):
            self._squares[at] += value

    @property
    def divisor(self) -> float:
        return self._sums[1]

    @property
    def value(self) -> float | None:
        return self._sums[0] / self._sums[1] if self._sums[1] else None

    @property
    def error(self) -> float:
        """The standard error (linearised; Cochran, "Sampling Techniques", chapter 6)."""
        ratio, (parts, mixed, wholes) = self.value, self._squares
        if ratio is None:
            return 0.0
        return float(max(0.0, parts - 2 * ratio * mixed + ratio**2 * wholes) ** 0.5 / self.divisor)


def share_interval(part: int, whole: int) -> tuple[float, float]:
    """Return the 90 % interval of a share, by Wilson's score (JASA 22, 1927).

    >>> tuple(round(bound, 3) for bound in share_interval(5, 50))
    (0.049, 0.193)
    """
    share, z = part / whole, Z * Z / whole
    middle = (share + z / 2) / (1 + z)
    half = Z / (1 + z) * np.sqrt(share * (1 - share) / whole + z / (4 * whole))
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def survival(lengths: Floats, ended: Floats) -> tuple[Floats, Floats]:
    """Return lengths in order, and the share that lasts longer (Kaplan and Meier, JASA 53, 1958).

    ``ended`` is 0 of lengths that were cut off: they would have been longer.
    """
    order = np.lexsort((-ended, lengths))
    left = np.arange(lengths.size, 0, -1)
    lasting: Floats = np.cumprod(1 - ended[order] / left, dtype=np.float64)
    return lengths[order], lasting


def quantile(lengths: Floats, ended: Floats, share: float) -> float | None:
    """Return the length that this share does not exceed; None: no such length was seen to end."""
    times, lasting = survival(lengths, ended)
    indices = np.flatnonzero(lasting <= 1 - share + 1e-12)
    return float(times[indices[0]]) if indices.size else None
