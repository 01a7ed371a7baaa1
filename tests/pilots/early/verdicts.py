"""The verdicts that fall on simulated runs, slice by slice, as the accounting judges them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from gwmond.pilots.early.comparison import Result, Trial, weigh
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import began_within, evidence_until
from tests.pilots.early.simulator import Run

RULES = Rules()


def blamed(runs: Sequence[Run]) -> Callable[[Trial], bool]:
    """Return which failures are blamed on a place, each judged when its verdict falls."""
    trials = [run.trial for run in runs]
    due: defaultdict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.result is Result.FAILED_EARLY:
            due[evidence_until(trial.end_us, RULES)].append(trial)
    found: set[tuple[str, int, str]] = set()
    for until_us, cases in due.items():
        since_us, last_us = began_within(until_us, RULES)
        known = [
            known_then(trial, until_us) for trial in trials if since_us <= trial.start_us <= last_us
        ]
        blamed = weigh(known)
        found.update(trial.key for trial in cases if trial.key in blamed)
    return lambda trial: trial.key in found


def known_then(trial: Trial, known_us: int) -> Trial:
    """Return a run as it was at a moment: one that went on has not failed early."""
    return (
        trial if trial.end_us <= known_us else trial._replace(end_us=known_us, result=Result.LASTED)
    )
