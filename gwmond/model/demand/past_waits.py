"""How long jobs and pilots waited lately: what is said of one that waits now rests on these.

Units: waits are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

FEWEST = 20
"""Of fewer waits no quantile is said."""


class PastWaits(NamedTuple):
    """Waits of jobs like one, and of pilots by the name of their entry."""

    jobs: Sequence[float]
    pilots: Mapping[str, Sequence[float]]


class Quantiles(NamedTuple):
    """Of ``number`` waits half are at most ``half_s``, nine of ten at most ``nine_tenths_s``."""

    number: int
    half_s: float
    nine_tenths_s: float


def longer_than(waits: Sequence[float], waited_s: float) -> list[float]:
    """Return how much longer those took that had waited as long already.

    >>> longer_than([10.0, 70.0, 100.0], 60.0)
    [10.0, 40.0]
    """
    return [wait - waited_s for wait in waits if wait > waited_s]


def quantiles(waits: Sequence[float]) -> Quantiles | None:
    """Return the nearest-rank quantiles; None where there is too little data.

    >>> quantiles([*range(1, 101)])
    Quantiles(number=100, half_s=50, nine_tenths_s=90)
    """
    if len(waits) < FEWEST:
        return None
    ordered = sorted(waits)
    half, most = (ordered[ceil(part * len(ordered)) - 1] for part in (0.5, 0.9))
    return Quantiles(len(ordered), half, most)
