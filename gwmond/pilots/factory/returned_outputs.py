"""Which outputs of pilots with one number have come back, each once.

An output is identified by when its pilot began, None if it does not say, and by what time it counts
(its pilot's end, else when it was written; the latest that was read; microseconds since the
epoch).  One that says nothing is of any pilot: what comes then, and says something, takes its
place; of what comes together that is taken first.  Copies are not distinguished.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gwmond.model.factory.jobs import MOST, Output
from gwmond.model.pilots.file_facts import PilotOutput


class OutputNoLongerEmpty(NamedTuple):
    """An output that says something now, and said nothing when it was first taken in."""

    output: PilotOutput


def taken(
    outputs: Sequence[Output], facts: Iterable[PilotOutput]
) -> tuple[tuple[Output, ...], list[PilotOutput | OutputNoLongerEmpty]]:
    """Return outputs with these, the first of very many, and which of these are new or fill one."""
    known, new = dict(outputs), list[PilotOutput | OutputNoLongerEmpty]()
    for fact in sorted(facts, key=lambda fact: fact.start_us is None):
        start_us, at_us = fact.start_us, fact.at_us or 0
        if start_us in known:
            known[start_us] = max(at_us, known[start_us])
        elif None in known:
            del known[None]
            known[start_us] = at_us
            new.append(OutputNoLongerEmpty(fact))
        elif len(known) < MOST and (start_us is not None or not known):
            known[start_us] = at_us
            new.append(fact)
    return tuple(known.items()), new
