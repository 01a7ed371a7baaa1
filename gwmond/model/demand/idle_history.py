"""Since when groups of idle jobs wait for which reason: rows of the ledger, and what makes them.

How long jobs and pilots waited lately: what is said of one that waits now rests on that.

Units: times are microseconds since the epoch, waits of the past are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple, TypeAlias, TypeVar

from gwmond.model.times import DAY_US

T = TypeVar("T")

MOST_GROUPS = 2000
"""So many groups of jobs are followed, those with most jobs."""
A_DAY = 48
"""So many intervals of one group begin in a day (UTC); what comes then is one more, ``several``."""
SEVERAL = "several"

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

    def step(self, now_us: int, idle: Mapping[GroupKey, Waits], gap_us: int) -> list[WaitInterval]:
        """Return the intervals that end or begin now.

        After a gap longer than ``gap_us`` nothing is known of what was between: what lasted ends
        before it.
        """
        last_us, self._last_us = self._last_us, now_us
        lasts = last_us is not None and 0 <= now_us - last_us <= gap_us
        if now_us // DAY_US != self._day:
            self._day, self._begun = now_us // DAY_US, {}
        changed = []
        for key, row in list(self._open.items()):
            if not lasts or key not in idle:
                end_us = now_us if lasts or last_us is None else last_us
                changed.append(row._replace(until_us=max(end_us, row.since_us)))
                del self._open[key]
        for key, now in idle.items():
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


FEWEST = 20
"""Of fewer waits no quantile is said."""


class Begun(NamedTuple):
    """A job that began: when it was queued, and when its first run started (epoch seconds)."""

    queued_s: float
    start_s: float


class PastWaits(NamedTuple):
    """Jobs that began, by their user, and waits of pilots by the name of their entry."""

    jobs: Mapping[str, Sequence[Begun]]
    pilots: Mapping[str, Sequence[float]]


class Quantiles(NamedTuple):
    """Of ``number`` waits half are at most ``half_s``, nine of ten at most ``nine_tenths_s``."""

    number: int
    half_s: float
    nine_tenths_s: float


def nearest_rank(ordered: Sequence[T], part: float) -> T:
    """Return what that part of some values, the least first, is at most; there must be one.

    >>> nearest_rank([10, 70], 0.5), nearest_rank([10, 70], 0.9)
    (10, 70)
    """
    return ordered[ceil(part * len(ordered)) - 1]


def quantiles(waits: Sequence[float]) -> Quantiles | None:
    """Return the nearest-rank quantiles; None where there is too little data.

    >>> quantiles([*range(1, 101)])
    Quantiles(number=100, half_s=50, nine_tenths_s=90)
    """
    if len(waits) < FEWEST:
        return None
    ordered = sorted(waits)
    return Quantiles(len(ordered), nearest_rank(ordered, 0.5), nearest_rank(ordered, 0.9))
