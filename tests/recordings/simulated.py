"""Real daemons, asked as ever, with the simulated day's times and numbers in their answers.

The ads of pilots, frontends and factories in the collector are the model's, and come back as they
are.  The ads of schedds, of submitters, of the collector itself and the rows of jobs are real ones,
of which only these are replaced: addresses (those of the test pool mean nothing), epochs, counts of
jobs, and how busy a schedd is.  Histories are the model's too, for no real job ends; and so is when
an ad was heard of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import Daemon, LiveAccess, Query
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.recording import replayed_runs
from tests.recordings.world import DOMAIN

if TYPE_CHECKING:
    import classad2

COLLECTOR = f"cm.{DOMAIN}"


class Day(NamedTuple):
    """What the simulation says of one moment.

    ``idle`` is by schedd and cluster; ``running`` by schedd and submitter, the name up to ``@``.
    ``deaf`` are schedds that do not answer.  ``heard`` is when the last ads came of startds that
    are not alive any more.  ``records`` are new ones, by schedd and kind of history, oldest first.
    """

    now: int
    idle: Mapping[tuple[str, int], int]
    running: Mapping[tuple[str, str], int]
    busy: frozenset[str]
    deaf: frozenset[str]
    heard: Mapping[str, int]
    records: Mapping[tuple[str, str], list[dict[str, str]]]


class SimulatedAccess(NamedTuple):
    """LiveAccess on one moment of the day; ``addresses`` are the real ones, by name."""

    addresses: Mapping[str, str]
    day: Day

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        """Ask the collector; slots come sorted, for the collector's own order is not kept."""
        found = LiveAccess().collector_ads(self.addresses[host], query)
        found.sort(key=lambda ad: ads.text(ad, "Name") or "")
        for ad in found:
            startd = histories.startd_of(ads.text(ad, "Name") or "")
            ad["LastHeardFrom"] = self.day.heard.get(startd, self.day.now)
        if query.ad_type in ("Collector", "Schedd", "Submitter"):
            for ad in found:
                self._put(ad, query.ad_type)
        return found

    def _put(self, ad: classad2.ClassAd, ad_type: str) -> None:
        name = ads.text(ad, "Name") or ""
        if ad_type == "Collector":
            ad["Name"], ad["StatsLastUpdateTime"] = COLLECTOR, self.day.now
            ad["StatsLifetime"] = 40 * 86400
            return
        schedd = name if ad_type == "Schedd" else ads.text(ad, "ScheddName") or ""
        number = sorted(self.addresses).index(schedd)
        for attribute in ("MyAddress", "ScheddIpAddr"):
            if attribute in ad:
                ad[attribute] = f"<198.51.100.{number}:9618?sock=schedd>"
        if ad_type == "Schedd":
            ad["RecentDaemonCoreDutyCycle"] = 0.98 if name in self.day.busy else 0.1
            ad["TotalIdleJobs"] = sum(n for (name, _), n in self.day.idle.items() if name == schedd)
        else:
            ad["RunningJobs"] = self.day.running.get((schedd, name.partition("@")[0]), 0)

    def job_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Ask a schedd for its groups of jobs; those that have no job now are left out."""
        self._reach(schedd)
        kept = []
        for ad in LiveAccess().job_ads(self._real(schedd), query):
            clusters = [int(job.partition(".")[0]) for job in _jobs(ad)]
            count = sum(self.day.idle[schedd.name, cluster] for cluster in clusters)
            if count:
                ad["JobCount"] = count
                kept.append(ad)
        return kept

    def cluster_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Ask a schedd for its cluster ads."""
        self._reach(schedd)
        return LiveAccess().cluster_ads(self._real(schedd), query)

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> list[classad2.ClassAd]:
        """Answer as a schedd does that has written the simulation's new records."""
        self._reach(daemon)
        new = self.day.records.get((daemon.name, kind), [])
        moment = replayed_runs.ReplayMoment(0, 1, 1, 0, 0, lambda _: [new])
        return replayed_runs.history(moment, query, match, since)

    def _reach(self, daemon: Daemon) -> None:
        if daemon.name in self.day.deaf:
            text = f"{daemon.name} does not answer in the simulation"
            raise QueryError(ProblemName.TIMEOUT, text)

    def _real(self, schedd: Daemon) -> Daemon:
        return schedd._replace(address=self.addresses[schedd.name])


def _jobs(ad: classad2.ClassAd) -> list[str]:
    """The job ids of a row, such as ``1.0 3.0``."""
    return (ads.text(ad, "JobIds") or "").replace(",", " ").split()
