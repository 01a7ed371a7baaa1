"""A job's place in the order of the negotiator, and the limits that this order has.

The negotiator serves accounting groups by their sort keys, within a group the users with idle jobs
by effective priority, the lowest number first.  Each has a fair share first; what is left over goes
round again (HTCondor manual, "User Priorities and Negotiation").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gwmond.model.demand.order import Order, Submitter
from gwmond.model.demand.waiting_job import JobPlace, WaitingJob
from gwmond.model.entries.evaluation import IdleJobs
from gwmond.model.facts import Size
from gwmond.reports.render.formats import counted, number


class Rivals(NamedTuple):
    """How many other idle jobs, of the same schedd and of all, could run where a job could."""

    schedd: int
    every: int


class PlaceInOrder(NamedTuple):
    """Who is served before a job.

    ``users``: others with idle jobs; ``users_ahead`` of them are served before, and have
    ``jobs_ahead``; ``own_ahead``: jobs of the same user on the same schedd.  ``..._there``: at most
    so many of these could run where the job could; None: not known.  Used amounts, shares and
    quotas are in slot weights.
    """

    users: int
    users_ahead: int
    jobs_ahead: int
    own_ahead: int | None
    used: float | None
    share: float | None
    group: str
    group_used: float | None
    group_quota: float | None
    jobs_ahead_there: int | None = None
    own_ahead_there: int | None = None

    @property
    def nobody(self) -> bool:
        """Whether no job is ahead that could run where the job could."""
        others = self.users_ahead and self.jobs_ahead_there != 0
        return not others and 0 in (self.own_ahead, self.own_ahead_there)

    @property
    def counts_all(self) -> bool:
        """Whether jobs are counted of which it is not known where they could run."""
        return bool(self.jobs_ahead and self.jobs_ahead_there is None) or (
            self.own_ahead != 0 and self.own_ahead_there is None
        )

    def ahead(self) -> str:
        """Return, in words, who is ahead."""
        others = "no other user has idle jobs"
        if self.users:
            others = (
                f"{self.users_ahead} of {counted(self.users, 'other user')} with idle jobs "
                f"{_are(self.users_ahead)} ahead by effective priority, with "
                f"{counted(self.jobs_ahead, 'idle job')}"
                f"{_there(self.jobs_ahead, self.jobs_ahead_there)}"
            )
        own = counted(self.own_ahead, "idle job") if self.own_ahead is not None else "? idle jobs"
        return (
            f"{others}; {own} of its own user {_are(self.own_ahead)} ahead in the same schedd "
            f"(JobPrio, QDate){_there(self.own_ahead, self.own_ahead_there)}"
        )

    def text(self) -> str:
        """Return all of it in words."""
        parts = [self.ahead()]
        if self.used is not None and self.share is not None:
            share = f"a fair share of {number(self.share)}"
            parts.append(f"its user has {number(self.used)} of {share}")
        if self.group_quota is not None and self.group_used is not None:
            used = f"{number(self.group_used)} of its quota of {number(self.group_quota)}"
            parts.append(f"{self.group} uses {used}")
        return "; ".join(parts)


def _are(number: int | None) -> str:
    return "is" if number == 1 else "are"


def _there(number: int | None, there: int | None) -> str:
    """Return, in words, how many jobs of a number could run where the job could, if not all may."""
    if not number or there is None or there >= number:
        return ""
    return f", of which {f'at most {there}' if there else 'none'} could run where it could"


def rivals(job: WaitingJob, idle: Iterable[IdleJobs], places: Sequence[JobPlace]) -> Rivals | None:
    """Return how many others of a poll's idle jobs could run at places where a job could.

    By the kinds of pilots that they match, and the sizes that are free there.  None where the poll
    does not see the job there, as where nodes of one entry differ.
    """
    rooms: dict[tuple[str, ...], set[Size]] = {}
    for place in places:
        rooms.setdefault((*place.entry, place.group), set()).add(place.size)
    schedd = every = 0
    for group, kinds in ((jobs.group, jobs.kinds) for jobs in idle):
        sizes = {size for kind in kinds for size in rooms.get((*kind.entry, kind.group), ())}
        there = any(group.size.is_within(size) for size in sizes)
        is_own = (group.schedd, group.identity) == (job.schedd, job.identity)
        if is_own and not there:
            return None
        number = (group.jobs - is_own) * there
        every += number
        schedd += number * (group.schedd == job.schedd)
    return Rivals(schedd, every)


def place(
    job: WaitingJob, order: Order | None, rivals: Rivals | None = None
) -> PlaceInOrder | None:
    """Return a job's place; None where the negotiator accounts nothing of its user."""
    mine = None if order is None else order.submitters.get(job.submitter)
    if order is None or mine is None or mine.priority is None:
        return None
    others = [s for name, s in order.submitters.items() if name != job.submitter and s.idle]
    ahead = [other for other in others if _before(other, mine, order)]
    quota = order.groups.get(mine.group) if "<" not in mine.group else None
    jobs, own = sum(other.idle for other in ahead), order.own_ahead
    return PlaceInOrder(
        users=len(others),
        users_ahead=len(ahead),
        jobs_ahead=jobs,
        own_ahead=own,
        used=mine.used,
        share=mine.share,
        group=mine.group,
        group_used=None if quota is None else quota.used,
        group_quota=None if quota is None else quota.quota,
        jobs_ahead_there=None if rivals is None else min(jobs, rivals.every),
        own_ahead_there=None if rivals is None or own is None else min(own, rivals.schedd),
    )


class FullQuota(NamedTuple):
    """A quota, or a ceiling, that is used up: whose, and what is used of it.

    ``above``: it is that of a group above the job's; what all groups below it use counts.
    """

    name: str
    used: float
    quota: float
    above: bool = False


def full_group(job: WaitingJob, order: Order | None) -> FullQuota | None:
    """Return the accounting group whose quota is used up for a job: its own, or one above it.

    The job's own group is that of the longest name that the negotiator knows.  A group that takes
    the surplus of others is bound by the groups above it only, and one that regroups by none; what
    a group and all below it use counts together, and a quota of 0 is one of all below it.  While
    anything is left, a job of any size is given a slot; without slots all quotas are 0 (HTCondor,
    matchmaker.cpp, SubmitterLimitPermits; see tests/explain/test_quotas).
    """
    submitter = job.submitter.partition("@")[0]
    name = (submitter.rpartition(".")[0] if submitter else job.accounting_group).lower()
    names = {} if order is None else {name.lower(): name for name in order.groups}
    above = False
    while order is not None and name:
        if (group := names.get(name)) is not None:
            quota = order.groups[group]
            if quota.regroup and not above:
                return None
            below = sum(q.used for g, q in order.groups.items() if g.lower().startswith(f"{name}."))
            whole = quota.quota if quota.subtree_quota is None else quota.subtree_quota
            own = () if above else ((quota.used, quota.quota),)
            for used, limit in (*own, (quota.used + below, whole)):
                is_full = 0 < used >= limit or (quota.never and not limit)
                if is_full and not quota.surplus:
                    return FullQuota(group, used, limit, above)
            above = True
        name = name.rpartition(".")[0]
    return None


def full_ceiling(job: WaitingJob, order: Order | None) -> FullQuota | None:
    """Return the ceiling of a job's submitter if it is used up."""
    mine = None if order is None else order.submitters.get(job.submitter)
    if mine is None or mine.ceiling is None or (mine.used or 0.0) < mine.ceiling:
        return None
    return FullQuota(job.submitter, mine.used or 0.0, mine.ceiling)


def _before(other: Submitter, mine: Submitter, order: Order) -> bool:
    """Return whether another submitter is served first; one of unknown priority is not."""
    if other.priority is None or mine.priority is None:
        return False
    if other.group == mine.group:
        return other.priority < mine.priority
    theirs, own = order.groups.get(other.group), order.groups.get(mine.group)
    return theirs is not None and own is not None and theirs.sort_key < own.sort_key


def words(job: WaitingJob, order: Order | None, rivals: Rivals | None = None) -> str:
    """Return a job's place in words, and on what they rest."""
    if order is None:
        return "not known: the negotiator's ads, or the schedd, could not be read"
    position = place(job, order, rivals)
    if position is None:
        return "not known: the negotiator accounts nothing of its user yet"
    why = "not all of these jobs want the same pilots"
    if not position.counts_all:
        why = "by the groups of idle jobs of the last poll"
    return f"{position.text()} (estimated: {why})"


def record(position: PlaceInOrder | None) -> dict[str, Any] | None:
    """Return it as JSON has it."""
    return None if position is None else position._asdict() | {"evidence": "estimated"}
