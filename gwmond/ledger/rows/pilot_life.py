"""From stored rows to what the accounting of pilot time takes.  Pure.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gwmond.model.pilot_life import (
    Category,
    Measure,
    PilotLife,
    RunKey,
)
from gwmond.model.pilots.stored_pilots import OwnAmounts, PilotRow, RunRow
from gwmond.model.totals import Micros
from gwmond.model.units import Resource
from gwmond.pilots.life.partition import Amounts


class Posted(NamedTuple):
    """Settled amounts as rows hold them: of the pilot, and of each run that has any."""

    pilot: OwnAmounts
    runs: dict[RunKey, dict[tuple[Resource, Measure], Micros]]


def life_of(row: PilotRow, runs: Iterable[RunRow]) -> PilotLife:
    """Return the life in rows; while it runs it lasts, for now, to its last contact."""
    return row.life._replace(
        runs=tuple(run.as_run for run in runs),
        known_until_us=row.known_until_us,
        ran_jobs=row.ran_jobs,
    )


def posted(settled: Amounts) -> Posted:
    """Sum up the settled part of a partition as rows hold it; what is 0 is left out."""
    own: Counter[tuple[Resource, Measure, Category, str]] = Counter()
    runs: dict[RunKey, dict[tuple[Resource, Measure], Micros]] = {}
    for account, micros in settled.items():
        own[account.resource, account.measure, account.category, account.outcome] += micros
        if account.run_key is not None and micros:
            kinds = runs.setdefault(account.run_key, {})
            kind = account.resource, account.measure
            kinds[kind] = kinds.get(kind, 0) + micros
    return Posted(dict(+own), runs)
