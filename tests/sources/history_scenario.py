"""Jobs that end in all the ways there are, on real pilots, for the sources that read histories.

Each job has ``TestCase`` in its ad, the name by which its records are found again.  What happens to
it is written beside it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gwmond.sources.htcondor.access import Access, Daemon, Query
from gwmond.sources.htcondor.histories import histories, startd_history
from tests.pool.adtext import Value
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.pool.sandbox import Process

if TYPE_CHECKING:
    import classad2

CONFIG = """
JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history
SCHEDD2.JOB_EPOCH_HISTORY =
PERIODIC_EXPR_INTERVAL = 2
SHADOW_WORKLIFE = 0
"""
LEASE_S = 20
_GLIDEIN = ("GLIDEIN_Site", "GLIDEIN_Entry_Name", "GLIDECLIENT_Group", "GLIDECLIENT_Name")


class Job(NamedTuple):
    """A job: where its first run is, where later ones are, and its submit description."""

    case: str
    first: str
    then: str
    shell: str = "sleep 600"
    commands: Mapping[str, object] = {}


def _sh(script: str) -> dict[str, object]:
    return {"executable": "/bin/sh", "arguments": f"\"-c '{script}'\""}


def again(seconds: float = 2) -> str:
    """Run for ever the first time, however soon that is ended, and so long from then on."""
    first = "grep -q ^NumShadowStarts.=.1$ $_CONDOR_JOB_AD"
    return f"{first} && exec sleep 600; exec sleep {seconds:g}"


def _once(mark: str, first: str, then: str = "exit 0") -> str:
    """Do one thing in the first run, and another one from then on."""
    return f"test -e /tmp/{mark} && {{ {then}; exit; }}; touch /tmp/{mark}; {first}"


#: A program that ends itself when it is asked to.
_CATCH = "trap : TERM; sleep 600 & wait; exit 0"
_LONG = "JobStatus == 2 && time() - JobCurrentStartExecutingDate > 2"
#: Ready to run again after any exit, but not a third time.
_TWICE = {
    "on_exit_remove": "false",
    "requirements": 'TARGET.GLIDEIN_Site == "main" && (NumShadowStarts ?: 0) < 2',
}

STEADY = (
    Job("exit_zero", "main", "main", "sleep 3"),
    Job("exit_three", "main", "main", "sleep 1; exit 3"),
    Job("signal", "main", "main", "sleep 1; kill -11 $$"),
    Job("removed", "main", "main"),
    Job("held", "main", "main"),
    Job("held_then_done", "main", "main", again()),
    Job("vacated_by_user", "main", "main", again()),
    Job("two_runs", "main", "main", "sleep 2; exit 5", {"on_exit_remove": "NumShadowStarts > 1"}),
    Job("exit_then_held", "main", "main", "sleep 1; exit 7", {"on_exit_hold": "true"}),
    Job("no_program", "main", "main", "", {"executable": "/nonexistent/program"}),
    Job("exit_retried", "main", "main", "exit 4", {"max_retries": 1}),
    Job("retried_then_done", "main", "main", _once("retried", "exit 4"), {"max_retries": 2}),
    Job("killed_itself", "main", "main", "sleep 1; kill -9 $$"),
    Job("terminated_itself", "main", "main", "sleep 1; kill -15 $$"),
    Job("caught_and_removed", "main", "main", _CATCH),
    Job("ran_too_long", "main", "main", "sleep 600", {"allowed_execute_duration": 3}),
    Job("removed_by_policy", "main", "main", "sleep 600", {"periodic_remove": _LONG}),
    Job("held_by_policy", "main", "main", "sleep 600", {"periodic_hold": _LONG}),
    Job("shadow_killed", "main", "main", _once("shadow", "exit 9", "sleep 600"), _TWICE),
    Job("starter_killed", "main", "main"),
    Job("never_ran", "nowhere", "nowhere"),
)
TRANSFERS = (
    Job("input_missing", "main", "main", "sleep 5"),
    Job("output_missing", "main", "main", "sleep 1", {"transfer_output_files": "nothing"}),
)
ENDING = (
    Job("evicted", "graceful", "main", again()),
    Job("evicted_then_removed", "graceful", "nowhere"),
    Job("caught_and_evicted", "graceful", "nowhere", _CATCH),
    Job("drained", "draining", "nowhere"),
    Job("startd_killed", "dying", "nowhere"),
    Job("evicted_then_held", "graceful", "nowhere"),
    Job("killed", "hard", "main", again()),
    Job(
        "exit_then_killed",
        "hard",
        "hard",
        "test -e /tmp/again && sleep 600; touch /tmp/again; exit 9",
        {"on_exit_remove": "false"},
    ),
)


class Played(NamedTuple):
    """The clusters by case, and the pilots."""

    clusters: dict[str, int]
    pilots: dict[str, Pilot]


def submit(pool: CondorPool, job: Job, schedd: int = 0, **more: object) -> int:
    """Submit one job as GlideinWMS has it: with $$(GLIDEIN_...) attributes."""
    where = f'ifThenElse((NumShadowStarts ?: 0) == 0, "{job.first}", "{job.then}")'
    attrs: dict[str, Value] = {f"JOB_{name}": f"$$({name}:Unknown)" for name in _GLIDEIN}
    attrs["TestCase"] = job.case
    return pool.submit(
        pool.schedds[schedd],
        **{
            "requirements": f"TARGET.GLIDEIN_Site == {where}",
            "job_lease_duration": LEASE_S,
            "rank": 0,
            "attrs": attrs,
            **(_sh(job.shell) if job.shell else {}),
            **job.commands,
            **more,
        },  # type: ignore[arg-type]
    )


def play(
    pool: CondorPool, during: Callable[[dict[str, Pilot]], None], pilots_of: str = ""
) -> Played:
    """Play the scenario; ``during`` is called while jobs run, with the pilots.  About 90 s.

    The pilots' HTCondor is the pool's, or ``pilots_of``.
    """
    gone = Path(pool.local) / "alice" / "input"
    gone.write_text("x")
    clusters = {job.case: submit(pool, job) for job in (*STEADY, TRANSFERS[1], *ENDING)}
    clusters["input_missing"] = submit(pool, TRANSFERS[0], transfer_input_files=gone)
    gone.unlink()
    pilots = {
        site: pool.start_pilot(
            name,
            cores=cores,
            memory=8192,
            attrs={"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": f"entry_{site}"},
            config="CLASSAD_LIFETIME = 60",
            wait=False,
            htcondor=pilots_of,
        )
        for site, name, cores in (
            ("main", "glidein_1_1", 32),
            ("graceful", "glidein_2_2", 4),
            ("hard", "glidein_3_3", 4),
            ("draining", "glidein_4_4", 1),
            ("dying", "glidein_5_5", 1),
        )
    }
    case = _Cases(pool, clusters)
    case.wait("removed held held_then_done vacated_by_user starter_killed", "JobStatus == 2")
    case.wait("evicted evicted_then_removed evicted_then_held killed", "JobStatus == 2")
    case.wait("caught_and_evicted drained startd_killed", "JobStatus == 2")
    case.wait("exit_then_killed shadow_killed", "JobStatus == 2 && NumShadowStarts == 2")
    case.wait(
        "held removed killed evicted caught_and_removed",
        "JobCurrentStartExecutingDate isnt undefined",
    )
    during(pilots)
    case.act("Remove", "removed never_ran caught_and_removed")
    case.act("Hold", "held held_then_done")
    case.act("Vacate", "vacated_by_user")
    case.kill_starter("starter_killed", pilots["main"])
    case.kill_shadow("shadow_killed")
    pilots["draining"].drain()
    pilots["dying"].signal("STARTD", signal.SIGKILL)
    pilots["hard"].kill9()
    pilots["graceful"].stop_graceful()
    case.wait("held_then_done", "JobStatus == 5")
    case.act("Release", "held_then_done")
    case.wait("evicted_then_removed evicted_then_held exit_then_killed", "JobStatus == 1")
    case.wait("caught_and_evicted drained startd_killed shadow_killed", "JobStatus == 1")
    case.wait("starter_killed", "NumShadowStarts == 2 && JobStatus == 2")
    case.act("Hold", "evicted_then_held")
    case.wait("ran_too_long held_by_policy", "JobStatus == 5")
    case.wait("held input_missing output_missing exit_then_held no_program", "JobStatus == 5")
    case.act(
        "Remove",
        "starter_killed evicted_then_removed evicted_then_held exit_then_killed "
        "held input_missing output_missing exit_then_held no_program "
        "ran_too_long held_by_policy caught_and_evicted drained startd_killed shadow_killed",
    )
    pool.wait_for("the end of all jobs", lambda: not pool.jobs(pool.schedds[0]))
    return Played(clusters, pilots)


class _Cases:
    """The jobs of the scenario, by case."""

    def __init__(self, pool: CondorPool, clusters: dict[str, int]) -> None:
        self._pool = pool
        self._clusters = clusters

    def _of(self, cases: str) -> str:
        return " || ".join(f"ClusterId == {self._clusters[case]}" for case in cases.split())

    def wait(self, cases: str, state: str) -> None:
        wanted = f"({self._of(cases)}) && ({state})"
        schedd, number = self._pool.schedds[0], len(cases.split())
        self._pool.wait_for(
            f"{cases}: {state}", lambda: len(self._pool.jobs(schedd, wanted)) == number
        )

    def act(self, action: str, cases: str) -> None:
        self._pool.act(action, self._pool.schedds[0], self._of(cases))

    def kill_shadow(self, case: str) -> None:
        job = f"{self._clusters[case]}.0"

        def killed() -> bool:
            return _kill(self._pool.processes(), "condor_shadow", job)

        self._pool.wait_for(f"the shadow of {case}", killed)

    def kill_starter(self, case: str, pilot: Pilot) -> None:
        def killed() -> bool:
            (job,) = self._pool.jobs(self._pool.schedds[0], self._of(case), ["RemoteHost"])
            slot = job.get("RemoteHost", "").partition("@")[0]
            return _kill(pilot.processes(), "condor_starter", slot)

        self._pool.wait_for(f"the starter of {case}", killed)


def _kill(processes: Iterable[Process], program: str, argument: str) -> bool:
    """Kill those that run a program with this argument; whether there were any."""
    found = [p for p in processes if p.argv[0].endswith(program) and argument in p.argv]
    for process in found:
        os.kill(process.pid, signal.SIGKILL)
    return bool(found)


def startd_files(played: Played) -> dict[str, Path]:
    """The startd history files of the pilots, ended ones too, as long as the pool runs."""
    return {site: pilot.local / "spool" / "startd_history" for site, pilot in played.pilots.items()}


def daemon(pool: CondorPool, ad_type: str, name: str) -> Daemon:
    """A daemon as the collector has it, once it has."""
    asked = f'Name == "{name}"', ["Name", "MyAddress", "CondorVersion"]
    (ad,) = pool.wait_for(name, lambda: pool.query(ad_type, *asked))
    return Daemon(ad["Name"], ad["MyAddress"], ad.get("CondorVersion", ""))


def recorded(access: Access, asked: Daemon, kind: str) -> list[dict[str, str]]:
    """Task of a child: a history as it is projected, oldest first, and TestCase."""
    query = histories.query(kind)
    wide = query._replace(projection=(*query.projection, *_WHOLE))
    return dump(list(access.history(asked, kind, wide, -1, ""))[::-1], wide.projection)


def recorded_file(path: Path) -> list[dict[str, str]]:
    """Task of a child: the same, of a startd's file."""
    import classad2  # noqa: PLC0415 (only ever in a child)

    names = (*histories.query("startd_history").projection, *_WHOLE)
    bodies = (body.decode() + "\n" for body in startd_history.divided(path.read_bytes()))
    found = [classad2.parseNext(body, classad2.ParserType.Old) for body in bodies]
    return dump(found, names)


def recorded_ads(access: Access, host: str, query: Query) -> list[dict[str, str]]:
    """Task of a child: ads of a collector, as they are projected."""
    return dump(access.collector_ads(host, query), query.projection)


_WHOLE = ("TestCase", "ClusterId", "ProcId")


def dump(found: Sequence[classad2.ClassAd], names: Sequence[str]) -> list[dict[str, str]]:
    """Attributes as ClassAd text, on one line each."""
    wanted = {name.lower() for name in names}
    return [
        {
            name: " ".join(str(ad.lookup(name)).split())
            for name in sorted(ad.keys())
            if name.lower() in wanted
        }
        for ad in found
    ]
