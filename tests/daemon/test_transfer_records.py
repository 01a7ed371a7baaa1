"""Transfers of real jobs by HTCondor's own records; the plugin's own log is the truth."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.daemon.running import RunningDaemon
from tests.pool.condor import CondorPool
from tests.pool.sandbox import USERS

#: osdf://HOST/... is asked of cache-1 and then of cache-2, any other URL of its host.  A file with
#: the name of a server is a fault of it; the log has a line for each attempt.
PLUGIN = r"""#!/usr/bin/env -S python3 -IS
import os, re, sys, time
ROOT, BYTES = "@ROOT@", 70000
if "-classad" in sys.argv:
    print('MultipleFileSupport = true\nPluginVersion = "1"\nPluginType = "FileTransfer"')
    print('ProtocolVersion = 2\nSupportedMethods = "root,osdf"')
    sys.exit()
way = "output" if "-upload" in sys.argv else "input"
asked = open(sys.argv[sys.argv.index("-infile") + 1]).read()
status, results = 0, []

def attempt(server):
    if os.path.exists(f"{ROOT}/{server}.dies"):
        os.kill(os.getpid(), 9)
    done = not os.path.exists(f"{ROOT}/{server}.down")
    with open(ROOT + "/log", "a") as log:
        log.write(f"{time.time()} {way} {scheme} {server} {int(done)}\n")
    return done

for ad in asked.replace("\n", " ").split("]")[:-1]:
    url = re.search(r'\WUrl = "([^"]*)"', ad)[1]
    local = re.search(r'LocalFileName = "([^"]*)"', ad)[1]
    scheme, host = re.match(r"(\w+)://(?:[^@/]*@)?([\w.-]+)", url).groups()
    began, data, done = int(time.time()), "", False
    for number, server in enumerate(["cache-1", "cache-2"] if scheme == "osdf" else [host]):
        done = attempt(server)
        moved = BYTES if done else 0
        if scheme == "osdf":
            data += f'Endpoint{number} = "{server}:8443"; TransferFileBytes{number} = {moved}; '
        if done:
            break
    if done and way == "input":
        open(local, "wb").write(bytes(BYTES))
    status |= not done
    why = "" if done else 'TransferError = "it does not answer"; '
    inner = f"DeveloperData = [ {data} ]; " if data else ""
    results.append(
        f'[ TransferSuccess = {str(done).lower()}; {why}{inner}TransferUrl = "{url}"; '
        f'TransferProtocol = "{scheme}"; TransferTotalBytes = {moved}; '
        f"TransferStartTime = {began}; TransferEndTime = {int(time.time())} ]\n"
    )
open(sys.argv[sys.argv.index("-outfile") + 1], "w").write("".join(results))
sys.exit(status)
"""
SECRET = "SeCreT"
IN = {"transfer_input_files": f"root://user:{SECRET}@se-1.example.org:1094//in?token={SECRET}"}
OUT = {
    "executable": "/bin/sh",
    "arguments": "\"-c 'echo x > out'\"",
    "transfer_output_files": "out",
    "transfer_output_remaps": f'"out=root://se-2.example.org//out?sig={SECRET}"',
}
CACHED = {"transfer_input_files": f"osdf://origin.example.org/in?token={SECRET}"}


class Attempt(NamedTuple):
    """A line of the plugin's log."""

    time: float
    way: str
    protocol: str
    server: str
    done: bool


class Played:
    """A pool with two storages and two caches, and what is done to them."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool, self.root = pool, pool.local / "servers"
        self.root.mkdir()
        os.chown(self.root, USERS["alice"], USERS["alice"])
        plugin = pool.local / "two_plugin"
        plugin.write_text(PLUGIN.replace("@ROOT@", str(self.root)))
        plugin.chmod(0o755)
        self.use = f"FILETRANSFER_PLUGINS = {plugin}"

    def jobs(self, *kinds: dict[str, str], number: int = 1) -> None:
        """So many jobs of each kind have run, or are held."""
        (schedd, _), before = self.pool.schedds, len(self.log())
        for kind in kinds:
            job: dict[str, Any] = {"arguments": "0", **kind}
            self.pool.submit(schedd, number, **job)
        waits = "JobStatus != 5"
        self.pool.wait_for("the ends", lambda: not self.pool.jobs(schedd, waits))
        assert len(self.log()) >= before + number * len(kinds)

    def fault(self, server: str, kind: str = "down") -> Path:
        path = self.root / f"{server}.{kind}"
        path.touch()
        return path

    def log(self) -> list[Attempt]:
        path = self.root / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        words = (line.split() for line in lines)
        return [Attempt(float(t), way, scheme, at, end == "1") for t, way, scheme, at, end in words]


def story(played: Played) -> None:
    """Both storages and the first cache are down for a while; the others never."""
    played.jobs(IN, OUT, CACHED, number=2)
    faults = [played.fault(at) for at in ("se-1.example.org", "se-2.example.org", "cache-1")]
    played.jobs(IN, OUT, CACHED, number=3)
    time.sleep(2)
    played.jobs(IN, OUT, CACHED)
    for fault in faults:
        fault.unlink()


def test_an_outage_by_htcondors_own_records(
    daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    """Each attempt of the plugin is counted at its server, and each outage has begin and end."""
    with CondorPool(htcondor="25") as pool:
        played = Played(pool)
        pool.start_pilot("glidein_1_1", cores=4, memory=8192, config=played.use)
        story(played)
        running = daemon(pool.collector)
        running.wait_until("the first", lambda m: m.sum("gwmond_transfer_attempts_total") > 0)
        played.jobs(IN, OUT, CACHED, number=2)
        log = played.log()
        truth = Counter((x.way, x.protocol, x.server, result(x)) for x in log)
        attempts = "gwmond_transfer_attempts_total"
        metrics = running.wait_until(
            "all attempts", lambda m: m.sum(attempts) >= truth.total(), timeout=120
        )
        names = "direction", "protocol", "host", "result"
        counted = {
            key: metrics.sum(attempts, site="Site", **dict(zip(names, key, strict=True)))
            for key in truth
        }
        moved = metrics.sum("gwmond_transfer_bytes_total")
        failed = metrics.sum("gwmond_transfer_failures_total", protocol="root")
        document = json.loads(running.get("/api/v1/failures?from=2h"))
        page = running.get("/failures?last=24h")
        running.stop()
    assert counted == truth
    assert metrics.sum(attempts) == truth.total()
    assert moved == 70_000 * sum(x.done for x in log)
    assert failed == 8
    told = {(x["way"], x["host"]): x for x in document["transfer_servers"]["groups"]}
    assert told.keys() == {(x.way, x.server) for x in log if not x.done}
    for (way, server), line in told.items():
        (outage,) = line["outages"]
        of_server = [x for x in log if (x.way, x.server) == (way, server)]
        bad = [x.time for x in of_server if not x.done]
        good = [x.time for x in of_server if x.done]
        around = max(t for t in good if t < bad[0]), min(t for t in good if t > bad[-1])
        ends = ("first_failure", "last_failure", "arrival_before", "arrival_after")
        for end, time_s in zip(ends, (bad[0], bad[-1], *around), strict=True):
            assert abs(outage[f"{end}_epoch_seconds"] - time_s) <= 2, (server, end)
        assert (outage["runs"], outage["users"], outage["sites"]) == (4, 1, 1)
    assert "cache-1" in page
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"se-1.example.org" in everything
    assert SECRET.encode() not in everything + page.encode()


def result(one: Attempt) -> str:
    """As the metric has it: a cache that failed was repeated at the other one."""
    if one.done:
        return "succeeded"
    return "repeated" if one.server == "cache-1" else "failed"
