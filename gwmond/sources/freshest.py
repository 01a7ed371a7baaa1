"""What was heard of last, of what several have told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TypeVar

H = TypeVar("H")
K = TypeVar("K")
_last_heard = attrgetter("last_heard")


def freshest(
    found: Iterable[H], key: Callable[[H], K], last_heard: Callable[[H], float] = _last_heard
) -> dict[K, H]:
    """Keep one item per key: the one heard of last, of equally old ones the first."""
    latest: dict[K, H] = {}
    for one in found:
        same = key(one)
        if (before := latest.get(same)) is None or last_heard(before) < last_heard(one):
            latest[same] = one
    return latest
