"""Which of several reports on one thing is believed: the latest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TypeVar

H = TypeVar("H")
K = TypeVar("K")


def freshest(
    items: Iterable[H],
    key: Callable[[H], K],
    last_heard: Callable[[H], float] = attrgetter("last_heard"),
) -> dict[K, H]:
    """Keep one item per key: the one heard of last, of equally old ones the first."""
    kept: dict[K, H] = {}
    for item in items:
        same = key(item)
        if (before := kept.get(same)) is None or last_heard(before) < last_heard(item):
            kept[same] = item
    return kept
