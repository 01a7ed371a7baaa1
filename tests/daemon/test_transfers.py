"""Transfers of jobs on a real pool, by a plugin of which is known what it did."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.daemon.running import RunningDaemon
from tests.pool.condor import CondorPool
from tests.pool.transfer_plugin import BYTES, PLUGIN, SLOW_S

WRITE = {"executable": "/bin/sh", "arguments": "\"-c 'head -c 9000 /dev/zero > out; sleep 2'\""}
OUT = {**WRITE, "transfer_output_files": "out"}
JOBS: dict[str, dict[str, object]] = {
    "plain": {**OUT, "transfer_input_files": "infile"},
    "slow_in": {"transfer_input_files": "infile,root://slow.example.org//a?token=SeCreT"},
    "slow_out": {**OUT, "transfer_output_remaps": '"out=root://slow.example.org//o?sig=SeCreT"'},
    "down_in": {"transfer_input_files": "root://user:SeCreT@down.example.org:1094//path/a?SeCreT"},
    "down_out": {**OUT, "transfer_output_remaps": '"out=root://down.example.org//path/o"'},
}
DOWN = {"protocol": "root", "host": "down.example.org", "site": "Site"}


def submit(pool: CondorPool) -> dict[int, str]:
    """Submit the jobs; their names by cluster."""
    (Path(pool.local) / "alice" / "infile").write_text("x" * 5000)
    commands = ({"arguments": "2", **job} for job in JOBS.values())
    return {
        pool.submit(pool.schedds[0], **job): name  # type: ignore[arg-type]
        for name, job in zip(JOBS, commands, strict=True)
    }


def runs_of(running: RunningDaemon, names: dict[int, str]) -> dict[str, dict[str, Any]]:
    """The first run of each job, as the story of the pilot has it."""
    found: dict[str, dict[str, Any]] = {}
    for run in running.document("pilot", "glidein_1_1@pool.test")["runs"]:
        found.setdefault(names[int(run["job"].split("#")[1].split(".")[0])], run)
    return found


def test_transfers_of_real_jobs(
    htcondor: str, daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    """Seconds, bytes, and the server that failed; of its URL nothing else, anywhere."""
    config = "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history"
    with CondorPool(htcondor=htcondor, config=config) as pool:
        plugin = pool.local / "root_plugin"
        plugin.write_text(PLUGIN)
        plugin.chmod(0o755)
        use = f"FILETRANSFER_PLUGINS = {plugin}"
        pool.start_pilot("glidein_1_1", cores=8, memory=16384, config=use)
        names = submit(pool)
        running = daemon(pool.collector)
        failures = "gwmond_transfer_failures_total"
        running.wait_until(
            "input and output that failed",
            lambda m: all(m.sum(failures, **DOWN, direction=way) for way in ("input", "output")),
        )
        ended = "JobStatus == 5"
        pool.wait_for("three ends", lambda: len(pool.jobs(pool.schedds[0])) == 2)
        pool.wait_for("two holds", lambda: len(pool.jobs(pool.schedds[0], ended)) == 2)
        metrics = running.next_polls()
        assert metrics.sum(failures) == 2
        found = runs_of(running, names)
        page = running.get("/failures")
        listed = json.loads(running.get("/api/v1/runs?from=1d"))["runs"]
        running.stop()
    assert found.keys() == set(JOBS)
    times = {(run["start"], run["stage_in_seconds"], run["bytes_out"]) for run in found.values()}
    assert times <= {(run["start"], run["stage_in_seconds"], run["bytes_out"]) for run in listed}
    for name, way in (("down_in", "input"), ("down_out", "output")):
        failed = {"way": way, "protocol": "root", "host": "down.example.org"}
        assert found[name]["failed_transfer"] == failed
    plain, slow_in, slow_out = (found[name] for name in ("plain", "slow_in", "slow_out"))
    assert [run["failed_transfer"] for run in (plain, slow_in, slow_out)] == [None] * 3
    assert (plain["bytes_in"], plain["bytes_out"]) == (5000, 9000)
    assert slow_in["stage_in_seconds"] >= SLOW_S > slow_in["stage_out_seconds"]
    assert slow_out["stage_out_seconds"] >= SLOW_S
    assert BYTES + 5000 <= slow_in["bytes_in"] < BYTES + 6000  # the shadow's messages beside
    assert slow_out["bytes_out"] == BYTES
    assert found["down_in"]["execute_seconds"] is None
    assert found["down_out"]["execute_seconds"] >= 1
    assert "root://down.example.org" in page
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"down.example.org" in everything
    assert b"SeCreT" not in everything + page.encode()


ONE_AT_A_TIME = """
JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history
MAX_CONCURRENT_UPLOADS = 1
MAX_CONCURRENT_DOWNLOADS = 1
BYTES_REQUIRED_TO_QUEUE_FOR_TRANSFER = 0
"""
FAR = {
    "executable": "/bin/sh",
    "arguments": "\"-c 'echo near > out; echo far > far'\"",
    "transfer_output_files": "out,far",
    "transfer_output_remaps": '"out=out$(Process);far=root://slow.example.org//o"',
}
OUTWARD = (
    *("JobCurrentStartTransferOutputDate", "TransferOutQueued"),
    *("TransferOutStarted", "TransferOutFinished"),
)


def test_transfers_that_wait_for_their_turn(
    htcondor: str, daemon: Callable[..., RunningDaemon]
) -> None:
    """As the jobs' own ads have it: since the starter began, or asked for a turn."""
    number = 5
    with CondorPool(htcondor=htcondor, config=ONE_AT_A_TIME) as pool:
        plugin = pool.local / "root_plugin"
        plugin.write_text(PLUGIN)
        plugin.chmod(0o755)
        use = f"FILETRANSFER_PLUGINS = {plugin}"
        pool.start_pilot("glidein_1_1@pool.test", cores=number, memory=16384, config=use)
        schedd = pool.schedds[0]
        pool.submit(schedd, number, **FAR)  # type: ignore[arg-type]
        running = daemon(pool.collector)
        pool.wait_for("the ends", lambda: not pool.jobs(schedd))
        found = pool.jobs(schedd, projection=("ProcId", *OUTWARD), history=True)
        times: dict[int, Any] = {
            ad["ProcId"]: tuple(ad.get(name) for name in OUTWARD) for ad in found
        }
        length = "gwmond_job_stage_out_seconds"
        metrics = running.wait_until(
            "all runs", lambda m: m.sum(f"{length}_count", site="Site") == number
        )
        runs = running.document("pilot", "glidein_1_1@pool.test")["runs"]
        running.stop()
    asked = {at: min(filter(None, first)) for at, (*first, _, _) in times.items()}
    waited = {at: start - asked[at] for at, (*_, start, _) in times.items()}
    assert len(times) == number
    assert max(waited.values()) > 0
    assert {
        int(run["job"].split("#")[1].split(".")[1]): run["transfer_queued_out_seconds"]
        for run in runs
    } == waited
    lengths = [end - asked[at] for at, (*_, end) in times.items()]
    assert sorted(run["stage_out_seconds"] for run in runs) == sorted(lengths)
    assert metrics.sum(f"{length}_sum", site="Site") == sum(lengths)
    short = sum(one <= 10 for one in lengths)
    assert metrics.sum(f"{length}_bucket", site="Site", le="10.0") == short


STORAGE = "se.example.org"
BROKEN = PLUGIN.replace("*down*", f"*{STORAGE}*")
MANY = 6


def test_a_storage_that_one_site_does_not_reach(daemon: Callable[..., RunningDaemon]) -> None:
    """Component, begin and number are those of the test, and the other site is the control."""
    config = "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history"
    with CondorPool(htcondor="25", config=config) as pool:
        schedd = pool.schedds[0]
        for site, plugin in (("Good", PLUGIN), ("Bad", BROKEN)):
            path = pool.local / f"{site}_plugin"
            path.write_text(plugin)
            path.chmod(0o755)
            pool.start_pilot(
                f"glidein_{site}",
                cores=4,
                memory=8192,
                config=f"FILETRANSFER_PLUGINS = {path}",
                attrs={"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": f"e-{site}"},
            )
        running = daemon(pool.collector)

        def jobs(site: str) -> None:
            pool.submit(
                schedd,
                MANY,
                seconds=1,
                request_memory=1000,
                transfer_input_files=f"root://{STORAGE}//data?token=SeCreT",
                requirements=f'TARGET.GLIDEIN_Site =?= "{site}"',
                batch_name="the same",
            )

        began = time.time()
        jobs("Good")
        jobs("Bad")
        held = "JobStatus == 5"
        pool.wait_for("six holds", lambda: len(pool.jobs(schedd, held)) == MANY)
        pool.wait_for("six ends", lambda: len(pool.jobs(schedd)) == MANY)
        over = time.time()

        def told(site: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = running.document("ticket", site)["faults"]
            return found

        def whole() -> bool:
            at_bad = [fault for fault in told("Bad") if fault["failed"] == MANY]
            control = {"failed": 0, "begun": MANY, "sites": 1}
            return any(fault["elsewhere"] == control for fault in at_bad)

        pool.wait_for("the fault", whole)
        (fault,) = told("Bad")
        assert told("Good") == []
        set_there = running.values()
        assert set_there["e-Bad", "htcondor"].startswith("25.")
        assert set_there["e-Good", "pilot_size"] == "4 cores, 8192 MiB, 0 GPUs"
        assert set_there["e-Good", "start"]
        text = running.get("/failures?site=Bad")
        # Now nobody reaches it.
        away = time.time()
        (pool.local / "Good_plugin").write_text(BROKEN)
        jobs("Good")
        pool.wait_for("six more", lambda: len(pool.jobs(schedd, held)) == 2 * MANY)
        gone = time.time()

        def outage() -> dict[str, Any] | None:
            """Of the storage, once all have told; those at the other site may be in it."""
            of_good = [x for fault in told("Good") for x in fault["server_outages"]]
            return next((x for x in of_good if x["runs"] >= MANY), None)

        found = pool.wait_for("the outage", outage)
        ticket = running.command("ticket", "Good")
        running.stop()
    assert found["arrival_before_epoch_seconds"] <= away
    assert away - 1 <= found["last_failure_epoch_seconds"] <= gone
    assert (found["users"], found["arrival_after"]) == (1, None)
    assert "The server: no file arrived from " in ticket
    assert "none in the half hour after." in ticket
    assert (fault["kind"], fault["cause"]) == ("transfer", f"input root {STORAGE}")
    assert (fault["failed"], fault["begun"], fault["users"]) == (MANY, MANY, 1)
    assert (fault["gone"], fault["not_this_sites"]) == (False, False)
    assert fault["elsewhere"] == {"failed": 0, "begun": MANY, "sites": 1}
    assert isinstance(fault["since_epoch_seconds"], float)
    assert began - 2 <= fault["since_epoch_seconds"] <= over
    assert f"Bad, all nodes alike: input of jobs cannot be transferred (root://{STORAGE})" in text
    assert "SeCreT" not in text
