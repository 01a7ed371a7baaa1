"""Places that are suspected while simulated jobs run, look by look as the daemon does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from gwmond.model.entries.suspects import Suspect
from gwmond.model.runs.endings import EARLY_US
from gwmond.model.times import SECOND_US
from gwmond.pilots.early.comparison import Trial, failing
from gwmond.pilots.runs.verdicts import FALSE_ALARMS, LOOK_US, LOOKED_AT_US
from tests.pilots.early.simulator import BEGIN_US
from tests.pilots.early.verdicts import known_then


class Look(NamedTuple):
    """What one look has found; ``at_s`` seconds after the simulation's begin."""

    at_s: float
    suspects: tuple[Suspect, ...]


def looks(
    trials: Sequence[Trial], hours: float, since_s: float = 0, every: int = 1
) -> Iterator[Look]:
    """Yield the looks at trials that are sorted by start; ``every``: of so many looks one."""
    at_us = BEGIN_US + round(since_s * SECOND_US)
    while at_us < BEGIN_US + hours * 3600 * SECOND_US:
        at_us += LOOK_US * every
        suspects = failing(known_at(trials, at_us), FALSE_ALARMS)
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
