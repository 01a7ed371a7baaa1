"""Which outputs of pilots with one number have come back, each once.

An output is told by when its pilot began, None if it tells nothing, and by what time it counts
(its pilot's end, else when it was written; microseconds since the epoch).  One that tells nothing
is of any pilot: what comes then, and tells something, takes its place.  Copies are not told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from gwmond.accounting.pilot_evidence import PilotOutput

Output: TypeAlias = tuple[int | None, int]


class Filled(NamedTuple):
    """An output that tells something now, and told nothing when it was first taken in."""

    output: PilotOutput


def taken(outputs: Sequence[Output], fact: PilotOutput) -> list[Output]:
    """Return outputs with one more, if it is new or fills one that told nothing."""
    starts = [start_us for start_us, _ in outputs]
    if fact.start_us in starts or (starts and fact.start_us is None):
        return list(outputs)
    if None in starts:
        return [_of(fact) if start_us is None else (start_us, at) for start_us, at in outputs]
    return [*outputs, _of(fact)]


def news(
    before: Sequence[Output], after: Sequence[Output], facts: Iterable[PilotOutput]
) -> list[PilotOutput | Filled]:
    """Return which facts made the outputs of before those of after, each once."""
    filled = [new for old, new in zip(before, after, strict=False) if new != old]
    fresh = list(after[len(before) :])
    found: list[PilotOutput | Filled] = []
    for fact in facts:
        if _of(fact) in filled:
            filled.remove(_of(fact))
            found.append(Filled(fact))
        elif _of(fact) in fresh:
            fresh.remove(_of(fact))
            found.append(fact)
    return found


def _of(fact: PilotOutput) -> Output:
    return fact.start_us, fact.at_us or 0
