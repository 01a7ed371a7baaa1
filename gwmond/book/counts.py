"""How many attempts and pilots ended how; each is counted once, under its present outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gwmond.accounting.pilot_facts import Category, Outcome
from gwmond.book.booking import own
from gwmond.book.open_pilot import OpenAttempt, OpenPilot
from gwmond.ledger.pilot_model import CountKey


class Counts:
    """Changes of the counts that are not stored yet."""

    def __init__(self) -> None:
        self._changes: Counter[CountKey] = Counter()

    def changes(self) -> dict[CountKey, int]:
        """Return what is to be added to the stored counts; negative where one was revised."""
        return {of: n for of, n in self._changes.items() if n}

    def clear(self) -> None:
        """Say that the changes are stored."""
        self._changes.clear()

    def count(self, pilot: OpenPilot) -> None:
        """Count a pilot and its attempts by what is decided of them now."""
        for attempt in pilot.attempts.values():
            self._attempt(attempt, attempt.outcome)
        self._pilot(pilot, own(pilot))

    def uncount(self, pilot: OpenPilot) -> None:
        """Take a pilot and its attempts out, to count them under another name."""
        for attempt in pilot.attempts.values():
            self._attempt(attempt, None)
        self._pilot(pilot, None)

    def remove(self, attempts: Iterable[OpenAttempt]) -> None:
        """Take attempts out that turned out to be others."""
        for attempt in attempts:
            self._attempt(attempt, None)

    def _attempt(self, attempt: OpenAttempt, outcome: Outcome | None) -> None:
        (site, entry), group = attempt.pilot.identity.key, attempt.pilot.identity.group
        for of, n in ((attempt.counted, -1), (outcome, 1)):
            if of is not None:
                key = CountKey("attempts", of.category, of.label, site, entry, group)
                self._changes[key] += n
        attempt.dirty |= attempt.counted != outcome
        attempt.counted = outcome

    def _pilot(self, pilot: OpenPilot, category: Category | None) -> None:
        (site, entry), group = pilot.identity.key, pilot.identity.group
        for of, n in ((pilot.counted, -1), (category, 1)):
            if of is not None:
                self._changes[CountKey("pilots", of, "", site, entry, group)] += n
        pilot.dirty |= pilot.counted != category  # stored with the count, or it is counted again
        pilot.counted = category
