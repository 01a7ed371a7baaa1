"""Benchmark: a backlog of job records drained into an empty ledger, against its bare reading.

Real schedds serve epoch histories made of a real record (``runs``).  In one run, side by side:
(a) the bare bindings' reading of the same records, with the same projection, undecoded; (b) gwmond,
from the queries to the ledger.  Then gwmond alone with other sizes of the backlog, on which its
memory must not depend.

A schedd looks at 50,000 records at most (HISTORY_HELPER_MAX_HISTORY), so a larger backlog is one of
several schedds: ``--schedds``.  Full size:

    make bench BENCH_ARGS="backlog --runs 1000000 --schedds 20 --pilots 60000 --rounds 1 \\
        --sizes 100000,300000,1000000"
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.bench import feigned_runs
from tests.bench.feigned_runs import PERIOD_S, Feigned
from tests.bench.harness import (
    NO_DNS,
    Numbers,
    daemons,
    epoch_files,
    in_child,
    numbers,
    say,
    schedds,
)
from tests.pool.condor import CondorPool

_WINDOW = 10_000
_LIFTED = "HISTORY_HELPER_MAX_HISTORY = 100000000\n"


def main() -> None:
    """Set up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--schedds", type=int, default=1)
    parser.add_argument("--pilots", type=int, default=5_000, help="at any time")
    parser.add_argument("--period", type=int, default=PERIOD_S, help="s between a pilot's runs")
    parser.add_argument("--records", type=int, default=20_000, help="at once, see gwmond.toml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=numbers, default=[12_500, 25_000, 50_000])
    parser.add_argument("--lift", action="store_true", help="let schedds look at more records")
    parser.add_argument("--profile", default="", help="write cProfile's output of gwmond to PATH")
    options = parser.parse_args()
    config = NO_DNS + feigned_runs.EPOCHS + schedds(options.schedds)
    config += _LIFTED if options.lift else ""
    with CondorPool(config=config) as pool, tempfile.TemporaryDirectory() as directory:
        bench = Bench(pool, Path(directory), options)
        bench.write(options.runs)
        _report([bench.round(n) for n in range(options.rounds)])
        for size in options.sizes if len(options.sizes) > 1 else ():
            bench.write(size)
            _report_memory(bench.gwmond())


class Bench:
    """What is measured, and how."""

    def __init__(self, pool: CondorPool, directory: Path, options: argparse.Namespace) -> None:
        self._pool, self._directory, self._options = pool, directory, options
        self._template = feigned_runs.template(pool, NO_DNS)
        self.feigned = Feigned(options.pilots, 0, 0)
        self._schedds = daemons(pool, options.schedds)

    def write(self, number: int) -> None:
        """Write histories of so many runs."""
        say(f"writing {number} records")
        options, until = self._options, int(time.time()) - 60
        self.feigned = Feigned(options.pilots, number, until, options.period)
        files = epoch_files(self._pool, self._options.schedds)
        for path, part in zip(files, feigned_runs.parts(number, len(files)), strict=True):
            feigned_runs.write_epochs(path, self.feigned, self._template, part)

    def round(self, number: int) -> dict[str, Numbers]:
        """Measure the bare reading and gwmond, one after the other."""
        windows = self.feigned.runs / self._options.schedds / _WINDOW
        return {
            "bare, at once": self._bare(1),
            "bare, windows of 10,000": self._bare(max(1, round(windows))),
            "gwmond": self.gwmond(self._options.profile if not number else ""),
        }

    def gwmond(self, profile: str = "") -> Numbers:
        """Measure gwmond."""
        ledger = self._directory / "ledger"
        for path in self._directory.glob("ledger*"):
            path.unlink()
        config = self._directory / "gwmond.toml"
        hours = max(24, (self.feigned.until - self.feigned.end_of(0)) // 3600 + 2)
        config.write_text(
            f'[pool]\ncollectors = ["{self._pool.collector}"]\n[ledger]\nurl = "{ledger}"\n'
            f'[histories]\nlookback = "{hours}h"\nstartds = []\nrecords = {self._options.records}\n'
        )
        asked = {"config": str(config), "feigned": list(self.feigned), "profile": profile}
        return self._run("gwmond", schedds=self._schedds, **asked)

    def _bare(self, windows: int) -> Numbers:
        first, span = self.feigned.end_of(0), self.feigned.until - self.feigned.end_of(0) + 60
        edges = [first + span * number // windows for number in range(windows + 1)]
        return self._run("bare", schedds=self._schedds, edges=edges)

    def _run(self, what: str, **asked: Any) -> Numbers:
        say(f"measuring {what} of {self.feigned.runs}")
        return in_child("measured_history", {"what": what, **asked}, self._pool.client_env())


def _report(rounds: list[dict[str, Numbers]]) -> None:
    print(f"{'medians of ' + str(len(rounds)):34}{'records':>9}{'wall s':>9}{'CPU s':>8}")
    for what in rounds[0]:
        every = [record[what] for record in rounds]
        wall, cpu = _median(every, "wall"), _median(every, "cpu")
        rate = every[0]["records"] / wall
        print(
            f"  {what:32}{every[0]['records']:9.0f}{wall:9.1f}{cpu:8.1f}{rate:9.0f}/s"
            f"{_median(every, 'peak'):7.0f} MiB"
        )
    for what in rounds[0]:
        if what != "gwmond":
            ratio = statistics.median(
                (record["gwmond"]["records"] / record["gwmond"]["wall"])
                / (record[what]["records"] / record[what]["wall"])
                for record in rounds
            )
            print(f"  rate of gwmond / {what}: {ratio:.2f} (aim >= 0.5)")
    own = rounds[-1]["gwmond"]
    print(f"  ledger: {own['bytes'] / own['records']:.0f} bytes a record (run with its pilot)")
    _report_memory(own)


def _report_memory(run: Numbers) -> None:
    print(
        f"  {run['records']:9.0f} runs, {run['pilots']:7.0f} pilots: gwmond peak "
        f"{run['peak']:5.0f} MiB (first half {run['half']:5.0f}), "
        f"a child {run['child_peak']:4.0f} MiB"
        f"; {run['steps']:.0f} steps, CPU {run['cpu'] - run['child_cpu']:.1f} s + children "
        f"{run['child_cpu']:.1f} s; {run['open']:.0f} open, {run['problems']:.0f} problems"
    )


def _median(every: Iterable[Numbers], key: str) -> float:
    return statistics.median(record[key] for record in every)
