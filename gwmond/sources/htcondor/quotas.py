"""Source: the quotas of accounting groups, and what these use, as the negotiator advertises them.

One Accounting ad a group (HTCondor manual, "Accounting ClassAd Attributes"); those of users are not
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gwmond.model.demand.order import AccountingQuota
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import CollectorSource, Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    import classad2

KIND = "quotas"
NAMES = (
    *("Name", "IsAccountingGroup", "WeightedResourcesUsed"),
    *(
        "ConfigQuota",
        "EffectiveQuota",
        "SubtreeQuota",
        "GroupSortKey",
        "SurplusPolicy",
        "LastHeardFrom",
        "ClassAdLifetime",
    ),
)


QUERY = Query(KIND, "Accounting", "IsAccountingGroup", NAMES)
"""For the ads of accounting groups."""


def decode(found: Iterable[classad2.ClassAd]) -> dict[str, AccountingQuota]:
    """Return the groups that have a quota, by name."""
    quotas = {}
    for ad in found:
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
        KIND, lambda _: QUERY, lambda found, terms: decode(ads.fresh(found, terms.now))
    ),
)
