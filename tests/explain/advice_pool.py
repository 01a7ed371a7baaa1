"""A drawn pool, real, and all that can be moved in it: pilots, limits, jobs, what is advertised."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.explain.advice_draw import ROLES, STARTED, Entry, Job, Layout, start_of
from tests.pool import feign
from tests.pool.adtext import Ad, Expr, Value
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.pool.sandbox import USERS

CONFIG = """
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_UPDATE_AFTER_CYCLE = True
NEGOTIATOR_INFORM_STARTD = False
SCHEDD_INTERVAL = 2
PERIODIC_EXPR_INTERVAL = 2
MAX_CONCURRENT_UPLOADS_PER_USER = 1000
START_SCHEDULER_UNIVERSE = False
SCHEDD2.MAX_JOBS_RUNNING = 1
MATLAB_LIMIT = 1
NONE_LIMIT = 0
LICENCE_LIMIT = 3
GROUP_NAMES = group_full, group_none, group_none.low, group_up, group_up.low
GROUP_QUOTA_group_full = 1
GROUP_QUOTA_group_none = 0
GROUP_QUOTA_group_none.low = 4
GROUP_QUOTA_group_up = 1
GROUP_QUOTA_group_up.low = 4
CLAIM_PARTITIONABLE_LEFTOVERS = false
"""
_RAISED = """
MATLAB_LIMIT = 100
NONE_LIMIT = 100
LICENCE_LIMIT = 100
GROUP_QUOTA_group_full = 100
GROUP_QUOTA_group_none = 100
GROUP_QUOTA_group_none.low = 100
GROUP_QUOTA_group_up = 100
GROUP_QUOTA_group_up.low = 100
SCHEDD2.MAX_JOBS_RUNNING = 100
START_SCHEDULER_UNIVERSE = True
"""
_LIMITS = frozenset(
    ("concurrency_limit", "quota", "submitter_ceiling", "submitter_limit", "schedd_limit")
)
_TIME = frozenset(("deferred", "not_considered", "behind_others", "running", "held", "not_offered"))
_GPUS = """#!/bin/sh
echo 'DetectedGPUs="GPU-a1, GPU-b2"'
echo 'Common=[ DriverVersion=12.4; MaxSupportedVersion=12040; ]'
for id in a1 b2; do
    echo "GPU_$id=[ id=\\"GPU-$id\\"; Capability=7.5; GlobalMemoryMb=15102; \\
DeviceName=\\"Tesla T4\\"; ]"
done
"""
_LIFETIME_S = 6 * 3600


class Trial(NamedTuple):
    """A job, what was said of it, and what became of it.

    ``ending`` is "started", "by itself" (before anything was done), "not started", or "no command"
    where what is said cannot be done.  ``later``: the same of the answer to a second question.
    ``twin`` is whether its twin started, too.  ``named``: whether condor_q's analysis names the
    cause.  ``done``: in words.
    """

    job: Job
    schedd: str
    version: str
    seed: int
    number: str
    line: str
    reason: str
    mover: str
    proof: str
    commands: list[dict[str, Any]]
    ending: str
    later: str = ""
    twin: bool = False
    named: bool = False
    done: tuple[str, ...] = ()

    @property
    def worked(self) -> bool:
        """Whether what was advised made it start."""
        return self.ending == "started"

    @property
    def key(self) -> tuple[str, str]:
        """Its schedd and number."""
        return self.schedd, self.number

    @property
    def counts(self) -> bool:
        """Whether something could make it start in this pool, and it did not start by itself."""
        return self.ending != "by itself" and not self.job.hopeless

    @property
    def is_wrong(self) -> bool:
        """Whether it is proven, and not so: it does not start, or an entry has no slots for it."""
        is_entry = self.mover == "you" and self.job.cause.endswith(" entry")
        return self.proof == "proven" and (self.ending == "not started" or is_entry)

    @property
    def is_own(self) -> bool:
        """Whether all steps are commands on the job itself."""
        return bool(self.commands) and all(
            step.get("argv", ("",))[0] in ("condor_qedit", "condor_release", "condor_hold")
            or str(step.get("wait_for", "")).startswith("some seconds")
            for step in self.commands
        )

    @property
    def said(self) -> str:
        """What is the same of all jobs for which the pool has to be moved alike."""
        text = self.line.partition(": ")[2]
        return f"{text} {self.commands}".replace(self.number, "")


class Stage:
    """A drawn pool, and all that can be moved in it."""

    def __init__(self, pool: CondorPool, drawn: Layout) -> None:
        self.pool, self.drawn = pool, drawn
        self._number = 0
        self._fillers: list[dict[str, Any]] = []
        self._moved: set[str] = set()
        self._new: list[Pilot] = []
        self._config = (pool.local / "condor_config").read_text()

    # -- the pool

    def set(self) -> None:
        """Advertise the entries, start the pilots, and fill those that are busy."""
        self.advertise(self.drawn.entries.values())
        here = [entry for role, entry in self.drawn.entries.items() if role in STARTED]
        names = [self.start(entry, retires=entry.role == "retiring") for entry in here]
        self.await_pilots(names)
        free = self.drawn.at("free").site
        at = {"owner": "bob", "site": free}
        self._fillers = [{**at, "n": 2, "site": self.drawn.at("busy").site}]
        self._fillers.append({**at, "concurrency_limits": "matlab"})
        self._fillers += [
            {**at, "accounting_group": group, "accounting_group_user": "bob"}
            for group in ("group_full", "group_up.low")
        ]
        self._fillers += [{**at, "owner": "carol"}, {**at, "schedd": self.pool.schedds[1]}]
        if "draining" in self.drawn.entries:
            self._fillers.append({**at, "site": self.drawn.at("draining").site})
        self._fill()
        for pilot in self.pool.pilots:
            if pilot.name.startswith("draining"):
                pilot.drain()
                self._fillers.pop()
        self._new.clear()

    def _fill(self) -> None:
        """Have other users' jobs run: those that do not any more are submitted again."""
        self.pool.tool("condor_userprio", "-setceiling", "carol@pool.test", "1")
        runs = "JobStatus == 2 && Filler is {}"
        missing: list[tuple[str, int]] = []
        for number, filler in enumerate(self._fillers):
            job = {"n": 1, "schedd": self.pool.schedds[0], **filler}
            site = job.pop("site")
            schedd, wanted = job["schedd"], f'TARGET.GLIDEIN_Site == "{site}"'
            if not self.pool.jobs(schedd, runs.format(number)):
                attrs: dict[str, Value] = {"Filler": number, "FilledSite": site}
                self.pool.submit(seconds=7200, attrs=attrs, requirements=wanted, **job)
                missing.append((schedd, number))
        for schedd, number in missing:
            self.pool.wait_for(
                f"job {number} that fills the pool",
                lambda: self.pool.jobs(schedd, runs.format(number)),  # noqa: B023
            )

    def restore(self) -> None:
        """Undo all that was moved."""
        for pilot in self._new:
            pilot.stop_graceful()
            self.pool.pilots.remove(pilot)
        if self._new:
            self.advertise(self.drawn.entries.values())
        if "config" in self._moved:
            self._configure(self._config)
        if self._moved:
            self._fill()
        self._new.clear()
        self._moved.clear()

    def _configure(self, text: str) -> None:
        (self.pool.local / "condor_config").write_text(text)
        self.pool.tool("condor_reconfig")

    def advertise(self, entries: Iterable[Entry], *, mended: bool = False) -> None:
        """Tell what the frontend says of entries; ``mended``: that nothing is wrong there."""
        self.pool.advertise([_ad(entry, mended) for entry in entries], "UPDATE_AD_GENERIC")

    def start(self, entry: Entry, without: Iterable[str] = (), *, retires: bool = False) -> str:
        """Start a real pilot of an entry, without some of the clauses of its START; its name."""
        self._number += 1
        name = f"{entry.role}{self._number}"
        config = [f"START = ($(START)) && ({start_of(entry, without)})"]
        config += ["FILESYSTEM_DOMAIN = $(MASTER_NAME)"]
        if entry.gpus:
            script = self.pool.local / "gpus"
            script.write_text(_GPUS)
            script.chmod(0o755)
            config.append(f"MACHINE_RESOURCE_INVENTORY_GPUs = {script}")
        pilot = self.pool.start_pilot(
            name,
            cores=entry.cores,
            memory=entry.memory,
            attrs=entry.attributes,
            lifetime=_LIFETIME_S,
            retire_after=0.0 if retires else None,
            config="\n".join(config),
            wait=False,
        )
        self._new.append(pilot)
        return name

    def await_pilots(self, names: Iterable[str]) -> None:
        """Wait for the slots of pilots."""
        wanted = {f"slot1@{name}@pool.test" for name in names}

        def known() -> bool:
            slots = self.pool.query("Slot", 'SlotType == "Partitionable"', ["Name"])
            return wanted <= {slot["Name"] for slot in slots}

        self.pool.wait_for(f"the pilots {sorted(wanted)}", known)

    # -- jobs

    def submit(self, job: Job) -> str:
        """Submit a job and its twin as a user does; the number of the job."""
        home = self.pool.local / job.owner
        self._number += 1
        path = home / f"{self._number}.sub"
        path.write_text(job.text)
        done = self.user(job.owner, ["condor_submit", "-name", self.schedd(job), path.name])
        found = re.search(r"submitted to cluster (\d+)", done.stdout)
        assert found, f"{job}\n{done.stdout}{done.stderr}"
        if job.then:
            name = "-name", self.schedd(job)
            self.user(job.owner, [job.then, *name, found[1]])
        return f"{found[1]}.0"

    def schedd(self, job: Job) -> str:
        """Return the schedd of a job."""
        return self.pool.schedds[job.schedd]

    def user(self, owner: str, argv: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command as a user does, in the user's directory."""
        uid = USERS[owner]
        here = "env", "-C", str(self.pool.local / owner)
        become = "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"
        return self.pool.tool(*become, *here, *argv, user=owner)

    def cycles(self, number: int) -> Iterator[None]:
        """Yield once a second until so many cycles that begin from now on have ended."""
        since = time.time()
        began: set[float] = set()
        while len(began) < number:
            (ad,) = self.pool.query("Negotiator", None, ["LastNegotiationCycleTime0"])
            if (last := ad.get("LastNegotiationCycleTime0", 0)) > since:
                began.add(last)
            yield
            time.sleep(1)

    def remove(self, schedd: str, constraint: str) -> None:
        """End jobs of whomever: the access point's administrator may."""
        self.pool.tool("condor_rm", "-name", schedd, "-constraint", constraint)

    def end(self, trial: Trial) -> None:
        """End a job and its twin."""
        cluster = trial.number.partition(".")[0]
        self.remove(trial.schedd, f"ClusterId == {cluster}")

    # -- what others than the user can move

    def move(self, trial: Trial, step: Mapping[str, Any]) -> str:
        """Have what is said happen, as whose move it is; in words."""
        said = step.get("do") or step["wait_for"]
        if trial.mover == "you" and "do" in step:
            return self._mend(trial)
        if trial.reason in _LIMITS or "START_SCHEDULER_UNIVERSE" in said:
            return self._limits(trial, waits="wait_for" in step)
        if trial.reason in _TIME:
            return self._wait(trial)
        if trial.reason == "start":
            return self._start_changed(" ".join((trial.line, said)))
        return self._at_entries(trial, said)

    def _at_entries(self, trial: Trial, said: str) -> str:
        """A job ends, or a pilot starts, where that is said to help."""
        entries = self._named(said) or self._named(trial.line)
        if not entries:
            return ""
        if trial.reason == "pilots_busy" and re.search(r"\bends?\b", said):
            self._moved.add("jobs")
            for entry in entries:
                self.remove(self.pool.schedds[0], f'FilledSite == "{entry.site}"')
            return f"jobs end at {', '.join(entry.name for entry in entries)}"
        self.advertise(entries[:1], mended=True)
        self.await_pilots([self.start(entries[0])])
        return f"a pilot of {entries[0].name} starts"

    def _start_changed(self, told: str) -> str:
        """The frontend's administrator takes the clause that is named out of START."""
        found = {
            entry.name: self.start(entry, (clause,))
            for entry in self.drawn.entries.values()
            for clause in entry.start
            if entry.role in STARTED and _plain(clause) in _plain(told)
        }
        self.await_pilots(found.values())
        return f"START is without the clause at {', '.join(found)}" if found else ""

    def _named(self, text: str) -> list[Entry]:
        found = {text.find(one.name): one for one in self.drawn.entries.values()}
        return [found[at] for at in sorted(found) if at >= 0]

    def _mend(self, trial: Trial) -> str:
        """What only the user knows how to mend."""
        if trial.job.cause == "input that is missing":
            path = self.pool.local / trial.job.owner / "nowhere.dat"
            path.write_text("here")
            return "the file is made"
        if trial.job.cause == "held by its policy":
            argv = ["condor_qedit", "-name", trial.schedd, trial.number]
            self.user(trial.job.owner, [*argv, "PeriodicHold", "false"])
            return "PeriodicHold is false"
        return ""

    def _wait(self, trial: Trial) -> str:
        if trial.reason != "deferred":
            time.sleep(3)
            return "time passes"
        name = ["condor_qedit", "-name", trial.schedd, trial.number]
        self.user(trial.job.owner, [*name, "DeferralTime", str(int(time.time()) + 2)])
        return "the time has come"

    def _limits(self, trial: Trial, *, waits: bool) -> str:
        self._moved.add("jobs" if waits else "config")
        if waits:
            for schedd in self.pool.schedds:
                self.remove(schedd, "Filler isnt undefined")
            return "other jobs end"
        if trial.reason == "submitter_ceiling":
            self.pool.tool("condor_userprio", "-setceiling", "carol@pool.test", "100")
            return "the ceiling is raised"
        self._configure(self._config + _RAISED)
        return "limits and quotas are raised"


def _plain(text: str) -> str:
    return re.sub(r"\s|[()]", "", text).replace("=!=", "isnt").replace("=?=", "is").lower()


def _ad(entry: Entry, mended: bool) -> Ad:
    """What the frontend says of an entry: the START of its group, too, unless all is unknown."""
    signs: dict[str, Any] = {"jobs_idle": 1} | ROLES[entry.role]
    start = Expr(start_of(entry) if entry.role != "unknown" else "undefined")
    if mended:
        signs = {"jobs_idle": 1, "running": 1}
    return feign.glideresource(
        entry.name,
        entry.site,
        cpus=entry.cores,
        memory=entry.memory,
        gpus=entry.gpus,
        walltime=_LIFETIME_S,
        **{
            "GlideClientConstraintFactoryCondorExpr": start,
            "GLIDEIN_CMSSite": f"T2_US_{entry.site}",
            **signs,
        },
    )


@contextmanager
def stage(drawn: Layout, htcondor: str) -> Iterator[Stage]:
    """Yield the drawn pool."""
    with CondorPool(config=CONFIG, htcondor=htcondor) as pool:
        made = Stage(pool, drawn)
        made.set()
        yield made
