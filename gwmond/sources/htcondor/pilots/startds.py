"""Source: StartD ads of a collector, one for each pilot (HTCondor 23 and later).

They show pilots whose slot ads are missing, and pilots which have not run a job yet.  For
an older startd the collector makes such an ad from a slot's: it says nothing new and is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import Pilot
from gwmond.sources.htcondor import ads, pilot_ads
from gwmond.sources.htcondor.access import CollectorSource, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

    from gwmond.config.settings import Attributes

_NAMES = (
    *("IS_MONITOR_VM", "TotalCpus", "TotalMemory", "TotalGPUs", "JobStarts"),
    *("MachineResources", "RealCpus"),
)


class Startds(NamedTuple):
    """Pilots as their startds report them, without slots; names of those that ran no job yet."""

    pilots: tuple[Pilot, ...]
    unused: frozenset[str]


def query(attributes: Attributes) -> Query:
    """Return the query for StartD ads."""
    names = (*pilot_ads.NAMES, *_NAMES, *pilot_ads.configured(attributes))
    return Query("startds", "StartDaemon", "", names)


def decode(startd_ads: Sequence[classad2.ClassAd], attributes: Attributes, now: float) -> Startds:
    """Turn StartD ads into pilots of which neither free slots nor jobs are known."""
    pilots, unused = [], set()
    for ad in ads.fresh(startd_ads, now):
        name = ads.text(ad, "Name")
        size = pilot_ads.size_of(ad, ("TotalCpus", "TotalMemory", "TotalGPUs"))
        starts = ads.count(ad, "JobStarts")
        if name is None or size is None or starts is None or ads.truth(ad, "IS_MONITOR_VM"):
            continue
        if starts == 0:
            unused.add(name)
        # TotalCpus has cores that are not there too (see ``slots``), and not which these are.
        more = pilot_ads.special_resources(ad) or ads.expression_text(ad, "RealCpus") is not None
        whole = None if more else size
        pilots.append(pilot_ads.pilot_of(ad, attributes)._replace(size=whole))
    return Startds(tuple(pilots), frozenset(unused))


SOURCES = (
    CollectorSource(
        "startds",
        lambda t: query(t.attributes),
        lambda answer, t: decode(answer, t.attributes, t.now),
        large=True,
    ),
)
