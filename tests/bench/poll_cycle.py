"""Benchmark: gwmond's whole poll against the queries that it and other monitors make.

On a real schedd with 200,000 idle jobs in 40 groups and a real collector with 20,000 slots at 60
sites, in one run, side by side: (a) the bare GroupBy query with the same attributes, (b) a query of
15 attributes of each job, (c) a whole poll cycle of gwmond, from the queries to the snapshot and
its exposition; then the latency of scrapes while a daemon polls.

Run it with ``make bench``.  Machines differ: the ratios count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from tests.bench.harness import chunks, say
from tests.pool import feign
from tests.pool.condor import CondorPool
from tests.pool.ports import free_port

SITES = 60
GROUPS = 40
JOB_S = 8 * 3600
"""Each slot's job began within this, evenly: a poll asks for claims of the last ten minutes."""

_CHILD = [sys.executable, "-m", "tests.bench.measured"]


def main() -> None:
    """Set up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--slots", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scrapes", type=int, default=2000)
    options = parser.parse_args()
    with CondorPool() as pool, tempfile.TemporaryDirectory() as directory:
        crowd(pool, options.jobs, options.slots)
        config = _config(Path(directory), pool)
        rounds = [_round(pool, config) for _ in range(options.rounds)]
        _report(rounds)
        _scrapes(config, options.scrapes)


def crowd(pool: CondorPool, jobs: int, slots: int) -> str:
    """Feign a pool's slots and entries, and submit jobs; return the number of one of the last."""
    for number in range(GROUPS):
        say(f"submitting jobs, group {number + 1} of {GROUPS}")
        site = number % SITES
        cluster = pool.submit(
            pool.schedds[0],
            jobs // GROUPS,
            requirements=f'TARGET.GLIDEIN_Site =!= "Site{site:02}"',
            request_memory=1000 + 100 * number,
            attrs={"DESIRED_Sites": f"Site{site:02}", "WantLevel": number},
        )
    say("advertising slots")  # last, as their ads live for 15 minutes
    for chunk in chunks(_slots(slots), 2000):
        pool.advertise(chunk, "UPDATE_STARTD_AD")
    pool.advertise(_requests(), "UPDATE_AD_GENERIC")
    say("measuring")
    return f"{cluster}.0"


def _slots(total: int) -> list[feign.Ad]:
    """Make pilots of 8 cores with 4 running jobs: a partitionable and 4 dynamic slots each."""
    now = time.time()
    ads: list[feign.Ad] = []
    for number in range(total // 5):
        site = number % SITES
        name = f"glidein_{number}@node{number}.site{site:02}"
        origin = feign.glidein(
            f"Entry{site:02}", f"Site{site:02}", to_retire=now + 80000, to_die=now + 86400
        )
        started = now - JOB_S
        jobs = [
            feign.dynamic_slot(
                name,
                k,
                glidein=origin,
                cpus=2,
                memory=4000,
                job=f"{number}.{k}",
                started=started,
                since=started + JOB_S * (4 * number + k - 1) / (4 * (total // 5)),
            )
            for k in range(1, 5)
        ]
        ads.append(
            feign.partitionable_slot(
                name, cpus=8, memory=16000, children=jobs, glidein=origin, started=started
            )
        )
        ads += jobs
    return ads


def _requests() -> list[feign.Ad]:
    return [
        feign.glideresource(f"Entry{s:02}", f"Site{s:02}", client=f"frontend.{group}")
        for s in range(SITES)
        for group in ("main", "extra")
    ]


def _config(directory: Path, pool: CondorPool) -> Path:
    path = directory / "gwmond.toml"
    pledges = "".join(f'[[site.pledge]]\nsite="Site{s:02}"\ncores=2000\n' for s in range(SITES))
    path.write_text(
        f'[pool]\ncollectors = ["{pool.collector}"]\n'
        f'[http]\nlisten = "127.0.0.1:{free_port()}"\n'
        f'[ledger]\nurl = "{directory}/ledger.sqlite"\n'
        f'[poll]\ninterval = "12s"\ndeadline = "11s"\n[demand]\nattributes = []\n{pledges}'
    )
    return path


def _round(pool: CondorPool, config: Path) -> dict[str, dict[str, float]]:
    """Measure a, b and c once, each in a fresh process."""
    env = pool.client_env()
    results: dict[str, dict[str, float]] = {}
    for what in ("groupby", "per_job", "poll"):
        arguments = [what, pool.collector, pool.schedds[0], str(config)]
        done = subprocess.run(
            [*_CHILD, *arguments],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=True,
        )
        results[what] = json.loads(done.stdout.splitlines()[-1])
    return results


def _report(rounds: list[dict[str, dict[str, float]]]) -> None:
    names = {
        "groupby": "(a) bare GroupBy",
        "per_job": "(b) 15 attributes a job",
        "poll": "(c) gwmond poll",
    }
    print(f"{'':28}{'wall s':>10}{'CPU s':>10}{'peak MiB':>10}   (medians of {len(rounds)})")
    median = {
        what: {
            key: statistics.median(r[what][key] for r in rounds) for key in ("wall", "cpu", "peak")
        }
        for what in names
    }
    for what, title in names.items():
        m = median[what]
        print(f"{title:28}{m['wall']:10.2f}{m['cpu']:10.2f}{m['peak']:10.0f}")
    for other, aim in (("groupby", "aim <= 1.3"), ("per_job", "aim < 0.33")):
        ratio = statistics.median(r["poll"]["wall"] / r[other]["wall"] for r in rounds)
        print(f"wall of (c) / {names[other]}: {ratio:.2f} ({aim})")
    memory = statistics.median(r["poll"]["peak"] / r["per_job"]["peak"] for r in rounds)
    print(f"peak memory of (c) / (b): {memory:.2f} (aim <= 0.1)")
    last = rounds[-1]["poll"]
    print("profile of the last poll, seconds:")
    for key in sorted(k for k in last if k.startswith("t_")):
        print(f"  {key[2:]:40}{last[key]:8.3f}")


def _scrapes(config: Path, number: int) -> None:
    """Scrape a daemon that polls all the while."""
    daemon = subprocess.Popen(
        [sys.executable, "-m", "gwmond", "run", "--config", str(config), "--log-level", "error"]
    )
    url = f"http://{_listen(config)}"
    try:
        _until_ready(url)
        took = []
        for _ in range(number):
            began = time.perf_counter()
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                size = len(answer.read())
            took.append(time.perf_counter() - began)
            time.sleep(0.02)
        took.sort()
        p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
        print(
            f"scrapes while polling: {number} of {size / 1024:.0f} KiB, p50 {p50 * 1e3:.1f} ms, "
            f"p99 {p99 * 1e3:.1f} ms (aim < 25 ms), max {took[-1] * 1e3:.1f} ms"
        )
    finally:
        daemon.terminate()
        daemon.wait(15)


def _listen(config: Path) -> str:
    line = next(x for x in config.read_text().splitlines() if x.startswith("listen"))
    return line.split('"')[1]


def _until_ready(url: str) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{url}/-/ready"):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"{url} is not ready")
