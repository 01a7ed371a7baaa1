"""Real logs of real startds and starters, packed as a pilot packs them."""

from __future__ import annotations

import time

from gwmond.model.pilots.file_facts import PilotOutput
from gwmond.sources.gwms import pilot_err, pilot_output, texts
from tests.build.gwms import generate
from tests.pool.condor import CondorPool
from tests.sources import history_scenario as scenario
from tests.sources.history_scenario import Job

JOBS = (
    Job("zero", "packed", "packed", "sleep 1"),
    Job("three", "packed", "packed", "sleep 1; exit 3"),
    Job("signal", "packed", "packed", "sleep 1; kill -9 $$"),
    Job("evicted", "packed", "nowhere", "trap exit TERM; sleep 600 & wait"),
)


def stderr_of(pool: CondorPool, logs: dict[str, bytes]) -> bytes:
    order = sorted(logs, key=lambda name: (name == "StartdHistoryLog", name))
    return b"Checking\n" + b"".join(generate.log(name, logs[name]) for name in order)


def stdout_of(begun: int, ended: int) -> bytes:
    date = time.strftime("%a %b %e %H:%M:%S %Z %Y", time.localtime(begun))
    return (
        f"Starting glidein_startup.sh at {date} ({begun})\n"
        f"=== Condor starting {date} ({begun}) ===\n"
        f"=== Condor ended {date} ({ended}) after {ended - begun} ===\n"
        f"=== Glidein ending {date} ({ended}) with code 0 after {ended - begun} ===\n"
    ).encode()


def test_a_real_pilot_is_read_from_its_packed_logs(pool: CondorPool) -> None:
    """Each run once, from the history; without that, the starter logs tell the same ends."""
    begun = int(time.time())
    pilot = pool.start_pilot(
        "glidein_77_88", cores=4, memory=4096, attrs={"GLIDEIN_Site": "packed"}
    )
    clusters = {job.case: scenario.submit(pool, job) for job in JOBS}
    schedd = pool.schedds[0]
    mine = " || ".join(f"ClusterId == {cluster}" for cluster in clusters.values())
    pool.wait_for(
        "three jobs' ends",
        lambda: [job["JobStatus"] for job in pool.jobs(schedd, mine, ["JobStatus"])] == [2],
    )
    pool.wait_for(
        "the fourth to run",
        lambda: pool.jobs(schedd, f"({mine}) && JobCurrentStartExecutingDate isnt undefined"),
    )
    time.sleep(1)
    pilot.stop_graceful()
    pool.act("Remove", schedd, mine)
    ended = int(time.time())
    logs = {
        path.name: path.read_bytes()
        for path in (pilot.local / "log").iterdir()
        if path.name.startswith("StarterLog")
    }
    history = (pilot.local / "spool" / "startd_history").read_bytes()
    out = stdout_of(begun, ended)
    whole = stderr_of(pool, {**logs, "StartdHistoryLog": history})
    fact = pilot_output.parse("p", out, whole)
    assert fact.problems == ()
    assert fact.runs == ()
    assert fact.name.startd == "glidein_77_88"
    assert {_job(a.fact.job): a.fact.ending.exit_code for a in fact.records}.keys() == {
        f"{cluster}.0" for cluster in clusters.values()
    }
    ends = {_job(a.fact.job): a.fact.ending for a in fact.records}
    assert ends[f"{clusters['three']}.0"].exit_code == 3
    assert ends[f"{clusters['signal']}.0"].exit_signal == 9
    _check_starters(fact, pilot_output.parse("p", out, stderr_of(pool, logs)), clusters)


def _check_starters(fact: PilotOutput, starters: PilotOutput, clusters: dict[str, int]) -> None:
    assert starters.records == ()
    runs = {run.job: run for run in starters.runs}
    assert runs.keys() == {f"{cluster}.0" for cluster in clusters.values()}
    for record in fact.records:
        told, run = record.fact, runs[_job(record.fact.job)]
        assert (run.ending.exit_code, run.ending.exit_signal, run.ending.own_accord) == (
            told.ending.exit_code,
            told.ending.exit_signal,
            told.ending.own_accord,
        )
        assert told.end_us is not None
        assert run.end_us is not None
        assert abs(run.end_us - told.end_us) <= 5_000_000
    assert runs[f"{clusters['evicted']}.0"].ending.own_accord is False
    assert pilot_err.beside(starters.runs, fact.records) == []


def _job(global_id: str) -> str:
    return texts.label(global_id.split("#")[1])
