"""The order in which a negotiator serves submitters, and what limits them.

Units: jobs are counted; ``used``, ``share`` and quotas are in slot weights (cores, unless
SLOT_WEIGHT says otherwise); times are epoch seconds.  None is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Submitter(NamedTuple):
    """A user, or a user within an accounting group, as the negotiator accounts them.

    ``priority`` is the effective one: the lower it is, the sooner its jobs are served.  ``share``:
    the fair share of the last negotiation (SubmitterLimit); ``idle`` jobs are those of all schedds.
    ``ceiling``: what it may use at most (condor_userprio -setceiling); None: anything.
    """

    group: str
    priority: float | None
    used: float | None
    share: float | None
    idle: int = 0
    ceiling: float | None = None


class AccountingQuota(NamedTuple):
    """An accounting group that has a quota; groups are served by ``sort_key``, the lowest first.

    ``quota`` is what it may use now (EffectiveQuota); with ``surplus`` also what others leave.
    ``subtree_quota``: what it and the groups below may use together (SubtreeQuota; None: quota);
    ``never``: its configuration gives it nothing.
    """

    sort_key: float
    quota: float
    used: float
    surplus: bool
    subtree_quota: float | None = None
    never: bool = False


class Negotiator(NamedTuple):
    """A negotiator in a collector, and when it last began and ended a cycle; None: it never did.

    ``as_of``: when that was so (None: now); ``period_s``: how long it takes from the end of one
    cycle to the end of the next.
    """

    name: str
    began: int | None
    ended: int | None
    as_of: int | None = None
    period_s: int | None = None


class ScheddLimit(NamedTuple):
    """Jobs that a schedd runs, and how many it runs at most (MAX_JOBS_RUNNING)."""

    running: int | None
    most_running: int | None


class Limits(NamedTuple):
    """What limits all jobs: the quotas of accounting groups, and the limits of schedds."""

    groups: Mapping[str, AccountingQuota] = MappingProxyType({})
    schedds: Mapping[str, ScheddLimit] = MappingProxyType({})

    def order(self, schedd: str) -> Order:
        """Return what is known of the order of a schedd's jobs."""
        limit = self.schedds.get(schedd, ScheddLimit(None, None))
        return Order({}, self.groups, (), None, *limit)


NO_LIMITS = Limits()


class Order(NamedTuple):
    """What decides when a job is served.

    - ``negotiators``: those that advertise.
    - ``own_ahead``: idle jobs of the same submitter that its schedd offers before this one.
    - ``running``, ``most_running``: jobs of the schedd, and how many it runs (MAX_JOBS_RUNNING).
    - ``schedds``: those that have idle jobs of the submitters.
    """

    submitters: Mapping[str, Submitter]
    groups: Mapping[str, AccountingQuota]
    negotiators: tuple[Negotiator, ...]
    own_ahead: int | None
    running: int | None
    most_running: int | None
    schedds: frozenset[str] = frozenset()

    @property
    def cycle_began(self) -> int | None:
        """When the last negotiation began."""
        return max((one.began for one in self.negotiators if one.began is not None), default=None)

    def is_known_after(self, time: int) -> bool:
        """Return whether each negotiation that began after a time would be known, or some later."""
        return all(one.as_of is None or one.as_of >= time for one in self.negotiators)
