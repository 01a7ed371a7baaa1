"""A daemon whose port many strangers use: who has the token, polls and the log do not suffer."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gwmond.web.connections import AT_ONCE, MOST, REQUEST_S
from tests.daemon import strangers
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import Scene
from tests.daemon.scrape import Metrics

SILENT = 4000
DESCRIPTORS = 4096
"""What the unit lets the daemon open."""

KINDS = {"too_many_connections", "no_token", "bad_host", "bad_http"}


@contextmanager
def many_strangers(port: int) -> Iterator[None]:
    """While they hold their connections, and ask."""
    command = [sys.executable, strangers.__file__, str(port), str(SILENT)]
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline() == "held\n"
            yield
        finally:
            running.kill()


class Client:
    """Prometheus, which has the token."""

    def __init__(self, daemon: RunningDaemon, token: str) -> None:
        self._daemon = daemon
        self._headers = {"Authorization": f"Bearer {token}"}

    def metrics(self) -> Metrics:
        """An answer within the time that Prometheus gives by default, which is the request's."""
        request = urllib.request.Request(f"{self._daemon.url}/metrics", headers=self._headers)
        with urllib.request.urlopen(request, timeout=REQUEST_S) as reply:
            return Metrics.parse(reply.read().decode())


def refused(metrics: Metrics) -> dict[str, float]:
    """How many connections and requests were refused, by kind."""
    name = "gwmond_problems_total"
    return {kind: metrics.sum(name, source="http", problem=kind) for kind in KINDS}


def test_strangers_keep_nobody_from_work(
    scene: Scene, daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    """Scrapes with the token are answered, polls succeed, the log grows by lines."""
    scene.pilot("Alpha", busy=1)
    token, log = tmp_path / "token", tmp_path / "gwmond.log"
    token.write_text("se-cret")
    http = {"auth_token_file": str(token)}
    running = daemon(scene.pool.collector, tables={"http": http}, ready=False)
    pid = running.processes()[0]
    subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={DESCRIPTORS}"], check=True)
    client = Client(running, "se-cret")
    before, since = log.stat().st_size, time.monotonic()
    begin = client.metrics().polls
    descriptors, last = [], client.metrics()
    with many_strangers(running.port):
        while last.polls < begin + 4 or min(refused(last).values()) < 20:
            last = client.metrics()
            descriptors.append(len([*Path(f"/proc/{pid}/fd").iterdir()]))

    assert max(descriptors) < MOST + AT_ONCE + 200 < DESCRIPTORS / 2
    assert {last.value("gwmond_source_up", source=scene.pool.collector, kind="slots")} == {1}
    assert refused(last)["too_many_connections"] > SILENT / 2
    events = Counter(str(event.get("problem")) for event in running.log() if "problem" in event)
    assert not {"failed", "poll_failed"} & set(events)  # as without a free descriptor
    minutes = (time.monotonic() - since) / 60
    assert all(1 <= events[kind] <= 2 + minutes for kind in KINDS), events
    assert log.stat().st_size - before < 64 << 10
