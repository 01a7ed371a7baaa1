"""Why pilots are held in the factory's queue: the reasons at an entry, the most frequent first.

Reasons are texts of the pool, with job ids, addresses and times in them: what differs only in
numbers is one reason, of which the most frequent text is shown.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from gwmond.model.facts import Held, Hold

_NUMBERS = re.compile(r"[0-9]+")


def alike(reason: str) -> str:
    """Return what a reason has in common with those that differ from it in numbers only."""
    return _NUMBERS.sub("#", reason)


def held(holds: Iterable[Hold], running: int, waiting: int) -> Held | None:
    """Return what is held at an entry where other pilots run and wait; None if nothing is."""
    texts: defaultdict[tuple[str, int | None], Counter[str]] = defaultdict(Counter)
    for reason, code, pilots in holds:
        texts[alike(reason), code][reason] += pilots
    total = sum(counts.total() for counts in texts.values())
    if not total:
        return None
    kinds = (_hold(code, counts) for (_, code), counts in sorted(texts.items(), key=_order))
    return Held(tuple(kinds), running == 0 and total > waiting)


def _order(item: tuple[tuple[str, int | None], Counter[str]]) -> tuple[int, str]:
    (text, _), counts = item
    return -counts.total(), text


def _hold(code: int | None, counts: Counter[str]) -> Hold:
    """Return a reason with the most frequent of its texts."""
    return Hold(min(counts, key=lambda text: (-counts[text], text)), code, counts.total())
