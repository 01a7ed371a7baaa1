"""Counters as the ledger holds them, the series of site time, and amounts by hour, exactly.

Units: an amount is an exact ``int`` of micro canonical seconds (10^-6 of one canonical unit for
one second) and never a float; an hour is ``epoch // 3600`` in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from gwmond.model.times import HOUR_US
from gwmond.model.units import MICRO, Resource

Micros: TypeAlias = int
Hour: TypeAlias = int


class SiteKey(NamedTuple):
    """One series of site time: the labels of ``gwmond_site_canonical_seconds_total``."""

    resource: Resource
    state: str
    reason: str
    site: str
    entry: str


class Total(NamedTuple):
    """A counter: ``micros`` (or a number) as shown, which never falls, and since when (epoch s).

    It is the highest that the sum has been; ``below``: how far corrections have taken the sum
    below that.
    """

    micros: Micros
    created: float
    below: Micros = 0

    @property
    def net(self) -> Micros:
        """The sum, net of corrections."""
        return self.micros - self.below


class HourTotal(NamedTuple):
    """The share of one series in one hour."""

    hour: Hour
    key: SiteKey
    micros: Micros


def microseconds(time: float) -> int:
    """Return a time in seconds as whole microseconds (an epoch has no finer digits in a float)."""
    return round(time * MICRO)


def split_hours(micros: Micros, start_us: int, end_us: int) -> Iterator[tuple[Hour, Micros]]:
    """Divide ``micros`` spent evenly over [start_us, end_us) among its UTC hours.

    Invariants: the shares sum to ``micros``; each is within one micro of its exact proportion, and
    never negative; the same input always gives the same shares (the amount up to a boundary is
    rounded down, so the remainder goes to the later hour).  Empty shares are left out.  An
    interval of no length belongs to the hour of its start.

    >>> list(split_hours(10, 3_599_000_000, 3_602_000_000))
    [(0, 3), (1, 7)]
    """
    if micros < 0 or end_us < start_us:
        raise ValueError(f"cannot divide {micros} micros over [{start_us}, {end_us}) us")
    hour, length, before = start_us // HOUR_US, end_us - start_us, 0
    while before < micros:
        boundary = (hour + 1) * HOUR_US
        spent = micros if boundary >= end_us else micros * (boundary - start_us) // length
        if spent > before:
            yield hour, spent - before
        hour, before = hour + 1, spent


def to_columns(micros: Micros) -> tuple[int, int]:
    """Return whole canonical seconds and the micros left of them.

    >>> to_columns(12_345_678)
    (12, 345678)
    """
    return divmod(micros, MICRO)


def from_columns(whole: int, micros: int) -> Micros:
    """Return the amount of two columns, or of two sums of columns.

    >>> from_columns(12, 345_678)
    12345678
    """
    return int(whole) * MICRO + int(micros)
