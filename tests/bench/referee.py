"""Verdicts against a real pool's negotiator: scenarios from a seed on, until enough was probed."""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path

from tests.pool.condor import CondorPool
from tests.pool.sandbox import VERSIONS
from tests.referee.arena import POOL_CONFIG
from tests.referee.draw import described, draw
from tests.referee.table import disagreements, tables
from tests.referee.trial import trials


def main() -> None:
    """Print each probe, each disagreement with its scenario, and the tables."""
    parser = argparse.ArgumentParser(prog="bench referee", description=__doc__)
    parser.add_argument("--probes", type=int, default=100, help="at least so many (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the first scenario (1)")
    parser.add_argument("--htcondor", choices=tuple(VERSIONS), default="25", help="version (25)")
    options = parser.parse_args()
    done = []
    began = time.monotonic()
    with (
        CondorPool(config=POOL_CONFIG, htcondor=options.htcondor) as pool,
        tempfile.TemporaryDirectory() as directory,
    ):
        scenarios = map(draw, itertools.count(options.seed))
        for trial in trials(pool, Path(directory), scenarios, options.probes):
            done.append(trial)
            for probe in trial.probes:
                print(f"{'agreed' if probe.agreed else 'DISAGREED':9} {probe}", flush=True)
    command = " ".join(sys.argv[1:])
    last = done[-1].scenario.seed
    print(f"\nHTCondor {options.htcondor}, seeds {options.seed} to {last} ({command})")
    print(f"{time.monotonic() - began:.0f} s\n\n{tables(done)}\n")
    for probe in disagreements(done):
        (scenario,) = (trial.scenario for trial in done if trial.scenario.seed == probe.seed)
        print(f"--- {probe}\n{described(scenario)}\n")
