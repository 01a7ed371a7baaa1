"""What another monitor asks in one of its rounds, played in a process of its own; see ``monitors``.

Only the queries are theirs: with the same constraints, attributes and caps on the number of
answers, in the same order.  What they make of the answers costs nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.harness import Numbers, answer, cpu_s, peak_mib
from tests.bench.measured import PER_JOB

_SEVEN = PER_JOB[:7]
_CAP = 10_000
_IN_COMMON = ("ClusterId", "ProcId", "Owner", "AccountingGroup", "JobStatus", "JobUniverse")
# fifemon: condor/jobs.py and condor/slots.py of the probes that HEPiX's working group maintains.
_BY_STATUS = {
    "JobStatus==1": (
        *("DESIRED_usage_model", "DESIRED_Sites", "QDate", "ServerTime"),
        *("RequestMemory", "RequestDisk", "RequestCpus"),
    ),
    "JobStatus==2": (
        *("MATCH_GLIDEIN_Site", "MATCH_EXP_JOBGLIDEIN_ResourceName", "ServerTime"),
        *("JobCurrentStartDate", "RemoteUserCpu", "RequestMemory", "ResidentSetSize_RAW"),
        *("RequestDisk", "DiskUsage_RAW", "RequestCpus"),
    ),
    "JobStatus==5": ("ServerTime", "EnteredCurrentStatus"),
}
_SLOTS = (
    *("SlotType", "State", "Name", "SlotWeight", "Cpus", "TotalSlotCpus", "TotalCpus", "Disk"),
    *("TotalSlotDisk", "TotalDisk", "Memory", "TotalSlotMemory", "TotalMemory", "LoadAvg"),
    *("TotalCondorLoadAvg", "TotalLoadAvg", "AccountingGroup", "RemoteGroup", "RemoteOwner"),
    *("kflops", "IS_GLIDEIN"),
)
_GLIDEINS = (
    *("GLIDEIN_Site", "GLIDEIN_Resource_Name", "GLIDEIN_ResourceName", "GLIDEIN_Entry_Name"),
    *("State", "DaemonStartTime", "Disk", "Memory", "Cpus"),
)
# cms-htcondor-es: src/htcondor_es/celery/tasks.py.
_QUEUE = (
    "(JobStatus < 3 || JobStatus > 4 || EnteredCurrentStatus >= {since}"
    ' || CRAB_PostJobLastUpdate >= {since}) && (CMS_Type != "DONOTMONIT")'
)
_ENDED = (
    "(EnteredCurrentStatus >= {since} || CRAB_PostJobLastUpdate >= {since})"
    ' && (CMS_Type != "DONOTMONIT")'
)
# niclabs/htcondor-monitor: CondorExporter/CondorExporter.py, at each scrape.
_MACHINES = ("Machine", "State", "Name", "SlotID", "Activity", "MyAddress")
_EXPORTED = (
    *("Owner", "User", "ExitStatus", "Cmd", "ClusterId", "ProcId", "GlobalJobId", "JobStatus"),
    *("RemoteSlotID", "RemoteHost"),
)
_OF_CLUSTER = (
    *("Owner", "ExitStatus", "ProcId", "JobStatus", "RemoteSlotID", "RemoteHost"),
    "RemoteWallClockTime",
)


class Asker:
    """The daemons of a pool, as the bindings reach them.

    ``since``: when the monitor asked before (epoch seconds); ``last``: the cluster of the newest
    record that it knew then.
    """

    def __init__(self, collector: str, names: list[str], since: int, last: int) -> None:
        import htcondor2  # noqa: PLC0415 (its environment is set by who starts this)

        self._htcondor = htcondor2
        self._collector = htcondor2.Collector(collector)
        self._names, self._since, self._last = names, since, last

    def _schedds(self) -> Iterator[Any]:
        for ad in self._collector.query(self._htcondor.AdType.Schedd):
            if ad["Name"] in self._names:
                yield self._htcondor.Schedd(ad)

    def _slots(self, constraint: str, names: tuple[str, ...]) -> None:
        self._collector.query(self._htcondor.AdType.Startd, constraint, list(names))

    def seven(self) -> int:
        """Ask for seven attributes of each job."""
        for schedd in self._schedds():
            schedd.query("true", list(_SEVEN))
        return 0

    def fifteen(self) -> int:
        """Ask for fifteen attributes of each job."""
        for schedd in self._schedds():
            schedd.query("true", list(PER_JOB))
        return 0

    def fifemon(self) -> int:
        """Ask for jobs by their status, for all slots, and for glideins."""
        for schedd in self._schedds():
            for constraint, more in _BY_STATUS.items():
                schedd.query(constraint, [*_IN_COMMON, *more])
        self._slots("true", _SLOTS)
        for schedd in self._schedds():
            schedd.query("JobStatus==2", ["ResidentSetSize_RAW", "DiskUsage_RAW"])
        self._slots("is_glidein==True", _GLIDEINS)
        return 0

    def cms(self) -> int:
        """Ask for whole ads of jobs, and of at most 10,000 that ended."""
        for schedd in self._schedds():
            schedd.query(_QUEUE.format(since=self._since))
        return self._records(
            lambda schedd: schedd.history(_ENDED.format(since=self._since), [], _CAP)
        )

    def adstash(self) -> int:
        """Ask for whole ads of at most 10,000 jobs that ended after the last one known."""
        since = f"(ClusterId == {self._last}) && (ProcId == 0)"
        return self._records(lambda schedd: schedd.history("true", [], _CAP, since))

    def niclabs(self) -> int:
        """Ask for all slots and jobs, and for each cluster's records."""
        self._slots("true", _MACHINES)
        found = 0
        for schedd in self._schedds():
            clusters = {ad["ClusterId"] for ad in schedd.query("true", list(_EXPORTED))}
            for cluster in clusters:
                wanted = f"Machine =?= pool.test && ClusterId == {cluster}"
                found += len(list(schedd.history(wanted, list(_OF_CLUSTER))))
        return found

    def _records(self, ask: Callable[[Any], Any]) -> int:
        every = (ad for schedd in self._schedds() for ad in ask(schedd))
        return len({(ad["GlobalJobId"], ad["NumShadowStarts"]) for ad in every})


def main() -> None:
    """Play what the standard input asks for."""
    answer(play=_play)


def _play(monitor: str, collector: str, schedds: list[str], since: int, last: int) -> Numbers:
    asker = Asker(collector, schedds, since, last)
    cpu, began = cpu_s(), time.perf_counter()
    records: int = getattr(asker, monitor)()
    wall = time.perf_counter() - began
    return {"wall": wall, "cpu": cpu_s() - cpu, "memory": peak_mib(), "records": records}
