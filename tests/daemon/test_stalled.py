"""Real running jobs that use no CPU, beside such that do, and such that only transfer files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.daemon.running import RunningDaemon
from tests.pool.condor import CondorPool
from tests.pool.transfer_plugin import PLUGIN, SLOW_S

AFTER_S = 8
JOBS = "gwmond_stalled_jobs"
RARELY = "STARTER_UPDATE_INTERVAL = 3000\nSTARTER_INITIAL_UPDATE_INTERVAL = 3000"


def test_only_jobs_that_sleep_are_stalled(
    htcondor: str, daemon: Callable[..., RunningDaemon]
) -> None:
    """Truth: what the programs do. The schedd's ads say when it has seen all of them do it."""
    with CondorPool(htcondor=htcondor, config="SHADOW_QUEUE_UPDATE_INTERVAL = 3") as pool:
        plugin = pool.local / "root_plugin"
        plugin.write_text(PLUGIN.replace(f"sleep {SLOW_S}", "sleep 600"))
        plugin.chmod(0o755)
        (pool.local / "alice").chmod(0o777)
        of = {"GLIDEIN_Site": "Known", "GLIDEIN_Entry_Name": "known"}
        transfers = f"FILETRANSFER_PLUGINS = {plugin}"
        pool.start_pilot("glidein_1_1", cores=6, memory=6000, attrs=of, config=transfers)
        schedd = pool.schedds[0]
        here: dict[str, Any] = {"requirements": 'TARGET.GLIDEIN_Site == "Known"'}
        shell = {**here, "executable": "/bin/sh"}
        sleeping = [pool.submit(schedd, **here), pool.submit(schedd, request_cpus=2, **here)]
        busy = pool.submit(schedd, arguments="\"-c 'while :; do :; done'\"", **shell)
        url = "root://slow.example.org/"
        receives = pool.submit(schedd, transfer_input_files=f"{url}/in", **here)
        sends = pool.submit(
            schedd,
            arguments="\"-c 'echo > out'\"",
            transfer_output_files="out",
            transfer_output_remaps=f'"out={url}/out"',
            **shell,
        )
        there = {"GLIDEIN_Site": "Unknown", "GLIDEIN_Entry_Name": "unknown"}
        pool.start_pilot("glidein_1_2", attrs=there, config=RARELY)
        pool.submit(schedd, requirements='TARGET.GLIDEIN_Site == "Unknown"')
        clusters = {
            busy: "RemoteUserCpu >= 2",
            receives: "TransferringInput",
            sends: f"TransferringOutput && time() - JobCurrentStartExecutingDate > {AFTER_S}",
        }
        told = " || ".join(f"(ClusterId == {number} && {do})" for number, do in clusters.items())
        pool.wait_for("what they do", lambda: len(pool.jobs(schedd, told)) == len(clusters), 180)
        running = daemon(pool.collector, tables={"demand": {"stalled_after": f"{AFTER_S}s"}})
        found = running.wait_until(
            "the jobs that sleep",
            lambda m: (
                m.sum(JOBS, cpu="none") == len(sleeping) and m.sum(JOBS, cpu="not_known") == 1
            ),
        )
        row = next(r for r in running.document("sites")["sites"] if r["site"] == "Known")
        page = running.get("/site?site=Known")
        running.stop()
    of_known = {"site": "Known", "entry": "known", "group": "frontend.main"}
    assert found.sum(JOBS, cpu="none", **of_known) == len(sleeping)
    assert found.sum(JOBS, cpu="not_known", site="Unknown") == 1
    assert found.sum("gwmond_stalled_jobs_core_seconds", **of_known) >= 3 * AFTER_S
    assert (row["stalled_jobs"], row["stalled_core_hours"] is None) == (len(sleeping), False)
    assert re.search(rf">{len(sleeping)}, [0-9.]+ h<", page)
