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
    ``regroup``: its jobs are offered again as those of no group (GROUP_AUTOREGROUP).
    ``subtree_quota``: what it and the groups below may use together (SubtreeQuota; None: quota);
    ``never``: its configuration gives it nothing.
    """

    sort_key: float
    quota: float
    used: float
    surplus: bool
    subtree_quota: float | None = None
    never: bool = False
    regroup: bool = False


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


_NEARLY = 0.95
"""The part of a schedd's limits at which a frontend stops."""


class ScheddLoad(NamedTuple):
    """What a schedd's ad says of its load and its limits.

    - ``running`` jobs, of ``most_running`` at most (MAX_JOBS_RUNNING).
    - ``uploading``: transfers to jobs, of ``most_uploading`` at most (0: of any number).
    - ``duty_cycle``: which part of the time its main loop is busy, 0 to 1.
    - ``curbed``: it asks the negotiator for no slots (CurbMatchmaking).
    - ``starts_none``: universes of whose jobs, which it runs itself, it starts none now.
    """

    running: int | None = None
    most_running: int | None = None
    uploading: int | None = None
    most_uploading: int | None = None
    duty_cycle: float | None = None
    curbed: bool = False
    starts_none: frozenset[int] = frozenset()

    @property
    def overload(self) -> str:
        """Why a frontend leaves out its idle jobs, in words; empty: it counts them.

        Source: GlideinWMS, glideinFrontendElement.py, identify_bad_schedds.
        """
        if self.curbed:
            duty = "" if self.duty_cycle is None else f", duty cycle {self.duty_cycle:.0%}"
            return f"CurbMatchmaking{duty}"
        if self.most_running is not None and _is_near(self.running, self.most_running):
            return f"it runs {self.running} of at most {self.most_running} jobs"
        if self.most_uploading and _is_near(self.uploading, self.most_uploading):
            return f"it sends files to {self.uploading} of at most {self.most_uploading} jobs"
        return ""


def _is_near(number: int | None, most: int) -> bool:
    return number is not None and number >= int(most * _NEARLY + 0.5)


class Limits(NamedTuple):
    """What limits all jobs: the quotas of accounting groups, and the load of schedds."""

    groups: Mapping[str, AccountingQuota] = MappingProxyType({})
    schedds: Mapping[str, ScheddLoad] = MappingProxyType({})

    def order(self, schedd: str) -> Order:
        """Return what is known of the order of a schedd's jobs."""
        return Order({}, self.groups, (), None, self.schedds.get(schedd, ScheddLoad()))


NO_LIMITS = Limits()


class Order(NamedTuple):
    """What decides when a job is served.

    - ``negotiators``: those that advertise.
    - ``own_ahead``: idle jobs of the same submitter that its schedd offers before this one.
    - ``load``: that of the job's schedd.
    - ``schedds``: those that have idle jobs of the submitters.
    """

    submitters: Mapping[str, Submitter]
    groups: Mapping[str, AccountingQuota]
    negotiators: tuple[Negotiator, ...]
    own_ahead: int | None
    load: ScheddLoad
    schedds: frozenset[str] = frozenset()

    @property
    def cycle_began(self) -> int | None:
        """When the last negotiation began."""
        return max((n.began for n in self.negotiators if n.began is not None), default=None)

    def is_known_after(self, time: int) -> bool:
        """Return whether each negotiation that began after a time would be known, or some later."""
        return all(n.as_of is None or n.as_of >= time for n in self.negotiators)
