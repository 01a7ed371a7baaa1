"""What changes would move, against a real pool in which they are made: seed after seed."""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gwmond.service.host import log
from gwmond.sources import child
from tests.pool.condor import CondorPool
from tests.pool.sandbox import VERSIONS
from tests.referee.arena import POOL_CONFIG, Arena
from tests.referee.draw import described, draw
from tests.referee.whatif import Tried, judge


def main() -> None:
    """Print each test, the scenario of each that was wrong, and the sums."""
    parser = argparse.ArgumentParser(prog="bench whatif", description=__doc__)
    parser.add_argument("--changes", type=int, default=50, help="at least so many (50)")
    parser.add_argument("--seed", type=int, default=1, help="of the first scenario (1)")
    parser.add_argument("--htcondor", choices=tuple(VERSIONS), default="25", help="version (25)")
    options = parser.parse_args()
    log.quiet()
    child.start(files=False, once=True)
    done: list[Tried] = []
    began, changes = time.monotonic(), 0
    with (
        CondorPool(config=POOL_CONFIG, htcondor=options.htcondor) as pool,
        tempfile.TemporaryDirectory() as directory,
    ):
        arena = Arena(pool)
        for seed in itertools.count(options.seed):
            tests = list(judge(arena, Path(directory), draw(seed)))
            changes += bool(tests)
            for test in tests:
                print(f"{'right' if test.is_right else 'WRONG':5} {test}", flush=True)
                if not test.is_right:
                    print(described(test.change.after), flush=True)
            done += tests
            if changes >= options.changes:
                break
    command = " ".join(sys.argv[1:])
    print(
        f"\nHTCondor {options.htcondor}, {changes} changes, seeds from {options.seed} ({command})"
    )
    print(f"{time.monotonic() - began:.0f} s\n\n{table(done)}")


def table(tests: Sequence[Tried]) -> str:
    """The sums by kind of change, as a Markdown table."""
    head = "change", "pilots", "within a pilot", "within a unit", "moved", "nothing moves: right"
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for kind in (*sorted({test.change.kind for test in tests}), "all"):
        some = [test for test in tests if kind in (test.change.kind, "all")]
        cells = (
            len(some),
            sum(test.is_right for test in some),
            sum(test.is_exact for test in some),
            sum(test.predicted.before != test.predicted.after for test in some),
            sum(test.naive for test in some),
        )
        lines.append(f"| {kind} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
