"""Decides on the attempts of one pilot, as far as that can be said by now.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from gwmond.book.joining import Joining
from gwmond.book.open_pilot import OpenPilot
from gwmond.book.outcome import given_up, later_run, plain_outcome, weighed
from gwmond.book.rules import Rules
from gwmond.book.shelf import Shelf


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
    for attempt in list(pilot.attempts.values()):
        if attempt.outcome is not None and pilot.from_us > (attempt.end_us or 0):
            continue
        later = later_run(attempt, shelf.jobs[attempt.key.job])
        fact = given_up(attempt, later, at.now_us, at.clock_us, rules, silent)
        if fact is not None:
            joining.add(attempt.key.job, [fact])
        plain = plain_outcome(attempt, later, at.now_us, at.known_us, rules)
        outcome, result = weighed(attempt, plain)
        if (outcome, result) != (attempt.outcome, attempt.result):
            attempt.dirty = True
            if outcome != attempt.outcome:
                pilot.touch(attempt.start_us)
            attempt.outcome, attempt.result = outcome, result
