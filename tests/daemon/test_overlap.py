"""A real pilot that takes its next job while the last one's output is still sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.daemon.running import RunningDaemon
from tests.pool.condor import CondorPool
from tests.pool.transfer_plugin import PLUGIN, SLOW_S

CONDOR = Path(__file__).parents[2] / "etc/condor"
CONFIG = f"OVERLAP_SENDERS = 1\n{(CONDOR / 'overlap.conf').read_text()}\nUPDATE_INTERVAL = 2"
NAME = "glidein_1_1@pool.test"
TIMES = (
    *("ClusterId", "JobCurrentStartDate", "JobCurrentStartExecutingDate"),
    *("JobCurrentStartTransferOutputDate", "TransferOutStarted", "TransferOutFinished"),
)
UNITS = "gwmond_pilot_canonical_units"


def test_the_next_job_runs_while_the_last_one_sends(
    htcondor: str, daemon: Callable[..., RunningDaemon]
) -> None:
    """The first upload ends only when the second program runs: one after the other it never would.

    Judge: the schedd's own history. Two programs never run at once on the one core.
    """
    with CondorPool(htcondor=htcondor, config="JOB_EPOCH_HISTORY = $(SPOOL)/epochs") as pool:
        home = pool.local / "alice"
        home.chmod(0o777)
        flag, second = home / "second", home / "go"
        plugin = pool.local / "root_plugin"
        waiting = f"for n in $(seq 600); do [ -e {flag} ] && break; sleep 0.2; done"
        plugin.write_text(PLUGIN.replace(f"sleep {SLOW_S}", waiting))
        plugin.chmod(0o755)
        config = f"FILETRANSFER_PLUGINS = {plugin}\n{CONFIG}"
        pool.start_pilot("glidein_1_1", cores=1, memory=2000, config=config)
        running = daemon(pool.collector)
        schedd = pool.schedds[0]
        shell: dict[str, Any] = {
            "executable": "/bin/sh",
            "transfer_output_files": "out",
            "request_memory": 1500,
        }
        first = pool.submit(
            schedd,
            arguments="\"-c 'echo > out; sleep 1'\"",
            transfer_output_remaps='"out=root://slow.example.org//o"',
            **shell,
        )
        until = f"touch {flag}; while ! [ -e {second} ]; do sleep 0.2; done; echo > out"
        other = pool.submit(schedd, arguments=f"\"-c '{until}'\"", **shell)
        pool.wait_for("the second program", flag.exists, 120)
        busy = {"use": "busy", "resource": "cpu", "site": "Site"}
        running.wait_until("one core, which is busy", lambda m: m.sum(UNITS, **busy) == 1)
        (listed,) = running.document("pilots")["pilots"]
        second.touch()
        pool.wait_for("both ends", lambda: len(pool.jobs(schedd, history=True)) == 2)
        ended: list[dict[str, Any]] = pool.jobs(schedd, projection=TIMES, history=True)
        times = {ad["ClusterId"]: ad for ad in ended}
        running.wait_until("both runs", lambda m: m.sum("gwmond_job_runs_total") == 2)
        story = running.document("pilot", NAME)
        running.stop()
    assert (listed["cores"], listed["memory_mib"], listed["senders"]) == (1, 2000, 1)
    sent = times[first]["JobCurrentStartTransferOutputDate"]
    began = times[other]["JobCurrentStartExecutingDate"]
    assert sent <= began <= times[first]["TransferOutFinished"]
    assert not any(story["residual"]["cpu"].values())
    runs = {int(run["job"].split("#")[1].split(".")[0]): run for run in story["runs"]}
    for number, ad in times.items():
        held = ad["JobCurrentStartTransferOutputDate"] - ad["JobCurrentStartDate"]
        assert runs[number]["amounts"]["cpu"]["resource_seconds"] == held, number
