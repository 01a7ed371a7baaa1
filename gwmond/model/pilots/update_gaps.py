"""How long a pilot's ad may go without an update: one rule for site time and pilots' time.

A startd renews its ads regularly (UPDATE_INTERVAL), and besides whenever its state changes.  So
of the times between two updates only the longest are regular ones: those to which several others
are about equal, as only a timer makes them; one alone was an update that got lost.  A startd's
first updates, at its start, are none of a timer (``is_timed``).  Pilots that end before their timer
comes round show changes of state only, which may be about equal by chance.  So nothing is believed
where a tenth of all times, and ``FEW``, were more than twice as long.

An ad that was seen without an update for two of these is **stale**: its pilot was killed, or its
host is gone.  One that is gone before it was stale was invalidated: its pilot took leave.  So how
late a poll is, and how long a collector keeps ads (CLASSAD_LIFETIME), does not matter.  Where the
regular time is not known yet, two updates are two thirds of an ad's lifetime, as in HTCondor's
defaults (300 s of 900 s).

Pilots of one pool may have other timers than others.  Those with room for jobs that only send have
one of a minute (etc/condor/overlap.conf), so their times say nothing of other pilots.  Where
``LONG`` times of one pilot's own, one after another, are equal, its own timer counts (``OwnGaps``).

Units: times are epoch seconds by the collector's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
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

Hour: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]
"""An hour since the epoch, the longest times, and how many of all had 0, 1, 2 ... binary digits."""


class UpdateGaps(NamedTuple):
    """The longest times between two updates of one pilot's ads, by hour since the epoch."""

    hours: tuple[Hour, ...] = ()

    def add(self, now: int, gaps: Sequence[int], others: Sequence[int] = ()) -> UpdateGaps:
        """Return what is known after times (s) that ended about ``now``.

        ``others``: those that no timer has made.
        """
        number = now // HOUR_S
        last = number - HOURS
        kept = [hour for hour in self.hours if last < hour[0] < number]
        _, longest, before = next(
            (hour for hour in self.hours if hour[0] == number), (number, (), ())
        )
        digits = Counter(dict(enumerate(before)))
        digits.update(gap.bit_length() for gap in (*gaps, *others) if gap > 0)
        if not digits.total():
            return UpdateGaps(tuple(kept))
        most = sorted((gap for gap in (*longest, *gaps) if gap > 0), reverse=True)[:_KEPT]
        counts = tuple(digits[number] for number in range(max(digits) + 1))
        return UpdateGaps((*kept, (number, tuple(most), counts)))

    @property
    def regular(self) -> int | None:
        """The regular time between two updates (s); None if it is not known."""
        gaps = sorted((gap for _, timed, _ in self.hours for gap in timed), reverse=True)
        near = zip(gaps, gaps[FEW - 1 :], strict=False)
        found = next((gap for gap, least in near if least >= gap * 4 // 5), None)
        if found is None:
            return None
        counts = list(chain.from_iterable(enumerate(counts) for *_, counts in self.hours))
        longer = sum(number for digits, number in counts if 1 << digits > 4 * found)
        return None if longer >= max(FEW, sum(number for _, number in counts) // 10) else found

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
        """The same as it is stored: hours and times, each hour after a semicolon.

        How many times there were is after a comma.
        """
        return ";".join(
            f"{' '.join(map(str, (hour, *longest)))},{' '.join(map(str, counts))}"
            for hour, longest, counts in self.hours
        )

    @classmethod
    def of(cls, text: str) -> UpdateGaps:
        """Return what is stored; nothing of a text of another form."""
        rows = [[part.split() for part in row.partition(",")[::2]] for row in text.split(";")]
        whole = [
            [tuple(map(int, part)) for part in row]
            for row in rows
            if row[0] and sum(map(len, row)) > 1 and all(map(is_number, chain(*row)))
        ]
        rising = all(sooner[0][0] < later[0][0] for sooner, later in pairwise(whole))
        return cls(tuple((row[0][0], row[0][1:], row[1]) for row in whole) if rising else ())


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
