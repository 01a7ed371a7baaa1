"""What a ledger holds of the pilots of the scenario, as plain numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.runs.run_facts import Source

MICRO = 1_000_000


class Said(NamedTuple):
    """Seconds by (pilot, resource, measure, category); category and outcome by job and run."""

    seconds: dict[tuple[str, str, str, str], float]
    outcomes: dict[tuple[str, int], tuple[str, str]]
    open: list[str]
    pilots: list[PilotRow]
    runs: list[RunRow]


def read(url: str) -> Said:
    """Read all pilots and runs."""
    seconds: defaultdict[tuple[str, str, str, str], float] = defaultdict(float)
    with LedgerReader.open(url) as ledger:
        pilots = ledger.pilot_rows()
        runs = [row for row, _ in ledger.run_rows()]
    for pilot in pilots:
        for (resource, measure, category, _), micros in pilot.settled.items():
            key = pilot.identity.name, resource, measure, category.value
            seconds[key] += micros / MICRO
    outcomes = {
        (row.key.job, row.key.number): (row.outcome.category.value, row.outcome.label)
        for row in runs
        if row.outcome is not None
    }
    undecided = [f"{row.key.job} run {row.key.number}" for row in runs if row.open]
    undecided += [pilot.identity.name for pilot in pilots if not pilot.closed]
    return Said(dict(seconds), outcomes, undecided, pilots, runs)


def shown(url: str, *names: str) -> bool:
    """Whether collectors have shown all these pilots."""
    with LedgerReader.open(url) as ledger:
        known = {
            pilot_row.identity.name
            for pilot_row in ledger.pilot_rows()
            if pilot_row.identity.origin == "collector"
        }
    return set(names) <= known


def told(url: str, runs: Collection[tuple[str, int]]) -> bool:
    """Whether a startd's own history has told of all these runs."""
    with LedgerReader.open(url) as ledger:
        known = {
            (row.key.job, row.key.number)
            for row, _ in ledger.run_rows()
            if any(fact.source is Source.STARTD_HISTORY for fact in row.facts)
        }
    return set(runs) <= known


def series(url: str) -> dict[tuple[str, ...], int]:
    """Return the totals by all their labels, in micros."""
    with LedgerReader.open(url) as ledger:
        state = ledger.load()
    return {
        (
            pilot_series.resource,
            pilot_series.measure,
            pilot_series.category.value,
            pilot_series.outcome,
            pilot_series.site,
            pilot_series.entry,
            pilot_series.group,
        ): total.net
        for pilot_series, total in state.totals.pilots.items()
    }
