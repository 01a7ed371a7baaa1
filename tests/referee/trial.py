"""One scenario's trial: gwmond's verdicts, then the experiment at each entry with room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.pool.condor import CondorPool
from tests.referee.arena import Arena, Taken
from tests.referee.draw import Entry, Scenario
from tests.referee.verdicts import BOTTLENECK, Verdict, Witness


class Probe(NamedTuple):
    """One entry's verdict, and what the negotiator gave an empty pilot of each of its groups.

    ``verdict`` is gwmond's with the scenario's capacities, ``alone`` with room for just one pilot
    of this entry and no other: its units are what one pilot should be given. ``idle`` jobs wait in
    the whole pool.
    """

    seed: int
    entry: Entry
    verdict: Verdict
    alone: Verdict
    idle: int
    taken: dict[str, Taken]

    @property
    def given(self) -> bool:
        """Whether the pool gave a job to a pilot: a bottleneck, else insufficient demand."""
        return any(taken.jobs for taken in self.taken.values())

    @property
    def agreed(self) -> bool:
        """Whether the verdict says what the pool did."""
        return self.verdict.state in {BOTTLENECK, "insufficient_demand"} and (
            (self.verdict.state == BOTTLENECK) == self.given
        )

    @property
    def naive(self) -> bool:
        """Whether the naive rule says it: idle jobs anywhere, and no pilot waits here."""
        return (self.idle > 0) == self.given

    @property
    def units(self) -> float:
        """What the pilot was given, of the group that was given most."""
        return max(taken.units for taken in self.taken.values())

    @property
    def units_off(self) -> float:
        """By how many canonical units the verdict differs from what one pilot was given."""
        return self.alone.units - self.units

    def __str__(self) -> str:
        said = f"{self.verdict.state} {self.verdict.reason} {self.verdict.evidence}".split()
        given = ", ".join(
            f"{name} {of.units:g} ({of.jobs} jobs)" for name, of in self.taken.items()
        )
        return (
            f"{self.entry.name} {self.entry.shape.name}: {' '.join(said)},"
            f" {self.verdict.units:g} units, one pilot {self.alone.units:g}; given: {given}"
        )


class Trial(NamedTuple):
    """All of a scenario: what was said of its entries, and the probes."""

    scenario: Scenario
    verdicts: dict[str, Verdict]
    probes: tuple[Probe, ...]


def judge(pool: CondorPool, arena: Arena, directory: Path, scenario: Scenario) -> Trial:
    """Stage the scenario, ask gwmond, ask the negotiator, and clear the pool again."""
    try:
        idle = arena.stage(scenario)
        witness = Witness(pool.collector, pool.schedds[1], directory)
        verdicts = witness.ask(scenario.entries)
        judged = [
            entry
            for entry in scenario.entries
            if entry.judged and verdicts[entry.name].state != "unknown"
        ]
        with ThreadPoolExecutor(2) as threads:
            futures = [
                threads.submit(_alone, witness, scenario, shape, verdicts) for shape in judged
            ]
            alone = [future.result() for future in futures]
        arena.arrive(scenario)
        probes = tuple(
            Probe(scenario.seed, entry, verdicts[entry.name], one, idle, arena.probe(entry))
            for entry, one in zip(judged, alone, strict=True)
        )
    finally:
        arena.clear()
    return Trial(scenario, verdicts, probes)


def _alone(
    witness: Witness, scenario: Scenario, entry: Entry, verdicts: Mapping[str, Verdict]
) -> Verdict:
    """What is said of one pilot: asked for only where there is any bottleneck."""
    verdict = verdicts[entry.name]
    if verdict.state != BOTTLENECK:
        return verdict
    return witness.ask_alone(scenario.entries, entry)


def trials(
    pool: CondorPool, directory: Path, scenarios: Iterator[Scenario], probes: int
) -> Iterator[Trial]:
    """Yield trials until there were that many probes."""
    arena = Arena(pool)
    while probes > 0:
        trial = judge(pool, arena, directory, next(scenarios))
        probes -= len(trial.probes)
        yield trial
