"""Decides on the runs of a pilot that are open, and anew on those that have changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from gwmond.model.runs.run_facts import RunFact
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.runs.later_runs import LaterRuns, is_decided
from gwmond.pilots.runs.matcher import RunMatcher
from gwmond.pilots.runs.outcome import given_up, plain_outcome, weighed


class DecisionTime(NamedTuple):
    """When it is decided: ``now_us`` for what waits, ``clock_us`` by the clock, which is said.

    ``known_us``: runs that began before are known.
    """

    now_us: int
    clock_us: int
    known_us: int


def decide_runs(
    pilot: OpenPilot,
    at: DecisionTime,
    later: LaterRuns,
    matcher: RunMatcher,
    rules: Rules,
    silent: Collection[str],
) -> bool:
    """Decide on what is open, and anew on what has changed; return False if runs are missing."""
    if later.missing(pilot):
        return False
    over: defaultdict[str, list[RunFact]] = defaultdict(list)
    for run in pilot.runs.values():
        if not is_decided(run):
            fact = given_up(run, later.after(run), at.now_us, at.clock_us, rules, silent)
            if fact is not None:
                over[fact.job].append(fact)
    if not later.whole(over):
        return False
    for job, facts in over.items():
        matcher.add(job, facts)
    later.forget(over)
    if over and later.missing(pilot):  # what has changed by that is decided anew, too
        return False
    for run in list(pilot.runs.values()):
        if is_decided(run):
            continue
        later_us = later.after(run)
        plain = plain_outcome(run, later_us, at.now_us, at.known_us, rules)
        outcome, result = weighed(run, plain)
        if (outcome, result) != (run.outcome, run.result):
            run.dirty = True
            if outcome != run.outcome:
                pilot.mark_changed(run.start_us)
            run.outcome, run.result = outcome, result
    return True
