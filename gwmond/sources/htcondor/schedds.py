"""Source: which schedds there are, and their own counts, from schedd and submitter ads.

A schedd that flocks to this pool sends no schedd ad here, only submitter ads; both name it with
ScheddName or Name, by which it counts once, in however many collectors it is seen.
"""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.demand.order import ScheddLoad
from gwmond.model.demand.submitters import SubmitterCount
from gwmond.model.facts import JobCount
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import CollectorSource, Daemon, Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import classad2


class ScheddSeen(NamedTuple):
    """A schedd to ask.

    ``unmaterialized`` is its own count of jobs to be materialized.
    """

    daemon: Daemon
    load: ScheddLoad
    flocks_here: bool
    unmaterialized: int | None


class Schedds(NamedTuple):
    """What one collector knows of schedds or submitters."""

    schedds: tuple[ScheddSeen, ...]
    counts: tuple[JobCount, ...]
    submitters: tuple[SubmitterCount, ...] = ()


LOAD = (
    *("RecentDaemonCoreDutyCycle", "TotalRunningJobs", "MaxJobsRunning", "CurbMatchmaking"),
    *("TransferQueueNumUploading", "TransferQueueMaxUploading", "TransferQueueNumWaitingToUpload"),
)
"""What a load is read from; CurbMatchmaking refers to the last one (CURB_MATCHMAKING)."""
_STARTS = {7: "StartSchedulerUniverse", 12: "StartLocalUniverse"}
STARTS = (*_STARTS.values(), "TotalSchedulerJobsRunning", "TotalLocalJobsRunning")
"""Whether it starts jobs of these universes, and to what that refers unless it is configured."""
QUERY = Query(
    "schedds",
    "Schedd",
    "",
    (
        *("Name", "MyAddress", "CondorVersion", "LastHeardFrom", "ClassAdLifetime"),
        *("JobsUnmaterialized", *LOAD),
    ),
)
"""For schedd ads."""


SUBMITTERS = Query(
    "submitters",
    "Submitter",
    "",
    (
        *("Name", "ScheddName", "ScheddIpAddr", "MyAddress", "CondorVersion"),
        *("LastHeardFrom", "ClassAdLifetime", "IdleJobs", "RunningJobs", "HeldJobs"),
        "SubmitterTag",
    ),
)
"""For submitter ads."""


def decode(schedd_ads: Sequence[classad2.ClassAd], now: float) -> Schedds:
    """Turn schedd ads into schedds to ask."""
    seen = []
    for ad in ads.fresh(schedd_ads, now):
        name, address = ads.text(ad, "Name"), ads.text(ad, "MyAddress")
        if name and address:
            daemon = Daemon(name, address, ads.text(ad, "CondorVersion") or "")
            unmaterialized = ads.count(ad, "JobsUnmaterialized")
            seen.append(ScheddSeen(daemon, load(ad), False, unmaterialized))
    return Schedds(tuple(seen), ())


def load(ad: classad2.ClassAd) -> ScheddLoad:
    """Return the load of the schedd of an ad."""
    return ScheddLoad(
        ads.count(ad, "TotalRunningJobs"),
        ads.count(ad, "MaxJobsRunning"),
        ads.count(ad, "TransferQueueNumUploading"),
        ads.count(ad, "TransferQueueMaxUploading"),
        ads.number(ad, "RecentDaemonCoreDutyCycle"),
        curbed=ads.truth(ad, "CurbMatchmaking") is True,
        starts_none=frozenset(n for n, name in _STARTS.items() if ads.truth(ad, name) is False),
    )


def decode_submitters(submitter_ads: Sequence[classad2.ClassAd], now: float) -> Schedds:
    """Turn submitter ads into schedds to ask, and jobs by accounting group and by submitter.

    A submitter is ``group.user@domain`` or ``user@domain``.  Running jobs of a schedd that flocks
    are those that run here; SubmitterTag is empty in the pool that it does not flock to (HTCondor,
    schedd.cpp, fill_submitter_ad).
    """
    seen: dict[str, ScheddSeen] = {}
    sums: dict[tuple[str, str, str], int] = defaultdict(int)
    submitters: list[SubmitterCount] = []
    for ad in ads.latest(ads.fresh(submitter_ads, now), "ScheddName", "Name").values():
        name, schedd = ads.text(ad, "Name") or "", ads.text(ad, "ScheddName")
        address = ads.text(ad, "ScheddIpAddr") or ads.text(ad, "MyAddress")
        if not schedd or not address:
            continue
        daemon = Daemon(schedd, address, ads.text(ad, "CondorVersion") or "")
        seen.setdefault(schedd, ScheddSeen(daemon, ScheddLoad(), True, None))
        group = name.partition("@")[0].rpartition(".")[0]
        idle, running, held = (ads.count(ad, f"{what}Jobs") for what in ("Idle", "Running", "Held"))
        for status, jobs in (("running", running), ("held", held)):
            if jobs is not None:
                sums[schedd, group, status] += jobs
        if name:
            pool, heard = ads.text(ad, "SubmitterTag") or "", ads.integer(ad, "LastHeardFrom")
            label = ads.printable(name)
            submitters.append(SubmitterCount(schedd, label, pool, idle, running, held, heard))
    counts = tuple(JobCount(s, g, status, n) for (s, g, status), n in sorted(sums.items()))
    return Schedds(tuple(seen.values()), counts, tuple(submitters))


def choose(seen: Iterable[ScheddSeen], patterns: Sequence[str]) -> list[ScheddSeen]:
    """Return each schedd once, those of ``patterns`` only (or names; empty: all)."""
    chosen: dict[str, ScheddSeen] = {}
    for schedd in seen:
        name = schedd.daemon.name
        if patterns and not any(fnmatch.fnmatchcase(name.lower(), w.lower()) for w in patterns):
            continue
        before = chosen.get(name)
        if before is None or (before.flocks_here and not schedd.flocks_here):
            chosen[name] = schedd
    return [chosen[name] for name in sorted(chosen)]


SOURCES = (
    CollectorSource(
        "schedds",
        lambda _: QUERY,
        lambda answer, t: decode(answer, t.now),
        wms=True,
        discovers=True,
    ),
    CollectorSource(
        "submitters",
        lambda _: SUBMITTERS,
        lambda answer, t: decode_submitters(answer, t.now),
        discovers=True,
    ),
)
