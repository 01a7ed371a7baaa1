"""Benchmark: an import of many pilots' outputs into an empty ledger, beside their bare reading.

In one run, side by side, of all outputs and of text alone (no compressed log in stderr): (a) the
floor: read every byte, decode base64 and unpack gzip, nothing else; (b) read and parse; (c)
``gwmond import`` whole, with one and with two processes that read beside the one that accounts.
Then an import is killed (SIGKILL) in its middle and repeated: the ledger must be the same.

Each starts with the outputs out of the page cache (``--warm``: in it), which needs root.  The
default number is that of the 2022 report; smaller: --pilots 20000.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.stored_pilots import PilotSeries
from tests.bench import pilot_files
from tests.bench.harness import Numbers, in_child, numbers, say
from tests.bench.pilot_files import Written

_DROP = Path("/proc/sys/vm/drop_caches")


def main() -> None:
    """Write, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=213_912)
    parser.add_argument("--text", type=int, default=20_000, help="pilots in the tree of text")
    parser.add_argument("--processes", type=numbers, default=[1, 2], help="that read")
    parser.add_argument("--warm", action="store_true", help="leave the page cache as it is")
    parser.add_argument("--no-kill", action="store_true", help="do not kill and repeat an import")
    parser.add_argument("--directory", help="where to write; it must have room (12 kB a pilot)")
    parser.add_argument("--profile", default="", help="write cProfile's output of imports to PATH")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        bench = Bench(Path(directory), options)
        began = time.perf_counter()
        text = min(options.text, options.pilots)
        written = pilot_files.write(bench.root, options.pilots, text)
        say(f"written in {time.perf_counter() - began:.0f} s")
        for tree, of in written.items():
            bench.report(tree, of)
        if not options.no_kill:
            bench.kill(options.processes[-1])


class Stored(NamedTuple):
    """What a ledger has: pilots and runs with their times, and its totals in micros."""

    pilots: list[tuple[Any, ...]]
    runs: list[tuple[Any, ...]]
    totals: dict[PilotSeries, int]

    def differs(self, other: Stored) -> float:
        """Return the share of all time that has another category, site, entry or evidence."""
        names = {*self.totals, *other.totals}
        changed = sum(abs(self.totals.get(name, 0) - other.totals.get(name, 0)) for name in names)
        return changed / sum(self.totals.values())


class Bench:
    """What is measured, and how."""

    def __init__(self, directory: Path, options: argparse.Namespace) -> None:
        self.root = directory / "factory"
        self._directory, self._options = directory, options

    def report(self, tree: str, written: Written) -> None:
        """Measure one tree and print it."""
        path = str(self.root / tree)
        found = {"floor": self._run("floor", tree=path), "parse": self._run("parse", tree=path)}
        for processes in self._options.processes:
            name = f"import, {processes} reading"
            found[name] = self._import(tree, processes)
        _print(tree, written, found)

    def _import(self, tree: str, processes: int) -> Numbers:
        profile = self._options.profile and f"{self._options.profile}.{tree}.{processes}"
        return self._run(
            "whole",
            tree=str(self.root / tree),
            ledger=str(self._ledger(tree, processes)),
            processes=processes,
            profile=profile,
        )

    def _ledger(self, tree: str, processes: int | str) -> Path:
        return self._directory / f"{tree}.{processes}.sqlite"

    def _run(self, what: str, **asked: Any) -> Numbers:
        say(f"measuring {what} of {Path(asked['tree']).name}")
        if not self._options.warm:
            os.sync()
            _DROP.write_text("3")
        return in_child("measured_import", {"what": what, **asked})

    def kill(self, processes: int) -> None:
        """Kill an import in its middle, repeat it, and compare with one that was not killed."""
        say("killing an import, and repeating it")
        ledger = self._ledger(pilot_files.ALL, "killed")
        command = [
            *(sys.executable, "-m", "gwmond", "import", "--ledger", f"sqlite:///{ledger}"),
            *("--processes", str(processes), str(self.root / pilot_files.ALL)),
        ]
        whole = _stored(self._ledger(pilot_files.ALL, processes))
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and _pilots(ledger) < len(whole.pilots) / 2:
                time.sleep(0.2)
            process.kill()
        kept = _pilots(ledger)
        began = time.perf_counter()
        subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
        wall = time.perf_counter() - began
        found = _stored(ledger)
        same = found == whole
        print(
            f"killed with {kept} of {len(whole.pilots)} pilots stored, repeated in {wall:.0f} s: "
            f"{len(found.pilots)} pilots, {len(found.runs)} runs, "
            f"{'the same' if same else 'OTHERS'} as without"
        )
        print(f"  time in other totals: {100 * found.differs(whole):.3f} %")
        if not same:
            raise SystemExit(1)


def _stored(ledger: Path) -> Stored:
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        totals = reader.load().totals.pilots
        net = {series: total.net for series, total in totals.items() if total.net}
    pilots = "SELECT name, factory_job, start_us, end_us FROM pilots ORDER BY 1, 2, 3"
    runs = "SELECT job, number, start_us, end_us FROM runs ORDER BY 1, 2, 3, 4"
    return Stored(_rows(ledger, pilots), _rows(ledger, runs), net)


def _pilots(ledger: Path) -> int:
    """Return how many pilots are stored by now; 0 before there is a table of them."""
    try:
        return int(_rows(ledger, "SELECT count(*) FROM pilots")[0][0])
    except sqlite3.OperationalError:
        return 0


def _rows(ledger: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def _print(tree: str, written: Written, found: dict[str, Numbers]) -> None:
    floor = found["floor"]
    print(
        f"{tree}: {written.pilots} pilots, {written.files} files, {written.size / 1e6:.0f} MB, "
        f"unpacked {floor['unpacked'] / 1e6:.0f} MB"
    )
    head = ("", "wall s", "files/s", "MB/s", "CPU s", "x floor", "parent", "MiB", "child MiB")
    print("  {:20}{:>9}{:>9}{:>8}{:>8}{:>9}{:>8}{:>7}{:>11}".format(*head))
    for what, record in found.items():
        print(
            f"  {what:20}{record['wall']:9.1f}{written.files / record['wall']:9.0f}"
            f"{written.size / record['wall'] / 1e6:8.1f}{record['cpu']:8.1f}"
            f"{record['wall'] / floor['wall']:9.1f}{record.get('parent_cpu', 0):8.1f}"
            f"{record['peak']:7.0f}{record.get('child_peak', 0):11.0f}"
        )
    for what, record in found.items():
        if what != "floor":
            each = 1e6 * record["cpu"] / written.pilots
            print(
                f"  {what} / floor: {record['wall'] / floor['wall']:.1f} in time, "
                f"{record['cpu'] / floor['cpu']:.1f} in CPU, {each:.0f} us of CPU a pilot "
                "(aim <= 2)"
            )
        if "bytes" in record:
            print(f"    {record['outputs']:.0f} outputs, ledger {record['bytes'] / 1e6:.0f} MB")
