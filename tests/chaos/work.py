"""Pilots that come and go, jobs that end in known ways, and what HTCondor's own files say of them.

The truth is read when all is over: startds' logs (a pilot's begin and end), the schedds' histories
(how each job ended) and their epoch histories (each run).  gwmond is asked nothing.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.chaos.host import Host
from tests.pool.adtext import Value
from tests.pool.client import ClientError
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.proof.pilots import POOL_CONFIG, UNIT_MIB

CONFIG = f"""{POOL_CONFIG}
MAX_HISTORY_LOG = 100000
MAX_HISTORY_ROTATIONS = 1000
MAX_EPOCH_HISTORY_LOG = 100000
MAX_EPOCH_HISTORY_ROTATIONS = 1000
SCHEDD2_ENVIRONMENT = "\
_CONDOR_JOB_EPOCH_HISTORY=$(LOCAL_DIR)/spool2/epoch_history \
LD_PRELOAD=$(LOCAL_DIR)/host.so GWMOND_CHAOS_HOST=$(LOCAL_DIR)/SCHEDD2.host"
"""
#: A startd that is killed is started again by its master, which does not end meanwhile.
PILOT_CONFIG = "NETWORK_HOSTNAME = {}.node.test\nMASTER.DAEMON_SHUTDOWN_FAST = False\n"
WAYS = ("exit 0", "exit 0", "exit 0", "exit 3", "kill -SEGV $$")
NAMES = (
    *("GLIDEIN_Site", "GLIDEIN_Entry_Name", "GLIDEIN_Schedd", "GLIDEIN_ClusterId"),
    *("GLIDEIN_ProcId", "GLIDECLIENT_Name", "GLIDECLIENT_Group"),
)
_LIVING, _IDLE = 3, 4
_STARTS = re.compile(r"^(\S+ \S+) .*\(CONDOR_STARTD\) STARTING UP", re.M)
_EXITS = re.compile(r"^(\S+ \S+) .*condor_startd.* EXITING WITH STATUS", re.M)


class Lived(NamedTuple):
    """A pilot as it was: seconds of the epoch, known to a second."""

    name: str
    cores: int
    start: float
    end: float
    #: the last thing that was done to it
    how: str


class Ran(NamedTuple):
    """A run, of its epoch record."""

    job: str
    number: int
    pilot: str
    start: float
    end: float


class Truth(NamedTuple):
    """All pilots; outcomes of jobs that ended by themselves; runs of which there are records."""

    pilots: dict[str, Lived]
    ended: dict[str, str]
    runs: list[Ran]


class Living(NamedTuple):
    """A pilot that lives, or did: when it shall end, and of how many cores it is."""

    pilot: Pilot
    cores: int
    until: float


class Work:
    """Keeps a few pilots and idle jobs in a pool; ``step`` is called about once a second."""

    def __init__(self, pool: CondorPool, draw: random.Random, sites: Iterator[str]) -> None:
        """``sites`` are those of the pilots, in the order of their starts."""
        self.pool, self._draw, self._sites = pool, draw, sites
        #: those that may be hurt, and all
        self.living: list[Living] = []
        self.all: list[Living] = []
        self._ended: dict[str, tuple[str, float]] = {}
        schedd = Host(pool.local, "SCHEDD2")
        #: by the names of pilots, and of the second schedd
        self.hosts = {pool.schedds[1]: schedd} if schedd.env else {}
        if schedd.env:
            pool.restart("SCHEDD2")  # the library is there now

    def step(self) -> None:
        """End what has lived long enough, start what is missing."""
        now = time.monotonic()
        for of in [of for of in self.living if now > of.until]:
            self.end(of, self._draw.choice(("graceful", "kill -9", "drained")))
        if len(self.living) < _LIVING:
            self._start()
        for schedd, owner in zip(self.pool.schedds, ("alice", "bob"), strict=True):
            try:
                idle = len(self.pool.jobs(schedd, "JobStatus == 1", timeout=10))
                if idle < _IDLE:
                    self._submit(schedd, owner)
            except (ClientError, TimeoutError):
                continue  # it is being hurt

    def _start(self) -> None:
        number = len(self.all)
        name, site = f"p{number}", next(self._sites)
        cores = self._draw.choice((1, 2, 4))
        attrs: dict[str, Value] = {
            "GLIDEIN_Site": site,
            "GLIDEIN_Entry_Name": f"e-{site}",
            "GLIDEIN_Schedd": "schedd_glideins1@factory.test",
            "GLIDEIN_ClusterId": 100 + number,
            "GLIDEIN_ProcId": 0,
            "ClassAdLifetime": 60,  # as POOL_CONFIG has it: what a killed one leaves goes then
        }
        host = Host(self.pool.local, name)
        environment = " ".join(f"{name}={value}" for name, value in host.env.items())
        config = PILOT_CONFIG.format(name) + f'STARTD_ENVIRONMENT = "{environment}"\n'
        pilot = self.pool.start_pilot(
            name,
            cores=cores,
            memory=cores * UNIT_MIB,
            attrs=attrs,
            config=config,
            wait=False,
        )
        if host.env:
            self.hosts[pilot.name] = host
        of = Living(pilot, cores, time.monotonic() + self._draw.uniform(60, 240))
        self.living.append(of)
        self.all.append(of)

    def _submit(self, schedd: str, owner: str) -> None:
        way = self._draw.choice(WAYS)
        seconds = self._draw.randrange(3, 40)
        self.pool.submit(
            schedd,
            2,
            owner=owner,
            executable="/bin/sh",
            arguments=f"\"-c 'sleep {seconds}; {way}'\"",
            request_memory=1024,
            job_lease_duration=20,
            # As frontends have it; MATCH_EXP_JOB_... then say in records on which pilot a run was.
            attrs={f"JOB_{name}": f"$$({name}:Unknown)" for name in NAMES},
        )

    def end(self, of: Living, how: str) -> None:
        """End a pilot: ``graceful``, ``kill -9`` or ``drained`` (and then gracefully)."""
        self.living.remove(of)
        self._ended[of.pilot.name] = how, time.time()
        print(f"{time.strftime('%H:%M:%S')} {of.pilot.name} {how}", flush=True)
        if how == "kill -9":
            of.pilot.kill9()
            return
        if how == "drained":
            self.pool.tool("condor_drain", "-graceful", of.pilot.name, timeout=20)
        try:
            of.pilot.signal("MASTER", signal.SIGTERM)
        except ProcessLookupError:
            return

    def finish(self) -> None:
        """End all pilots, and remove what still waits; returns when nothing runs."""
        for schedd, owner in zip(self.pool.schedds, ("alice", "bob"), strict=True):
            self.pool.wait_for("its queue", lambda of=schedd: self._answers(of))  # type: ignore[misc]
            self.pool.remove(schedd, "JobStatus == 1", user=owner)
        for of in [*self.living]:
            self.end(of, "graceful")
        for of in self.all:
            of.pilot.wait_gone()
        for schedd, owner in zip(self.pool.schedds, ("alice", "bob"), strict=True):
            self.pool.remove(schedd, user=owner)
            self.pool.wait_for("no jobs", lambda of=schedd: not self.pool.jobs(of))  # type: ignore[misc]

    def _answers(self, schedd: str) -> bool:
        try:
            self.pool.jobs(schedd, "false", timeout=10)
        except (ClientError, TimeoutError):
            return False
        return True

    # -- the truth

    def truth(self) -> Truth:
        """What HTCondor's own files say, once all is over."""
        pilots = {of.pilot.name: self._lived(of) for of in self.all}
        ended: dict[str, str] = {}
        runs = []
        # What a fault has put aside was true all the same.
        for spool in (self.pool.local / name for name in ("spool", "spool2", "aside")):
            for ad in records(spool, "history"):
                if ad.get("JobStatus") == "4":
                    by_signal, code = ad["ExitBySignal"] == "true", ad.get("ExitCode")
                    outcome = "exit_zero" if code == "0" else "exit_nonzero"
                    ended[ad["GlobalJobId"]] = "exit_signal" if by_signal else outcome
            for ad in records(spool, "epoch_history"):
                runs.append(_ran(ad))
        return Truth(pilots, ended, runs)

    def _lived(self, of: Living) -> Lived:
        text = "".join(
            path.read_text(errors="replace")
            for path in sorted((of.pilot.local / "log").glob("StartLog*"), reverse=True)
        )
        starts, exits = (list(map(_epoch, found.findall(text))) for found in (_STARTS, _EXITS))
        how, asked = self._ended[of.pilot.name]
        start = min(starts, default=asked)
        end = asked if how == "kill -9" else max([start, *exits])
        return Lived(of.pilot.name, of.cores, start, end, how)


def _epoch(text: str) -> float:
    return time.mktime(time.strptime(text, "%m/%d/%y %H:%M:%S"))


def _ran(ad: dict[str, str]) -> Ran:
    start, end = float(ad["JobCurrentStartDate"]), float(ad["EpochWriteDate"])
    pilot = ad.get("RemoteHost", ad.get("LastRemoteHost", "")).partition("@")[2]
    return Ran(ad["GlobalJobId"], int(ad["NumShadowStarts"]), pilot, start, end)


def records(spool: Path, name: str) -> Iterator[dict[str, str]]:
    """The records of a history and of what it was before its rotations, values as text."""
    for path in sorted(spool.glob(f"{name}*")):
        ad: dict[str, str] = {}
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("***"):
                yield ad
                ad = {}
            else:
                key, _, value = line.partition(" = ")
                ad[key] = value.strip('"')
