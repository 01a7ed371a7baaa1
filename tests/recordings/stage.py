"""The real collector and schedds on which the simulated day is played, to be recorded."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable

from tests.pool import feign
from tests.pool.condor import CondorPool
from tests.recordings import advertised, run_ads, scenario
from tests.recordings.kinds import Kind
from tests.recordings.runs import Ended, How, Plan, Told
from tests.recordings.simulated import COLLECTOR, Day, SimulatedAccess
from tests.recordings.simulation import Simulation
from tests.recordings.world import DOMAIN

_SCHEDDS = tuple(f"schedd{n}@{DOMAIN}" for n in (1, 2, 3, 4))
_MORE = """
SCHEDD{n} = $(SCHEDD)
SCHEDD{n}_ARGS = -f -local-name schedd{n}
SCHEDD{n}.SCHEDD_NAME = schedd{n}@{domain}
SCHEDD{n}.SPOOL = $(LOCAL_DIR)/spool2/{n}
SCHEDD{n}.HISTORY = $(LOCAL_DIR)/spool2/{n}/history
SCHEDD{n}.SCHEDD_LOG = $(LOG)/Schedd{n}Log
SCHEDD{n}.SCHEDD_ADDRESS_FILE = $(LOCAL_DIR)/spool2/{n}/.schedd_address
SCHEDD{n}.SCHEDD_DAEMON_AD_FILE = $(LOCAL_DIR)/spool2/{n}/.schedd_classad
SCHEDD{n}.LOCAL_UNIVERSE_EXECUTE = $(LOCAL_DIR)/execute
DAEMON_LIST = $(DAEMON_LIST) SCHEDD{n}
"""
CONFIG = "CLASSAD_LIFETIME = 86400\n" + "".join(_MORE.format(n=n, domain=DOMAIN) for n in (3, 4))


class Stage:
    """The real pool on which the simulation is played."""

    def __init__(self, pool: CondorPool, simulation: Simulation) -> None:
        """Start the schedds that the test pool has not by itself, and submit the jobs."""
        self._pool, self._simulation = pool, simulation
        self._advertised: dict[str, feign.Ad] = {}
        self._pilots: dict[int, tuple[object, list[feign.Ad]]] = {}
        self._clusters: list[int] = []
        self._deaf: set[str] = set()
        self._records: defaultdict[tuple[str, str], list[run_ads.Record]] = defaultdict(list)
        past = [done for pilot in simulation.all_pilots() for done in pilot.past]
        simulation.runs.told = Told(epochs=past)
        spool = pool.local / "spool2"
        for number in (3, 4):
            (spool / str(number)).mkdir(exist_ok=True)
            os.chown(spool / str(number), spool.stat().st_uid, spool.stat().st_gid)
        pool.wait_for("four schedds", lambda: len(pool.query("Schedd")) == len(_SCHEDDS))
        pool.off("NEGOTIATOR")  # which would try to match the jobs with the simulated pilots
        known = pool.query("Schedd", None, ["Name", "MyAddress"])
        self.addresses = {str(ad["Name"]): str(ad["MyAddress"]) for ad in known}
        self.addresses[COLLECTOR] = pool.collector
        for kind in simulation.kinds:
            self._clusters.append(_submit(pool, kind))
        submitters = {(k.schedd, k.accounting_group, k.owner) for k in simulation.kinds}
        pool.wait_for("submitters", lambda: len(pool.query("Submitter")) >= len(submitters))

    def play(self) -> None:
        """Make the collector hold what the simulation has now."""
        ads = {str(ad["Name"]): ad for ad in self._ads()}
        changed = [ad for name, ad in ads.items() if self._advertised.get(name) != ad]
        for command in sorted(set(feign.COMMANDS.values())):
            some = [ad for ad in changed if feign.COMMANDS[str(ad["MyType"])] == command]
            for start in range(0, len(some), 1000):
                self._pool.advertise(some[start : start + 1000], command)
        gone = [ad for name, ad in self._advertised.items() if name not in ads]
        for kind, command in (
            ("Machine", "INVALIDATE_STARTD_ADS"),
            ("StartD", "INVALIDATE_STARTD_ADS"),
            ("glideresource", "INVALIDATE_ADS_GENERIC"),
        ):
            names = [str(ad["Name"]) for ad in gone if ad["MyType"] == kind]
            for start in range(0, len(names), 200):
                self._invalidate(kind, names[start : start + 200], command)
        self._advertised = ads

    def _invalidate(self, kind: str, names: list[str], command: str) -> None:
        listed = f'stringListMember(Name, "{",".join(names)}")'
        self._pool.invalidate(kind, command, listed)

    def _ads(self) -> Iterable[feign.Ad]:
        pool = self._simulation
        known = {}
        for pilot in (*pool.all_pilots(), *pool.ghosts):
            state = tuple(pilot.jobs)
            before = self._pilots.get(pilot.serial)
            if before is not None and before[0] == state:
                known[pilot.serial] = before
            else:
                known[pilot.serial] = state, advertised.pilot(pilot, pool.kinds, pool.now)
            yield from known[pilot.serial][1]
        self._pilots = known
        yield from advertised.resources(pool)
        yield from advertised.monitors(pool)

    def end_day(self) -> None:
        """Tell of all that runs as if it ended now, for the day that follows is another one."""
        pool = self._simulation
        told = pool.runs.told
        for pilot in pool.all_pilots():
            for run in pilot.jobs:
                run.plan = Plan(How.EXIT, 0)
                told.epochs.append(Ended(run, pilot, How.EXIT, pool.now, pool.now))

    def _write(self) -> None:
        """Let the schedds write what is new; one that was deaf has written meanwhile, too."""
        pool = self._simulation
        for schedd, kind in [record for record in self._records if record[0] not in self._deaf]:
            del self._records[schedd, kind]
        told, pool.runs.told = pool.runs.told, Told()
        for done in sorted(told.epochs, key=lambda epoch: epoch.written):
            record = run_ads.epoch(done, pool.kinds)
            self._records[done.run.job.schedd, "epochs"].append(record)
        for left in sorted(told.history, key=lambda of: of.at):
            record = run_ads.history(left, pool.kinds)
            self._records[left.last.run.job.schedd, "history"].append(record)

    def access(self) -> SimulatedAccess:
        """How the Recorder asks; once in each step."""
        self._write()
        pool = self._simulation
        idle = {
            (_SCHEDDS[kind.schedd], cluster): int(jobs)
            for kind, cluster, jobs in zip(pool.kinds, self._clusters, pool.idle, strict=True)
        }
        running = {
            (_SCHEDDS[schedd], f"{group}.{owner}"): jobs
            for (schedd, group, owner), jobs in pool.running_by().items()
        }
        busy = scenario.schedds_in(scenario.BUSY, pool.hour)
        self._deaf = {_SCHEDDS[n] for n in scenario.schedds_in(scenario.DEAF, pool.hour)}
        day = Day(
            now=pool.now,
            idle=idle,
            running=running,
            busy=frozenset(_SCHEDDS[n] for n in busy),
            deaf=frozenset(self._deaf),
            heard={run_ads.startd(ghost): ghost.heard for ghost in pool.ghosts if ghost.heard},
            records=dict(self._records),
        )
        return SimulatedAccess(self.addresses, day)


def _submit(pool: CondorPool, kind: Kind) -> int:
    """Submit the one real job of a kind."""
    attrs: dict[str, feign.Value] = {"MaxWallTimeMins": int(kind.hours * 60)}
    if kind.sites:
        attrs["DESIRED_Sites"] = ",".join(kind.sites)
    if kind.avoid:
        attrs["UNDESIRED_Sites"] = ",".join(kind.avoid)
    return pool.submit(
        _SCHEDDS[kind.schedd],
        owner=kind.owner,
        attrs=attrs,
        requirements=kind.requirements,
        request_cpus=kind.cores,
        request_memory=kind.memory_mib,
        accounting_group=kind.accounting_group,
        accounting_group_user=kind.owner,
        **({"request_gpus": kind.gpus} if kind.gpus else {}),
    )
