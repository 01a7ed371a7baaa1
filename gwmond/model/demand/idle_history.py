"""Since when groups of idle jobs wait for which reason: rows of the ledger, and what makes them.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from gwmond.model.times import SECOND_US

MOST_GROUPS = 2000
"""So many groups of jobs are followed, those with most jobs."""
A_DAY = 48
"""So many intervals of one group begin in a day (UTC); what comes then is one more, ``several``."""
SEVERAL = "several"
_DAY_US = 86_400 * SECOND_US

GroupKey: TypeAlias = tuple[str, str]
"""A schedd, and the identity of a group of its jobs (see ``DemandGroup``)."""


class Waits(NamedTuple):
    """The reason of a group's idle jobs now; ``wants``: what records of its runs know of it."""

    wants: str
    reason: str
    cause: str
    site: str


class WaitInterval(NamedTuple):
    """One reason why jobs of a group waited, and how long; ``until_us``: None while it lasts.

    ``reason``, ``cause`` and ``site`` are those of ``IdleReason``.
    """

    schedd: str
    identity: str
    since_us: int
    until_us: int | None
    wants: str
    reason: str
    cause: str
    site: str

    @property
    def waits(self) -> Waits:
        """The reason."""
        return Waits(self.wants, self.reason, self.cause, self.site)


class WaitLog:
    """The intervals that last, after the last poll that was stored (``last_us``)."""

    def __init__(self, lasting: Iterable[WaitInterval] = (), last_us: int | None = None) -> None:
        self._open = {(row.schedd, row.identity): row for row in lasting}
        self._last_us = last_us
        self._begun: dict[GroupKey, int] = {}  # intervals today
        self._day = 0

    def step(self, now_us: int, found: Mapping[GroupKey, Waits], gap_us: int) -> list[WaitInterval]:
        """Return the intervals that end or begin now.

        After a gap longer than ``gap_us`` nothing is known of what was between: what lasted ends
        before it.
        """
        last_us, self._last_us = self._last_us, now_us
        lasts = last_us is not None and 0 <= now_us - last_us <= gap_us
        if now_us // _DAY_US != self._day:
            self._day, self._begun = now_us // _DAY_US, {}
        changed = []
        for key, row in list(self._open.items()):
            if not lasts or key not in found:
                end_us = now_us if lasts or last_us is None else last_us
                changed.append(row._replace(until_us=max(end_us, row.since_us)))
                del self._open[key]
        for key, now in found.items():
            before, number = self._open.get(key), self._begun.get(key, 0)
            waits = now if number < A_DAY else Waits(now.wants, SEVERAL, SEVERAL, SEVERAL)
            if before is not None and before.waits in (now, waits):
                continue
            self._begun[key] = number + 1
            if before is not None:
                changed.append(before._replace(until_us=now_us))
            wants, *reason = waits
            self._open[key] = WaitInterval(*key, now_us, None, wants, *reason)
            changed.append(self._open[key])
        return changed
