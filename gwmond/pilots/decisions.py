"""Decides on the attempts of one pilot, as far as that can be said by now.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from gwmond.model.attempts import AttemptFact
from gwmond.pilots.joining import Joining
from gwmond.pilots.open_attempt import OpenAttempt
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.outcome import LaterRuns, given_up, plain_outcome, weighed
from gwmond.pilots.rules import Rules
from gwmond.pilots.shelf import Shelf


class Moment(NamedTuple):
    """When it is decided: ``now_us`` for what waits, ``clock_us`` by the clock, which is said.

    ``known_us``: attempts that began before are known.
    """

    now_us: int
    clock_us: int
    known_us: int


def decide(
    pilot: OpenPilot,
    at: Moment,
    shelf: Shelf,
    joining: Joining,
    rules: Rules,
    silent: Collection[str],
) -> None:
    """Decide on what is open, and anew on what has changed."""
    later = LaterRuns(shelf.jobs)
    over: defaultdict[str, list[AttemptFact]] = defaultdict(list)
    for attempt in pilot.attempts.values():
        if not _is_decided(attempt):
            fact = given_up(attempt, later.after(attempt), at.now_us, at.clock_us, rules, silent)
            if fact is not None:
                over[fact.job].append(fact)
    for job, facts in over.items():
        joining.add(job, facts)
    later = LaterRuns(shelf.jobs) if over else later
    for attempt in list(pilot.attempts.values()):
        if _is_decided(attempt):
            continue
        later_us = later.after(attempt)
        plain = plain_outcome(attempt, later_us, at.now_us, at.known_us, rules)
        outcome, result = weighed(attempt, plain)
        if (outcome, result) != (attempt.outcome, attempt.result):
            attempt.dirty = True
            if outcome != attempt.outcome:
                pilot.touch(attempt.start_us)
            attempt.outcome, attempt.result = outcome, result


def _is_decided(attempt: OpenAttempt) -> bool:
    """Return whether nothing has changed that may change what was decided."""
    if attempt.outcome is None or not attempt.merged.ending.over:
        return False
    return attempt.pilot.from_us > (attempt.end_us or 0)
