"""Benchmark: what accounting pilots' time costs a daemon in the steady state, in CPU time.

A real collector has the slots of 60,000 pilots and of the jobs on them, real schedds epoch
histories to which 2,000 records a minute come; on each pilot two runs end an hour.  Minutes are
played one after the other without waiting.  In each: all that a poll does because of pilots' time:

- the child that asks the collector for claims (all every ten minutes, else those of ten minutes);
- the children that ask schedds for their histories;
- the accountant's step: sightings, claims, records, settling, the commit to a ledger on disk.

The times of sightings, claims and records are played; so what the child says of the collector's
slots is thrown away (its cost is not), and as many claims are made up that fit the minute.  Not
included: asking for slots and building pilots of them, which a poll did before.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from tests.bench import feigned_runs
from tests.bench.feigned_runs import Feigned
from tests.bench.harness import NO_DNS, chunks, daemons, epoch_files, in_child, say, schedds
from tests.ledger.server import Server
from tests.pool import feign
from tests.pool.adtext import Ad
from tests.pool.condor import CondorPool

_CONFIG = (
    NO_DNS + feigned_runs.EPOCHS + "CLASSAD_LIFETIME = 86400\nCOLLECTOR_UPDATE_INTERVAL = 60\n"
)
_AT_ONCE = 5000


def main() -> None:
    """Set up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=60_000)
    parser.add_argument(
        "--runs", type=int, default=0, help="that end a minute (two an hour a pilot)"
    )
    parser.add_argument(
        "--schedds", type=int, default=1, help="one has some 2,000 records a minute at most"
    )
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--warm", type=int, default=3, help="minutes before, not counted")
    parser.add_argument("--profile", default="", help="write cProfile's output to PATH")
    parser.add_argument("--postgresql", action="store_true", help="the ledger (else SQLite)")
    options = parser.parse_args()
    with (
        CondorPool(config=_CONFIG + schedds(options.schedds)) as pool,
        tempfile.TemporaryDirectory() as directory,
        Server() if options.postgresql else nullcontext() as server,
    ):
        template = feigned_runs.template(pool, NO_DNS)
        pool.off("NEGOTIATOR")  # it would look at all slots, on the same cores
        period = options.pilots * 60 // options.runs if options.runs else feigned_runs.PERIOD_S
        runs = options.pilots * (2 * 3600 // period)
        feigned = Feigned(options.pilots, runs, int(time.time()), period)
        say("advertising slots")
        for some in chunks(_slots(feigned), _AT_ONCE):
            pool.advertise(some, "UPDATE_STARTD_AD")
        config = Path(directory) / "gwmond.toml"
        config.write_text(
            f'[pool]\ncollectors = ["{pool.collector}"]\n'
            f'[ledger]\nurl = "{server.schema() if server else f"{directory}/ledger"}"\n'
            "[histories]\nstartds = []\n"
        )
        asked = {
            "config": str(config),
            "schedds": daemons(pool, options.schedds),
            "epochs": [*map(str, epoch_files(pool, options.schedds))],
            "template": template,
            "feigned": list(feigned),
            "warm": options.warm,
            "minutes": options.minutes,
            "profile": options.profile,
        }
        spent = in_child("measured_steady", asked, pool.client_env())
        if server:
            whole = options.minutes / (options.minutes + options.warm)
            spent["PostgreSQL, estimated, child"] = _cpu_s(server.pid) * whole
        _report(spent, options.pilots, options.minutes)


def _slots(feigned: Feigned) -> Iterator[Ad]:
    """Make the slots of all pilots and of what runs on them now."""
    now = feigned.until
    for place in range(feigned.pilots):
        began, site = feigned.began(place, now), f"{place % feigned_runs.SITES:02}"
        name = feigned_runs.startd_of(place, began)
        origin = feign.glidein(f"Entry{site}", f"Site{site}", to_die=began + feigned_runs.LIFE_S)
        yield feign.partitionable_slot(name, glidein=origin, started=began)
    for run in feigned.running(now):
        yield feign.dynamic_slot(
            run.startd,
            feigned_runs.slot_of(run, feigned),
            job=f"{run.first}.0",
            since=run.start,
            started=run.began,
        )


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _report(sums: dict[str, float], pilots: int, minutes: int) -> None:
    print(f"{pilots} pilots, {minutes} minutes: CPU seconds a minute, and as a share of a core")
    spent = {name: cpu for name, cpu in sums.items() if name.endswith(("parent", "child"))}
    for name, cpu in sorted(spent.items()):
        print(f"  {name:28}{cpu / minutes:8.2f} s {cpu / minutes / 60:8.1%}")
    total = sum(spent.values()) / minutes / 60
    print(f"  {'all':28}{total * 60:8.2f} s {total:8.1%} (aim < 5 %; with 13,000 runs <= 30 %)")
    for name in sorted(name for name in sums if name.endswith("records")):
        print(f"  {name:28}{sums[name] / minutes:8.0f} a minute")
    print(f"  resident {sums['resident']:.0f} MiB, with the benchmark's own pilots and claims")
