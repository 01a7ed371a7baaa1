"""The test pool itself: is it real, can tests rely on it, does it leave anything behind?"""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.pool import feign
from tests.pool.client import ClientError, call
from tests.pool.condor import NEVER, CondorPool
from tests.pool.prometheus import Prometheus
from tests.pool.sandbox import PATIENCE_S, VERSIONS, SetupError, wait_until


def _in_namespace(namespace: str) -> list[int]:
    """Processes of that process namespace, e.g. "pid:[4026532000]"."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "ns/pid") == namespace:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _namespace(pool: CondorPool) -> str:
    return os.readlink(f"/proc/{pool.pid_of('MASTER')}/ns/pid")


@pytest.mark.parametrize("version", VERSIONS)
def test_missing_htcondor_fails_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr("tests.pool.sandbox._installed", lambda: None)
    monkeypatch.setenv("GWMOND_POOL_CHROOTS", "/nonexistent")
    with pytest.raises(SetupError, match="Run: make setup-test"):
        CondorPool(htcondor=version)


def test_both_schedds_are_known_and_answer(pool: CondorPool) -> None:
    names = {ad["Name"] for ad in pool.query("Schedd", None, ["Name"])}
    assert set(pool.schedds) <= names
    for schedd in pool.schedds:
        cluster = pool.submit(schedd, 2, requirements=NEVER)
        jobs = pool.jobs(schedd, f"ClusterId == {cluster}", ["ProcId", "JobStatus", "Owner"])
        assert [(job["ProcId"], job["JobStatus"], job["Owner"]) for job in jobs] == [
            (0, 1, "alice"),
            (1, 1, "alice"),
        ]
        assert pool.remove(schedd, f"ClusterId == {cluster}")["TotalSuccess"] == 2


def test_kinds_of_jobs(pool: CondorPool) -> None:
    schedd = pool.schedds[0]
    held = pool.submit(schedd, 3, hold=True, owner="bob")
    late = pool.submit(schedd, 50, requirements=NEVER, max_idle=5)
    plain = pool.submit(
        schedd,
        requirements=NEVER,
        attrs={"DESIRED_Sites": "A,B"},
        request_gpus=2,
        accounting_group="group.sub",
        accounting_group_user="alice",
    )
    local = pool.submit(schedd, universe="local")
    scheduler = pool.submit(schedd, universe="scheduler")

    def status(cluster: int) -> list[int]:
        return [job["JobStatus"] for job in pool.jobs(schedd, f"ClusterId == {cluster}")]

    assert status(held) == [5, 5, 5]
    pool.wait_for("the first five jobs to materialise", lambda: status(late) == [1] * 5)
    pool.wait_for("the local job to run", lambda: status(local) == [2])
    pool.wait_for("the scheduler job to run", lambda: status(scheduler) == [2])
    keys = ["DESIRED_Sites", "RequestGPUs", "AccountingGroup"]
    (job,) = pool.jobs(schedd, f"ClusterId == {plain}", keys)
    assert [job[key] for key in keys] == ["A,B", 2, "group.sub.alice"]
    for cluster, owner in ((held, "bob"), *((c, "alice") for c in (late, plain, local, scheduler))):
        pool.remove(schedd, f"ClusterId == {cluster}", user=owner)


def test_a_job_runs_on_a_pilot_and_completes(pool: CondorPool) -> None:
    schedd = pool.schedds[1]
    pilot = pool.start_pilot("p1", cores=2, memory=1024, attrs={"GLIDEIN_Site": "Real"})
    (slot,) = pool.query("Slot", f'Name == "slot1@{pilot.name}"')
    assert (slot["TotalSlotCpus"], slot["TotalSlotMemory"]) == (2, 1024)
    assert slot["GLIDEIN_Site"] == "Real"
    assert slot["GLIDEIN_ToDie"] == pilot.to_die
    wanted = 'TARGET.GLIDEIN_Site =?= "Real"'
    done = pool.submit(schedd, seconds=1, requirements=wanted)
    long = pool.submit(schedd, seconds=600, requirements=wanted)
    keys = ["ExitCode", "LastRemoteHost", "JobStatus"]
    rows = pool.wait_for(
        "the job's end", lambda: pool.jobs(schedd, f"ClusterId == {done}", keys, history=True)
    )
    assert (rows[0]["JobStatus"], rows[0]["ExitCode"]) == (4, 0)
    assert rows[0]["LastRemoteHost"].endswith(pilot.name)

    running = f"ClusterId == {long} && JobStatus == 2"
    pool.wait_for("the long job to run", lambda: pool.jobs(schedd, running))
    pool.wait_for("its process", lambda: any("600" in p.argv for p in pilot.processes()))
    pilot.stop_graceful()
    mine = 'GLIDEIN_Site =?= "Real"'
    pool.wait_for("the ads to be withdrawn", lambda: not pool.query("Slot", mine, ["Name"]))
    pool.wait_for("the long job to be idle", lambda: not pool.jobs(schedd, running))
    pool.remove(schedd, f"ClusterId == {long}")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pool_of_each_version_runs_jobs(version: str) -> None:
    """All daemons are of the version that was asked for, or of the one it stands for."""
    with CondorPool(htcondor=version) as pool:
        pilot = pool.start_pilot("p1", cores=2)
        kinds = ("Collector", "Negotiator", "Schedd", "StartDaemon")
        found = {ad["CondorVersion"] for kind in kinds for ad in pool.query(kind)}
        (text,) = found
        major = int(text.removeprefix("$CondorVersion: ").partition(".")[0])
        assert ("23" if major < 25 else "25") == version
        pool.submit(pool.schedds[0], seconds=1)
        (job,) = pool.wait_for(
            "the job's end",
            lambda: pool.jobs(pool.schedds[0], projection=["ExitCode"], history=True),
        )
        assert job["ExitCode"] == 0
        pool.submit(pool.schedds[1])
        pool.wait_for("a job to run", lambda: pool.jobs(pool.schedds[1], "JobStatus == 2"))
        pilot.kill9()
        assert pool.query("Slot", None, ["Name"])


def test_a_killed_pilot_leaves_ghosts(fresh_pool: CondorPool) -> None:
    pool, schedd = fresh_pool, fresh_pool.schedds[0]
    pilot = pool.start_pilot("p1", cores=2)
    cluster = pool.submit(schedd)
    pool.wait_for("the job to run", lambda: pool.jobs(schedd, "JobStatus == 2"))
    pool.wait_for("its slot's ad", lambda: len(pool.query("Slot", None, ["Name"])) == 2)
    pilot.kill9()
    assert not pilot.alive()
    assert not pilot.processes()
    assert len(pool.query("Slot", None, ["Name"])) == 2
    assert pool.jobs(schedd, f"ClusterId == {cluster}")[0]["JobStatus"] == 2


def test_a_drained_pilot_takes_no_more_jobs(pool: CondorPool) -> None:
    pilot = pool.start_pilot("p2")
    pilot.drain()
    mine = f'Name == "slot1@{pilot.name}"'
    pool.wait_for(
        "the slot to be draining",
        lambda: pool.query("Slot", mine, ["State"])[0]["State"] == "Drained",
    )
    pilot.kill9()


def test_a_pilot_ends_at_its_time(pool: CondorPool) -> None:
    pilot = pool.start_pilot("p3", lifetime=20)
    pilot.wait_gone()
    assert time.time() >= pilot.to_die


def test_feigned_slots_are_seen_and_match(pool: CondorPool) -> None:
    glidein = feign.glidein("entry1", "Feigned")
    child = feign.dynamic_slot("f1@pool.test", cpus=3, memory=3000, glidein=glidein)
    pslot = feign.partitionable_slot("f1@pool.test", children=[child], gpus=1, glidein=glidein)
    static = feign.static_slot("f2@pool.test", glidein=glidein, Start=feign.Expr("Cpus > 1"))
    startd = feign.startd_ad("f1@pool.test", children=[child], glidein=glidein)
    pool.advertise([pslot, child, static, startd], feign.COMMANDS["Machine"])

    mine = 'GLIDEIN_Site =?= "Feigned"'
    slots = {ad["Name"]: ad for ad in pool.query("Slot", mine)}
    assert set(slots) == {"slot1@f1@pool.test", "slot1_1@f1@pool.test", "slot1@f2@pool.test"}
    whole = slots["slot1@f1@pool.test"]
    assert (whole["Cpus"], whole["TotalSlotCpus"], whole["ChildCpus"]) == (5, 8, [3])
    assert [ad["Name"] for ad in pool.query("StartDaemon", mine)] == ["f1@pool.test"]

    schedd = pool.schedds[0]
    wanted = 'TARGET.GLIDEIN_Site =?= "Feigned"'
    fits = pool.submit(schedd, requirements=wanted, request_cpus=5, request_gpus=1)
    big = pool.submit(schedd, requirements=wanted, request_cpus=6)
    assert pool.matching(schedd, f"ClusterId == {fits}", mine) == ["slot1@f1@pool.test"]
    assert pool.matching(schedd, f"ClusterId == {big}", mine) == []
    pool.remove(schedd, f"ClusterId == {fits} || ClusterId == {big}")


def test_feigned_glideinwms_ads_are_seen(pool: CondorPool) -> None:
    ads = [
        feign.glideresource("e1", pending=3, limits={"TotalGlideinsPerEntry": (9, 9)}, down=True),
        feign.glidefrontendmonitor("frontend", idle=7),
        feign.glidefactory("e1", pending=3),
        feign.glidefactoryclient("e1", pending=3, limits={"HeldGlideinsPerEntry": (5, 4)}),
    ]
    for ad in ads:
        pool.advertise([ad], feign.COMMANDS[str(ad["MyType"])])
    seen = {}
    for ad in ads:
        kind = str(ad["MyType"])
        (seen[kind],) = pool.query("Any", f'MyType == "{kind}"')
        assert ad.items() <= seen[kind].items()
    resource = seen["glideresource"]
    assert resource["Name"] == "e1@glidein@factory@frontend.main"
    assert resource["GLIDEIN_In_Downtime"] == "True"
    assert resource["GlideFactoryMonitorStatusPending"] == 3
    assert resource["GlideClientLimitTotalGlideinsPerEntry"] == "count=9, limit=9"
    limit = "GlideinMonitorStatus_GlideFactoryLimitHeldGlideinsPerEntry"
    assert seen["glidefactoryclient"][limit] == "count=5, limit=4"
    (license_ad,) = pool.query("License")
    assert license_ad["GlideinMyType"] == "glidefactoryclient"


def test_a_stopped_schedd_does_not_answer_and_recovers(fresh_pool: CondorPool) -> None:
    pool = fresh_pool
    pool.signal("SCHEDD", signal.SIGSTOP)
    assert not pool.answers("SCHEDD")
    pool.wait_for("the other one to answer", lambda: pool.answers("SCHEDD2"))
    pool.signal("SCHEDD", signal.SIGCONT)
    pool.wait_for("the schedd to answer", lambda: pool.answers("SCHEDD"))


def test_daemons_restart_and_stay_away(fresh_pool: CondorPool) -> None:
    pool = fresh_pool
    cluster = pool.submit(pool.schedds[1], requirements=NEVER)
    pool.restart("SCHEDD2")
    assert [job["ClusterId"] for job in pool.jobs(pool.schedds[1])] == [cluster]
    pool.off("SCHEDD")
    assert pool.find("SCHEDD") is None
    assert not pool.answers("SCHEDD")
    pool.on("SCHEDD")
    before = pool.pid_of("COLLECTOR")
    pool.restart("COLLECTOR")
    assert pool.pid_of("COLLECTOR") != before
    names = set(pool.schedds)
    pool.wait_for("the ads to return", lambda: names <= {ad["Name"] for ad in pool.query("Schedd")})


def test_reading_can_be_denied(denying_pool: CondorPool) -> None:
    assert denying_pool.query("Collector")
    request: dict[str, Any] = {
        "collector": denying_pool.collector,
        "ad_type": "Any",
        "constraint": None,
        "projection": None,
    }
    for env in ({"CONDOR_CONFIG": "/dev/null"}, denying_pool.client_env("alice")):
        with pytest.raises(ClientError, match="Failed communication with collector"):
            call("query", env, **request)


def test_nothing_remains_after_stop() -> None:
    pool = CondorPool()
    pool.start()
    namespace, directory = _namespace(pool), pool.local.parent
    pool.start_pilot("p1")
    pool.submit(pool.schedds[0])
    pool.wait_for("the job to run", lambda: pool.jobs(pool.schedds[0], "JobStatus == 2"))
    assert len(_in_namespace(namespace)) > 8
    pool.stop()
    assert _in_namespace(namespace) == []
    assert not directory.exists()
    assert str(directory) not in Path("/proc/mounts").read_text()
    pool.stop()


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_remains_if_the_owner_dies(sig: signal.Signals) -> None:
    code = (
        "import os, signal, time\n"
        "from tests.pool.condor import CondorPool\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in a shell's "&"
        "pool = CondorPool()\n"
        "pool.start()\n"
        "namespace = os.readlink(f\"/proc/{pool.pid_of('MASTER')}/ns/pid\")\n"
        "print(namespace, pool.local.parent, flush=True)\n"
        "time.sleep(600)\n"
    )
    root = Path(__file__).resolve().parents[2]
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=root)
    assert owner.stdout is not None
    namespace, directory = owner.stdout.readline().decode().split()
    assert len(_in_namespace(namespace)) > 4
    owner.send_signal(sig)
    owner.wait(PATIENCE_S)
    owner.stdout.close()
    wait_until("the pool's processes to end", lambda: not _in_namespace(namespace))
    wait_until("the pool's directory to go", lambda: not Path(directory).exists())


@contextmanager
def _metrics(text: str) -> Iterator[str]:
    """A web server with these metrics; its host:port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_prometheus_scrapes_and_answers(prometheus: Callable[..., Prometheus]) -> None:
    with _metrics('cores{site="A"} 3\ncores{site="B"} 4\n') as target:
        running = prometheus(target)
        running.wait_for("cores", lambda samples: len(samples) == 2)
        assert running.value("sum(cores)") == 7
        assert {s[0]["site"]: s[1] for s in running.query("cores")} == {"A": 3, "B": 4}
        assert running.targets() == {f"http://{target}/metrics": ""}
    running.wait_for("up == 0")
    with pytest.raises(ValueError, match="parse error"):
        running.query("sum(")
