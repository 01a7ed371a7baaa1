"""Secrets of jobs and pilots are nowhere: real ads and records of real jobs that carry canaries."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.daemon.running import RunningDaemon, gwmond
from tests.daemon.scene import Scene
from tests.pool.adtext import Expr, Value

CANARY = "kanarienvogel"
NAMES = ("TransferKey", "TransferSocket", "MySecretKey", "SessionInfo", "ClaimIds", "Capability")
SECRETS: dict[str, Value] = {name: f"{CANARY}-{name}" for name in NAMES}
HERE = 'TARGET.GLIDEIN_Site == "{}" && MY.MySecretKey isnt undefined && TARGET.MySecretKey != "x"'
QUIET_COMMANDS = (
    *(("report", "--format", form) for form in ("table", "csv", "json", "markdown", "html")),
    ("report", "--by", "user", "--format", "json"),
    ("report", "--failures"),
    ("report", "--style", "analyze-entries"),
    ("pilots", "--format", "json"),
    ("pilot", "one"),
    ("sites", "--format", "json"),
    ("check",),
    ("ledger", "check"),
    ("reconcile",),
)


def submit(scene: Scene, site: str, secrets: dict[str, Value]) -> None:
    """A job with canaries in its program's arguments and environment, and in its ad."""
    scene.pool.submit(
        scene.pool.schedds[0],
        executable="/bin/sh",
        arguments=f"\"-c 'sleep 2' {CANARY}-arguments\"",
        environment=f'"TOKEN={CANARY}-environment"',
        requirements=HERE.format(site),
        attrs=secrets | {"x509userproxysubject": f"/CN={CANARY}", "Env": f"TOKEN={CANARY}-env"},
    )


def told(running: RunningDaemon) -> Iterator[tuple[str, str]]:
    """All that anybody can get to see: where, and what."""
    for path in ("/", "/metrics", "/-/ready"):
        yield path, running.get(path)
    for arguments in QUIET_COMMANDS:
        done = gwmond(*arguments, "--config", str(running.config))
        yield " ".join(arguments), done.stdout + done.stderr


def test_secrets_of_real_jobs_and_pilots_are_told_nowhere(
    scene: Scene, daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    """Not in the ledger, the log, reports, the page, metrics, nor in a recording of the pool."""
    pool, (schedd, _) = scene.pool, scene.pool.schedds
    pilots: dict[str, Value] = {"Environment": f"TOKEN={CANARY}-pilot", "MySecretKey": CANARY}
    attrs = pilots | {"GLIDEIN_Site": "Real"}
    pool.start_pilot("one", cores=2, memory=4096, attrs=attrs)
    feigned: dict[str, Any] = (
        SECRETS | pilots | {"ClaimId": CANARY, "Start": Expr("MySecretKey isnt undefined")}
    )
    scene.pilot("Elsewhere", **feigned)
    # With other transfer keys than the shadow's the starter would not get its files.
    submit(scene, "Real", {n: value for n, value in SECRETS.items() if "Transfer" not in n})
    submit(scene, "Elsewhere", SECRETS)
    pool.wait_for("the job's record", lambda: pool.jobs(schedd, history=True))
    (record,) = pool.jobs(
        schedd, projection=("Environment", "Arguments", "MySecretKey"), history=True
    )
    slots = pool.query("Slot", 'SlotType == "Partitionable"', ["Environment", "MySecretKey"])
    assert [CANARY in str(ad) for ad in (record, *slots)] == [True, True, True]
    (idle,) = pool.jobs(schedd, "JobStatus == 1", ("MySecretKey",))
    assert CANARY in str(idle)

    running = daemon(pool.collector, tables={"log": {"format": "json", "level": "debug"}})
    running.wait_until(
        "the job's record", lambda m: m.sum("gwmond_source_records_total", kind="history") >= 1
    )
    assert running.next_polls().sum("gwmond_demand_jobs") >= 1
    found = dict(told(running))
    recording = tmp_path / "recording.zip"
    running.command("record", str(recording))
    running.stop()

    with zipfile.ZipFile(recording) as archive:
        found |= {name: archive.read(name).decode() for name in archive.namelist()}
    for path in tmp_path.iterdir():
        found[path.name] = path.read_bytes().decode(errors="replace")
    assert {"gwmond.log", "ledger.sqlite"} <= set(found)
    shown = json.loads(found["pilots --format json"])["pilots"]
    assert sum(pilot["runs"] for pilot in shown) == 1
    assert json.loads(found["report --format json"])
    assert not [where for where, text in found.items() if CANARY in text]
