"""What is true of the scenario, known from outside, and the seconds that follow from it.

Nothing here uses the package that is tested: the rule of the design page, section 3, is written
anew, in floating point.  Units: epoch seconds, MiB; amounts are core-seconds or canonical seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

UNIT_MIB = 2000
MEASURES = ("resource", "canonical")

Key = tuple[str, str, str, str]
"""Pilot, resource, measure, category."""


class Moment(NamedTuple):
    """When something happened: somewhere in [lo, hi]."""

    lo: float
    hi: float

    @property
    def mid(self) -> float:
        return (self.lo + self.hi) / 2

    def wider(self, by: float) -> Moment:
        return Moment(self.lo - by, self.hi + by)


class PilotTruth(NamedTuple):
    """One pilot: its startd's life, and the category of the time in which it runs no job."""

    name: str
    cores: int
    memory: int
    start: Moment
    end: Moment
    own: str


class RunTruth(NamedTuple):
    """One run of a job; ``cores`` and ``memory`` are those of the slot that it was given.

    ``began`` is whether the job's own program ran.
    """

    tag: str
    job: str
    number: int
    pilot: str
    cores: int
    memory: int
    start: Moment
    end: Moment
    category: str
    outcome: str
    began: bool


class Range(NamedTuple):
    """Expected seconds, and between which bounds."""

    best: float
    lo: float
    hi: float


class _Span(NamedTuple):
    start: float
    end: float
    cores: int
    memory: int
    category: str


def _canonical(cores: float, memory: float) -> int:
    return max(0, int(min(cores, memory / UNIT_MIB)))


def _units(pilot: PilotTruth) -> int:
    """A pilot with a core is at least one unit."""
    return max(_canonical(pilot.cores, pilot.memory), min(int(pilot.cores), 1))


def _divide(
    pilot: PilotTruth, start: float, end: float, spans: Sequence[_Span]
) -> dict[tuple[str, str], float]:
    """Seconds by measure and category, for one choice of all moments."""
    total = {"resource": pilot.cores, "canonical": _units(pilot)}
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    edges = {start, end} | {t for span in spans for t in (span.start, span.end) if start < t < end}
    cuts = sorted(edges)
    for first, last in pairwise(cuts):
        running = [span for span in spans if span.start <= first and span.end >= last]
        cores = sum(span.cores for span in running)
        memory = sum(span.memory for span in running)
        idle = _canonical(pilot.cores - cores, pilot.memory - memory)
        for measure in MEASURES:
            own = idle if running else total[measure]
            seconds[measure, pilot.own] += own * (last - first)
            for span in running:
                share = (total[measure] - own) * span.cores / cores
                seconds[measure, span.category] += share * (last - first)
    return seconds


def expected(
    pilot: PilotTruth, runs: Sequence[RunTruth], resolution: float = 0.0
) -> dict[Key, Range]:
    """Expected seconds of one pilot, by its name, resource, measure and category.

    The bounds are what comes of moving each moment, one at a time, as far as it is not known, and
    by ``resolution`` beyond that.
    """
    moments = [pilot.start, pilot.end]
    moments += [moment for run in runs for moment in (run.start, run.end)]

    def divided(chosen: Sequence[float]) -> dict[tuple[str, str], float]:
        start, end, *others = chosen
        end = max(start, end)  # one that is known badly may not have lived at all
        spans = [
            _Span(
                max(start, others[2 * i]),
                min(end, others[2 * i + 1]),
                *moment[4:6],
                moment.category,
            )
            for i, moment in enumerate(runs)
        ]
        return _divide(pilot, start, end, spans)

    middle = [moment.mid for moment in moments]
    best = divided(middle)
    less: defaultdict[tuple[str, str], float] = defaultdict(float)
    more: defaultdict[tuple[str, str], float] = defaultdict(float)
    for i, moment in enumerate(moments):
        ends = moment.wider(resolution)
        moved = [divided([*middle[:i], at, *middle[i + 1 :]]) for at in ends]
        for kind in {*best, *moved[0], *moved[1]}:
            changes = [record.get(kind, 0.0) - best.get(kind, 0.0) for record in moved]
            less[kind] -= min(0.0, *changes)
            more[kind] += max(0.0, *changes)
    return {
        (pilot.name, "cpu", *kind): Range(
            best.get(kind, 0.0), best.get(kind, 0.0) - less[kind], best.get(kind, 0.0) + more[kind]
        )
        for kind in {*best, *less, *more}
    }


class Truth(NamedTuple):
    """All that the script knows when it is over."""

    pilots: tuple[PilotTruth, ...]
    runs: tuple[RunTruth, ...]

    def on(self, pilot: str) -> list[RunTruth]:
        """The runs on a pilot, in the order of their beginnings."""
        found = [run for run in self.runs if run.pilot == pilot]
        return sorted(found, key=lambda of: of.start.mid)

    def expected(self, resolution: float = 0.0) -> dict[Key, Range]:
        """Expected seconds of all pilots."""
        found: dict[Key, Range] = {}
        for pilot in self.pilots:
            found |= expected(pilot, self.on(pilot.name), resolution)
        return found

    def as_seen(
        self,
        outcomes: Mapping[tuple[str, int], tuple[str, str]],
        tolerance_s: float,
        resolution_s: float,
    ) -> Truth:
        """The same for who did not look for a while: a pilot may seem to have ended earlier.

        What ended it may then seem to have ended runs, too, those within ``tolerance_s`` of that:
        ``preemption_badput`` is then as good as true for these.
        """
        ends, runs = {pilot.name: pilot.end for pilot in self.pilots}, []
        for run in self.runs:
            end, said = ends[run.pilot], outcomes.get((run.job, run.number))
            far = end.hi - run.end.lo > tolerance_s
            near = end.lo - run.end.hi <= tolerance_s + resolution_s
            if said and said[0] == "preemption_badput" and far and near:
                run = run._replace(category=said[0], outcome=said[1])  # noqa: PLW2901
            runs.append(run)
        return self._replace(runs=tuple(runs))

    def outcomes(self) -> dict[tuple[str, int], tuple[str, str]]:
        """Category and outcome of each run, by GlobalJobId and run."""
        return {(run.job, run.number): (run.category, run.outcome) for run in self.runs}
