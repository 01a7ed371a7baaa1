"""A job's place in the order of the negotiator, and the limits that this order has.

The negotiator serves accounting groups by their sort keys, within a group the users with idle jobs
by effective priority, the lowest number first.  Each has a fair share first; what is left over goes
round again (HTCondor manual, "User Priorities and Negotiation").
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gwmond.model.order import AccountingQuota, Order, Submitter
from gwmond.model.waiting_job import WaitingJob
from gwmond.reports.render.formats import counted, number


class PlaceInOrder(NamedTuple):
    """Who is served before a job.

    ``users``: others with idle jobs; ``users_ahead`` of them are served before, and have
    ``jobs_ahead``; ``own_ahead``: jobs of the same user on the same schedd.  Used amounts, shares
    and quotas are in slot weights.
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

    @property
    def nobody(self) -> bool:
        """Whether no user, and no job of the same user, is ahead."""
        return not self.users_ahead and self.own_ahead == 0

    def ahead(self) -> str:
        """Return, in words, who is ahead."""
        others = "no other user has idle jobs"
        if self.users:
            others = (
                f"{self.users_ahead} of {counted(self.users, 'other user')} with idle jobs "
                f"{_are(self.users_ahead)} ahead by effective priority, with "
                f"{counted(self.jobs_ahead, 'idle job')}"
            )
        own = counted(self.own_ahead, "idle job") if self.own_ahead is not None else "? idle jobs"
        return (
            f"{others}; {own} of its own user {_are(self.own_ahead)} ahead in the same schedd "
            "(JobPrio, QDate)"
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


def place(job: WaitingJob, order: Order | None) -> PlaceInOrder | None:
    """Return a job's place; None where the negotiator accounts nothing of its user."""
    mine = None if order is None else order.submitters.get(job.submitter)
    if order is None or mine is None or mine.priority is None:
        return None
    others = [s for name, s in order.submitters.items() if name != job.submitter and s.idle]
    ahead = [other for other in others if _before(other, mine, order)]
    quota = order.groups.get(mine.group) if "<" not in mine.group else None
    return PlaceInOrder(
        users=len(others),
        users_ahead=len(ahead),
        jobs_ahead=sum(other.idle for other in ahead),
        own_ahead=order.own_ahead,
        used=mine.used,
        share=mine.share,
        group=mine.group,
        group_used=None if quota is None else quota.used,
        group_quota=None if quota is None else quota.quota,
    )


def full_group(job: WaitingJob, order: Order | None) -> tuple[str, AccountingQuota] | None:
    """Return the accounting group of a job if its quota has no room for the job.

    That is the group of the longest name that the negotiator knows; what a group above it has left
    is not its own (HTCondor, matchmaker.cpp, hgq_assign_quotas).  A group that uses nothing is
    given a slot whatever its size; without slots all quotas are 0.
    """
    submitter = job.submitter.partition("@")[0]
    name = submitter.rpartition(".")[0] if submitter else job.accounting_group
    known = {} if order is None else {name.lower(): name for name in order.groups}
    while order is not None and name:
        if (group := known.get(name.lower())) is not None:
            quota = order.groups[group]
            needed = quota.used + max(1, job.size.cores)
            return (
                (group, quota)
                if quota.used > 0 and needed > quota.quota and not quota.surplus
                else None
            )
        name = name.rpartition(".")[0]
    return None


def _before(other: Submitter, mine: Submitter, order: Order) -> bool:
    """Return whether another submitter is served first; one of unknown priority is not."""
    if other.priority is None or mine.priority is None:
        return False
    if other.group == mine.group:
        return other.priority < mine.priority
    theirs, own = order.groups.get(other.group), order.groups.get(mine.group)
    return theirs is not None and own is not None and theirs.sort_key < own.sort_key


def words(job: WaitingJob, order: Order | None) -> str:
    """Return a job's place in words, and on what they rest."""
    if order is None:
        return "not known: the negotiator's ads, or the schedd, could not be read"
    found = place(job, order)
    if found is None:
        return "not known: the negotiator accounts nothing of its user yet"
    return f"{found.text()} (estimated: not all of these jobs want the same pilots)"


def record(found: PlaceInOrder | None) -> dict[str, Any] | None:
    """Return it as JSON has it."""
    return None if found is None else found._asdict() | {"evidence": "estimated"}
