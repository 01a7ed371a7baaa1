"""Source: a collector's ad of itself: since when it runs, and its version."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import CollectorSource, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

    from gwmond.sources.htcondor.access import Access

_START = "COLLECTOR_StartTime"
_RENEWED_TWICE = 3
"""UpdatesTotal of an ad that was renewed twice."""


class CollectorInfo(NamedTuple):
    """Since when a collector runs (epoch), and its version.

    ``own_ad``: it holds an ad of itself.  Without, its master says since when it runs; None where
    that is not known, but other ads show that it does not run since a moment ago.
    """

    started: int | None
    version: str
    own_ad: bool = True


_NAMES = ("Name", "StatsLastUpdateTime", "StatsLifetime", "CondorVersion")
QUERY = Query("collector", "Collector", "", _NAMES)
"""For a collector's own ad."""


def decode(
    own_ads: Sequence[classad2.ClassAd], access: Access, host: str, now: float
) -> CollectorInfo:
    """Return a collector by its own ad, else by its masters' ads.

    Its ad has no start time, but its statistics' age.  Just after a start it has no ad at all; but
    where CLASSAD_LIFETIME is below COLLECTOR_UPDATE_INTERVAL its ad is missing most of the time.
    """
    if not own_ads:
        return CollectorInfo(_by_masters(access, host, now), "", own_ad=False)
    started: list[int] = []
    for ad in own_ads:
        updated, lifetime = (ads.integer(ad, f"Stats{n}") for n in ("LastUpdateTime", "Lifetime"))
        if updated is not None and lifetime is not None:
            started.append(updated - lifetime)
    return CollectorInfo(max(started, default=None), ads.text(own_ads[0], "CondorVersion") or "")


def _by_masters(access: Access, host: str, now: float) -> int | None:
    """Return since when a collector runs, by ads of masters; now, if they do not say.

    Its own master's ad says it; else a collector counts the updates of each ad since it was
    started, and a master sends only those of MASTER_UPDATE_INTERVAL.
    """
    names = ("Name", _START, "UpdatesTotal")
    constraint = f"{_START} isnt undefined || UpdatesTotal >= {_RENEWED_TWICE}"
    try:
        masters = access.collector_ads(host, Query("masters", "Master", constraint, names))
    except QueryError:
        return int(now)
    started = [at for ad in masters if (at := ads.integer(ad, _START)) is not None]
    if started:
        return max(started)
    return None if masters else int(now)


SOURCES = (
    CollectorSource(
        "collector", lambda _: QUERY, lambda answer, t: decode(answer, t.access, t.host, t.now)
    ),
)
