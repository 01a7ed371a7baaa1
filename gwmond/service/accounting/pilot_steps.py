"""The steps of the accounting of pilots, with the ledger that they ask.

The accounting makes no query: what a step yields keys of is fetched here.  Times are microseconds
since the epoch.  Each method raises LedgerError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVar

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.store import Ledger
from gwmond.pilots.accounting import Lookup, PilotAccounting
from gwmond.pilots.runs.verdicts import Evidence

REVISED_AT_ONCE = 1000
_T = TypeVar("_T")


class PilotSteps:
    """The accounting of pilots and its ledger; see ``PilotAccounting`` for what each step does."""

    def __init__(self, accounting: PilotAccounting, ledger: Ledger) -> None:
        self.accounting = accounting
        self.ledger = ledger

    def run(self, step: Lookup[_T]) -> _T:
        """Do a step of the accounting to its end; return its result."""
        try:
            keys = next(step)
            while True:
                keys = step.send(self.ledger.fetch(keys))
        except StopIteration as done:
            result: _T = done.value
            return result

    def judge(self, now_us: int, evidence: Evidence) -> None:
        """Decide on early failures, by what is stored; then the pilots are to be settled anew."""
        due = self.accounting.settlement.trials(now_us, evidence)
        trials = {keys: self.ledger.trials(*keys) for keys in due}
        self.accounting.settlement.judge(now_us, evidence, trials)

    def revise(self, entries: Collection[str] = ()) -> Iterator[int]:
        """Change what was assumed of pilots of these entries, and of all that files reported.

        It yields how many were changed at once.  After some the pilots are to be settled.
        """
        for entry in sorted(self.accounting.files.entries.union(entries)):
            changes = self.accounting.revise(entry, self.ledger.pilots_by_kind(entry))
            for numbers in chunks(changes, REVISED_AT_ONCE):
                self.run(self.accounting.change({number: changes[number] for number in numbers}))
                yield len(numbers)
