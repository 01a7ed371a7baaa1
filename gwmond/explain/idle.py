"""Why idle jobs are not running, by groups, as each poll knows it: in two levels, and bounded.

The same rules as of one job give each group's first reason.  Jobs that could run wait first for
what limits them: what the negotiator said of some, quotas, and limits of schedds.  Of jobs that
free slots and pending pilots take, each counted once, that is the reason; the others wait for what
the rules say.  Not known here is what only a single job shows: that it is new.

Units: canonical units; jobs are counted, and may be fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from gwmond.explain.answers import answers, limit_on
from gwmond.explain.reasons import Explanation, Mover, Tier
from gwmond.explain.situation import Situation
from gwmond.model.demand.idle_history import MOST_GROUPS, SEVERAL, GroupKey, Waits
from gwmond.model.demand.order import NO_LIMITS, Limits
from gwmond.model.demand.waiting_job import UNKNOWN_JOB, Examined, JobPlace
from gwmond.model.entries.evaluation import IdleJobs
from gwmond.model.facts import DemandGroup, EntryKey, Rejection, Size
from gwmond.model.poll.snapshot import IdleReason
from gwmond.reports.sites.sites import SiteRow
from gwmond.sites.reasons import UNKNOWN

NONE = "none"
NOT_KNOWN = "unknown"
"""The reason where facts are missing."""

Kind: TypeAlias = tuple[str, Size, int | None]
"""A signature, a size and a walltime: jobs that are alike in all that matching depends on."""


class IdleCause(NamedTuple):
    """The two levels of a reason, where the jobs could run, and whose move it is."""

    reason: str
    cause: str
    site: str
    mover: str


NOT_ANALYSED = IdleCause(Tier.NOWHERE.name.lower(), "not_analysed", NONE, Mover.POOL.value)
_FREE = IdleCause(Tier.PILOTS_THERE.name.lower(), "behind_others", "", Mover.WAIT.value)
_PENDING = IdleCause(Tier.ON_THEIR_WAY.name.lower(), "pilots_pending", "", Mover.WAIT.value)
_POLICY, _NOWHERE = Tier.POLICY.name.lower(), Tier.NOWHERE.name.lower()
_DIFFER = IdleCause(SEVERAL, SEVERAL, SEVERAL, "")
_NO_PILOTS_KNOWN = IdleCause(NOT_KNOWN, "pilots", "", Mover.POOL.value)
_UNKNOWN = {*UNKNOWN, "no_pilot_known", "collector", "young_collector"}


def kind_of(group: DemandGroup) -> Kind:
    """Return what identifies a group's jobs to matching."""
    return group.signature, group.size, group.walltime_s


def nowhere(examined: Examined, rows: Mapping[EntryKey, SiteRow], now: float) -> IdleCause:
    """Return why a job could run nowhere, of which each clause was tried with every pilot.

    Pilots that it accepts may be there, and take no more jobs.
    """
    here = Situation(examined, rows, now)
    return _cause(answers(here)[0], _site(tuple(p.entry for p in here.slots if not p.blocked)))


class Causes:
    """The causes of all groups of one poll.

    ``rows``: those of entries, for CPUs; ``known``: of kinds that could run nowhere (``nowhere``);
    without ``pilots`` it is not known which run.
    """

    def __init__(
        self,
        rows: Mapping[EntryKey, SiteRow],
        causes: Mapping[Kind, IdleCause],
        limits: Limits = NO_LIMITS,
        *,
        pilots: bool,
    ) -> None:
        self._rows, self._known, self._limits, self._pilots = rows, causes, limits, pilots
        self._at: dict[tuple[EntryKey, ...], IdleCause] = {}

    def of(self, idle: IdleJobs) -> Iterator[tuple[IdleCause, float]]:
        """Yield the causes of a group, each with the part of its jobs (0 to 1)."""
        if not self._pilots:
            yield _NO_PILOTS_KNOWN._replace(site=_site(idle.entries)), 1.0
            return
        cause = self._known.get(kind_of(idle.group)) if idle.is_lost else None
        if cause is not None and cause.reason == _NOWHERE:
            yield cause, 1.0
            return
        for rejection in idle.group.by_rejection():
            part = rejection.jobs / idle.group.jobs
            if limit := self._limit(idle, rejection):
                yield limit, part
                continue
            if idle.absorbed > 0:
                first = _FREE if idle.free else _PENDING
                yield first._replace(site=_site(idle.entries)), part * idle.absorbed
            if idle.absorbed < 1:
                yield self._waiting(idle), part * (1 - idle.absorbed)

    def main(self, idle: IdleJobs) -> IdleCause:
        """Return the cause of most of a group's jobs."""
        return max(self.of(idle), key=lambda pair: pair[1])[0]

    def waits(self, idle: Iterable[IdleJobs]) -> dict[GroupKey, Waits]:
        """Return the reasons of the largest groups; ``several`` where a group's jobs differ."""
        by_group: dict[GroupKey, Waits] = {}
        for group in sorted(idle, key=lambda group: -group.group.jobs):
            key = group.group.schedd, group.group.identity
            if key not in by_group and len(by_group) >= MOST_GROUPS:
                continue
            limited = {cause.reason == _POLICY for cause, _ in self.of(group)}
            reason, cause, site, _ = _DIFFER if len(limited) > 1 else self.main(group)
            waits = Waits(group.group.wants, reason, cause, site)
            if by_group.setdefault(key, waits) != waits:
                by_group[key] = Waits(group.group.wants, SEVERAL, SEVERAL, SEVERAL)
        return by_group

    def sums(self, idle: Iterable[IdleJobs]) -> tuple[IdleReason, ...]:
        """Return the causes of all groups added up, the most units first."""
        by_cause: dict[IdleCause, list[float]] = {}
        for group in idle:
            for cause, part in self.of(group):
                amounts = by_cause.setdefault(cause, [0.0, 0.0, 0.0])
                for at, amount in enumerate((group.group.jobs, group.cpu, group.gpu)):
                    amounts[at] += amount * part
        reasons = [IdleReason(*cause, *amounts) for cause, amounts in by_cause.items()]
        return tuple(sorted(reasons, key=lambda reason: (-reason.cpu, reason)))

    def _limit(self, idle: IdleJobs, rejection: Rejection) -> IdleCause | None:
        """Return what limits jobs that could run somewhere."""
        first = limit_on(idle.group, rejection, self._limits) if idle.entries else None
        return None if first is None else _cause(first, _site(idle.entries))

    def _waiting(self, idle: IdleJobs) -> IdleCause:
        """Return why jobs wait that neither free slots nor pending pilots take."""
        if not idle.entries:
            return self._known.get(kind_of(idle.group), NOT_ANALYSED)
        cause = self._at.get(idle.entries)
        if cause is None:
            rows = {key: self._rows[key] for key in idle.entries if key in self._rows}
            pilots = tuple(_empty_pilot(key) for key in idle.entries)
            first = answers(Situation(Examined(UNKNOWN_JOB, pilots), rows, 0))[0]
            cause = self._at[idle.entries] = _cause(first, _site(idle.entries))
        return cause


def _cause(first: Explanation, site: str) -> IdleCause:
    unknown = first.name in _UNKNOWN
    reason = NOT_KNOWN if unknown else first.tier.name.lower()
    return IdleCause(reason, first.name, site, first.mover.of_others.value)


def _site(entries: tuple[EntryKey, ...]) -> str:
    sites = {key.site for key in entries}
    return next(iter(sites)) if len(sites) == 1 else SEVERAL if sites else NONE


def _empty_pilot(key: EntryKey) -> JobPlace:
    size = Size(0, 0)
    return JobPlace("pilot", key, "", size, size, True, (), (), "measured", None, 1)
