"""Verdicts on early failures: whether a program that soon failed did so by the pilot's doing.

Units: times are microseconds since the epoch.

A verdict rests on what was told of a certain time, and not on when it is asked for: an import of
old logs judges as a daemon did that ran at the time, and one that was down for a day as well.
Attempts are judged by the slice of time in which they ended, six to a window (``verdict_us``):

- evidence are the runs that ended up to a moment, the same for the whole slice: a window after each
  of its attempts ended, or up to a sixth of it more; and in two windows before that moment;
- the verdict falls when all that ended before that moment has been told;
- that the same job succeeded elsewhere by that moment is said as soon as it is known.

Only groups of jobs of which something is undecided in the slice are compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

from gwmond.accounting.early_failure import Evidence, Result, Trial, judge, weigh
from gwmond.accounting.pilot_facts import Outcome
from gwmond.book.open_attempt import OpenAttempt
from gwmond.book.outcome import LaterRuns, plain_outcome
from gwmond.book.rules import FAR_US, Rules
from gwmond.book.shelf import Shelf

SLICES = 6
MOST_TRIALS = 100_000
"""So many runs are weighed at once, the latest ones, so that this takes a bounded time."""


class Trials(Protocol):
    """What the ledger knows of runs that say something about where they ran."""

    def trials(
        self,
        since_us: int,
        job_groups: Collection[str],
        limit: int = MOST_TRIALS,
        until_us: int | None = None,
    ) -> list[Trial]:
        """Return the latest runs of these groups that ended since, and by ``until_us``."""

    def successes(self, jobs: Collection[str]) -> list[Trial]:
        """Return the runs of these jobs that succeeded."""


class _Case(NamedTuple):
    """An attempt to be judged; ``plain`` is its outcome if there is nothing against the pilot."""

    attempt: OpenAttempt
    trial: Trial
    plain: Outcome


def undecided(shelf: Shelf) -> list[OpenAttempt]:
    """Return early failures that are not judged."""
    return [
        of
        for attempts in shelf.jobs.values()
        for of in attempts
        if of.result == Result.FAILED_EARLY and of.outcome is None
    ]


def decide(shelf: Shelf, now_us: int, known_us: int, trials: Trials, rules: Rules) -> None:
    """Judge what can be judged; the attempts are to be settled anew then.

    ``known_us``: all that ended before was told and is stored.
    """
    open_: defaultdict[int, list[_Case]] = defaultdict(list)
    for case in _succeeded_elsewhere(_cases(shelf, now_us, rules), trials, rules):
        open_[evidence_until(case.trial.end_us, rules)].append(case)
    due = {of: cases for of, cases in open_.items() if known_us >= of}
    window = _Window(trials, {of.trial.group for cases in due.values() for of in cases})
    for until_us, cases in sorted(due.items()):
        window.move(until_us - 2 * rules.verdict_us, until_us)
        evidence = weigh(window.of({of.trial.group for of in cases}))
        for case in cases:
            verdict = judge(case.trial, case.plain, evidence, FAR_US, rules.verdict_us)
            _note(case, verdict.outcome)


class _Window:
    """Runs that ended in an interval, which moves on: each run is fetched once."""

    def __init__(self, trials: Trials, groups: Collection[str]) -> None:
        self._trials = trials
        self._groups = groups
        self._until_us = -1
        self._found: list[Trial] = []

    def move(self, since_us: int, until_us: int) -> None:
        """Move on to the interval, both ends included."""
        first_us = max(since_us, self._until_us + 1)
        self._found += self._trials.trials(first_us, self._groups, MOST_TRIALS, until_us)
        self._until_us = until_us
        kept = bisect_left(self._found, since_us, key=lambda of: of.end_us)
        del self._found[: max(kept, len(self._found) - 2 * MOST_TRIALS)]

    def of(self, groups: Collection[str]) -> list[Trial]:
        """Return the latest runs of some groups."""
        return [of for of in self._found if of.group in groups][-MOST_TRIALS:]


def evidence_until(end_us: int, rules: Rules) -> int:
    """Return up to when runs are evidence about an attempt that ended then."""
    of = _slice(rules)
    return -(-(end_us + rules.verdict_us) // of) * of


def _slice(rules: Rules) -> int:
    return max(1, rules.verdict_us // SLICES)


def _cases(shelf: Shelf, now_us: int, rules: Rules) -> list[_Case]:
    cases, later = [], LaterRuns(shelf.jobs)
    for attempt in undecided(shelf):
        plain = plain_outcome(attempt, later.after(attempt), now_us, FAR_US, rules)
        if plain is not None:
            cases.append(_Case(attempt, trial_of(attempt), plain))
    return cases


def _succeeded_elsewhere(cases: Collection[_Case], trials: Trials, rules: Rules) -> Iterable[_Case]:
    """Judge those whose jobs succeeded elsewhere; return the others."""
    by_job: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials.successes({of.trial.job for of in cases}) if cases else ():
        by_job[trial.job].append(trial)
    left = []
    for case in cases:
        until_us = evidence_until(case.trial.end_us, rules)
        by_then = tuple(of for of in by_job.get(case.trial.job, ()) if of.end_us <= until_us)
        evidence = Evidence({case.trial.job: by_then}, {})
        verdict = judge(case.trial, case.plain, evidence, case.trial.end_us, rules.verdict_us)
        if verdict.outcome is None:
            left.append(case)
        else:
            _note(case, verdict.outcome)
    return left


def _note(case: _Case, verdict: Outcome | None) -> None:
    if verdict is not None:
        case.attempt.judged = verdict
        case.attempt.pilot.touch(case.attempt.start_us)


def trial_of(attempt: OpenAttempt) -> Trial:
    """Return an attempt as the test of early failures takes it."""
    pilot, merged = attempt.pilot, attempt.merged
    return Trial(
        job=attempt.key.job,
        run=attempt.key.run,
        group=merged.job_group or "",
        pilot=str(pilot.id),
        node=pilot.identity.node,
        start_us=attempt.start_us,
        end_us=attempt.end_us or attempt.start_us,
        result=Result(attempt.result),
    )
