"""Places that are suspected between the verdicts, and how often the verdicts confirmed it.

Units: microseconds, epoch.
"""

from __future__ import annotations

from collections import Counter

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.entries.suspects import SIGNS, Suspect
from gwmond.pilots.early.comparison import Unit, failing, suspects, weigh
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import (
    FALSE_ALARMS,
    LOOK_US,
    latest_keys,
    recent_keys,
    slice_us,
    verdict_keys,
)


class Suspicions:
    """What is suspected now: ``suspects``.  ``counts``: of suspicions, confirmed and withdrawn."""

    def __init__(self, rules: Rules, counts: Counter[str]) -> None:
        self._rules, self.counts = rules, counts
        self._slice = self._looked_us = 0
        self._open: dict[Unit, int] = {}  # since when, by the latest run then
        self.suspects: tuple[Suspect, ...] = ()

    def look(self, ledger: LedgerReader, known_us: int) -> None:
        """Look for places where jobs succeed far too soon, once a slice, or fail, more often.

        ``known_us``: up to when histories are known.
        """
        number = known_us // slice_us(self._rules)
        by_sign = {sign: [x for x in self.suspects if x.sign == sign] for sign in SIGNS}
        if number != self._slice:
            self._slice = number
            trials = ledger.trials(*recent_keys(known_us, self._rules))
            by_sign["ends_too_soon"] = list(suspects(trials))
        if known_us >= self._looked_us + LOOK_US:
            self._looked_us = known_us
            trials = ledger.trials(*latest_keys(known_us))
            by_sign["fails"] = list(failing(trials, FALSE_ALARMS, by_sign["fails"]))
            self._weigh(ledger, known_us)
        for suspect in by_sign["fails"]:
            self._open.setdefault((suspect.kind, suspect.place), known_us)
        self.suspects = (*by_sign["fails"], *by_sign["ends_too_soon"])

    def _weigh(self, ledger: LedgerReader, known_us: int) -> None:
        """Count which of the suspicions the verdicts of their time confirm."""
        for unit, seen_us in list(self._open.items()):
            keys = verdict_keys(seen_us, self._rules)
            if known_us >= keys.known_us:
                trials = ledger.trials(*keys)
                blamed = weigh(trials)
                right = any(unit in trial.units for trial in trials if trial.key in blamed)
                self.counts["confirmed" if right else "withdrawn"] += 1
                del self._open[unit]
