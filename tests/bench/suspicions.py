"""Suspicions that jobs fail at a place: false alarms where none is at fault, and time to alarm.

Healthy pools: the scenarios of ``tests.pilots.early.scenarios`` in which users alone are at fault
(typos, bad blocks, services that are down, sweeps), and a pool of 10,000 nodes, looked at once in
an hour, so that no two looks share a run: how many find anything, if a share of them may.  The
daemon's own rate is the smallest.  Black holes: on a pool of 1,280 slots, of one pilot to a site,
with the time from its begin to the alarm about a place where it is, by a look every two minutes;
and in small pools with one submission of one user's.
"""

from __future__ import annotations

import argparse
from random import Random

from gwmond.pilots.early.comparison import failing
from gwmond.pilots.runs.verdicts import FALSE_ALARMS, LOOKED_AT_US
from tests.pilots.early.scenarios import SCENARIOS, everyday
from tests.pilots.early.simulator import BEGIN_US, Broken, Run, Work, pool, simulate
from tests.pilots.early.verdicts import known_at, looks

_END_US = 8 * LOOKED_AT_US + 1
_RATES = 0.5, 0.1, 0.01, FALSE_ALARMS
#: Pilots of four slots, jobs of one submission, and how long they last.
_SMALL = ((4, 100, (60, 120)), (4, 160, (60, 300)), (4, 400, (600, 1200)), (20, 2000, (600, 1800)))
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
    parser.add_argument("--holes", action="store_true", help="black holes only")
    options = parser.parse_args()
    seeds = range(101, 101 + options.seeds)
    for share in (1.0, 0.5):
        for kind, places in _SIZES.items():
            _holes(kind, places, share, seeds)
    _alone(seeds)
    if not options.holes:
        _healthy(seeds)


def _healthy(seeds: range) -> None:
    """Print how many looks at healthy pools suspect a place, if so many may at most."""
    scenarios = {name: scenario for name, (scenario, broken, *_) in SCENARIOS.items() if not broken}
    for size, pools in (("up to 320 nodes", scenarios), ("10,000 nodes", {"large": _large})):
        alarms, number = dict.fromkeys(_RATES, 0), 0
        for seed in seeds:
            for scenario in pools.values():
                trials = sorted((run.trial for run in scenario(seed)), key=lambda x: x.start_us)
                for at_us in range(BEGIN_US + LOOKED_AT_US, BEGIN_US + _END_US, LOOKED_AT_US):
                    known = known_at(trials, at_us)
                    number += 1
                    for rate in _RATES:
                        alarms[rate] += bool(failing(known, rate))
            found = ", ".join(f"{alarms[rate]} at {rate:.4f}" for rate in _RATES)
            print(f"{size}, so far of {number} looks {found}", flush=True)


def _large(seed: int) -> list[Run]:
    """Return the runs of 20 sites with 10,000 nodes; a fifth of the users makes mistakes."""
    random = Random(seed)
    works = everyday(random, users=40, jobs=2000)
    works += [
        Work(f"bad{n}", "run.sh", 2000, at=random.uniform(0, 3600), seconds=(300, 1800), share=0.2)
        for n in range(10)
    ]
    return simulate(pool(20, 5, 100, 1, 2), works, seed=seed)


def _alone(seeds: range) -> None:
    """Print how soon one pilot that eats one user's jobs is suspected, in small pools."""
    for pilots, jobs, seconds in _SMALL:
        waits = []
        for seed in seeds:
            slots = pool(2, 1, pilots // 2, 1)
            hole = Broken(frozenset({slots[0].pilot}), seconds=(2, 4))
            runs = simulate(
                slots, [Work("one", "run.sh", jobs, seconds=seconds)], [hole], seed=seed
            )
            trials = [run.trial for run in runs]
            waits += [next((look.at_s for look in looks(trials, 1) if look.suspects), None)]
        shown = ", ".join("not" if wait is None else f"{wait / 60:.0f}" for wait in waits)
        print(
            f"one of {pilots} pilots, {jobs} jobs of {seconds} s: after {shown} minutes", flush=True
        )


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
