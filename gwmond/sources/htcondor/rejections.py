"""Source: which idle jobs of one schedd a limit keeps, as the negotiator said.

It says so of one job only among those of a submitter that it cannot tell apart (``AutoClusterId``):
these few are fetched, as groups of one, and then all such jobs are counted.  Both queries are
bounded by a limit of rows, and pass by all other jobs (a tenth of what grouping them takes, or
less).  Jobs of one submitter and cluster that ``demand`` tells apart nevertheless, by a walltime to
which no pilot refers, count to the groups of those that were rejected.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypeAlias

from gwmond.model.facts import Rejection
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads, demand
from gwmond.sources.htcondor.access import LiveAccess, Query

if TYPE_CHECKING:
    import classad2

    from gwmond.sources.htcondor.access import Access, Daemon

RECENT_S = 1800
"""How old the negotiator's word may be, by the schedd's clock: some long negotiations."""
MOST = 200
"""So many kinds of rejected jobs of a schedd are known."""
SAID = ("LastRejMatchReason", "LastRejMatchTime")
ALIKE = ("AutoClusterId", "User", "AccountingGroup")
"""What jobs have in common that the negotiator cannot tell apart; it serves one submitter's."""
_REJECTED = (
    f'{SAID[0]} isnt undefined && regexp("limit|quota", {SAID[0]}, "i")'
    f" && time() - {SAID[1]} < {RECENT_S} && {ALIKE[0]} isnt undefined"
)

Alike: TypeAlias = tuple[str | int | None, ...]


def fetch(
    access: Access, schedd: Daemon, grouping: demand.JobGrouping
) -> dict[demand.GroupKey, tuple[Rejection, ...]]:
    """Return what was said of each group, and of how many of its jobs; nothing of recordings.

    What cannot be read is left out: the demand is known without it.
    """
    if not isinstance(access, LiveAccess):
        return {}
    asked = demand.query(grouping)
    own = f"{_REJECTED} && {asked.constraint}"
    names = demand.distinct((*asked.projection, *ALIKE, *SAID))
    try:
        rows = access.job_ads(schedd, Query("rejected", "", own, names, MOST))
        latest: dict[tuple[Alike, demand.GroupKey], tuple[str, int | None]] = {}
        for ad in sorted(rows, key=lambda ad: ads.integer(ad, SAID[1]) or 0):
            words = (ads.text(ad, SAID[0]) or "").strip(), ads.integer(ad, SAID[1])
            latest[_alike(ad), _group(ad, grouping, asked)] = words
        if not latest:
            return {}
        clusters = ", ".join(sorted({str(alike[0]) for alike, _ in latest}))
        alike_too = f"member({ALIKE[0]}, {{{clusters}}}) && {asked.constraint}"
        names = demand.distinct((*demand.constrained(alike_too), *ALIKE))
        counted = access.job_ads(schedd, Query("alike", "", alike_too, names))
    except QueryError:
        return {}
    jobs: Counter[Alike] = Counter()
    for ad in counted:  # which the constraint of the configuration may tell apart
        jobs[_alike(ad)] += ads.count(ad, "JobCount") or 0
    by_group: dict[demand.GroupKey, list[Rejection]] = {}
    for (alike, group), words in latest.items():
        by_group.setdefault(group, []).append(Rejection(*words, jobs[alike]))
    return {group: tuple(rejections) for group, rejections in by_group.items()}


def last_words(
    access: Access, schedd: Daemon, grouping: demand.JobGrouping
) -> dict[tuple[str, str], Counter[str]]:
    """Return what was said last, of whatever kind, of how many jobs of each group.

    Groups are named by accounting group and identity; a recording has none of it.
    """
    words: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    if not isinstance(access, LiveAccess):
        return words
    asked = demand.query(grouping)
    constraint = f"{SAID[0]} isnt undefined && {asked.constraint}"
    names = demand.distinct((*asked.projection, SAID[0]))
    for ad in access.job_ads(schedd, Query("words", "", constraint, names, MOST)):
        name, _ = demand.key_of(ad, grouping)
        text = (ads.text(ad, SAID[0]) or "").strip()
        words[name, demand.identity_of(ad, grouping)][text] += ads.count(ad, "JobCount") or 0
    return words


def _alike(ad: classad2.ClassAd) -> Alike:
    number, *names = ALIKE
    return ads.count(ad, number), *(ads.text(ad, name) for name in names)


def _group(ad: classad2.ClassAd, grouping: demand.JobGrouping, asked: Query) -> demand.GroupKey:
    """Return to which group of jobs a row belongs, without what was asked of it besides."""
    kept = {name.lower() for name in (*asked.projection, *demand.references(ad))}
    for name in (*ALIKE, *SAID):
        if name.lower() not in kept and name in ad:
            del ad[name]
    return demand.key_of(ad, grouping)
