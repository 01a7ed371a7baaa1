"""What happens at a real GlideinWMS in some minutes, what is done to it, and what gwmond says.

Truth is what the story did itself, and what HTCondor's tools and GlideinWMS's own files say. All of
it, and what gwmond said at each of two moments, goes into one directory of JSON files, which the
tests read (test_scenario.py).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.daemon.running import RunningDaemon, gwmond
from tests.glideinwms.kit import (
    COLLECTORS,
    FACTORY_SCHEDD,
    Entry,
    GlideinWMS,
    Group,
)
from tests.pool.sandbox import wait_until

#: How long anything may take: other tests load the machine. It takes 9 minutes where none does.
LONG_S = 900.0

ENTRIES = (
    Entry("SiteA"),
    Entry("SiteB", cores=2, limit=1, queue="B"),
    Entry("SiteShort", retire_s=100, limit=1),
    Entry("SiteBroken", limit=2, queue="X", broken=True),
    Entry("SiteHeld", limit=2, queue="H"),
)
GROUPS = (
    Group("main", curb=3),
    Group("ligo", '(GLIDEIN_Site=?="SiteB")', most=2),
    Group("lonely", '(GLIDEIN_Site=?="SiteZ")'),
)
TABLES: dict[str, dict[str, object]] = {
    "pool": {"wms": {"collectors": [COLLECTORS["wms"]], "factory_schedds": [FACTORY_SCHEDD]}},
    "pilots": {
        "settle_delay": "10s",
        "outcome_wait": "2m",
        "verdict_after": "1m",
        "assumed_end": "2m",
    },
    "http": {"jobs": "all"},
}
SITE = '+DESIRED_Sites = "{}"'


class Story:
    """A GlideinWMS, gwmond beside it, and a directory for what both say."""

    def __init__(self, gwms: GlideinWMS, directory: Path) -> None:
        logs = str(gwms.machine.file("/var/log/gwms-factory"))
        tables: dict[str, dict[str, object]] = {**TABLES}
        tables["factory"] = {"directories": [logs], "every": "10s"}
        self.gwms, self.directory = gwms, directory
        self.daemon = RunningDaemon(directory, [COLLECTORS["user"]], tables)
        self.jobs: dict[str, list[str]] = {}
        self.did: dict[str, Any] = {}
        #: the attributes that ads of each kind had
        self.names: dict[str, set[str]] = {}

    # -- what is looked at

    def keep(self, name: str, document: object) -> None:
        """Write what somebody said."""
        text = document if isinstance(document, str) else json.dumps(document, indent=1)
        (self.directory / name).write_text(text)

    def rest(self, path: str) -> Any:
        """What the daemon answers."""
        return json.loads(self.daemon.get(f"/api/v1/{path}"))

    def said(self, *words: str) -> str:
        """What a command of gwmond prints."""
        done = gwmond(*words, "--config", str(self.daemon.config))
        return done.stdout if done.returncode == 0 else f"{done.returncode}\n{done.stderr}"

    def wait(self, what: str, probe: Callable[[], Any]) -> Any:
        """Wait long for what has to come, and note when it came."""
        found = wait_until(what, probe, LONG_S, 1)
        self.did[what] = time.time()
        return found

    def note(self, kind: str, ads: list[dict[str, str]]) -> list[dict[str, str]]:
        """Note which attributes ads of a kind have (empty: each of its MyType); return the ads."""
        for ad in ads:
            self.names.setdefault(kind or ad.get("MyType", "?"), set()).update(ad)
        return ads

    def look(self, moment: str, *jobs: str) -> None:
        """After two more polls, keep what gwmond says, and what HTCondor says."""
        self.daemon.next_polls(2)
        self.did[f"look {moment}"] = time.time()
        self.note("factory queue", self.pilots())
        queue = self.gwms.ads("root", "user", "condor_q", "-allusers")
        self.keep(f"{moment}.queue.json", self.note("queue", queue))
        for pool in ("user", "wms"):
            found = self.gwms.ads("root", pool, "condor_status", "-any")
            self.keep(f"{moment}.{pool}.json", self.note("", found))
        for path in ("sites", "entries", "problems", "pilots", "explain", "runs"):
            self.keep(f"{moment}.{path}.json", self.rest(path))
        answers = {}
        for name in jobs:
            text = self.said("explain", self.jobs[name][-1], "--format", "json")
            if text.startswith("{"):  # it has not left the queue meanwhile
                answers[name] = json.loads(text)
        self.keep(f"{moment}.answers.json", answers)
        self.keep(f"{moment}.sites.txt", self.said("sites"))
        self.keep("did.json", self.did)
        self.keep("jobs.json", self.jobs)

    # -- what HTCondor knows

    def pilots(self) -> list[dict[str, str]]:
        """The factory's queue: pilots that are not at their end (those stay there for a while)."""
        over = '(JobStatus==3||JobStatus==4) && Managed=?="ScheddDone"'
        query = ("condor_q", "-allusers", "-constraint", f"!({over})")
        return self.gwms.ads("root", "wms", *query)

    def at(self, entry: str, status: str) -> list[dict[str, str]]:
        """Pilots of an entry in the factory's queue with that JobStatus."""
        return [
            ad
            for ad in self.pilots()
            if ad.get("GlideinEntryName") == entry and ad["JobStatus"] == status
        ]

    def slot_of(self, name: str) -> dict[str, str] | None:
        """The slot on which a job runs."""
        query = ("condor_status", "-constraint", f'JobId=?="{self.jobs[name][0]}"')
        return next(iter(self.gwms.ads("root", "user", *query)), None)

    def left(self, *names: str) -> bool:
        """Whether jobs have left the queue."""
        ids = [job for name in names for job in self.jobs[name]]
        return not self.gwms.ads("root", "user", "condor_q", *ids)

    # -- what happens

    def submit(
        self, name: str, user: str, group: str, seconds: int, *lines: str, count: int = 1
    ) -> None:
        self.jobs[name] = self.gwms.submit(user, group, seconds, *lines, count=count)

    def play(self) -> None:
        """All of it."""
        a = SITE.format("SiteA")
        self.submit("victim", "alice", "main", 3000, a)
        self.submit("removed", "bob", "main", 3000, a)
        self.submit("fails", "bob", "main", 10, a, "environment = EXIT=1")
        self.submit("good", "alice", "main", 30, a, count=2)
        b = (SITE.format("SiteB"), "request_cpus = 2")
        self.submit("limited", "bob", "ligo", 60, *b, count=6)
        self.submit("lonely", "bob", "lonely", 30, count=2)
        self.submit("broken", "alice", "main", 30, SITE.format("SiteBroken"), count=2)
        self.submit("held", "alice", "main", 30, SITE.format("SiteHeld"), count=2)
        self.submit("retired", "bob", "main", 140, SITE.format("SiteShort"))
        self.submit("too_large", "alice", "main", 30, a, "request_memory = 90000")
        self.submit("user_held", "alice", "main", 30, a, "hold = true")
        self.submit("typo", "alice", "main", 30, SITE.format("SiteAA"))

        ran: set[str] = set()

        def early() -> bool:
            wanted = {"victim", "removed", "limited", "retired"}
            ran.update(name for name in wanted - ran if self.slot_of(name))
            held, failing = self.at("SiteHeld", "5"), self.at("SiteBroken", "2")
            return ran == wanted and bool(held and failing)

        self.wait("jobs run, pilots are held and fail", early)
        kinds = ("too_large", "user_held", "typo", "lonely", "limited", "broken", "held", "victim")
        self.look("early", *kinds)

        crashed, removed = self.slot_of("victim"), self.slot_of("removed")
        assert crashed is not None
        assert removed is not None
        pilot = f"{removed['GLIDEIN_ClusterId']}.{removed['GLIDEIN_ProcId']}"
        dead = f"{crashed['GLIDEIN_ClusterId']}.{crashed['GLIDEIN_ProcId']}"
        self.did["crashed"] = {"pilot": dead, "at": time.time(), "slot": crashed["Name"]}
        self.gwms.crash(crashed["GLIDEIN_MASTER_NAME"])
        self.gwms.run("root", "user", "condor_rm", *self.jobs["victim"])
        self.did["removed"] = {"pilot": pilot, "at": time.time(), "slot": removed["Name"]}
        self.gwms.run("gfactory", "wms", "condor_rm", pilot)
        self.gwms.run("root", "user", "condor_rm", *self.jobs["removed"])
        self.gwms.downtime("down", "SiteB")
        down = 'MyType=="glideresource" && GLIDEIN_Site=="SiteB" && GLIDEIN_In_Downtime=?="True"'
        query = ("condor_status", "-any", "-constraint", down)
        groups = 2  # main and ligo have an ad each
        self.wait("a downtime", lambda: len(self.gwms.ads("root", "user", *query)) == groups)
        gone = {pilot, dead}
        self.wait("two pilots are gone", lambda: not gone & {_id(ad) for ad in self.pilots()})
        self.wait("jobs are done", lambda: self.left("good", "fails"))
        self.look("later", "limited", "broken", "too_large", "lonely")


def _id(ad: dict[str, str]) -> str:
    return f"{ad['ClusterId']}.{ad['ProcId']}"


def tell(directory: Path, *, mended: bool = True, record: bool = False) -> None:
    """Play the story, and write what all say into the directory; ``record``: real.zip, too."""
    with (
        GlideinWMS(ENTRIES, GROUPS, mended=mended) as gwms,
        gwms.machine.network(),
    ):
        story = Story(gwms, directory)
        with story.daemon, _recorder(story.daemon) if record else nullcontext():
            try:
                story.play()
            finally:
                story.keep("did.json", story.did)
                story.keep("jobs.json", story.jobs)
                story.keep("gwms.log", gwms.logs())
                story.keep("names.json", {kind: sorted(of) for kind, of in story.names.items()})
                logs = gwms.machine.file("/var/log/gwms-factory")
                shutil.copytree(logs, directory / "files", symlinks=True)


@contextmanager
def _recorder(daemon: RunningDaemon) -> Iterator[None]:
    """Records meanwhile what the daemon asks for."""
    file = daemon.config.with_name("real.zip")
    words = ["record", "--config", str(daemon.config), "--every", "60s", "--frames", "999"]
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "gwmond", *words, str(file)]
    environment = {**os.environ, "CONDOR_CONFIG": "ONLY_ENV"}
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(LONG_S)
