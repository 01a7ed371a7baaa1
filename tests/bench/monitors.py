"""Benchmark: what a round of gwmond's asks of the daemons, beside what other monitors ask.

On one real pool, in turn: seven and fifteen attributes of each job; the queries of the probes of
fifemon, of CMS's spider, of condor_adstash and of niclabs's exporter; and gwmond's polls.  For
each: what the client takes, the bytes between it and the daemons, how many commands these count,
how long their one thread was busy, how many processes they forked, and their CPU.  Then how many of
the records of an hour in which the monitor was down it gets at its next round.

All runs in a network of its own, so that the bytes of its loopback are those of the round, with
what the daemons tell each other meanwhile.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench import feigned_runs
from tests.bench.feigned_runs import Feigned
from tests.bench.harness import NO_DNS, Numbers, in_child, say
from tests.bench.poll_cycle import Bench, Scale, staged
from tests.pool.condor import CondorPool

_ALONE = "GWMOND_BENCH_ALONE"
_STATISTICS = "STATISTICS_TO_PUBLISH = DC:2 SCHEDD:2 COLLECTOR:2\n"
_KNOWN = 500
"""So many records are older than the time that a monitor was down."""
_PILOTS = 2000
"""So many pilots have the runs."""
_MONITORS = {
    "seven": "7 attributes of each job",
    "fifteen": "15 attributes of each job",
    "fifemon": "fifemon's probes",
    "cms": "CMS's spider",
    "adstash": "condor_adstash",
    "niclabs": "niclabs's exporter, a scrape",
}
_COLUMNS = {
    "wall": "wall s",
    "cpu": "CPU s",
    "memory": "MiB",
    "mb": "MB sent",
    "commands": "commands",
    "forked": "forked",
    "schedd": "schedd busy s",
    "collector": "collector busy s",
    "daemons": "daemons' CPU s",
}


def main() -> None:
    """Set up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    scale = Scale(jobs=100_000, schedds=4, slots=16_000, roomy=10)
    for name in ("jobs", "groups", "schedds", "slots", "pilots"):
        parser.add_argument(f"--{name}", type=int, default=getattr(scale, name))
    parser.add_argument("--runs", type=int, default=15_600, help="that ended in an hour")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if _ALONE not in os.environ:
        os.environ[_ALONE] = "1"
        inside = 'ip link set lo up && exec "$@"'
        again = [sys.executable, "-m", "tests.bench", "monitors", *sys.argv[1:]]
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", inside, "sh", *again])
    named = {name: getattr(options, name) for name in scale._fields if hasattr(options, name)}
    fixed: list[str] = []

    def record(pool: CondorPool) -> None:
        fixed.append(feigned_runs.template(pool, NO_DNS))

    more = _STATISTICS + feigned_runs.EPOCHS
    with staged(scale._replace(**named), 60, more, record) as bench:
        _report(Comparison(bench, fixed[0], options.runs), options.rounds)


class Comparison:
    """A pool in which jobs end, so many an hour, at the first of its schedds."""

    def __init__(self, bench: Bench, fixed: str, hourly: int) -> None:
        self._bench, self._pool, self._fixed = bench, bench.pool, fixed
        self._hourly = hourly
        self._feigned = Feigned(_PILOTS, 0, 0)
        self._epochs = bench.pool.local / "spool" / "epoch_history"

    def write(self) -> None:
        """Write the records of an hour that ended a while ago, and some that are older."""
        number = self._hourly + _KNOWN
        period = 3600 * _PILOTS // self._hourly
        self._feigned = Feigned(_PILOTS, number, int(time.time()) - 1200, period)
        feigned_runs.write_epochs(self._epochs, self._feigned, self._fixed, range(number))
        with (self._epochs.parent / "history").open("w") as out:
            out.writelines(_ended(self._feigned, n, self._fixed) for n in range(number))

    def _more(self, number: int) -> None:
        """Write some more runs that ended, for who knows all before."""
        before = self._feigned
        passed = number * before.period // before.pilots
        self._feigned = before._replace(runs=before.runs + number, until=before.until + passed)
        part = range(before.runs, before.runs + number)
        feigned_runs.write_epochs(self._epochs, self._feigned, self._fixed, part, "a")

    def play(self, monitor: str, known: int) -> Numbers:
        """Return what a monitor takes that has asked before, when so many had ended."""
        return in_child(
            "measured_monitors",
            {
                "what": "play",
                "monitor": monitor,
                "collector": self._pool.collector,
                "schedds": self._bench.schedds,
                "since": self._feigned.end_of(known),
                "last": self._feigned.run(known - 1).first,
            },
            self._pool.client_env(),
        )

    def rounds(self, number: int) -> dict[str, list[Numbers]]:
        """Measure all in turn; what ends in a minute is new to each."""
        known = _KNOWN + self._hourly - self._hourly // 60
        found: dict[str, list[Numbers]] = {name: [] for name in (*_MONITORS, "poll", "claims")}
        with self._bench.polling() as poll:
            for at in range(number):
                say(f"round {at}")
                for monitor in _MONITORS:
                    found[monitor].append(self._costs(partial(self.play, monitor, known)))
                for what in ("poll", "claims"):
                    self._more(self._hourly // 60)
                    found[what].append(self._costs(partial(poll, what)))
        return found

    def lost(self) -> dict[str, int]:
        """Return of how many records of an hour each does not hear at its next round."""
        told = {m: self.play(m, _KNOWN)["records"] for m in ("cms", "adstash", "niclabs")}
        with tempfile.TemporaryDirectory() as directory:
            config = Path(directory) / "gwmond.toml"
            config.write_text(
                f'[pool]\ncollectors = ["{self._pool.collector}"]\n'
                f'[ledger]\nurl = "{directory}/ledger"\n'
                '[histories]\nlookback = "3h"\nstartds = []\n'
            )
            name = self._bench.schedds[0]
            columns = ["Name", "MyAddress", "CondorVersion"]
            ad = self._pool.query("Schedd", f'Name == "{name}"', columns)[0]
            asked = {"config": str(config), "schedds": [[ad[c] for c in columns]], "profile": ""}
            env = self._pool.client_env()
            ours = in_child("measured_history", {"what": "gwmond", **asked}, env)
        told["gwmond"] = ours["records"] - _KNOWN
        return {name: self._hourly - round(heard) for name, heard in told.items()}

    def _costs(self, run: Callable[[], Numbers]) -> Numbers:
        """Measure what a round costs, without what it takes to read that."""
        times = [self._read(), self._read()]
        told = run()
        times.append(self._read())
        reading, passed = ({k: b[k] - a[k] for k in b} for a, b in itertools.pairwise(times))
        for key in ("commands", "forked", "mb", "daemons"):
            passed[key] -= reading[key]
        passed["collector"] += passed["at"]
        busy = [passed["at"] + passed[name] for name in self._bench.schedds]
        passed["schedd"] = max(busy)
        return {**told, **passed}

    def _read(self) -> Numbers:
        """Read what the daemons count; of waiting the negative, so that a thread's rest is busy."""
        found: Numbers = {"at": time.monotonic(), "commands": 0.0, "forked": 0.0}
        for name in self._bench.schedds:
            told = self._told("-direct", name, "-schedd", "-statistics", "DC:2")
            found[name] = -told["DCSelectWaittime"]
            for command in ("QUERY_JOB_ADS", "QUERY_JOB_ADS_WITH_AUTH", "QUERY_SCHEDD_HISTORY"):
                number = told.get(f"DCCommand_{command}", 0.0)
                found["commands"] += number
                found["forked"] += number
        told = self._told("-collector")
        found["collector"] = -told["DCSelectWaittime"]
        for key, number in told.items():
            if key.startswith(("InProcQueriesFrom", "ForkQueriesFrom")):
                found["commands"] += number
                found["forked"] += number * key.startswith("Fork")
        lo = Path("/proc/net/dev").read_text().partition("lo:")[2].split()
        return {**found, "daemons": sum(self._cpu()), "mb": int(lo[0]) / 1e6}

    def _told(self, *kind: str) -> Numbers:
        return dict(_numbers(self._pool.tool("condor_status", "-long", *kind).stdout))

    def _cpu(self) -> Iterator[float]:
        """Yield the CPU seconds of schedds and collectors, with those of their ended children."""
        for process in self._pool.processes():
            if process.argv[0].endswith(("condor_schedd", "condor_collector")):
                fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                yield sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        name, _, value = line.partition(" = ")
        try:
            yield name, float(value)
        except ValueError:
            continue


def _ended(feigned: Feigned, number: int, fixed: str) -> str:
    """Return the record that a schedd keeps of a job that left its queue."""
    text = feigned_runs.record(feigned, number, fixed)
    end = feigned.end_of(number)
    kept = [x for x in text.splitlines() if not x.startswith(("EnteredCurrentStatus ", "***"))]
    cluster = feigned.run(number).first
    more = (f"EnteredCurrentStatus = {end}", f"CompletionDate = {end}", "JobStatus = 4")
    last = f'*** Offset = 0 ClusterId = {cluster} ProcId = 0 Owner = "user" CompletionDate = {end}'
    return "\n".join([*kept, *more, 'CMS_Type = "production"', last, ""])


def _report(comparison: Comparison, number: int) -> None:
    comparison.write()
    rounds = comparison.rounds(number)
    comparison.write()
    lost = comparison.lost()
    print("| | " + " | ".join(_COLUMNS.values()) + " | records lost |")
    print("|---|" + "---|" * (len(_COLUMNS) + 1))
    titles = {**_MONITORS, "poll": "gwmond, a poll", "claims": "gwmond, a poll with all claims"}
    for name, title in titles.items():
        cells = [statistics.median(told[key] for told in rounds[name]) for key in _COLUMNS]
        missing = lost.get("gwmond" if name in ("poll", "claims") else name, "all")
        print(f"| {title} | " + " | ".join(f"{cell:.2f}" for cell in cells) + f" | {missing} |")
