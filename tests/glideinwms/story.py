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
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.daemon.running import RunningDaemon, gwmond
from tests.glideinwms.kit import (
    CLIENT_LOGS,
    COLLECTORS,
    FACTORY_SCHEDD,
    Entry,
    GlideinWMS,
    Group,
)
from tests.pool.sandbox import wait_until

#: How long anything may take: other tests load the machine. It takes 9 minutes where none does.
LONG_S = 900.0
#: How long gwmond may take to have all that it will have.
SETTLE_S = 180.0

ENTRIES = (
    Entry("SiteA"),
    Entry("SiteB", cores=2, limit=1, queue="B", overlap=True),
    Entry("SiteShort", retire_s=100, limit=3),
    Entry("SiteBroken", limit=2, queue="X", broken=True),
    Entry("SiteHeld", limit=2, queue="H"),
)
GROUPS = (
    Group("main", curb=3),
    Group("ligo", '(GLIDEIN_Site=?="SiteB")'),
    Group("lonely", '(GLIDEIN_Site=?="SiteZ")'),
)
#: How long a pilot that runs may take to register: half a minute where nothing else is to do.
GRACE_S = 60
TABLES: dict[str, dict[str, object]] = {
    "pool": {"wms": {"collectors": [COLLECTORS["wms"]], "factory_schedds": [FACTORY_SCHEDD]}},
    "pilots": {
        "settle_delay": "10s",
        "outcome_wait": "2m",
        "verdict_after": "1m",
        "assumed_end": "2m",
    },
    "site": {"register_grace": f"{GRACE_S}s"},
    "http": {"jobs": "all"},
}
#: What HTCondor wrote of the past: of jobs and their runs, of pilots at the factory and the site.
HISTORIES: dict[str, tuple[str, ...]] = {
    "history": ("user", "condor_history"),
    "epochs": ("user", "condor_history", "-epochs"),
    "factory history": ("wms", "condor_history"),
    "site history": ("site", "condor_history"),
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
        for path in ("sites", "entries", "problems", "explain"):
            self.keep(f"{moment}.{path}.json", self.rest(path))
        self.keep(f"{moment}.pilots.json", self.rest("pilots?which=all&limit=500"))
        self.keep(f"{moment}.runs.json", self.rest("runs?limit=500"))
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

    def outputs(self, entry: str) -> list[Path]:
        """The outputs of pilots of an entry that came to their end."""
        found = self.gwms.machine.file(CLIENT_LOGS).glob(f"*/*/entry_{entry}/job.*.out")
        return [path for path in found if "=== Glidein ending" in path.read_text(errors="replace")]

    def slot_of(self, name: str) -> dict[str, str] | None:
        """The slot on which a job runs."""
        query = ("condor_status", "-constraint", f'JobId=?="{self.jobs[name][0]}"')
        return next(iter(self.gwms.ads("root", "user", *query)), None)

    def refusing(self) -> bool:
        """Whether a pilot has the START that its group was given later."""
        at = ("condor_status", "-constraint", 'GLIDEIN_Site=="SiteShort"')
        return any(
            "Refused" in slot.get("START", "") for slot in self.gwms.ads("root", "user", *at)
        )

    def given_up(self) -> bool:
        """Whether the run on the pilot that was killed is over for its schedd."""
        query = ("condor_history", "-epochs", *self.jobs["victim"])
        return bool(self.gwms.ads("root", "user", *query))

    def left(self, *names: str) -> bool:
        """Whether jobs have left the queue."""
        ids = [job for name in names for job in self.jobs[name]]
        return not self.gwms.ads("root", "user", "condor_q", *ids)

    # -- what happens

    def remove(self, *names: str) -> None:
        """Remove jobs, as their users do."""
        ids = [job for name in names for job in self.jobs[name]]
        self.gwms.run("root", "user", "condor_rm", *ids)

    def submit(
        self, name: str, user: str, group: str, seconds: int, *lines: str, count: int = 1
    ) -> None:
        self.jobs[name] = self.gwms.submit(user, group, seconds, *lines, count=count)

    def play(self) -> None:
        """All of it."""
        self.begin()
        self.strike()
        self.end()

    def begin(self) -> None:
        """Jobs of all kinds: some run, others meet a limit, a curb, what fails, or nothing."""
        a = SITE.format("SiteA")
        self.submit("victim", "alice", "main", 3000, a, "job_lease_duration = 60")
        self.submit("removed", "bob", "main", 3000, a)
        # These may begin on a pilot in the moment of its end: they are not to wait for long then.
        lease = "job_lease_duration = 60"
        self.submit("fails", "bob", "main", 10, a, "environment = EXIT=1", lease)
        self.submit("good", "alice", "main", 30, a, lease, count=2)
        b = (SITE.format("SiteB"), "request_cpus = 2")
        self.submit("limited", "bob", "ligo", 60, *b, count=10)
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
            since = time.time() - GRACE_S - 15
            failing = (int(ad["EnteredCurrentStatus"]) for ad in self.at("SiteBroken", "2"))
            return ran == wanted and min(failing, default=since) < since

        self.wait("jobs run, pilots fail", early)
        self.wait("pilots are held", lambda: self.at("SiteHeld", "5"))
        told = "GlideClientCurbCurbTotalGlideinsPerGroup isnt undefined"
        curbed = ("condor_status", "-any", "-constraint", f'GLIDEIN_Site=="SiteA" && {told}')
        self.wait("the frontend tells its curb", lambda: self.gwms.ads("root", "user", *curbed))
        kinds = ("too_large", "user_held", "typo", "lonely", "limited", "broken", "held", "victim")
        self.look("early", *kinds)

    def strike(self) -> None:
        """A pilot is killed, one removed, a site in downtime, and the frontend reconfigured."""
        crashed, removed = self.slot_of("victim"), self.slot_of("removed")
        assert crashed is not None
        assert removed is not None
        self.did["crashed"] = {"pilot": _pilot_of(crashed), "at": time.time()}
        self.gwms.crash(crashed["GLIDEIN_MASTER_NAME"])
        self.did["removed"] = {"pilot": _pilot_of(removed), "at": time.time()}
        self.gwms.run("gfactory", "wms", "condor_rm", _pilot_of(removed))
        self.remove("removed", "held")
        self.gwms.downtime("down", "SiteB")
        refusing = (replace(GROUPS[0], start="Refused=!=True"), *GROUPS[1:])
        self.gwms.reconfigure_frontend(refusing)
        self.did["reconfigured"] = time.time()
        # A pilot of before may take one of these, and be full.
        want = (SITE.format("SiteShort"), "+Refused = True")
        self.submit("refused", "bob", "main", 3000, *want, count=3)

        down = 'MyType=="glideresource" && GLIDEIN_Site=="SiteB" && GLIDEIN_In_Downtime=?="True"'
        query = ("condor_status", "-any", "-constraint", down)
        groups = 2  # main and ligo have an ad each
        self.wait("a downtime", lambda: len(self.gwms.ads("root", "user", *query)) == groups)
        gone = {self.did[name]["pilot"] for name in ("crashed", "removed")}
        self.wait("two pilots are gone", lambda: not gone & {_id(ad) for ad in self.pilots()})
        self.wait("jobs are done", lambda: self.left("good", "fails"))
        self.wait("a pilot refuses", self.refusing)
        self.look("later", "limited", "refused", "too_large", "lonely")

    def end(self) -> None:
        """No more jobs: all pilots end, and all is counted."""
        self.wait("the job of a pilot that retires is done", lambda: self.left("retired"))
        self.wait("a failed pilot is over", lambda: any(self.outputs("SiteBroken")))
        self.wait("the schedd gives up the pilot that was killed", self.given_up)
        self.gwms.run("root", "user", "condor_rm", "-all")
        self.wait("all pilots are gone", lambda: not self.pilots())
        with suppress(TimeoutError):  # what is not, the tests show
            wait_until("gwmond has it all", self.settled, SETTLE_S, 1)
        self.look("end")
        for name, (pool, *words) in HISTORIES.items():
            ads = self.gwms.ads("root", pool, *words)
            self.keep(f"{name}.json", ads if pool != "user" else self.note(name, ads))
        self.keep("analyze_entries.txt", self.gwms.analyze_entries())
        style = ("report", "--style", "analyze-entries", "--from", "2h")
        for name, said in (("analyze", style), ("reconcile", ("reconcile", "--from", "2h"))):
            self.keep(f"{name}.txt", self.said(*said))
            self.keep(f"{name}.json", self.said(*said, "--format", "json"))
        self.keep("check.txt", self.said("ledger", "check"))

    def settled(self) -> bool:
        """Whether gwmond knows all pilots that ran, their ends, and the category of all time."""
        told = self.rest("pilots?which=all&limit=500")
        ran = ("condor_history", "-constraint", "JobStartDate isnt undefined")
        if len(told["pilots"]) < len(self.gwms.ads("root", "site", *ran)):
            return False
        # A shut-down tells an end before the factory's files and queue do.
        ended = all(row["end_source"] in {"pilot_output", "queue"} for row in told["pilots"])
        left = [
            s for row in told["pilots"] for of in row["unsettled"].values() for s in of.values()
        ]
        return ended and not any(left) and not told["not_settled"]


def _id(ad: dict[str, str]) -> str:
    return f"{ad['ClusterId']}.{ad['ProcId']}"


def _pilot_of(slot: dict[str, str]) -> str:
    return f"{slot['GLIDEIN_ClusterId']}.{slot['GLIDEIN_ProcId']}"


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
