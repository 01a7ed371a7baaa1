"""Divide a whole number in proportion to weights, without losing or inventing anything."""

from __future__ import annotations

from collections.abc import Sequence


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
