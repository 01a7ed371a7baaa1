"""Verdicts on early failures: whether a run that soon failed did so by the doing of its place.

Units: times are microseconds since the epoch.

A verdict rests on what was known of a certain time, and not on when it is asked for: an import of
old logs judges as a daemon did that ran at the time, and one that was down for a day as well.
Runs are judged by the slice of time in which they ended, six to a window (``verdict_us``):

- the verdict falls a window after the end of the slice, when all that ended before that moment has
  been reported;
- it waits for a schedd that is silent, for a day at most; where records are missing for good (a
  history did not reach back so far when it was first read, lost some, or stays silent), the verdict
  is an estimate and leaves nothing to the users (``Evidence``);
- evidence are the runs of the same users that began in the slice, or up to two slices before or
  after it (of very many those nearest to its middle), as they were known at that moment: one that
  went on then has not failed early.

Suspicions of places where jobs succeed far too soon rest on the last two slices alone, and are
looked for anew in each slice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gwmond.model.cursor_kinds import BEGIN_KINDS, SCHEDD_KINDS
from gwmond.model.facts import Cursor, Gap
from gwmond.model.pilot_life import Outcome
from gwmond.model.times import DAY_US, SECOND_US
from gwmond.pilots.early.comparison import Result, Trial, judge, weigh
from gwmond.pilots.life.rules import FAR_US, Rules
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.open_pilot import OpenRun
from gwmond.pilots.runs.later_runs import LaterRuns
from gwmond.pilots.runs.outcome import plain_outcome

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


class Evidence(NamedTuple):
    """How much of the runs is known and stored.

    ``until_us``: all that ended before was reported, but for what is ``missing``: intervals of
    which records will not come.
    """

    until_us: int
    missing: tuple[tuple[int, int], ...] = ()

    def ahead(self, ahead_us: int) -> Evidence:
        """Return it as if it were so much later."""
        return self._replace(until_us=self.until_us + ahead_us)

    def without(self, gaps: Iterable[Gap]) -> Evidence:
        """Return it without the records that schedds have lost."""
        lost = ((gap.start_us or 0, gap.end_us) for gap in gaps if gap.kind in SCHEDD_KINDS)
        return self._replace(missing=(*self.missing, *lost))

    def complete(self, keys: TrialKeys) -> bool:
        """Return whether none of these runs is missing."""
        return not any(
            keys.since_us < until_us and since_us < keys.known_us
            for since_us, until_us in self.missing
        )


def evidence(now_us: int, known_us: int, cursors: Iterable[Cursor], rules: Rules) -> Evidence:
    """Return what is known, where all schedds that answer are known up to ``known_us``.

    A schedd that was read and does not answer is waited for as its jobs are (``missing_wait``).
    What it did meanwhile is missing then; later it has no jobs here.
    """
    missing: list[tuple[int, int]] = []
    until_us, wait_us = known_us, rules.missing_wait_us
    for cursor in cursors:
        read_us = cursor.complete_us
        if read_us is None:
            continue
        if cursor.kind in BEGIN_KINDS.values():
            missing.append((0, read_us))
        elif cursor.kind in SCHEDD_KINDS and read_us < known_us:
            if read_us + wait_us > now_us:
                until_us = min(until_us, read_us)
            else:
                missing.append((read_us, read_us + wait_us))
    return Evidence(until_us, tuple(missing))


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
    cache: PilotCache, now_us: int, evidence: Evidence, rules: Rules
) -> Iterator[tuple[TrialKeys, list[_Case]]]:
    """Yield what can be judged, by the evidence on which that rests."""
    due: defaultdict[int, list[_Case]] = defaultdict(list)
    for case in _cases(cache, now_us, rules):
        until_us = evidence_until(case.trial.end_us, rules)
        if evidence.until_us >= until_us:
            due[until_us].append(case)
    for until_us, cases in sorted(due.items()):
        users = frozenset(case.run.merged.user or "" for case in cases)
        yield TrialKeys(*began_within(until_us, rules), until_us, users), cases


def trial_keys(cache: PilotCache, now_us: int, evidence: Evidence, rules: Rules) -> list[TrialKeys]:
    """Return which runs are evidence for what can be judged."""
    return [keys for keys, _ in _due(cache, now_us, evidence, rules)]


def decide(
    cache: PilotCache,
    now_us: int,
    evidence: Evidence,
    trials: Mapping[TrialKeys, Sequence[Trial]],
    rules: Rules,
) -> None:
    """Judge what can be judged; the runs are to be settled anew then.

    ``trials``: the runs that are evidence, by keys.
    """
    for keys, cases in _due(cache, now_us, evidence, rules):
        others = trials.get(keys, ())
        by_key = {trial.key: trial for trial in (*others, *(case.trial for case in cases))}
        blamed, complete = weigh(by_key.values()), evidence.complete(keys)
        for case in cases:
            case.run.judged = judge(case.trial, case.plain, blamed, complete=complete)
            case.run.pilot.mark_changed(case.run.start_us)


LOOK_US = 120 * SECOND_US
"""How often places are looked for where jobs fail; in the runs of ``LOOKED_AT_US``."""

LOOKED_AT_US = 3600 * SECOND_US

FALSE_ALARMS = LOOK_US / (7 * DAY_US)
"""The probability that a look finds a place though none is at fault: one such look in a week."""


def latest_keys(known_us: int) -> TrialKeys:
    """Return which runs may show places where jobs fail now."""
    return TrialKeys(known_us - LOOKED_AT_US, known_us, known_us)


def verdict_keys(seen_us: int, rules: Rules) -> TrialKeys:
    """Return which runs tell later whether a suspicion of this moment was right."""
    until_us = evidence_until(seen_us, rules)
    return TrialKeys(*began_within(until_us, rules), until_us)


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
    cases, later = [], LaterRuns(cache)
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
