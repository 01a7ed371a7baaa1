"""Why pilots are held in the factory's queue: the most frequent reason at an entry, and its share.

Reasons are texts of the pool, with job ids, addresses and times in them: what differs only in
numbers is one reason, of which the most frequent text is shown.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from gwmond.model.facts import Held

_NUMBERS = re.compile(r"[0-9]+")


class Hold(NamedTuple):
    """So many pilots that are held for a reason, with its HoldReasonCode."""

    reason: str
    code: int | None
    pilots: int


def held(holds: Iterable[Hold], running: int, waiting: int) -> Held | None:
    """Return what is held at an entry where other pilots run and wait; None if nothing is."""
    texts: defaultdict[tuple[str, int | None], Counter[str]] = defaultdict(Counter)
    for reason, code, pilots in holds:
        texts[_NUMBERS.sub("#", reason), code][reason] += pilots
    if not (total := sum(alike.total() for alike in texts.values())):
        return None
    (_, code), alike = min(texts.items(), key=lambda one: (-one[1].total(), one[0][0]))
    reason = min(alike, key=lambda text: (-alike[text], text))
    return Held(total, reason, code, alike.total(), running == 0 and total > waiting)
