"""How many pilots have waited in a site's queue for longer than the grace.

Units: pilots are counted, times are whole seconds of one clock.

Source of the rules: design page, section 4: no pilot waiting is the sign that the site has room
for us; one waiting longer than a grace period means that the site is saturated.

Where the factory's own queue can be read the ages are known, and the count is ``measured``.  The
glideresource ads only carry the number of waiting pilots; then the ages are ``estimated`` as if
the queue were first in, first out: of those that waited one grace ago, the ones which have
started since are gone, and no more are left than waited at any moment since.

An entry *fills* as long as pilots wait there, none longer than the grace.  One that has been
filling for longer than that, while pilots started, has room: pilots wait there only because a few
are requested at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gwmond.facts import Evidence

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


class Filling(NamedTuple):
    """An entry fills ``since`` a time; pilots waited there ``last``."""

    since: int
    last: int

    def is_long(self, started: Iterable[int], now_s: int, grace_s: int) -> bool:
        """Return whether it has been filling for longer than the grace, and pilots kept starting.

        ``started`` are the times at which pilots of this entry started.
        """
        return now_s - self.since > grace_s and any(time > now_s - grace_s for time in started)


def filling(
    before: Filling | None, wait: Waiting | None, now_s: int, grace_s: int
) -> Filling | None:
    """Return since when an entry fills; ``wait`` is None where its queue is not known now.

    Between two pilots that wait, one at a time, none waits for a moment: an entry where none has
    waited for a grace does not fill any more, and one that is saturated has no room.
    """
    if before is not None and not 0 <= now_s - before.last <= grace_s:
        before = None
    if wait is not None and wait.beyond > 0:
        return None
    if wait is None or wait.pending == 0:
        return before
    return Filling(now_s if before is None else before.since, now_s)


class Sample(NamedTuple):
    """``pending`` pilots waited at ``time``; ``low`` is the least from then to the next sample."""

    time: int
    pending: int
    low: int


def measured(pending: int, beyond: int) -> Waiting:
    """Return what the factory's queue tells: ``beyond`` of the ``pending`` exceeded the grace."""
    beyond = min(max(beyond, 0), pending)
    return Waiting(beyond, pending - beyond, "measured")


class PendingHistory(NamedTuple):
    """How many pilots of one entry waited, over the last grace.

    Invariant: times rise strictly; at most one sample is as old as the grace or older, and there
    are at most ``RESOLUTION + 2``.
    """

    samples: tuple[Sample, ...] = ()

    def add(self, now_s: int, pending: int, grace_s: int) -> PendingHistory:
        """Return the history after ``pending`` pilots were seen to wait at ``now_s``.

        A clock that went backwards voids what was kept: nothing is known of that time any more.
        """
        kept = self.samples
        if kept and now_s < kept[-1].time:
            kept = ()
        if kept and now_s - kept[-1].time < grace_s / RESOLUTION:
            last = kept[-1]
            kept = (*kept[:-1], last._replace(low=min(last.low, pending)))
        else:
            kept = (*kept, Sample(now_s, pending, pending))
        old = [i for i, sample in enumerate(kept) if sample.time <= now_s - grace_s]
        return PendingHistory(kept[old[-1] :] if old else kept)

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
