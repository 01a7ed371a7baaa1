"""Benchmark: gwmond's whole poll against the queries that it and other monitors make.

On real schedds with 200,000 idle jobs in 40 groups and a real collector with 16,000 dynamic slots
of 4,000 pilots at 60 entries, in one run, side by side: (a) the bare GroupBy queries with the same
attributes, as many at once as gwmond makes, (b) queries of 15 attributes of each job, (c) a whole
poll cycle of gwmond, from the queries to the snapshot and its exposition; then the latency of
scrapes and pages while a daemon polls.  Jobs of a group may run at all entries but one.

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
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import harness
from tests.bench.harness import Numbers, Together, chunks, say
from tests.pool import feign
from tests.pool.adtext import Ad
from tests.pool.condor import CondorPool
from tests.pool.ports import free_port

JOB_S = 8 * 3600
"""Each slot's job began within this, evenly: a poll asks for claims of the last ten minutes."""
_CLIENTS = ("frontend.main", "frontend.extra")
_LIVES: dict[str, Any] = {"ClassAdLifetime": 86400}
# Else schedds look through their queues every five seconds, as nobody's do.
_CONFIG = "SCHEDD_INTERVAL = 300\nUPDATE_INTERVAL = 60\n"
_CHILD = [sys.executable, "-m", "tests.bench.measured"]
_PRIME = 7919
"""Pilots with room are at all entries: their number does not depend on that of entries."""
_WARM = 40
"""So many polls at most until all jobs are matched."""
_ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"
_ASKED = {
    "as Prometheus asks": {"Accept": _ACCEPT, "Accept-Encoding": "gzip"},
    "unpacked": {"Accept": _ACCEPT, "Accept-Encoding": "identity"},
}
"""Headers of scrapes."""
_PAGES = (
    *("/", "/pilots", "/time", "/failures", "/runs", "/report", "/forecast", "/past", "/problems"),
    *("/site?site=Site001", "/explain?all=1", "/advise"),
    *("/api/v1/sites", "/api/v1/pilots", "/api/v1/totals"),
)
"""Whose making is timed, once, after the scrapes."""


class Scale(NamedTuple):
    """How large a pool is; ``slots``: dynamic ones, each with a job.

    One of ``roomy`` pilots has room for another job; 0: none has.
    """

    jobs: int = 200_000
    groups: int = 40
    schedds: int = 1
    slots: int = 16_000
    pilots: int = 4_000
    entries: int = 60
    roomy: int = 0


def main() -> None:
    """Set up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in Scale(roomy=10)._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--interval", type=int, default=12, help="of polls, seconds")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scrapes", type=int, default=2000)
    parser.add_argument("--profile", default="", help="write cProfile's output of a poll to PATH")
    options = parser.parse_args()
    scale = Scale(*(getattr(options, name) for name in Scale._fields))
    with staged(scale, options.interval) as bench:
        rounds = bench.rounds(options.rounds, options.profile)
        _report(rounds)
        _scrapes(_without_pause(bench.config, options.interval, rounds), options.scrapes)


class Bench(NamedTuple):
    """A pool that is measured, and the configuration of a gwmond that watches it."""

    pool: CondorPool
    config: Path
    schedds: list[str]

    @contextmanager
    def polling(self, profile: str = "") -> Iterator[Callable[[str], Numbers]]:
        """Yield what has a gwmond poll, once it has matched all jobs and read all that ended."""
        command = [*_CHILD, "poll", str(self.config), *([profile] if profile else [])]
        env = {**os.environ, **self.pool.client_env()}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        ) as gwmond:

            def poll(line: str) -> Numbers:
                assert gwmond.stdin is not None
                assert gwmond.stdout is not None
                with Together(gwmond.pid) as together:
                    gwmond.stdin.write(f"{line}\n")
                    gwmond.stdin.flush()
                    told: Numbers = json.loads(gwmond.stdout.readline())
                return {**told, "memory": together.peak_mib}

            for warm in range(_WARM):
                told = poll("poll")
                say(f"poll {warm}: {_line(told)}, {told['failed']:.0f} queries failed")
                if warm > 1 and not told["failed"] and not told["behind"]:
                    break
            yield poll

    def rounds(self, number: int, profile: str = "") -> list[dict[str, Numbers]]:
        """Measure all in turn."""
        with self.polling(profile) as poll:
            rounds = []
            for at in range(number):
                rounds.append({what: self._bare(what) for what in ("groupby", "per_job")})
                rounds[-1]["poll"] = poll("poll")
                say(f"round {at}: " + ", ".join(f"{w} {_line(n)}" for w, n in rounds[-1].items()))
            rounds[-1]["claims"] = poll("claims")
            if profile:
                poll("profile")
        return rounds

    def _bare(self, what: str) -> Numbers:
        """Measure queries, in a fresh process."""
        command = [*_CHILD, what, str(self.config), *self.schedds]
        env = {**os.environ, **self.pool.client_env()}
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as asking,
            Together(asking.pid) as together,
        ):
            told: Numbers = json.loads(asking.communicate()[0].splitlines()[-1])
        return {**told, "memory": together.peak_mib}


@contextmanager
def staged(
    scale: Scale, interval: int, config: str = "", first: Callable[[CondorPool], object] = bool
) -> Iterator[Bench]:
    """Yield a pool of that scale; ``first``: what is done before it has any slots and jobs."""
    config += harness.NO_DNS + _CONFIG + harness.schedds(scale.schedds - 1)
    config += "".join(f"BENCH{n}.JOB_EPOCH_HISTORY =\n" for n in range(scale.schedds - 1))
    with CondorPool(config=config) as pool, tempfile.TemporaryDirectory() as directory:
        first(pool)
        pool.off("NEGOTIATOR")  # it would look for jobs' slots, on the same cores
        pool.tool("condor_off", "-fast", "-subsystem", "SCHEDD2")  # it is none of the scale's
        pool.wait_for("its end", lambda: pool.schedds[1] not in _known(pool))
        began = time.monotonic()
        crowd(pool, scale)
        say(f"{scale}: made in {time.monotonic() - began:.0f} s")
        yield Bench(pool, _config(Path(directory), pool, scale, interval), _schedds(pool, scale))


def _schedds(pool: CondorPool, scale: Scale) -> list[str]:
    return [pool.schedds[0], *harness.schedd_names(scale.schedds - 1)]


def _known(pool: CondorPool) -> set[str]:
    """Return the names of the schedds that the collector knows."""
    return {ad["Name"] for ad in pool.query("Schedd", None, ["Name"])}


def crowd(pool: CondorPool, scale: Scale) -> str:
    """Feign a pool's slots and entries, and submit jobs; return the number of one of the last."""
    schedds = _schedds(pool, scale)

    pool.wait_for("the schedds", lambda: {*schedds} <= _known(pool))

    def submit(number: int) -> int:
        if number % 100 == 0:
            say(f"submitting jobs, group {number + 1} of {scale.groups}")
        site = number % scale.entries
        return pool.submit(
            schedds[number % len(schedds)],
            scale.jobs // scale.groups,
            requirements=f'TARGET.GLIDEIN_Site =!= "Site{site:03}"',
            request_memory=1000 + 100 * (number % 40) + number // scale.entries,
            attrs={
                "DESIRED_Sites": f"Site{site:03}",
                "WantLevel": number,
                "CMS_Type": "production",
            },
        )

    with ThreadPoolExecutor(2) as threads:
        cluster = list(threads.map(submit, range(scale.groups)))[-1]
    say("advertising slots")
    for chunk in chunks(_slots(scale), 2000):
        pool.advertise(chunk, "UPDATE_STARTD_AD")
    pool.advertise(_requests(scale), "UPDATE_AD_GENERIC")
    return f"{cluster}.0"


def _slots(scale: Scale) -> Iterator[Ad]:
    """Make pilots that are full of jobs of two cores: a partitionable slot and dynamic ones."""
    now, slots = time.time(), 0
    for number in range(scale.pilots):
        entry = number % scale.entries
        name = f"glidein_{number}@node{number}.site{entry:03}"
        origin = feign.glidein(
            f"Entry{entry:03}",
            f"Site{entry:03}",
            client=_CLIENTS[number // scale.entries % len(_CLIENTS)],
            to_retire=now + 80000,
            to_die=now + 86400,
        )
        started = now - JOB_S - number % 3600
        most = scale.slots * (number + 1) // scale.pilots - slots
        jobs = [
            feign.dynamic_slot(
                name,
                k,
                glidein=origin,
                cpus=2,
                memory=4000,
                job=f"{number}.{k}",
                started=started,
                since=now - JOB_S * (1 - (slots + k - 1) / scale.slots),
                **_LIVES,
            )
            for k in range(1, most + 1)
        ]
        slots += most
        drawn = number * _PRIME % scale.pilots
        places = most + (scale.roomy > 0 and drawn < scale.pilots // scale.roomy)
        yield feign.partitionable_slot(
            name,
            cpus=2 * places,
            memory=4000 * places,
            children=jobs,
            glidein=origin,
            started=started,
            **_LIVES,
        )
        yield from jobs


def _requests(scale: Scale) -> list[Ad]:
    return [
        feign.glideresource(f"Entry{n:03}", f"Site{n:03}", client=client, **_LIVES)
        for n in range(scale.entries)
        for client in _CLIENTS
    ]


def _config(directory: Path, pool: CondorPool, scale: Scale, interval: int) -> Path:
    path = directory / "gwmond.toml"
    sites = range(scale.entries)
    pledges = "".join(f'[[site.pledge]]\nsite="Site{s:03}"\ncores=2000\n' for s in sites)
    path.write_text(
        f'[pool]\ncollectors = ["{pool.collector}"]\n'
        f'[http]\nlisten = "127.0.0.1:{free_port()}"\n'
        f'[ledger]\nurl = "{directory}/ledger.sqlite"\n'
        f'[poll]\ninterval = "{interval}s"\ndeadline = "{interval - 1}s"\n'
        f"[demand]\nattributes = []\n{pledges}"
    )
    return path


def _line(told: Numbers) -> str:
    return f"{told['wall']:.2f} s, {told['cpu']:.2f} s of CPU, {told['memory']:.0f} MiB"


def median(rounds: list[dict[str, Numbers]], what: str, key: str) -> float:
    """Return the median of all rounds."""
    return statistics.median(numbers[what][key] for numbers in rounds)


def _report(rounds: list[dict[str, Numbers]]) -> None:
    names = {
        "groupby": "(a) bare GroupBy",
        "per_job": "(b) 15 attributes a job",
        "poll": "(c) gwmond poll",
    }
    print(f"{'':28}{'wall s':>10}{'CPU s':>10}{'peak MiB':>10}   (medians of {len(rounds)})")
    for what, title in names.items():
        wall, cpu, memory = (median(rounds, what, key) for key in ("wall", "cpu", "memory"))
        print(f"{title:28}{wall:10.2f}{cpu:10.2f}{memory:10.0f}")
    print(f"{'(d) (c), with all claims':28}{_line(rounds[-1]['claims'])}")
    for other, aim in (("groupby", "aim <= 1.3"), ("per_job", "aim < 0.33")):
        ratio = statistics.median(r["poll"]["wall"] / r[other]["wall"] for r in rounds)
        print(f"wall of (c) / {names[other]}: {ratio:.2f} ({aim})")
    memory = statistics.median(r["poll"]["memory"] / r["per_job"]["memory"] for r in rounds)
    print(f"peak memory of (c) / (b): {memory:.2f} (aim <= 0.1)")
    last = rounds[-1]["poll"]
    print(f"gwmond's own process: {last['own']:.2f} s of CPU; the last poll, seconds:")
    for key in sorted(key for key in last if key.startswith(("query", "stage"))):
        print(f"  {key:40}{last[key]:8.3f}")


def _without_pause(config: Path, interval: int, rounds: list[dict[str, Numbers]]) -> Path:
    """Return a configuration with which one poll follows the other: so all scrapes meet one."""
    short = min(interval, max(10, round(median(rounds, "poll", "wall"))))
    text = config.read_text().replace(f'"{interval}s"', f'"{short}s"')
    polling = config.with_name("polling.toml")
    polling.write_text(text.replace(f'"{interval - 1}s"', f'"{short - 1}s"'))
    return polling


def _scrapes(config: Path, number: int) -> None:
    """Scrape a daemon that polls all the while, in turn as Prometheus does and unpacked."""
    daemon = subprocess.Popen(
        [sys.executable, "-m", "gwmond", "run", "--config", str(config), "--log-level", "error"],
        env={**os.environ, "INVOCATION_ID": "bench"},  # as a service
    )
    url = f"http://{_listen(config)}"
    took: dict[str, list[float]] = {name: [] for name in _ASKED}
    sizes: dict[str, int] = {}
    try:
        _until_ready(url)
        with Together(daemon.pid) as together:
            for _ in range(number):
                for name, headers in _ASKED.items():
                    asked = urllib.request.Request(f"{url}/metrics", headers=headers)
                    began = time.perf_counter()
                    with urllib.request.urlopen(asked) as answer:
                        sizes[name] = len(answer.read())
                    took[name].append(time.perf_counter() - began)
                    time.sleep(0.02)
        pages = {path: _page(url + path) for path in _PAGES}
    finally:
        daemon.terminate()
        daemon.wait(15)
    for name, times in took.items():
        times.sort()
        p50, p99 = times[number // 2] * 1e3, times[number * 99 // 100] * 1e3
        print(
            f"scrapes while polling, {name}: {number} of {sizes[name] / 1024:.0f} KiB, "
            f"p50 {p50:.1f} ms, p99 {p99:.1f} ms (aim < 25 ms), max {times[-1] * 1e3:.1f} ms"
        )
    print(f"all processes {together.peak_mib:.0f} MiB at most")
    for path, said in pages.items():
        print(f"page {path}: {said}")


def _page(url: str) -> str:
    """Ask for a page twice; return its size, and how long it took first and once it was made."""
    took = []
    for _ in range(2):
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(url) as answer:
                size = len(answer.read())
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.reason}"
        took.append(time.perf_counter() - began)
    return f"{size / 1024:.0f} KiB, {took[0]:.2f} s, again {took[1]:.2f} s"


def _listen(config: Path) -> str:
    line = next(x for x in config.read_text().splitlines() if x.startswith("listen"))
    return line.split('"')[1]


def _until_ready(url: str) -> None:
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{url}/-/ready"):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"{url} is not ready")
