"""Source: StartD ads of a collector, one for each pilot (HTCondor 23 and later).

They tell of pilots whose slot ads are missing, and of pilots which have not run a job yet.  For
an older startd the collector makes such an ad from a slot's: it says nothing new and is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import AD_LIFETIME_S, Pilot
from gwmond.sources.htcondor import ads, origin, slots
from gwmond.sources.htcondor.access import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

    from gwmond.config.settings import Attributes

_BASE = (
    *("Name", "DaemonStartTime", "LastHeardFrom", "ClassAdLifetime", "IS_MONITOR_VM"),
    "MyCurrentTime",
    *("TotalCpus", "TotalMemory", "TotalGPUs", "JobStarts", "Machine"),
    *("GLIDEIN_Schedd", "GLIDEIN_ClusterId", "GLIDEIN_ProcId"),
)


class Startds(NamedTuple):
    """Pilots as their startds tell, without slots; and the names of those that ran no job yet."""

    pilots: tuple[Pilot, ...]
    unused: frozenset[str]


def query(attributes: Attributes) -> Query:
    """Return the query for StartD ads."""
    names = [*attributes.site, *attributes.entry, *attributes.frontend, *attributes.group]
    names += [*attributes.factory, *attributes.retire, *attributes.die]
    return Query("startds", "StartDaemon", "", (*_BASE, *dict.fromkeys(names)))


def decode(found: Sequence[classad2.ClassAd], attributes: Attributes, now: float) -> Startds:
    """Turn StartD ads into pilots of which neither free slots nor jobs are known."""
    pilots, unused = [], set()
    for ad in slots.fresh(found, now):
        name = ads.text(ad, "Name")
        size = slots.size_of(ad, ("TotalCpus", "TotalMemory", "TotalGPUs"))
        starts = ads.count(ad, "JobStarts")
        if name is None or size is None or starts is None or ads.truth(ad, "IS_MONITOR_VM"):
            continue
        if starts == 0:
            unused.add(name)
        pilots.append(
            Pilot(
                name=name,
                started=ads.integer(ad, "DaemonStartTime") or 0,
                clock_s=slots.clock_of(ad),
                entry=origin.entry_of(ad, attributes),
                group=origin.group_of(ad, attributes),
                factory=ads.label(ad, attributes.factory) or "",
                size=size,
                free=(),
                jobs=(),
                accepting=False,
                remaining_s=None,
                last_heard=ads.integer(ad, "LastHeardFrom") or 0,
                node=ads.label(ad, ("Machine",)) or "",
                factory_job=origin.factory_job(ad),
                retires=_epoch(ad, attributes.retire),
                dies=_epoch(ad, attributes.die),
                ad_lifetime_s=ads.count(ad, "ClassAdLifetime") or AD_LIFETIME_S,
            )
        )
    return Startds(tuple(pilots), frozenset(unused))


def _epoch(ad: classad2.ClassAd, names: Sequence[str]) -> int | None:
    value = ads.first_number(ad, names)
    return None if value is None else int(value)
