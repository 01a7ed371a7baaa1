"""Pilots whose output cannot be read for now (permissions, a stale file handle): to be read later.

They are kept in a directory's cursor, so that what comes after them is read meanwhile, and they
are once they can be.  That has to be short, however many they are: pilots that follow each other in
the order of reading are one ``UnreadSpan``, as where nothing in a directory, or nothing older, can
be read.  Of a pilot whose file's status cannot be read the number is kept, as its place is not
known.

Where there is no room for more (``MAX_SPANS``, ``MAX_NUMBERS``) reading goes no further.

A pilot that waits and of which the file is gone is forgotten; of one that loses the later of its
two files the other may not be read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MAX_SPANS = 200
MAX_NUMBERS = 200

Position: TypeAlias = tuple[int, int, int]
"""When a pilot's files last changed (ctime, nanoseconds since the epoch), cluster, proc."""

Number: TypeAlias = tuple[int, int]
"""A pilot's cluster and proc."""


class UnreadSpan(NamedTuple):
    """All pilots from one to another, both of them too."""

    first: Position
    last: Position


def within(spans: Sequence[UnreadSpan], positions: Sequence[Position]) -> list[Position]:
    """Return those of some positions that are in spans; all are in order.

    >>> within([UnreadSpan((1, 1, 0), (3, 1, 0))], [(1, 0, 0), (1, 1, 0), (2, 7, 0), (4, 1, 0)])
    [(1, 1, 0), (2, 7, 0)]
    """
    found: list[Position] = []
    for span in spans:
        found += positions[bisect_left(positions, span.first) : bisect_right(positions, span.last)]
    return found


def without(
    spans: Sequence[UnreadSpan], positions: Sequence[Position], read: Collection[Position]
) -> tuple[UnreadSpan, ...]:
    """Return spans without the pilots that were read; ``positions``: those of all that are there.

    >>> spans, there = [UnreadSpan((1, 0, 0), (9, 0, 0))], [(n, 0, 0) for n in (1, 2, 5, 9)]
    >>> [(of.first[0], of.last[0]) for of in without(spans, there, [(2, 0, 0)])]
    [(1, 1), (5, 9)]
    >>> without(spans, [], [])
    ()
    """
    found: list[UnreadSpan] = []
    for span in spans:
        follows = False
        for position in within([span], positions):
            if position in read:
                follows = False
                continue
            first = found.pop().first if follows else position
            found.append(UnreadSpan(first, position))
            follows = True
    return tuple(found)
