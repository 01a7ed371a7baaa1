"""Benchmark: a pool in which strangers advertise 100,000 pilots, each with names of its own.

A real collector has the slots of pilots at 40 known sites, which the daemon watches for some polls.
Then slots of as many strangers come, each with a site, an entry and a frontend group that nobody
else has.  For each poll: its duration, the CPU time of the daemon and its queries (answering all
the while takes some of it), the memory of the daemon's process, how much the ledger and the log
grew, the bytes of the page and of a scrape; and how long /-/healthy and /metrics took to answer.

``--python`` names the Python of another gwmond, to compare it with.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from pathlib import Path

from tests.bench.harness import chunks, say
from tests.build.meanwhile import Meanwhile
from tests.daemon.scrape import Metrics
from tests.pool import feign
from tests.pool.adtext import Ad
from tests.pool.condor import CondorPool
from tests.pool.ports import free_port

_CONFIG = "CLASSAD_LIFETIME = 86400\n"
_SITES, _AT_ONCE = 40, 2000


class Asker(Meanwhile):
    """Asks for some paths, one after the other, all the while; how long each took."""

    def __init__(self, url: str, paths: tuple[str, ...]) -> None:
        super().__init__(self._ask)
        self._url, self._paths = url, paths
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def _ask(self) -> None:
        while not self._stop.is_set():
            for path in self._paths:
                began = time.perf_counter()
                size(self._url + path)
                self.seconds[path].append(time.perf_counter() - began)
            self._stop.wait(0.1)

    def __exit__(self, *_: object) -> None:
        """Stop, and print what was measured."""
        super().__exit__()
        for path, took in self.seconds.items():
            took.sort()
            p99 = took[len(took) * 99 // 100]
            print(
                f"{path:12} asked {len(took)} times: p50 {took[len(took) // 2] * 1e3:.1f} ms, "
                f"p99 {p99 * 1e3:.1f} ms, max {took[-1] * 1e3:.1f} ms"
            )


def main() -> None:
    """Set up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strangers", type=int, default=100_000)
    parser.add_argument("--polls", type=int, default=4, help="with strangers, measured")
    parser.add_argument("--interval", type=int, default=60, help="seconds")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    with CondorPool(config=_CONFIG) as pool, tempfile.TemporaryDirectory() as directory:
        known = [slot(f"Known{n % _SITES}", f"known{n % _SITES}", n) for n in range(10 * _SITES)]
        pool.advertise(known, "UPDATE_STARTD_AD")
        asked = [feign.glideresource(f"known{n}", f"Known{n}", running=10) for n in range(_SITES)]
        pool.advertise(asked, "UPDATE_AD_GENERIC")
        pool.submit(pool.schedds[0], 100, requirements='TARGET.GLIDEIN_Site == "Known1"')
        pool.off("NEGOTIATOR")  # it would look for jobs' slots, on the same cores
        at = Path(directory)
        port = free_port()
        (at / "gwmond.toml").write_text(
            f'[pool]\ncollectors = ["{pool.collector}"]\n[http]\nlisten = "127.0.0.1:{port}"\n'
            f'[poll]\ninterval = "{options.interval}s"\ndeadline = "{options.interval * 5 // 6}s"\n'
            f'[ledger]\nurl = "{at}/ledger.sqlite"\n[histories]\nstartds = []\n'
            '[site]\ncollector_distrust = "1ms"\n'
        )
        with (at / "log").open("wb") as log:
            config = str(at / "gwmond.toml")
            command = [options.python, "-P", "-m", "gwmond", "run", "--config", config]
            daemon = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "CONDOR_CONFIG": "ONLY_ENV"}
            )
        try:
            _measure(pool, daemon.pid, f"http://127.0.0.1:{port}", at, options)
        finally:
            daemon.terminate()
            daemon.wait(300)


def _measure(pool: CondorPool, pid: int, url: str, at: Path, options: argparse.Namespace) -> None:
    head = "poll s", "CPU s", "RSS MiB", "ledger MB", "log kB", "page kB", "metrics kB", "entries"
    print(f"{'':26}" + "".join(f"{word:>12}" for word in head))
    _poll(url, 1)
    asked = "/-/healthy", "/metrics"
    with Asker(url, asked):
        _row("known sites alone", _poll(url, 2), pid, url, at)
    print("Known1:", _state(_scrape(url)))
    say(f"advertising {options.strangers} strangers")
    ads = (slot(f"X{n:06}", f"x{n:06}", n, f"f{n}.g") for n in range(options.strangers))
    for some in chunks(ads, _AT_ONCE):
        pool.advertise(some, "UPDATE_STARTD_AD")
    with Asker(url, asked):
        last = int(_scrape(url).polls)
        for number in range(options.polls + 1):  # the one under way has seen some of them
            last += 1
            _row(f"with strangers, poll {number}", _poll(url, last), pid, url, at)
    print("Known1:", _state(_scrape(url)))


def _state(metrics: Metrics) -> str:
    rows = metrics.rows("gwmond_site_state", site="Known1")
    return next((dict(labels)["state"] for labels, value in rows.items() if value), "gone")


def slot(site: str, entry: str, number: int, client: str = "frontend.main") -> Ad:
    """A pilot of 8 cores."""
    name = f"glidein_{number}@{entry}.example"
    return feign.partitionable_slot(name, glidein=feign.glidein(entry, site, client=client))


def size(url: str) -> int:
    """Bytes that are answered; what is not answered for long is an error."""
    with urllib.request.urlopen(url, timeout=300) as answer:
        return len(answer.read())


def _scrape(url: str) -> Metrics:
    with urllib.request.urlopen(f"{url}/metrics", timeout=300) as answer:
        return Metrics.parse(answer.read().decode())


def _poll(url: str, number: int) -> Metrics:
    """Wait until so many polls have ended."""
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            if (found := _scrape(url)).polls >= number:
                return found
        except OSError:
            pass
        time.sleep(1)
    raise TimeoutError(f"no poll {number}")


_cpu_before: defaultdict[int, float] = defaultdict(float)


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process and its children since this was asked last."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [child for task in tasks for child in task.read_text().split()]
    stats = [Path(f"/proc/{number}/stat").read_text() for number in (pid, *children)]
    ticks = sum(int(tick) for stat in stats for tick in stat.rpartition(")")[2].split()[11:15])
    now = ticks / os.sysconf("SC_CLK_TCK")
    passed, _cpu_before[pid] = now - _cpu_before[pid], now
    return passed


def _row(what: str, metrics: Metrics, pid: int, url: str, at: Path) -> None:
    status = Path(f"/proc/{pid}/status").read_text()
    rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    ledger = sum(path.stat().st_size for path in at.glob("ledger.sqlite*"))
    entries = len(metrics.rows("gwmond_site_state", state="unknown"))
    numbers = (
        f"{metrics.sum('gwmond_poll_duration_seconds'):.1f}",
        f"{_cpu_s(pid):.1f}",
        f"{rss / 1024:.0f}",
        f"{ledger / 1e6:.1f}",
        f"{(at / 'log').stat().st_size / 1e3:.1f}",
        f"{size(url + '/') / 1e3:.0f}",
        f"{size(url + '/metrics') / 1e3:.0f}",
        f"{entries}",
    )
    print(f"{what:26}" + "".join(f"{number:>12}" for number in numbers), flush=True)
