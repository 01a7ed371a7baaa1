"""Random histories told to a keeper that is stopped and killed, until Ctrl-C if one likes.

After each poll all is proven (see ``tests.service.test_restarts``).  What fails is printed with the
options that play it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress

from tests.build.restarted import history, play


def main() -> None:
    """Play histories of consecutive seeds; exit with 1 if one of them was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long at most")
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first of them")
    parser.add_argument("--histories", type=int, default=None, help="how many at most")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    number = restarts = kills = polls = 0
    failing: list[int] = []
    with suppress(KeyboardInterrupt):
        while time.monotonic() < until and number != options.histories:
            seed = options.seed + number
            made = history(seed)
            played = play(made, often=True)
            number += 1
            polls += len(made.steps)
            restarts += played.restarts
            kills += played.kills
            if played.wrong:
                failing.append(seed)
                print(f"again: make bench BENCH_ARGS='restarts --seed {seed} --histories 1'")
                print(*(f"  {wrong[:1000]}" for wrong in played.wrong[:5]), sep="\n", flush=True)
    print(f"{number} histories of {polls} polls: {restarts} restarts, {kills} kills")
    print(f"first seed {options.seed}, failing: {failing or 'none'}")
    sys.exit(bool(failing))
