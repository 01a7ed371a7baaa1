"""Verdicts on early failures: whether a program that soon failed did so by the pilot's doing."""

from __future__ import annotations

from collections.abc import Iterable

from gwmond.accounting.early_failure import Result, Trial, judge, weigh
from gwmond.book.open_attempt import OpenAttempt
from gwmond.book.outcome import later_run, plain_outcome
from gwmond.book.rules import FAR_US, Rules
from gwmond.book.shelf import Shelf


def undecided(shelf: Shelf) -> list[OpenAttempt]:
    """Return early failures that are not judged."""
    return [
        of
        for attempts in shelf.jobs.values()
        for of in attempts
        if of.result == Result.FAILED_EARLY and of.outcome is None
    ]


def decide(shelf: Shelf, now_us: int, trials: Iterable[Trial], rules: Rules) -> None:
    """Judge what can be judged; the attempts are to be settled anew then."""
    early = undecided(shelf)
    if not early:
        return
    evidence = weigh(trials)
    for attempt in early:
        later = later_run(attempt, shelf.jobs[attempt.key.job])
        plain = plain_outcome(attempt, later, now_us, FAR_US, rules)
        if plain is None:
            continue
        verdict = judge(trial_of(attempt), plain, evidence, now_us, rules.verdict_us).outcome
        if verdict is not None:
            attempt.judged = verdict
            attempt.pilot.touch(attempt.start_us)


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
