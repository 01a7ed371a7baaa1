"""Verdicts on early failures: whether a run that soon failed did so by the doing of its place.

Units: times are microseconds since the epoch.

A verdict rests on what was known of a certain time, and not on when it is asked for: an import of
old logs judges as a daemon did that ran at the time, and one that was down for a day as well.
Runs are judged by the slice of time in which they ended, six to a window (``verdict_us``):

- the verdict falls a window after the end of the slice, when all that ended before that moment has
  been reported;
- evidence are the runs of the same users that began in the slice, or up to two slices before or
  after it (of very many those nearest to its middle), as they were known at that moment: one that
  went on then has not failed early.

Suspicions of places where jobs succeed far too soon rest on the last two slices alone, and are
looked for anew in each slice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gwmond.model.pilot_facts import Outcome
from gwmond.pilots.early_failure import Result, Trial, judge, weigh
from gwmond.pilots.open_run import OpenRun
from gwmond.pilots.outcome import LaterRuns, plain_outcome
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.rules import FAR_US, Rules

SLICES = 6
AROUND = 2
"""So many slices before and after the one that is judged are evidence, too."""


class TrialKeys(NamedTuple):
    """Which runs say something about where they ran: those of some users that began in a time.

    They are evidence as they were at ``known_us``.  ``users``: None: all of them.
    """

    since_us: int
    until_us: int
    known_us: int
    users: frozenset[str] | None = None


class _Case(NamedTuple):
    """A run to be judged; ``plain`` is its outcome if there is nothing against its place."""

    run: OpenRun
    trial: Trial
    plain: Outcome


def undecided(cache: PilotCache) -> list[OpenRun]:
    """Return early failures that are not judged."""
    return [
        run
        for runs in cache.jobs.values()
        for run in runs
        if run.result == Result.FAILED_EARLY and run.outcome is None
    ]


def _due(
    cache: PilotCache, now_us: int, known_us: int, rules: Rules
) -> Iterator[tuple[TrialKeys, list[_Case]]]:
    """Yield what can be judged, by the evidence on which that rests."""
    due: defaultdict[int, list[_Case]] = defaultdict(list)
    for case in _cases(cache, now_us, rules):
        until_us = evidence_until(case.trial.end_us, rules)
        if known_us >= until_us:
            due[until_us].append(case)
    for until_us, cases in sorted(due.items()):
        users = frozenset(case.run.merged.user or "" for case in cases)
        yield TrialKeys(*began_within(until_us, rules), until_us, users), cases


def trial_keys(cache: PilotCache, now_us: int, known_us: int, rules: Rules) -> list[TrialKeys]:
    """Return which runs are evidence for what can be judged."""
    return [keys for keys, _ in _due(cache, now_us, known_us, rules)]


def decide(
    cache: PilotCache,
    now_us: int,
    known_us: int,
    trials: Mapping[TrialKeys, Sequence[Trial]],
    rules: Rules,
) -> None:
    """Judge what can be judged; the runs are to be settled anew then.

    ``known_us``: all that ended before was reported and is stored.  ``trials``: the evidence, by
    keys.
    """
    for keys, cases in _due(cache, now_us, known_us, rules):
        known = trials.get(keys, ())
        by_key = {trial.key: trial for trial in (*known, *(case.trial for case in cases))}
        blamed = weigh(by_key.values())
        for case in cases:
            case.run.judged = judge(case.trial, case.plain, blamed)
            case.run.pilot.mark_changed(case.run.start_us)


def recent_keys(known_us: int, rules: Rules) -> TrialKeys:
    """Return which runs may show places where jobs succeed far sooner than elsewhere.

    ``known_us``: all that ended before was reported and is stored.
    """
    return TrialKeys(known_us - AROUND * slice_us(rules), known_us, known_us)


def evidence_until(end_us: int, rules: Rules) -> int:
    """Return when the verdict falls on a run that ended then: up to when runs are known."""
    length_us = slice_us(rules)
    return -(-(end_us + rules.verdict_us) // length_us) * length_us


def began_within(until_us: int, rules: Rules) -> tuple[int, int]:
    """Return when runs began that are evidence for the verdicts which fall at this moment."""
    ended_us, length_us = until_us - rules.verdict_us, slice_us(rules)
    return ended_us - (AROUND + 1) * length_us, min(until_us, ended_us + AROUND * length_us)


def slice_us(rules: Rules) -> int:
    """Return how long a slice is."""
    return max(1, rules.verdict_us // SLICES)


def _cases(cache: PilotCache, now_us: int, rules: Rules) -> list[_Case]:
    cases, later = [], LaterRuns(cache.jobs)
    for run in undecided(cache):
        plain = plain_outcome(run, later.after(run), now_us, FAR_US, rules)
        if plain is not None:
            cases.append(_Case(run, trial_of(run), plain))
    return cases


def trial_of(run: OpenRun) -> Trial:
    """Return a run as the test of early failures takes it."""
    pilot, merged = run.pilot, run.merged
    return Trial(
        job=run.key.job,
        number=run.key.number,
        group=merged.job_group or merged.user or "",
        pilot=str(pilot.id),
        node=pilot.identity.node,
        entry=pilot.identity.key.entry,
        site=pilot.identity.key.site,
        start_us=run.start_us,
        end_us=run.end_us or run.start_us,
        result=Result(run.result),
    )
