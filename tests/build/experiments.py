"""Verdicts that pilots have checked."""

from __future__ import annotations

from gwmond.model.entries.experiments import Experiment, PilotResult, SiteVerdict
from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from gwmond.model.times import SECOND_US

A = EntryKey("Site-A", "entry-a")


def experiment(
    poll: int, state: State, *, ran: bool, reason: str = "", entry: EntryKey = A
) -> Experiment:
    """A pilot that registered after a poll, by the poll's number, and ran a job or none."""
    at_us = (1_700_000_000 + 60 * poll) * SECOND_US
    result = PilotResult.RAN if ran else PilotResult.IDLE
    verdict = SiteVerdict(state, reason, "measured")
    return Experiment(poll, entry, "group", verdict, at_us, at_us + 30 * SECOND_US, result)
