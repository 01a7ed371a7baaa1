"""Pilots and runs with defaults, in seconds after T0, and what a partition says in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gwmond.model.facts import Size
from gwmond.model.pilot_life import (
    Category,
    Estimates,
    Measure,
    Outcome,
    PilotLife,
    Run,
    RunKey,
    SizeStep,
    Validation,
)
from gwmond.model.units import Resource
from gwmond.pilots.life.partition import Partition, Row

S = 1_000_000
T0 = 472_222 * 3_600 * S
"""A full hour, in microseconds."""

HOUR = 3600
EIGHT = Size(8, 16000)
ONE = Size(1, 2000)

GOOD = Outcome(Category.GOODPUT, "exit_zero")
FAILED = Outcome(Category.GOODPUT, "exit_nonzero")
BROKEN = Outcome(Category.MISCONFIGURATION_BADPUT, "container_failed")
CUT = Outcome(Category.PREEMPTION_BADPUT, "lost_contact")
HELD = Outcome(Category.UNCLASSIFIED, "held_by_user")


def us(seconds: float) -> int:
    return T0 + round(seconds * S)


def job(
    name: str,
    start: float = 0,
    end: float | None = HOUR,
    size: Size = ONE,
    outcome: Outcome | None = GOOD,
    run: int = 1,
) -> Run:
    return Run(RunKey(name, run), us(start), None if end is None else us(end), size, outcome)


def _estimates(*of: Sequence[tuple[float, float]]) -> Estimates:
    return Estimates(*(tuple((us(first), us(last)) for first, last in some) for some in of))


def pilot(
    *runs: Run,
    size: Size = EIGHT,
    start: float = 0,
    end: float | None = HOUR,
    now: float | None = None,
    steps: Sequence[tuple[float, Size]] | None = None,
    validation: Validation = Validation.PASSED,
    known_until: float | None = None,
    estimated: Sequence[tuple[float, float]] = (),
    estimates: Sequence[Sequence[tuple[float, float]]] | None = None,
    ran_jobs: bool = False,
) -> PilotLife:
    """A pilot of one hour, of one size unless ``steps`` are given.

    ``estimated``: of CPU alone, if ``estimates`` are not given.
    """
    last = end if now is None else now
    return PilotLife(
        us(start),
        None if end is None else us(end),
        us(HOUR if last is None else last),
        tuple(SizeStep(us(at), resources) for at, resources in (steps or [(start, size)])),
        runs,
        validation,
        None if known_until is None else us(known_until),
        _estimates(estimated) if estimates is None else _estimates(*estimates),
        ran_jobs,
    )


def hours(
    found: Mapping[Row, int] | Partition, resource: Resource = "cpu", measure: Measure = "resource"
) -> dict[str, float]:
    """Unit hours by category."""
    settled = found.settled if isinstance(found, Partition) else found
    sums: Counter[str] = Counter()
    for row, micros in settled.items():
        if row.resource == resource and row.measure == measure:
            sums[row.category.value] += micros
    return {category: micros / (HOUR * S) for category, micros in sums.items()}


def of_job(
    found: Partition, name: str, resource: Resource = "cpu", measure: Measure = "resource"
) -> float:
    """Unit hours of one job's runs."""
    return sum(
        micros
        for row, micros in found.settled.items()
        if (row.resource, row.measure) == (resource, measure)
        if row.run_key is not None and row.run_key.job == name
    ) / (HOUR * S)
