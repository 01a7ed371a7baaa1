"""Soak: a daemon that polls every second, in a pool where all comes, goes and comes back.

An hour has as many polls as a day or two, by how busy the machine is.  Jobs of seconds run on
pilots of minutes, each at a site and an entry whose name was forgotten since its last pilot; pages,
REST and metrics are asked all the while.  What is kept for months is kept for minutes, and the
ledger is pruned every 60 polls, as hourly.  So all should be flat after the first quarter: the
daemon's memory (its own, and with its children, what is shared counted once), descriptors, threads,
children, the ledger and its log (WAL).

Printed are the medians of the quarters, and how fast each rises after the first one (the median of
all slopes between two minutes).  As root.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import tempfile
import time
import urllib.error
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from tests.bench.harness import memory_mib, svg
from tests.chaos.work import CONFIG, Work
from tests.daemon.running import RunningDaemon, Tables, patient
from tests.pool.condor import CondorPool

PAGES = (
    *("/", "/metrics", "/pilots", "/failures", "/time", "/problems"),
    *("/api/v1/sites", "/api/v1/totals"),
)
NAMES = 8
"""As few as are forgotten before they come back: their totals stay, and are soon all there."""
_KEPT = dict.fromkeys(("hours", "pilots", "runs", "corrections", "problems"), "10m")
TABLES: Tables = {
    **patient(1),
    "pilots": {
        "settle_delay": "3s",
        "outcome_wait": "20s",
        "silent_wait": "2m",  # pilots that were killed stay in memory until then
        "verdict_after": "1m",
        "end_tolerance": "30s",
        "assumed_end": "1m",
    },
    "site": {"peak_window": "10m", "peak_after": "1m"},
    "names": {"forget_after": "5m"},
    "ledger": {f"{what}_retention": kept for what, kept in _KEPT.items()},
}


class Sample(NamedTuple):
    """What a daemon takes; sizes in MiB."""

    memory: float
    with_children: float
    descriptors: float
    threads: float
    children: float
    ledger: float
    wal: float


_SAID = (
    *("memory of the daemon, MiB", "with its children, MiB", "descriptors", "threads"),
    *("children", "ledger, MiB", "its log (WAL), MiB"),
)


def _mib(file: Path) -> float:
    return file.stat().st_size / 2**20 if file.exists() else 0.0


def sample(daemon: RunningDaemon, ledger: Path) -> Sample:
    """What it takes now."""
    own, everything = daemon.pid, daemon.processes()
    memory = {pid: memory_mib(pid) for pid in everything}
    return Sample(
        memory[own],
        sum(memory.values()),
        len(os.listdir(f"/proc/{own}/fd")),
        len(os.listdir(f"/proc/{own}/task")),
        len(everything) - 1,
        _mib(ledger),
        _mib(ledger.with_name(ledger.name + "-wal")),
    )


def _answered(daemon: RunningDaemon, page: str) -> bool:
    """Whether a page was answered, and not told to come later: the machine may be busy."""
    try:
        daemon.get(page)
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return False
    return True


def _medians(samples: Sequence[Sample]) -> Sample:
    return Sample(*map(statistics.median, zip(*samples, strict=True)))


def _slope(values: Sequence[float]) -> float:
    """The median of the slopes between all pairs (Theil and Sen), for one step."""
    pairs = itertools.combinations(enumerate(values), 2)
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in pairs)


def tell(minutes: Sequence[Sample]) -> None:
    """Print a table of what was in each minute, in Markdown."""
    size = len(minutes) // 4
    quarters = [_medians(minutes[n * size : (n + 1) * size]) for n in range(4)]
    print("| | 1 | 2 | 3 | 4 | rises in an hour |\n|---|---|---|---|---|---|")
    for said, *values, later in zip(
        _SAID, *quarters, zip(*minutes[size:], strict=True), strict=True
    ):
        print(f"| {said} |", *(f"{v:.4g} |" for v in values), f"{60 * _slope(later):+.2g} |")


def drawing(minutes: Sequence[Sample]) -> str:
    """Draw the same, as SVG: one line a panel, from 0 to the largest."""
    width, height, left = 640, 56, 170
    lines = []
    for row, (said, values) in enumerate(zip(_SAID, zip(*minutes, strict=True), strict=True)):
        base, most = (row + 1) * height - 8, max(values) or 1.0
        x = (width - left - 10) / max(1, len(values) - 1)
        points = (
            f"{left + i * x:.0f},{base - v / most * (height - 16):.1f}"
            for i, v in enumerate(values)
        )
        lines += [
            f'<text x="8" y="{base - 14}">{said}</text>',
            f'<text x="{left - 6}" y="{base - height + 24}" text-anchor="end">{most:.4g}</text>',
            f'<text x="{left - 6}" y="{base}" text-anchor="end">0</text>',
            f'<path d="M{left},{base}H{width - 10}" stroke="#bbb"/>',
            f'<polyline points="{" ".join(points)}" stroke="#06c"/>',
        ]
    foot = (len(_SAID) + 1) * height - 36
    lines.append(f'<text x="{left}" y="{foot}">0</text>')
    lines.append(
        f'<text x="{width - 10}" y="{foot}" text-anchor="end">{len(minutes)} minutes</text>'
    )
    return svg(width, foot + 10, lines)


def main() -> None:
    """Soak, sample, print, draw."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--plot", type=Path, help="an SVG to write")
    options = parser.parse_args()
    minutes: list[Sample] = []
    taken: list[Sample] = []
    with (
        CondorPool(config=CONFIG) as pool,
        tempfile.TemporaryDirectory() as directory,
        RunningDaemon(Path(directory), [pool.collector], TABLES) as daemon,
    ):
        sites = map("soak{}".format, itertools.cycle(range(NAMES)))
        work = Work(pool, random.Random(), sites)
        began, later = time.monotonic(), 0
        while time.monotonic() - began < 60 * options.minutes:
            work.step()
            for page in PAGES:
                later += not _answered(daemon, page)
            taken.append(sample(daemon, Path(directory) / "ledger.sqlite"))
            if time.monotonic() - began > 60 * (len(minutes) + 1):
                minutes.append(_medians(taken))
                taken.clear()
                print(f"{len(minutes):4}", *(f"{v:.4g}" for v in minutes[-1]), flush=True)
            time.sleep(1)
        metrics = daemon.metrics()
        print(daemon.command("ledger", "stats"))
        print(daemon.command("ledger", "check"))
    runs = metrics.sum("gwmond_job_runs_total")
    print(f"{metrics.polls:.0f} polls, {len(work.all)} pilots, {runs:.0f} runs, {later} times 503")
    tell(minutes)
    if options.plot:
        options.plot.write_text(drawing(minutes))


if __name__ == "__main__":
    main()
