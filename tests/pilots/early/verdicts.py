"""The verdicts that fall on simulated runs, slice by slice, as the accounting judges them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from gwmond.model.entries.suspects import Suspect
from gwmond.model.runs.endings import EARLY_US
from gwmond.model.times import SECOND_US
from gwmond.pilots.early.comparison import Result, Trial, failing, weigh
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import (
    FALSE_ALARMS,
    LOOK_US,
    LOOKED_AT_US,
    began_within,
    evidence_until,
)
from tests.pilots.early.simulator import BEGIN_US, Run

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


class Look(NamedTuple):
    """What one look has found; ``at_s`` seconds after the simulation's begin."""

    at_s: float
    suspects: tuple[Suspect, ...]


def looks(
    trials: Sequence[Trial], hours: float, since_s: float = 0, every: int = 1
) -> Iterator[Look]:
    """Yield the looks at trials that are sorted by start; ``every``: of so many looks one."""
    at_us = BEGIN_US + round(since_s * SECOND_US)
    suspects: tuple[Suspect, ...] = ()
    while at_us < BEGIN_US + hours * 3600 * SECOND_US:
        at_us += LOOK_US * every
        suspects = failing(known_at(trials, at_us), FALSE_ALARMS, suspects)
        yield Look((at_us - BEGIN_US) / SECOND_US, suspects)


def known_at(trials: Sequence[Trial], at_us: int) -> list[Trial]:
    """Return what a look weighs at a time, of trials that are sorted by start."""
    first = bisect_left(trials, at_us - LOOKED_AT_US, key=attrgetter("start_us"))
    last = bisect_left(trials, at_us, key=attrgetter("start_us"))
    return [
        known_then(trial, at_us)
        for trial in trials[first:last]
        if trial.end_us <= at_us or trial.start_us < at_us - EARLY_US
    ]
