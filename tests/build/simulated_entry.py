"""An entry whose pilots wait for jobs by a law that is known, so that the best timeout is, too.

A share of waits is short, the rest long, both exponential: the chance that a job comes falls with
the time waited, and there is a best time to give up.  Units: seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gwmond.advise.idle_timeout import GRID_S
from gwmond.advise.samples import Floats
from gwmond.advise.tally import EntryTally
from gwmond.model.facts import Size
from gwmond.model.pilot_life import SizeStep
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.reports.stored.stored_pilot import StoredPilot
from tests.build import traced
from tests.build.traced import CUT, ZERO

SPREAD_S = 20 * 86400


class Entry(NamedTuple):
    """``short`` of the waits last ``short_s`` on average, the others ``long_s``.

    ``run_s``: the mean of runs, exponential as well; a pilot dies ``life_s`` after its start.
    """

    short: float = 0.7
    short_s: float = 60
    long_s: float = 6000
    validation_s: float = 300
    max_idle_s: float = 1200
    max_tail_s: float = 400
    run_s: float = 1800
    life_s: float = 40_000
    sizes: tuple[int, ...] = (1, 8)

    def lasting(self, at_s: Floats) -> Floats:
        """The share of waits that last longer."""
        found: Floats = self.short * np.exp(-at_s / self.short_s)
        return found + (1 - self.short) * np.exp(-at_s / self.long_s)

    def idle(self, at_s: Floats) -> Floats:
        """How long a wait lasts on average that is given up then."""
        found: Floats = self.short * self.short_s * (1 - np.exp(-at_s / self.short_s))
        return found + (1 - self.short) * self.long_s * (1 - np.exp(-at_s / self.long_s))

    @property
    def replacement_s(self) -> float:
        """What is spent until another pilot runs a job."""
        return float(self.waste(np.array([self.max_idle_s]), first=True)[0])

    def waste(self, at_s: Floats, *, first: bool) -> Floats:
        """What the first job costs, or what a wait after a job wastes, with such a timeout."""
        if first:
            return (self.validation_s + self.idle(at_s)) / (1 - self.lasting(at_s))
        return self.idle(at_s) + self.replacement_s * self.lasting(at_s)

    def best(self, longest_s: float, *, first: bool) -> int:
        """The best timeout of those up to the longest."""
        grid = np.array([at for at in GRID_S if at <= longest_s], dtype=np.float64)
        return int(grid[self.waste(grid, first=first).argmin()])


def pilots(entry: Entry, number: int, seed: int) -> Iterator[StoredPilot]:
    """Yield so many pilots that have ended."""
    draw = np.random.default_rng(seed)

    def wait_s() -> float:
        return float(
            draw.exponential(entry.short_s if draw.random() < entry.short else entry.long_s)
        )

    for _ in range(number):
        start = float(draw.uniform(0, SPREAD_S))
        retires, dies = start + entry.life_s - 3600, start + entry.life_s
        now = ready = start + entry.validation_s * draw.gamma(4, 0.25)
        cores = int(draw.choice(entry.sizes))
        runs: list[RunRow] = []
        while True:
            wait, most = wait_s(), entry.max_tail_s if runs else entry.max_idle_s
            if wait > most or now + wait > retires:
                end = min(now + most, retires)
                break
            now += wait
            length = float(draw.exponential(entry.run_s))
            cut = now + length > dies
            done = min(now + length, dies)
            run = traced.run(len(runs) + 1, now, done, CUT if cut else ZERO)
            runs.append(run._replace(size=Size(1, 1500)))
            now = done
            if now >= retires:
                end = now
                break
        row = traced.pilot(
            start,
            end,
            retire_us=traced.us(retires),
            die_us=traced.us(dies),
            validation_end_us=traced.us(ready),
            steps=(SizeStep(traced.us(start), Size(cores, cores * 2000)),),
            ran_jobs=bool(runs),
        )
        yield StoredPilot(row, runs)


def tally(entry: Entry, number: int, seed: int) -> EntryTally:
    found = EntryTally()
    for pilot in pilots(entry, number, seed):
        found.add(pilot)
    return found
