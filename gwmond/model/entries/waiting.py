"""The number of waiting pilots of an entry over the last grace.

Units: pilots are counted, times are whole seconds of one clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gwmond.model.facts import Evidence

RESOLUTION = 32
"""A history keeps at most this many samples a grace, so what counts as beyond the grace has
waited for at most 1/32 of a grace more than that."""


class Waiting(NamedTuple):
    """Waiting pilots of one entry: longer than the grace, and not longer."""

    beyond: int
    within: int
    evidence: Evidence

    @property
    def pending(self) -> int:
        """All waiting pilots."""
        return self.beyond + self.within


class PendingSample(NamedTuple):
    """``pending`` pilots waited at ``time``; ``low`` is the least from then to the next sample."""

    time: int
    pending: int
    low: int


class PendingHistory(NamedTuple):
    """How many pilots of one entry waited, over the last grace.

    Invariant: times rise strictly; at most one sample is as old as the grace or older, and there
    are at most ``RESOLUTION + 2``.
    """

    samples: tuple[PendingSample, ...] = ()

    def add(self, now_s: int, pending: int, grace_s: int) -> PendingHistory:
        """Return the history after ``pending`` pilots were seen to wait at ``now_s``.

        If the clock went backwards, the history is void: that time is not known any more.
        """
        kept = self.samples
        if kept and now_s < kept[-1].time:
            kept = ()
        if kept and now_s - kept[-1].time < grace_s / RESOLUTION:
            last = kept[-1]
            kept = (*kept[:-1], last._replace(low=min(last.low, pending)))
        else:
            kept = (*kept, PendingSample(now_s, pending, pending))
        old = [i for i, sample in enumerate(kept) if sample.time <= now_s - grace_s]
        return PendingHistory(kept[old[-1] :] if old else kept)

    def at_most(self, number: int) -> PendingHistory:
        """Return the history after no more than so many waited, surely, since its last sample."""
        *old, last = self.samples
        return PendingHistory((*old, last._replace(low=min(last.low, number))))

    def is_within(self, now_s: int, grace_s: int) -> bool:
        """Return whether its last sample is of the last grace."""
        return bool(self.samples) and 0 <= now_s - self.samples[-1].time <= grace_s

    def least(self, now_s: int, grace_s: int) -> int:
        """Return how many there were at every moment of the last grace; 0 if it is not known."""
        if not self.samples or self.samples[0].time > now_s - grace_s:
            return 0
        return min(sample.low for sample in self.samples)

    def estimate(self, now_s: int, pending: int, started: Iterable[int], grace_s: int) -> Waiting:
        """Estimate how many of ``pending`` pilots have waited for longer than the grace.

        ``started`` are the times at which pilots of this entry started; those before the sample
        that is one grace old do not matter.  As long as no sample is that old all of them count
        as within the grace.
        """
        old = [i for i, sample in enumerate(self.samples) if sample.time <= now_s - grace_s]
        if not old or pending <= 0:
            return Waiting(0, max(pending, 0), "estimated" if pending > 0 else "measured")
        since = self.samples[old[-1] :]
        gone = sum(1 for time in started if since[0].time < time <= now_s)
        beyond = min(since[0].pending - gone, pending, *(sample.low for sample in since))
        beyond = max(beyond, 0)
        return Waiting(beyond, pending - beyond, "estimated")
