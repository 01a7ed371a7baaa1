"""A daemon that polls every second, for long, in a pool where all comes and goes.

``python -m tests.chaos.soak --minutes 30``, as root.  Jobs of seconds run on pilots of minutes,
each at a site and an entry of its own name; pages, REST and metrics are asked all the while.  What
the daemon has of memory (itself, and with its children), descriptors, threads, children, and what
its ledger takes on disk is printed every 30 s, and the medians of the quarters at the end: memory
and the rest should be flat, the ledger grows with pilots and runs.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.chaos.work import CONFIG, Work
from tests.daemon.running import RunningDaemon, Tables, patient
from tests.pool.condor import CondorPool

PAGES = ("/", "/metrics", "/pilots", "/failures", "/time", "/api/v1/sites")


class Sample(NamedTuple):
    """What a daemon takes; sizes in MiB."""

    memory: float
    with_children: float
    descriptors: float
    threads: float
    children: float
    ledger: float
    wal: float

    def __str__(self) -> str:
        return "  ".join(f"{name} {value:.1f}" for name, value in self._asdict().items())


def _rss_mib(pid: int) -> float:
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


def _mib(file: Path) -> float:
    return file.stat().st_size / 2**20 if file.exists() else 0.0


def sample(daemon: RunningDaemon, ledger: Path) -> Sample:
    """What it takes now."""
    own, everything = daemon.pid, daemon.processes()
    return Sample(
        _rss_mib(own),
        sum(map(_rss_mib, everything)),
        len(os.listdir(f"/proc/{own}/fd")),
        len(os.listdir(f"/proc/{own}/task")),
        len(everything) - 1,
        _mib(ledger),
        _mib(ledger.with_name(ledger.name + "-wal")),
    )


def main() -> None:
    """Soak, sample, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    samples: list[Sample] = []
    with CondorPool(config=CONFIG) as pool, tempfile.TemporaryDirectory() as directory:
        tables: Tables = {**patient(1), "pilots": {"settle_delay": "3s", "outcome_wait": "20s"}}
        with RunningDaemon(Path(directory), [pool.collector], tables) as daemon:
            sites = map("soak{}".format, itertools.count())
            work = Work(pool, random.Random(), sites)
            began, pages = time.monotonic(), itertools.cycle(PAGES)
            while time.monotonic() - began < 60 * options.minutes:
                work.step()
                for page in itertools.islice(pages, len(PAGES)):
                    daemon.get(page)
                if time.monotonic() - began > 30 * (len(samples) + 1):
                    samples.append(sample(daemon, Path(directory) / "ledger.sqlite"))
                    print(f"{time.monotonic() - began:6.0f} s  {samples[-1]}", flush=True)
                time.sleep(1)
            metrics = daemon.metrics()
    runs = metrics.sum("gwmond_job_runs_total")
    print(f"{metrics.polls} polls, {len(work.all)} pilots, {runs:.0f} runs")
    size = len(samples) // 4
    for quarter in range(4 if size else 0):
        rows = zip(*samples[quarter * size : (quarter + 1) * size], strict=True)
        print(f"quarter {quarter + 1}  {Sample(*map(statistics.median, rows))}")


if __name__ == "__main__":
    main()
