"""Suspicions that jobs fail at a place: false alarms where none is at fault, and time to alarm.

Healthy pools: the scenarios of ``tests.pilots.early.scenarios`` in which users alone are at fault
(typos, bad blocks, services that are down, sweeps), looked at every two minutes as the daemon does.
A place that is suspected in looks one after the other is one alarm.  Black holes: on a pool of
1,280 slots, of one pilot to a site, with the time from its begin to the alarm
about a place where it is.
"""

from __future__ import annotations

import argparse
from random import Random

from gwmond.pilots.early_failure import Unit
from gwmond.pilots.verdicts import LOOK_US
from tests.pilots.early.scenarios import SCENARIOS, everyday
from tests.pilots.early.simulator import BEGIN_US, Broken, Work, pool, simulate
from tests.pilots.early.suspicions import looks

_WEEK_S = 7 * 86400
_HOURS = 8.0
_SIZES = {
    "pilot": frozenset({"pilot0.0.1.0"}),
    "node": frozenset({"node0.0.1"}),
    "6 nodes": frozenset(f"node0.{n % 2}.{n}" for n in range(6)),
    "entry": frozenset({"entry0.0"}),
    "site": frozenset({"site0"}),
}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench suspicions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="how many, from 101 on")
    parser.add_argument("--every", type=int, default=1, help="one of so many looks is taken")
    parser.add_argument("--holes", action="store_true", help="black holes only")
    options = parser.parse_args()
    seeds = range(101, 101 + options.seeds)
    for share in (1.0, 0.5):
        for kind, places in _SIZES.items():
            _holes(kind, places, share, seeds)
    if not options.holes:
        _healthy(seeds, options.every)


def _healthy(seeds: range, every: int) -> None:
    alarms = number = 0
    for name, (scenario, broken, *_) in SCENARIOS.items():
        if broken:
            continue
        for seed in seeds:
            before: set[Unit] = set()
            trials = sorted((run.trial for run in scenario(seed)), key=lambda x: x.start_us)
            for look in looks(trials, _HOURS, every=every):
                found = {suspect[:2] for suspect in look.suspects}
                number, alarms = number + 1, alarms + len(found - before)
                before = found
        weeks = number * every * LOOK_US / 1e6 / _WEEK_S
        print(f"{name:32} so far {alarms} alarms in {number} looks, {weeks:.2f} weeks", flush=True)


def _holes(kind: str, places: frozenset[str], share: float, seeds: range) -> None:
    waits: list[float] = []
    failed = 0
    for seed in seeds:
        random = Random(seed)
        slots = pool(nodes=20)
        works = everyday(random, users=8, jobs=2500)
        works.append(Work("short", "run.sh", 6000, seconds=(300, 900)))
        since = random.uniform(5400, 7200)
        broken = Broken(places, since=since, share=share)
        runs = simulate(slots, works, [broken], seed=seed, hours=4)
        at_fault = {unit for run in runs if run.fault == "site" for unit in run.trial.units}
        for look in looks([run.trial for run in runs], since / 3600 + 1, since_s=since):
            if any(suspect[:2] in at_fault for suspect in look.suspects):
                waits.append(look.at_s - since)
                ends = (run.trial.end_us - BEGIN_US for run in runs if run.fault == "site")
                failed += sum(end <= look.at_s * 1e6 for end in ends)
                break
    shown = ", ".join(f"{wait / 60:.0f}" for wait in sorted(waits))
    mean = failed / max(1, len(waits))
    print(
        f"{kind:8} fails {share:.0%}: found {len(waits)} of {len(seeds)} in an hour, after "
        f"{shown} minutes; {mean:.0f} runs had failed",
        flush=True,
    )
