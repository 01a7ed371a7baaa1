"""Source: in which order the negotiator serves a job, and what limits it.

The negotiator advertises what it accounts of each submitter and group (Accounting ads), schedds how
many jobs of each submitter are idle (Submitter ads); names as in HTCondor's manual, "Accounting
ClassAd Attributes".  Own jobs that come first are counted by the
schedd, which sends one summary and no jobs.  It orders the jobs of one submitter by JobPrio, then
QDate, then their numbers (HTCondor, qmgmt.cpp; pre- and post-priorities are left out).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gwmond.model.demand.order import AccountingQuota, Negotiator, Order, ScheddLoad, Submitter
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import CollectorSource, LiveAccess, Query
from gwmond.sources.htcondor.demand import IDLE
from gwmond.sources.htcondor.schedds import LOAD, STARTS, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import classad2

    from gwmond.model.demand.waiting_job import WaitingJob
    from gwmond.sources.htcondor.access import Access, Daemon
    from gwmond.sources.htcondor.places import ExplainTerms

QUOTAS = "quotas"
_QUOTA_NAMES = (
    *("Name", "IsAccountingGroup", "WeightedResourcesUsed", "ConfigQuota", "EffectiveQuota"),
    *("SubtreeQuota", "GroupSortKey", "SurplusPolicy", "LastHeardFrom", "ClassAdLifetime"),
)
QUOTAS_QUERY = Query(QUOTAS, "Accounting", "IsAccountingGroup", _QUOTA_NAMES)
"""For the ads of accounting groups, one a group; those of users are not asked for."""
_ACCOUNTING = Query(
    "accounting",
    "Accounting",
    "",
    (*_QUOTA_NAMES, "AccountingGroup", "Priority", "SubmitterLimit", "Ceiling"),
)
_SUBMITTERS = Query(
    "submitters",
    "Submitter",
    "",
    ("Name", "ScheddName", "IdleJobs", "LastHeardFrom", "ClassAdLifetime"),
)
_BEGAN, _ENDED = "LastNegotiationCycleTime0", "LastNegotiationCycleEnd0"
_PERIOD = "LastNegotiationCyclePeriod0"
_NEGOTIATORS = Query(
    "negotiators",
    "Negotiator",
    "",
    ("Name", _BEGAN, _ENDED, _PERIOD, "LastHeardFrom", "ClassAdLifetime"),
)
_CYCLES = Query(
    "cycles",
    "Accounting",
    "IsAccountingGroup",
    ("Name", "NegotiatorName", "LastUpdate", "LastHeardFrom", "ClassAdLifetime"),
)


def fetch(
    access: Access, schedd: Daemon, job: WaitingJob, terms: ExplainTerms
) -> tuple[Order, int]:
    """Return the order in which a job is served, and how many ads were read."""
    limits = Query(
        "limits",
        "Schedd",
        f"Name == {ads.quoted(schedd.name)}",
        ("Name", *LOAD, *STARTS),
    )
    accounting, submitters, schedds = (
        terms.fresh(access, query) for query in (_ACCOUNTING, _SUBMITTERS, limits)
    )
    own_ahead = None
    if isinstance(access, LiveAccess) and _is_whole(job.user):
        own_ahead = access.count_jobs(schedd, ahead(job))
    order = Order(
        submitters=_submitters(accounting, submitters),
        groups=decode_quotas(accounting),
        negotiators=negotiators(access, terms),
        own_ahead=own_ahead,
        load=load(schedds[0]) if schedds else ScheddLoad(),
        schedds=frozenset(
            ads.text(ad, "ScheddName") or "" for ad in submitters if ads.count(ad, "IdleJobs")
        ),
    )
    return order, len(accounting) + len(submitters)


def negotiators(access: Access, terms: ExplainTerms) -> tuple[Negotiator, ...]:
    """Return the negotiators that the collectors know, each once.

    A negotiator sends its own ad every five minutes (NEGOTIATOR_UPDATE_INTERVAL), but those of
    accounting groups, of which there is always one, in each cycle.  Source: HTCondor manual,
    "Negotiator ClassAd Attributes"; observed with 23 and 25.
    """
    cycles: dict[str, int] = {}
    for ad in terms.fresh(access, _CYCLES):
        name = ads.text(ad, "NegotiatorName") or ""
        cycles[name] = max(ads.integer(ad, "LastUpdate") or 0, cycles.get(name, 0))
    named = {}
    for ad in terms.fresh(access, _NEGOTIATORS):
        name, period_s = ads.text(ad, "Name") or "", ads.count(ad, _PERIOD)
        began, ended, at = ads.integer(ad, _BEGAN), ads.integer(ad, _ENDED), cycles.get(name)
        if not at:
            named[name] = Negotiator(name, began, ended, ads.integer(ad, "LastHeardFrom"), period_s)
            continue
        lasted = 0 if began is None or ended is None else max(0, ended - began)
        times = max(began or 0, at - lasted), max(ended or 0, at)
        named[name] = Negotiator(name, *times, None, period_s)
    return tuple(named[name] for name in sorted(named))


def _is_whole(name: str) -> bool:
    """Return whether a name is as the schedd has it (see ``ads.printable``)."""
    return "?" not in name and not name.endswith("…")


def ahead(job: WaitingJob) -> str:
    """Return the constraint for idle jobs of the same submitter that are offered before it."""
    cluster, _, proc = job.number.partition(".")
    group = job.submitter.partition("@")[0] if job.submitter != job.user else ""
    who = f"AccountingGroup == {ads.quoted(group)}" if group else "AccountingGroup is undefined"
    submitted = job.submitted or 0
    prior = "JobPrio ?: 0"
    return (
        f"{IDLE} && User == {ads.quoted(job.user)} && {who} && (({prior}) > {job.priority} "
        f"|| (({prior}) == {job.priority} && (QDate < {submitted} || (QDate == {submitted} && "
        f"(ClusterId < {cluster} || (ClusterId == {cluster} && ProcId < {proc or 0}))))))"
    )


def _submitters(
    accounting: Sequence[classad2.ClassAd], submitters: Sequence[classad2.ClassAd]
) -> dict[str, Submitter]:
    """Return all who are accounted, or have idle jobs, by name."""
    idle: Counter[str] = Counter()
    for (name, _), ad in ads.latest(submitters, "Name", "ScheddName").items():
        if name:
            idle[name] += ads.count(ad, "IdleJobs") or 0
    named = {name: Submitter("", None, None, None, number) for name, number in idle.items()}
    for ad in accounting:
        name = ads.text(ad, "Name")
        if name and ads.truth(ad, "IsAccountingGroup") is False:
            ceiling = ads.number(ad, "Ceiling")
            named[name] = Submitter(
                group=ads.text(ad, "AccountingGroup") or "",
                priority=ads.number(ad, "Priority"),
                used=ads.number(ad, "WeightedResourcesUsed"),
                share=ads.number(ad, "SubmitterLimit"),
                idle=idle[name],
                ceiling=ceiling if ceiling is not None and ceiling >= 0 else None,
            )
    return named


def decode_quotas(accounting_ads: Iterable[classad2.ClassAd]) -> dict[str, AccountingQuota]:
    """Return the groups that have a quota, by name."""
    quotas = {}
    for ad in accounting_ads:
        name, quota = ads.text(ad, "Name"), ads.number(ad, "EffectiveQuota")
        if name and quota is not None and ads.truth(ad, "IsAccountingGroup"):
            quotas[name] = AccountingQuota(
                sort_key=ads.number(ad, "GroupSortKey") or 0.0,
                quota=quota,
                used=ads.number(ad, "WeightedResourcesUsed") or 0.0,
                surplus=ads.text(ad, "SurplusPolicy") == "byquota",
                subtree_quota=ads.number(ad, "SubtreeQuota"),
                never=ads.number(ad, "ConfigQuota") == 0,
                regroup=ads.text(ad, "SurplusPolicy") == "regroup",
            )
    return quotas


SOURCES = (
    CollectorSource(
        QUOTAS,
        lambda _: QUOTAS_QUERY,
        lambda answer, t: decode_quotas(ads.fresh(answer, t.now)),
    ),
)
