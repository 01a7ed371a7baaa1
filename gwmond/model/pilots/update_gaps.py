"""How long a pilot's ad may go without an update: one rule for site time and pilots' time.

A startd renews its ads regularly (UPDATE_INTERVAL), and besides whenever its state changes.  So
of the times between two updates only the longest are regular ones: those to which several others
are about equal, as only a timer makes them; one alone was an update that got lost.  A startd's
first updates, at its start, are none of a timer.

An ad that was seen without an update for two of these is **stale**: its pilot was killed, or its
host is gone.  One that is gone before it was stale was invalidated: its pilot took leave.  So how
late a poll is, and how long a collector keeps ads (CLASSAD_LIFETIME), does not matter.  Where the
regular time is not known yet, two updates are two thirds of an ad's lifetime, as in HTCondor's
defaults (300 s of 900 s).

Pilots of one pool may have other timers than others.  Where ``LONG`` times of one pilot's own, one
after another, are equal, its own timer counts (``OwnGaps``).

Units: times are epoch seconds by the collector's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from gwmond.model.digits import is_number
from gwmond.model.times import HOUR_S

HOURS = 6
"""The longest times are those of the last hours."""

FEW = 5
"""So many times that are about equal are regular."""

LONG = 20
"""Ads have to be watched for so many of a regular time until it is believed."""

_KEPT = 20  # of each hour

Hour: TypeAlias = tuple[int, tuple[int, ...]]


class UpdateGaps(NamedTuple):
    """The longest times between two updates of one pilot's ads, by hour since the epoch."""

    hours: tuple[Hour, ...] = ()

    def add(self, now: int, gaps: Sequence[int]) -> UpdateGaps:
        """Return what is known after times (s) that ended about ``now``."""
        number = now // HOUR_S
        last = number - HOURS
        known = {hour: longest for hour, longest in self.hours if last < hour <= number}
        most = sorted((gap for gap in (*known.get(number, ()), *gaps) if gap > 0), reverse=True)
        kept = known | ({number: tuple(most[:_KEPT])} if most else {})
        return UpdateGaps(tuple(sorted(kept.items())))

    @property
    def regular(self) -> int | None:
        """The regular time between two updates (s); None if it is not known."""
        gaps = sorted((gap for _, longest in self.hours for gap in longest), reverse=True)
        near = zip(gaps, gaps[FEW - 1 :], strict=False)
        return next((gap for gap, least in near if least >= gap * 4 // 5), None)

    def two_updates(self, lifetime_s: int, watched_s: int | None = None) -> int:
        """Return after how many seconds without an update an ad is stale.

        ``watched_s``: for how long ads have been watched.  Jobs that are equally long look like a
        timer where few pilots are watched for a short time, so a regular time is believed after
        ``LONG`` times as long.
        """
        usual = self.regular
        if usual is not None and watched_s is not None and watched_s < LONG * usual:
            usual = None
        return lifetime_s * 2 // 3 if usual is None else min(2 * usual, lifetime_s)

    @property
    def text(self) -> str:
        """The same as it is stored: hours and times, each hour after a semicolon."""
        return ";".join(" ".join(map(str, (hour, *longest))) for hour, longest in self.hours)

    @classmethod
    def of(cls, text: str) -> UpdateGaps:
        """Return what is stored; nothing of a text of another form."""
        rows = [row.split() for row in text.split(";")]
        whole = [tuple(map(int, row)) for row in rows if len(row) > 1 and all(map(is_number, row))]
        rising = all(sooner[0] < later[0] for sooner, later in pairwise(whole))
        return cls(tuple((row[0], row[1:]) for row in whole) if rising else ())


class OwnGaps(NamedTuple):
    """The longest and the ``last`` time (s) between two updates of one pilot's ads.

    ``equal``: so many of the last ones, one after another, were equal, as a timer makes them.
    """

    longest: int = 0
    last: int = 0
    equal: int = 0

    def add(self, gap: int) -> OwnGaps:
        """Return what is known after one more."""
        same = abs(gap - self.last) <= 1 + gap // 100
        return OwnGaps(max(gap, self.longest), gap, self.equal + 1 if same else 1)

    def two_updates(self, lifetime_s: int, usual_s: int) -> int:
        """Return after how many seconds without an update its ad is stale.

        ``usual_s``: the same of others; without a timer of its own it may only be later.
        """
        timed = self.equal >= LONG and self.last >= self.longest * 4 // 5
        own = min(2 * self.longest, lifetime_s)
        return own if timed else max(own, usual_s)

    def is_late(self, age_s: int, usual_s: int) -> bool:
        """Return whether an update is overdue; ``usual_s``: the time between those of others."""
        return 4 * age_s > 5 * (self.longest if self.equal >= FEW else usual_s)


def is_timed(began: int, heard: int, gap: int) -> bool:
    """Return whether a timer may have made the time from ``heard`` to the next update.

    ``began``: when the startd was started, 0 if that is not known.
    """
    return heard - began >= 2 * gap


def watched_gap(heard: int, seen: int, heard_again: int, period: int) -> int:
    """Return the time between two updates of an ad, as far as it was watched.

    ``seen``: when a poll saw the first of them last: so long the ad lived without an update.  Where
    the next poll was late there may have been others between: at most a ``period`` more counts.
    """
    return min(heard_again - heard, max(0, seen - heard) + period)
