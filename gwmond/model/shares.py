"""Divide an amount among several, without losing or inventing anything.

Units: a rate is in 1/1000 of a unit, a time in microseconds, an amount in micros (10^-6 of one
unit for one second, which is one unit for one microsecond).

``apportion`` divides one total once, but it must not be used on a total that grows: with one micro
more a share can *fall* (the Alabama paradox of largest remainders), and the shares of two halves
of an interval need not sum to those of the whole.  The other functions depend on absolute time:
the share of an interval is the difference of two values.  Hence, exactly:

- shares of [a, b) and [b, c) sum to those of [a, c), wherever b is;
- shares sum to the amount; none is ever negative;
- each is within as many micros of its exact proportion as there are shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

MILLI = 1000


@lru_cache(maxsize=4096)
def milli(amount: float) -> int:
    """Return an amount in whole thousandths, never below zero.

    >>> milli(0.1) + milli(0.2) == milli(0.3), milli(-1)
    (True, 0)
    """
    return max(0, round(amount * MILLI))


def accrued(rate_milli: int, time_us: int) -> int:
    """Return how many whole micros a rate has brought up to a time.

    Invariant: exact for whole units; always ``accrued(r + 1000 * n, t) == accrued(r, t) + n * t``.

    >>> accrued(8000, 10), accrued(500, 3)
    (80, 1)
    """
    return rate_milli * time_us // MILLI


def cascade(total: int, weights: Sequence[int]) -> list[int]:
    """Return shares of ``total`` in proportion to ``weights``, which must not all be zero.

    Each takes its proportion, rounded down, of the rest; the last takes all of the rest.
    With one more in ``total`` exactly one share grows, by one, and none falls: the first share
    rises by 0 or 1, so that what it leaves does too, and so on.

    >>> cascade(10, [1, 1, 1]), cascade(11, [1, 1, 1]), cascade(7, [3, 0, 4])
    ([3, 3, 4], [3, 4, 4], [3, 0, 4])
    """
    weight_left = sum(weights)
    if weight_left <= 0:
        raise ValueError("nothing to divide in proportion to")
    if len(weights) == 1:
        return [total]
    shares = []
    for weight in weights:
        share = total * weight // weight_left if weight_left else 0
        shares.append(share)
        total -= share
        weight_left -= weight
    return shares


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Return whole shares of ``total`` in proportion to ``weights`` (method of largest remainders).

    Invariants: the shares sum to ``total``; each is its exact proportion rounded down or up, so
    with ``total <= sum(weights)`` none is above its weight; of equal remainders the first wins.
    Without any weight all shares are equal, as far as whole numbers allow.

    >>> apportion(10, [1, 1, 1]), apportion(5, [0, 0]), apportion(7, [3, 0, 4])
    ([4, 3, 3], [3, 2], [3, 0, 4])
    """
    if not weights:
        return []
    if not any(weights):
        weights = [1] * len(weights)
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    rest = total - sum(shares)
    by_remainder = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in by_remainder[:rest]:
        shares[i] += 1
    return shares
