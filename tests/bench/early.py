"""Verdicts on early failures against the truth of simulated pools, and what they cost.

Every scenario of ``tests.pilots.early.scenarios`` is played with seeds on which nothing was
developed (those were 1 to 8). Where a place is at fault: precision and recall of what is blamed on
places, in runs and in core-seconds. Where none is: the share of failed runs that is blamed all the
same.
"""

from __future__ import annotations

import argparse
import time
from operator import add
from random import Random

from gwmond.pilots.early.comparison import MOST_TRIALS, Result, Trial, weigh
from tests.pilots.early.scenarios import SCENARIOS, played, weak
from tests.pilots.early.simulator import BEGIN_US, Score, score
from tests.pilots.early.verdicts import blamed

NODES = 5000


def main() -> None:
    """Print the table, and how long the largest evidence takes."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench early", description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="how many, from 101 on")
    parser.add_argument("--least", action="store_true", help="the least fault that is found")
    parser.add_argument("--only", default="", help="scenarios with this in their name")
    options = parser.parse_args()
    seeds = range(101, 101 + options.seeds)
    print(f"seeds {seeds.start} to {seeds.stop - 1}")
    if options.least:
        _least(seeds)
        return
    for name, (scenario, broken) in SCENARIOS.items():
        if options.only in name:
            failed, sums = 0, (Score(0, 0, 0, 0), Score(0, 0, 0, 0))
            for seed in seeds:
                runs = scenario(seed)
                failed += sum(run.fault is not None for run in runs)
                sums = tuple(map(add, sums, score(runs, blamed(runs))))
            print(f"{name:32} failed {failed:7}  {_shown(*sums, broken=broken)}", flush=True)
    if not options.only:
        _cost()


def _least(seeds: range) -> None:
    """Print what is found of faults that are ever smaller, at a site of 128 slots and on a node."""
    for kind in ("site", "node"):
        for share in (1, 0.3, 0.1):
            for minutes in (10, 20, 40, 120, 300):
                failed, sums = 0, Score(0, 0, 0, 0)
                for seed in seeds:
                    runs = played(weak, kind, share, minutes)(seed)
                    failed += sum(run.fault == "site" for run in runs)
                    sums += score(runs, blamed(runs))[0]
                print(
                    f"{kind} {share:4.0%} of starts, {minutes:3} minutes: failed {failed:6}  "
                    f"precision {sums.precision:.3f} recall {sums.recall:.3f}",
                    flush=True,
                )


def _shown(runs: Score, seconds: Score, *, broken: bool) -> str:
    if not broken:
        return f"blamed: {runs.false_share:.2%} of runs, {seconds.false_share:.2%} of core-seconds"
    return (
        f"precision {runs.precision:.3f} recall {runs.recall:.3f}; in core-seconds "
        f"{seconds.precision:.3f} {seconds.recall:.3f}"
    )


def _cost() -> None:
    """Weigh as many runs as are ever weighed at once, on thousands of nodes of which some fail."""
    random, start_us = Random(1), BEGIN_US
    trials = []
    for number in range(MOST_TRIALS):
        node = random.randrange(NODES)
        user = random.randrange(40)
        bad = random.random() < (0.9 if node % 500 == 0 else 0.02)
        start_us += 180_000
        end_us = start_us + random.choice([20, 45, 900, 3600]) * 1_000_000
        result = Result.FAILED_EARLY if bad else Result.SUCCEEDED
        where = f"p{node}", f"n{node}", f"e{node % 100}", f"s{node % 50}"
        job, group = f"ap#{user}.{number}#1", f"u{user} run.sh"
        trials.append(Trial(job, 1, group, *where, start_us, end_us, result))
    begin = time.process_time()
    blamed = weigh(trials)
    took = time.process_time() - begin
    print(
        f"{len(trials)} runs on {NODES} nodes: {took:.1f} s of CPU; {len(blamed)} failures blamed"
    )
