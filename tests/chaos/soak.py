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
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.daemon.running import RunningDaemon, Tables, patient
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot

PAGES = ("/", "/metrics", "/pilots", "/failures", "/time", "/api/v1/sites")
_PILOTS, _LIVES_S, _JOBS = 3, 60.0, 30


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


def _come_and_go(
    pool: CondorPool, numbers: Iterator[int], living: list[tuple[float, Pilot]]
) -> None:
    """Replace a pilot that has lived long enough; submit jobs where few wait."""
    if living and time.monotonic() - living[0][0] > _LIVES_S:
        living.pop(0)[1].stop_graceful()
    if len(living) < _PILOTS and (not living or time.monotonic() - living[-1][0] > 15):
        name = f"soak{next(numbers)}"
        attrs = {"GLIDEIN_Site": name, "GLIDEIN_Entry_Name": name}
        living.append((time.monotonic(), pool.start_pilot(name, cores=4, attrs=attrs, wait=False)))
    for schedd in pool.schedds:
        if len(pool.jobs(schedd)) < _JOBS:
            pool.submit(schedd, _JOBS, seconds=3, request_memory=64)


def main() -> None:
    """Soak, sample, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    samples: list[Sample] = []
    with CondorPool() as pool, tempfile.TemporaryDirectory() as directory:
        tables: Tables = {**patient(1), "pilots": {"settle_delay": "3s", "outcome_wait": "20s"}}
        with RunningDaemon(Path(directory), [pool.collector], tables) as daemon:
            numbers, living = itertools.count(), list[tuple[float, Pilot]]()
            began, pages = time.monotonic(), itertools.cycle(PAGES)
            while time.monotonic() - began < 60 * options.minutes:
                _come_and_go(pool, numbers, living)
                for page in itertools.islice(pages, len(PAGES)):
                    daemon.get(page)
                if time.monotonic() - began > 30 * (len(samples) + 1):
                    samples.append(sample(daemon, Path(directory) / "ledger.sqlite"))
                    print(f"{time.monotonic() - began:6.0f} s  {samples[-1]}", flush=True)
                time.sleep(1)
            polls, pilots = daemon.metrics().polls, next(numbers)
            runs = daemon.metrics().sum("gwmond_job_runs_total")
    print(f"{polls} polls, {pilots} pilots, {runs:.0f} runs")
    size = len(samples) // 4
    for quarter in range(4 if size else 0):
        rows = zip(*samples[quarter * size : (quarter + 1) * size], strict=True)
        print(f"quarter {quarter + 1}  {Sample(*map(statistics.median, rows))}")


if __name__ == "__main__":
    main()
