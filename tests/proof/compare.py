"""What the ledger says against what is true."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tests.proof.truth import Key, Truth

Seconds = Mapping[Key, float]
Outcomes = Mapping[tuple[str, int], tuple[str, str]]

_ROUNDING_S = 1e-3


def compare_seconds(rows: Seconds, truth: Truth, resolution: float) -> list[str]:
    """Disagreements in seconds, for each pilot, resource, measure and category.

    ``resolution`` is by how much each beginning and end may be wrong, beyond the bounds which the
    truth has itself.  A category that the truth has not must not have any time at all.
    """
    wanted = truth.expected(resolution)
    found = []
    for key in sorted({*rows, *wanted}):
        seconds, right = rows.get(key, 0.0), wanted.get(key)
        if right is None:
            if abs(seconds) > _ROUNDING_S:
                found.append(f"{'/'.join(key)}: {seconds:.3f} s, expected none")
        elif not right.lo - _ROUNDING_S <= seconds <= right.hi + _ROUNDING_S:
            bounds = f"{right.best:.3f} s ({right.lo:.3f} to {right.hi:.3f})"
            found.append(f"{'/'.join(key)}: {seconds:.3f} s, expected {bounds}")
    return found


def compare_totals(rows: Seconds, truth: Truth, resolution: float) -> list[str]:
    """Pilots whose categories do not sum to their size times their life."""
    sums: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for (pilot, resource, measure, _), seconds in rows.items():
        sums[pilot, resource, measure] += seconds
    found = []
    for moment in truth.pilots:
        units = min(moment.cores, moment.memory // 2000)
        for measure, rate in (("resource", moment.cores), ("canonical", units)):
            lo = rate * (moment.end.lo - moment.start.hi - 2 * resolution)
            hi = rate * (moment.end.hi - moment.start.lo + 2 * resolution)
            seconds = sums.get((moment.name, "cpu", measure), 0.0)
            if not lo - _ROUNDING_S <= seconds <= hi + _ROUNDING_S:
                found.append(
                    f"{moment.name}/{measure}: {seconds:.3f} s in all, not {lo:.3f}-{hi:.3f}"
                )
    return found


def compare_outcomes(runs: Outcomes, truth: Truth) -> list[str]:
    """Runs that are missing, that there were not, or whose category or outcome is wrong.

    They are known by GlobalJobId and run.
    """
    tags = {
        (run.job, run.number): f"{run.tag} run {run.number} on {run.pilot}" for run in truth.runs
    }
    wanted = truth.outcomes()
    found = []
    for key in sorted({*runs, *wanted}):
        name = tags.get(key, f"{key[0]} run {key[1]}")
        said, right = runs.get(key), wanted.get(key)
        if said != right:
            found.append(f"{name}: {said or 'missing'}, expected {right or 'no such run'}")
    return found


def compare(rows: Seconds, runs: Outcomes, truth: Truth, resolution: float) -> list[str]:
    """All disagreements, each as a line of text; none if the ledger is right."""
    return [
        *compare_outcomes(runs, truth),
        *compare_totals(rows, truth, resolution),
        *compare_seconds(rows, truth, resolution),
    ]
