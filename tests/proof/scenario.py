"""Real pilots and real jobs that end in every way there is, played on a real pool.

The script acts by what it sees from outside (processes, and the notes which the jobs write), and
never asks HTCondor how anything ended.  It takes a minute and a half, and longer on a slow machine:
it waits for what it sees, and what it ends does not end by itself.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Collection
from typing import Self, TypeAlias

from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.proof.jobs import JOB, LARGE_BYTES, LARGE_INPUT, LOST_INPUT, PLANS, WRAPPER, Plan
from tests.proof.pilots import PILOTS, UNIT_MIB, attrs_of, config_of
from tests.proof.sight import Job, Sight, Surprise
from tests.proof.truth import Truth

Duty: TypeAlias = tuple[Callable[[], bool], Callable[[], None]]
"""When something may be done, and what."""

Run: TypeAlias = tuple[str, int]
"""GlobalJobId, and the number of the run."""

SEEN_WITHIN_S = 120.0
"""So long a pilot is left as it is for who watches to see it."""

TOLD_WITHIN_S = 90.0
"""So long a pilot is left for who watches to be told of its runs."""

DRAINED_S = 15.0
"""So long one that was drained is: less than the daemons' ``end_tolerance``, for whoever then knows
nothing from it has to take it for a pilot that ended with its jobs."""

LASTS_S = 75.0
"""So long a pilot goes on after runs that did not end with it: nobody can think that they did."""


class Interrupted(RuntimeError):
    """The scenario was asked to stop."""


class Scenario:
    """The script; a context manager.  ``play`` may run in a thread, ``stop`` ends it early."""

    def __init__(
        self,
        pool: CondorPool,
        knows: Callable[[str, Collection[Run]], bool] = lambda *_: True,
    ) -> None:
        """``pool`` is running, with ``POOL_CONFIG``.

        ``knows`` says whether who watches has seen a pilot (by its name here), and been told all
        that it takes with it about these runs.  Before, the pilot is not ended, for so long at most
        as the constants say.
        """
        self.pool = pool
        self._knows = knows
        self._held: dict[tuple[str, bool], tuple[float, float]] = {}
        self.stop = threading.Event()
        #: by the names in ``PILOTS``
        self.pilots: dict[str, Pilot] = {}
        #: by the tags of their plans
        self.jobs: dict[str, Job] = {}
        #: what the script did, and when
        self.timeline: list[tuple[float, str]] = []
        self.began = time.time()
        self._directory = pool.local / "proof"
        self.sight = Sight(pool, self._directory, self.pilots, self.jobs)

    def __enter__(self) -> Self:
        self.sight.watch.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop.set()
        self.sight.watch.__exit__(*error)

    # -- the script

    def play(self) -> None:
        """Play it to its end; Interrupted if ``stop`` is set meanwhile."""
        self.began = time.time()
        self._write_files()
        self._submit()
        for name in PILOTS:
            if name != "shelter":
                self._start(name)
        self._carry_out(self._duties())
        for pilot in self.pilots.values():
            pilot.wait_gone(180)
        self._note("over")

    def _duties(self) -> list[Duty]:
        """What the script does, each as soon as it may."""
        tags = [plan.tag for plan in PLANS]
        retried = [plan.tag for plan in PLANS if plan.pilots[0] == "sick"]
        return [
            # Users act on what runs on the pilot that lasts.
            (lambda: self._ran("vacated", 7), lambda: self._act("vacated", "Vacate")),
            (lambda: self._ran("released", 6), lambda: self._act("released", "Hold")),
            (lambda: self.sight.ends("released") == 1, lambda: self._act("released", "Release")),
            (lambda: self._ran("held", 8), lambda: self._act("held", "Hold")),
            (lambda: self._ran("removed", 9), lambda: self._act("removed", "Remove")),
            # Pilots end under the jobs that they run.
            (lambda: self._ran("evicted", 9) and self._ran("given_up", 6) and self._over("no_url")
             and self._seen("graceful"), lambda: self._end("graceful")),
            (lambda: self._ran("bereft", 8) and self._over("no_program") and self._seen("killed"),
             self._kill),
            (lambda: self._ran("drained", 8) and self._ran("unlucky", 5, run=2)
             and self._over("no_input") and self._seen("drained"), self._drain),
            (lambda: bool(self.sight.killed), lambda: self._start("shelter")),
            (lambda: self.sight.ends("given_up") == 1, lambda: self._act("given_up", "Remove")),
            (lambda: self._since_end("drained", 6) and self._told("drained"),
             lambda: self._end("drained")),
            (lambda: self._since_end("evicted", 2) and self._seen("idle"),
             lambda: self._end("idle")),
            (lambda: self.sight.ended("brief"),
             lambda: self._note("pilot brief has ended by itself")),
            (lambda: self._passed(4, *retried) and self._seen("sick") and self._told("sick"),
             lambda: self._end("sick")),
            (lambda: self._over(*tags), lambda: self._act("held", "Remove")),
            (lambda: self._passed(5, *tags) and self._since_end("vacated", LASTS_S)
             and self._since_end("released", LASTS_S) and self._seen("steady")
             and self._told("steady"), lambda: self._end("steady")),
            (lambda: self._passed(5, *tags) and self._seen("shelter") and self._told("shelter"),
             lambda: self._end("shelter")),
        ]  # fmt: skip

    def _carry_out(self, duties: list[Duty], timeout: float = 300) -> None:
        deadline = time.monotonic() + timeout
        while duties:
            if self.stop.wait(0.2):
                raise Interrupted
            if time.monotonic() > deadline:
                raise Surprise(f"{len(duties)} things could not be done: {self.describe()}")
            ready = [duty for duty in duties if duty[0]()]
            for duty in ready:
                duty[1]()
                duties.remove(duty)

    def _note(self, text: str) -> None:
        self.timeline.append((time.time() - self.began, text))

    def _write_files(self) -> None:
        self._directory.mkdir()
        self._directory.chmod(0o1777)
        for name, text in (("job.sh", JOB), ("wrapper.sh", WRAPPER)):
            (self._directory / name).write_text(text)
            (self._directory / name).chmod(0o755)

    def _submit(self) -> None:
        lost = self.pool.local / "bob" / LOST_INPUT
        lost.write_text("input")
        for owner, length in (("alice", LARGE_BYTES // 4), ("bob", LARGE_BYTES)):
            with (self.pool.local / owner / LARGE_INPUT).open("wb") as large:
                large.truncate(length)
        clusters: dict[str, tuple[str, int]] = {}
        for plan in PLANS:
            schedd = self.pool.schedds[plan.schedd]
            commands = plan.submission(self._directory)
            clusters[plan.tag] = schedd, self.pool.submit(schedd, owner=plan.owner, **commands)  # type: ignore[arg-type]
        lost.unlink()
        for schedd in self.pool.schedds:
            rows = self.pool.jobs(schedd, "true", ("ClusterId", "GlobalJobId"))
            ids = {row["ClusterId"]: row["GlobalJobId"] for row in rows}
            for tag, (name, cluster) in clusters.items():
                if name == schedd:
                    self.jobs[tag] = Job(schedd, cluster, ids[cluster])
        self._note(f"{len(PLANS)} jobs submitted")

    def _start(self, name: str) -> None:
        machine = PILOTS[name]
        self.pilots[name] = self.pool.start_pilot(
            name,
            cores=machine.cores,
            memory=machine.cores * UNIT_MIB,
            lifetime=machine.lifetime,
            config=config_of(name, self._directory),
            attrs=attrs_of(name),
            wait=False,
        )
        self._note(f"pilot {name} started")

    def _end(self, name: str) -> None:
        self._note(f"pilot {name} is ended gracefully")
        self.pilots[name].signal("MASTER", signal.SIGTERM)

    def _kill(self) -> None:
        self.sight.killed["killed"] = time.time()
        self._note("kill -9 of pilot killed")
        self.pilots["killed"].kill9()

    def _drain(self) -> None:
        self._note("pilot drained is drained")
        self.pilots["drained"].drain()

    def _act(self, tag: str, action: str) -> None:
        schedd, cluster, _ = self.jobs[tag]
        self._note(f"{action} job {tag}")
        done = self.pool.act(action, schedd, f"ClusterId == {cluster}", user=_plan(tag).owner)
        if done["TotalSuccess"] != 1:
            raise Surprise(f"{action} of {tag}: {done}")

    # -- when it may do so

    def _ran(self, tag: str, seconds: float, run: int = 1) -> bool:
        """Whether that run of the job began so long ago."""
        begun = [
            note.at for note in self.sight.notes(tag) if (note.what, note.run) == ("begin", run)
        ]
        return bool(begun) and time.time() - begun[0] >= seconds

    def _since_end(self, tag: str, seconds: float) -> bool:
        """Whether so much time has passed since the first run of this job was over."""
        gone = [life.gone for life in self.sight.shadows(tag) if life.gone is not None]
        return bool(gone) and time.time() - gone[0] >= seconds

    def _told(self, name: str) -> bool:
        """Whether who watches has been told of a pilot's runs, or was waited for long enough."""
        runs = {
            (self.jobs[plan.tag].id, run)
            for plan in PLANS
            for run, end in enumerate(plan.runs, 1)
            if end.pilot == name
        }
        return self._known(name, runs, DRAINED_S if name == "drained" else TOLD_WITHIN_S)

    def _seen(self, name: str) -> bool:
        """Whether who watches has seen a pilot, or was waited for long enough."""
        return self._known(name, (), SEEN_WITHIN_S)

    def _known(self, name: str, runs: Collection[Run], patience_s: float) -> bool:
        """Whether who watches knows, who is asked every 3 s, or was waited for long enough."""
        now = time.monotonic()
        since, next_s = self._held.setdefault((name, bool(runs)), (now, now))
        if now >= next_s:
            if self._knows(name, runs):
                since = -math.inf
            self._held[name, bool(runs)] = since, now + 3
        return now - since > patience_s

    def _over(self, *tags: str) -> bool:
        return all(self.sight.ends(tag) >= len(_plan(tag).runs) for tag in tags)

    def _passed(self, seconds: float, *tags: str) -> bool:
        """Whether so much time has passed since the last run of these jobs was over."""
        gone = [life.gone or time.time() for tag in tags for life in self.sight.shadows(tag)]
        return self._over(*tags) and time.time() - max(gone) >= seconds

    def describe(self) -> str:
        """Return how far each job has come, for an error message."""
        seen = {
            tag: [
                f"{n.what} {n.run} {n.pilot} {n.at - self.began:.1f}" for n in self.sight.notes(tag)
            ]
            + [
                f"{shadow.start - self.began:.1f}-{(shadow.gone or 0) - self.began:.1f}"
                for shadow in self.sight.shadows(tag)
            ]
            for tag in self.jobs
        }
        return "\n".join(["", *(f"{t:6.1f} {text}" for t, text in self.timeline), str(seen)])

    def truth(self) -> Truth:
        """Return what is true; Surprise if anything went otherwise than planned."""
        return self.sight.truth()


def _plan(tag: str) -> Plan:
    return next(plan for plan in PLANS if plan.tag == tag)
