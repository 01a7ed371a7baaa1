"""What is said of the written rules that stand for missing facts of a pilot.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gwmond.model.pilot_facts import Assumption, Validation
from gwmond.model.stored_pilots import PilotRow
from gwmond.reports.periods import both, short, span

RULES: dict[Assumption, str] = {
    Assumption.BEGIN: "its output tells no start: its factory's queue, else what was told first",
    Assumption.END: "nothing of its own tells the end: its factory's queue or summary, a run of a "
    "job or a central log, else what was heard last",
    Assumption.SIZE: "no cores or memory are told: those of the entry's pilots, else one unit; "
    "canonical time of its runs rests on them too",
    Assumption.GPUS: "the number of GPUs is not told: that of the entry's pilots (CPU time does "
    "not rest on it)",
    Assumption.VALIDATION: "nothing tells whether HTCondor started: it did not if collectors "
    "were watched all the time, else unclassified",
    Assumption.NO_OUTPUT: "only its factory's queue or summary tells of it: their times",
    Assumption.JOBS: "only a summary or its own statistics tell of its jobs: the whole pilot, "
    "after the validation",
    Assumption.LIFE: "only records of jobs tell of it: as large and as long as they",
}


_PASSED = "its validation passed, and nothing tells whether it ran jobs: unclassified"


class AssumedRule(NamedTuple):
    """A rule that was applied, from when to when within the pilot's life, and what it says.

    ``passed``: the pilot's validation did, which is told.
    """

    rule: Assumption
    start_us: int
    end_us: int
    passed: bool = False

    @property
    def text(self) -> str:
        """What is missing, and what stands for it."""
        return _PASSED if self.passed and self.rule is Assumption.VALIDATION else RULES[self.rule]

    def line(self) -> str:
        """Return it for a terminal."""
        length = span(self.end_us - self.start_us)
        when = f"{short(self.start_us)} to {short(self.end_us)} ({length})"
        return f"estimated, rule {self.rule.value}: {when}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        when = {**both("start", self.start_us), **both("end", self.end_us)}
        return {"rule": self.rule.value, **when, "text": self.text}


def rules_of(row: PilotRow, until_us: int) -> list[AssumedRule]:
    """Return the rules that were applied to a pilot, in their order in time."""
    passed = row.validation is Validation.STARTED
    found = [
        AssumedRule(rule, max(start, row.start_us), min(end, until_us), passed)
        for rule, (start, end) in row.assumed.items()
    ]
    return sorted(
        found, key=lambda estimated: (estimated.start_us, estimated.end_us, estimated.rule.value)
    )
