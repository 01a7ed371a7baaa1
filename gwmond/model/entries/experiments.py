"""Verdicts on entries, and the pilots that check them (design page, section 4).

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from gwmond.model.facts import EntryKey, Evidence
from gwmond.model.states import State

CHECKED = (State.PROVISIONING_BOTTLENECK, State.INSUFFICIENT_DEMAND)
"""The states that an experiment can confirm or refute."""


class PilotResult(StrEnum):
    """What the pilot did: it ran a job in time, or none; or nothing that checks the verdict."""

    OPEN = ""
    RAN = "ran"
    IDLE = "idle"
    VOID = "void"


class SiteVerdict(NamedTuple):
    """What a poll reports on an entry's CPUs."""

    state: State
    reason: str
    evidence: Evidence


class Experiment(NamedTuple):
    """A pilot that registered while a verdict stood; ``pilot`` is its number in the ledger.

    ``verdict_us``: of the poll whose verdict it is.
    """

    pilot: int
    entry: EntryKey
    group: str
    verdict: SiteVerdict
    verdict_us: int
    registered_us: int
    result: PilotResult = PilotResult.OPEN

    @property
    def agreed(self) -> bool | None:
        """Whether the verdict was right; None where that is open, or was no experiment."""
        if self.result in {PilotResult.OPEN, PilotResult.VOID}:
            return None
        ran = self.result is PilotResult.RAN
        return ran == (self.verdict.state is State.PROVISIONING_BOTTLENECK)
