"""Source: running jobs of one schedd whose program has used almost no CPU since it began.

A running job's ad has the CPU seconds of its program (RemoteUserCpu, RemoteSysCpu), as of the last
update by its starter: StatsLifetimeStarter is how old the starter was then (HTCondor: every 5
minutes; the schedd has it every 15, SHADOW_QUEUE_UPDATE_INTERVAL).  RemoteUserCpu is 0 before the
first update, so without one that is recent nothing is known.  Slot ads cannot tell it: their
CpusUsage is of some seconds, and 0 as well while a starter transfers files (measured with 23.9 and
25.14).  A program that worked for long and then hangs is seen late: its whole time counts.

The schedd passes by all other jobs; at most ``MOST`` rows come back.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gwmond.model.facts import Stalled
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads, demand
from gwmond.sources.htcondor.access import LiveAccess, Query
from gwmond.sources.htcondor.histories import histories

if TYPE_CHECKING:
    from gwmond.config.settings import DemandOptions
    from gwmond.sources.htcondor.access import Access, Daemon

LEAST_CORES = 0.01
"""A program that used less of one core on average is stalled."""
UPDATED_S = 3600
"""A starter's update that is older says nothing."""
MOST = 2000
"""So many of a schedd's jobs are looked at."""
_ELAPSED = "(time() - JobCurrentStartExecutingDate)"
_UPDATED = f"StatsLifetimeStarter > time() - JobCurrentStartDate - {UPDATED_S}"
_STALLED = (
    "JobStatus == 2 && JobUniverse == 5 && TransferringInput =!= true"
    " && TransferringOutput =!= true && JobCurrentStartExecutingDate >= JobCurrentStartDate"
    f" && (({_UPDATED}) =!= true"
    f" || (RemoteUserCpu ?: 0) + (RemoteSysCpu ?: 0) < {LEAST_CORES} * {_ELAPSED})"
)
_NAMES = (
    *("JobStatus", "JobUniverse", "TransferringInput", "TransferringOutput", "RemoteHost"),
    *("JobCurrentStartDate", "JobCurrentStartExecutingDate", "StatsLifetimeStarter"),
    *("RemoteUserCpu", "RemoteSysCpu", "CpusProvisioned", "RequestCpus"),
)


def query(options: DemandOptions) -> Query:
    """Return the query for them; each row is a job, for no two began and used the same."""
    constraint = f"{_STALLED} && {_ELAPSED} > {int(options.stalled_after)}"
    if options.constraint:
        constraint += f" && ({options.constraint})"
    names = demand.distinct((*_NAMES, *demand.constrained(options.constraint)))
    return Query("stalled", "", constraint, names, MOST)


def fetch(access: Access, schedd: Daemon, options: DemandOptions) -> tuple[Stalled, ...] | None:
    """Return the jobs of each pilot that are stalled, or of which it is not known.

    None: the schedd did not say, or it is a recording.
    """
    if not isinstance(access, LiveAccess):
        return None
    try:
        rows = access.job_ads(schedd, query(options))
    except QueryError:
        return None
    now, found = time.time(), dict[str, Stalled]()
    for ad in rows:
        began, executing = (ads.number(ad, f"JobCurrentStart{x}Date") for x in ("", "Executing"))
        host, jobs = ads.text(ad, "RemoteHost"), ads.count(ad, "JobCount") or 0
        if host is None or began is None or executing is None:
            continue
        startd = histories.startd_of(host)
        before = found.get(startd, Stalled(startd))
        updated_s = ads.number(ad, "StatsLifetimeStarter")
        if updated_s is None or updated_s <= now - began - UPDATED_S:
            found[startd] = before._replace(unknown=before.unknown + jobs)
            continue
        cores = ads.number(ad, "CpusProvisioned") or ads.number(ad, "RequestCpus") or 1
        core_s = jobs * cores * max(0.0, now - executing)
        found[startd] = before._replace(jobs=before.jobs + jobs, core_s=before.core_s + core_s)
    return tuple(found.values())
