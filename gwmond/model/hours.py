"""Divide an amount among the hours in which it was spent, exactly; and amounts as two integers.

An amount over years does not fit 64 bits as micro canonical seconds (10^5 units are 3 * 10^18 a
year), so it is stored as whole canonical seconds and the micros 0 ... 999,999 left of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from gwmond.model.times import HOUR_US
from gwmond.model.totals import Hour, Micros
from gwmond.model.units import MICRO


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
    hour, length, given = start_us // HOUR_US, end_us - start_us, 0
    while given < micros:
        boundary = (hour + 1) * HOUR_US
        spent = micros if boundary >= end_us else micros * (boundary - start_us) // length
        if spent > given:
            yield hour, spent - given
        hour, given = hour + 1, spent


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
