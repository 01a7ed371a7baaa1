"""Central logs, from files and from the socket, in a daemon that runs."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.service.host.log_socket import TAKE_LINES
from tests.daemon.running import RunningDaemon, gwmond, patient
from tests.daemon.scene import Scene, Tables
from tests.daemon.scrape import Metrics

Start = Callable[..., RunningDaemon]
TABLES: Tables = {
    **patient(3),
    "pilots": {
        "settle_delay": "1s",
        "end_tolerance": "2s",
        "outcome_wait": "10s",
        "assumed_end": "8s",
    },
}
ENDED = "condor_master (condor_MASTER) pid 11 EXITING WITH STATUS 0"
FLOOD = 100_000


def line(number: int, at: float, message: str = ENDED) -> bytes:
    """A line of a pilot's master."""
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    data = f'[GLIDEIN_Site="Logged" GLIDEIN_Name="glidein_{number}_99"]'
    return f"<149>1 {when} node{number} condor_master 11 - {data} {message}\n".encode()


def pilots(scene: Scene, *numbers: int) -> None:
    """Pilots that the collector goes on to show, although they are gone."""
    for number in numbers:
        scene.pilot("Logged", name=f"glidein_{number}_99@node{number}")


def ended(running: RunningDaemon, number: int) -> None:
    """Wait until so many pilots have ended."""
    running.wait_until(
        f"{number} pilots to end",
        lambda m: m.sum("gwmond_pilots_ended_total", site="Logged") == number,
    )


def ends(ledger: Path) -> dict[str, tuple[str, int | None]]:
    """How and when each pilot ended."""
    with LedgerReader.open(f"sqlite:///{ledger}") as opened:
        rows = opened.pilot_rows()
    return {row.identity.name.split("@")[0]: (row.end_source, row.end_us) for row in rows}


def test_files(scene: Scene, daemon: Start, tmp_path: Path) -> None:
    """Ends are told by a log that grows and is rotated; each line once, through a kill."""
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "pilots.log"
    log.write_bytes(b"garbage\n")
    factory = {"central_logs": [str(logs)], "every": "1s"}
    pilots(scene, 1, 2, 3)
    running = daemon(scene.pool.collector, tables={**TABLES, "factory": factory})
    running.next_polls(2)
    at = time.time()
    with log.open("ab") as stream:
        stream.write(line(1, at) + line(2, at)[:40])
    ended(running, 1)
    with log.open("ab") as stream:
        stream.write(line(2, at)[40:])
    log.rename(logs / "pilots.log.1")
    log.write_bytes(line(3, at))
    ended(running, 3)
    metrics = running.metrics()
    assert metrics.value("gwmond_source_up", source="central_log", kind="files") == 1
    assert metrics.value("gwmond_source_records_total", source="central_log", kind="files") == 3
    assert metrics.value("gwmond_problems_total", source="central_log", problem="garbage") == 1
    running.kill9()
    running.start()
    metrics = running.next_polls(3)
    assert metrics.sum("gwmond_pilots_ended_total", site="Logged") == 3
    assert metrics.sum("gwmond_source_records_total", source="central_log", kind="files") == 0
    told = {how for how, _ in ends(tmp_path / "ledger.sqlite").values()}
    assert told == {"central_log"}
    assert "ended (central log)" in running.command("pilot", "glidein_1_99")
    running.command("ledger", "check")


def test_the_socket(scene: Scene, daemon: Start, tmp_path: Path) -> None:
    """What the real logger sends, before and after a reload; it is gone when the daemon is."""
    path = tmp_path / "log.socket"
    tables: Tables = {**TABLES, "factory": {"log_socket": str(path)}}
    pilots(scene, 1, 2)
    running = daemon(scene.pool.collector, tables=tables)
    running.next_polls(2)
    inode = path.stat().st_ino

    def send(number: int) -> None:
        command = ["logger", "--socket", str(path), "--rfc5424", "--tag", "condor_master"]
        data = ["--sd-id", "pilot@1", "--sd-param", f'GLIDEIN_Name="glidein_{number}_99"']
        subprocess.run([*command, *data, ENDED], check=True)

    send(1)
    ended(running, 1)
    running.configure({**tables, "log": {"level": "debug", "format": "json"}})
    running.hup()
    running.next_polls(2)
    assert running.log("configuration reloaded")
    assert path.stat().st_ino == inode
    send(2)
    ended(running, 2)
    metrics = running.metrics()
    assert metrics.value("gwmond_source_up", source="central_log", kind="socket") == 1
    assert metrics.value("gwmond_source_records_total", source="central_log", kind="socket") == 2
    os.unlink(path)
    running.wait_for(
        "gwmond_source_up", {"source": "central_log", "kind": "socket"}, lambda up: up == 0
    )
    running.hup()
    running.wait_for("gwmond_source_up", {"source": "central_log", "kind": "socket"}, bool)
    assert running.stop()[0] == 0
    assert not path.exists()


def test_what_is_wrong_with_lines_lasts(scene: Scene, daemon: Start, tmp_path: Path) -> None:
    """Lines that come now and then are counted each, and are one event of the log."""
    path = tmp_path / "log.socket"
    tables: Tables = {**TABLES, "factory": {"log_socket": str(path), "every": "1h"}}
    running = daemon(scene.pool.collector, tables=tables)
    running.next_polls(2)
    words = ("garbage", "no_pilot")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.connect(str(path))
        for number in (1, 2):
            client.send(b"nonsense")
            client.send(line(7, time.time())[:-1] + b" %d" % number)
            for word in words:
                labels = {"source": "central_log", "problem": word}
                running.wait_for("gwmond_problems_total", labels, lambda n: n == number)  # noqa: B023
            running.next_polls(2)
    for word in words:
        said = running.log(source="central_log", problem=word)
        assert [record["event"] for record in said] == ["problem"], said


def test_a_flood(scene: Scene, daemon: Start, tmp_path: Path) -> None:
    """A hundred thousand lines, half of them garbage: polls go on, and all are counted."""
    path = tmp_path / "log.socket"
    tables = {**TABLES, "factory": {"log_socket": str(path)}}
    pilots(scene, 1)
    running = daemon(scene.pool.collector, tables=tables)
    before = running.next_polls(2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.connect(str(path))
        stranger = line(7, time.time())
        for number in range(FLOOD // 2):
            client.send(stranger[:-1] + b" %d" % number)
            client.send(b"\xff\x00garbage %d" % number)
        last = line(1, time.time())

        def ended_at_last(metrics: Metrics) -> bool:
            client.send(last)  # the first one may have found no room
            return metrics.sum("gwmond_pilots_ended_total", site="Logged") == 1

        after = running.wait_until("the pilot to end", ended_at_last)
    taken = after.value("gwmond_source_records_total", source="central_log", kind="socket")
    assert taken is not None
    assert taken >= TAKE_LINES
    for word in ("garbage", "too_many_waiting"):
        assert after.value("gwmond_problems_total", source="central_log", problem=word)
    dropped = after.sum("gwmond_problems_total", source="central_log", problem="overflow")
    assert dropped or taken >= FLOOD
    assert after.value("gwmond_source_up", source="central_log", kind="socket") == 1
    assert after.value("gwmond_source_up", source="ledger", kind="commit") == 1
    assert running.next_polls(3).polls > before.polls + 3


def test_a_path_that_cannot_be(tmp_path: Path) -> None:
    """The daemon does not start, and says which file, which key and what to do."""
    config = tmp_path / "gwmond.toml"
    (tmp_path / "taken").write_text("")
    for key, value, said in (
        ("log_socket", f'"{tmp_path}/none/x"', f"{tmp_path}/none is no directory: make it"),
        ("log_socket", f'"{tmp_path}/taken"', f"{tmp_path}/taken is there, and is no socket"),
        ("central_logs", f'["{tmp_path}/none"]', f"{tmp_path}/none is no directory"),
    ):
        config.write_text(
            f'[http]\nlisten = "127.0.0.1:0"\n[ledger]\nurl = "{tmp_path}/l.sqlite"\n'
            f"[factory]\n{key} = {value}\n"
        )
        done = gwmond("run", "--config", str(config))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"gwmond: {config}: factory.{key}: {said}" in done.stderr, done.stderr
