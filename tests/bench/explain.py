"""gwmond explain beside condor_q -better-analyze: what they say of forty jobs, and how fast.

On one real pool forty jobs wait, each for another reason: a table says which of the two names what
keeps each.  On another, with 200,000 idle jobs and 20,000 slots, both explain the same job in
turn.  In drawn pools what gwmond advises is done, and the jobs are watched
(tests/explain/advice.py).
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache

from gwmond.commands.explain import asked
from gwmond.config.settings import Config
from gwmond.explain.document import document
from gwmond.model.demand.question import Question
from tests.bench.harness import say
from tests.bench.poll_cycle import Scale, crowd
from tests.explain.advice import failures, table, trials
from tests.explain.advice_draw import draw, layout
from tests.explain.advice_pool import Trial, stage
from tests.explain.forty import KINDS, forty
from tests.pool.condor import CondorPool

_SUMMARY = re.compile(r"(No machines matched|\d+ are able to run your job$)", re.MULTILINE)
_SHOWN = 90
_JOBS_OF_A_POOL = 20


def main() -> None:
    """Print the table, then the times."""
    parser = argparse.ArgumentParser(prog="bench explain", description=__doc__)
    parser.add_argument("--htcondor", default="23", help="version of the pools (23)")
    parser.add_argument("--only", choices=("table", "speed", "advice"))
    parser.add_argument("--seed", type=int, default=1, help="advice: of the first pool (1)")
    parser.add_argument("--pools", type=int, default=10, help="advice: of 20 jobs each (10)")
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--slots", type=int, default=16_000, help="with jobs")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.only in (None, "advice"):
        _advice(range(options.seed, options.seed + options.pools), options.htcondor)
    if options.only in (None, "table"):
        with forty(options.htcondor) as (pool, jobs):
            _table(pool, jobs)
    if options.only in (None, "speed"):
        with CondorPool(htcondor=options.htcondor) as pool:
            job = crowd(pool, Scale(options.jobs, slots=options.slots, pilots=options.slots // 4))
            _speed(pool, job, options.rounds)


def _advice(seeds: range, htcondor: str) -> None:
    """Print what became of jobs of which was done what was advised, and all that did not start."""
    found: list[Trial] = []
    try:
        for seed in seeds:
            with stage(layout(seed), htcondor) as made:
                found += trials(made, draw(made.drawn, _JOBS_OF_A_POOL))
            say(f"seed {seed}: {sum(one.worked for one in found)} of {len(found)} started")
    finally:  # half an hour is not lost with one pool
        print(f"HTCondor {htcondor}, {len(found)} jobs of seeds {seeds.start} to {seeds.stop - 1}")
        print(f"\n{table(found)}\n\n{failures(found)}\n", flush=True)


def _table(pool: CondorPool, jobs: dict[str, tuple[str, str]]) -> None:
    """Print who names the cause, as Markdown."""
    print("| job | gwmond | | condor_q -better-analyze | |\n|---|---|---|---|---|")
    right = [0, 0]
    for kind in KINDS:
        schedd, number = jobs[kind.name]
        record = json.loads(_gwmond(pool, number, "--schedd", schedd))
        analysis = _condor_q(pool, schedd, number)
        line = record["first_line"].partition(": ")[2]
        good = record["reasons"][0]["reason"] == kind.reason and kind.words in line
        found = re.search(f".*(?:{kind.analysis}).*", analysis)
        says = found or _SUMMARY.search(analysis)
        right[0] += good
        right[1] += found is not None
        cells = kind.name, _short(line), _mark(good), _short(says[0] if says else ""), _mark(found)
        print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\nThe cause is named: gwmond {right[0]}, condor_q {right[1]} of {len(KINDS)}\n")


def _short(text: str) -> str:
    text = " ".join(text.replace("|", "\\|").split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _mark(good: object) -> str:
    return "yes" if good else "no"


def _gwmond(pool: CondorPool, *question: str) -> str:
    command = [sys.executable, "-m", "gwmond", "explain", *question]
    done = subprocess.run(
        [*command, "--collector", pool.collector, "--ask", "pool", "--format", "json"],
        env=_compiled() | pool.client_env(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@cache
def _compiled() -> dict[str, str]:
    """Return an environment in which modules are compiled once, as those of an installation are."""
    compiled = tempfile.mkdtemp(prefix="gwmond-bench-")
    atexit.register(shutil.rmtree, compiled)
    known = os.environ | {"PYTHONPYCACHEPREFIX": compiled}
    known.pop("PYTHONDONTWRITEBYTECODE", None)
    return known


def _condor_q(pool: CondorPool, schedd: str, number: str) -> str:
    return pool.tool("condor_q", "-better-analyze", number, "-name", schedd, timeout=600).stdout


def _speed(pool: CondorPool, number: str, rounds: int) -> None:
    """Print how long each takes, in turn, each of another job of one cluster, or of all jobs.

    The daemon's page has a poll already: it asks for the job, the slots and the order only.
    """
    cluster, schedd = number.partition(".")[0], pool.schedds[0]
    os.environ.update(pool.client_env())
    patient = {
        "pool": {"collectors": [pool.collector]},
        "poll": {"interval": "2h", "deadline": "1h"},
    }
    explainer = asked(Config.model_validate(patient), Question())
    asks: dict[str, Callable[[str], object]] = {
        "condor_q -better-analyze": lambda job: _condor_q(pool, schedd, job),
        "gwmond explain": lambda job: _gwmond(pool, job, "--schedd", schedd),
        "gwmond explain --all": lambda _: _gwmond(pool, "--all"),
        "the page of the daemon": lambda job: document(explainer.job(job, schedd)).record(),
    }
    _gwmond(pool, number, "--schedd", schedd)  # compiles
    took: dict[str, list[float]] = {name: [] for name in asks}
    for proc in range(rounds):
        for name, ask in asks.items():
            began = time.perf_counter()
            ask(f"{cluster}.{proc}")
            took[name].append(time.perf_counter() - began)
        print(f"... {took}", file=sys.stderr, flush=True)
    theirs = next(iter(took.values()))
    for name, times in took.items():
        ratio = statistics.median(a / b for a, b in zip(times, theirs, strict=True))
        print(f"{name:26}{statistics.median(times):8.2f} s, ratio {ratio:.2f} (of {rounds} rounds)")
