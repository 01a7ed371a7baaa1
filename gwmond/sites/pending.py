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

from gwmond.model.entries.waiting import Waiting


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


def measured(pending: int, beyond: int) -> Waiting:
    """Return what the factory's queue says: ``beyond`` of the ``pending`` exceeded the grace."""
    beyond = min(max(beyond, 0), pending)
    return Waiting(beyond, pending - beyond, "measured")
