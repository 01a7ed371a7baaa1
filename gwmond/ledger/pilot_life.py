"""From stored rows to what the accounting of pilot time takes.  Pure.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gwmond.model.pilot_facts import (
    AttemptKey,
    Category,
    Measure,
    PilotLife,
    estimates,
)
from gwmond.model.stored_pilots import AttemptRow, OwnAmounts, PilotRow
from gwmond.model.totals import Micros
from gwmond.model.units import Resource
from gwmond.pilots.pilot_time import Amounts


class Booked(NamedTuple):
    """Settled amounts as rows hold them: of the pilot, and of each attempt that has any."""

    pilot: OwnAmounts
    attempts: dict[AttemptKey, dict[tuple[Resource, Measure], Micros]]


def life_of(row: PilotRow, attempts: Iterable[AttemptRow]) -> PilotLife:
    """Return the life that rows tell of; while it runs it lasts, for now, to its last contact."""
    return PilotLife(
        start_us=row.start_us,
        end_us=row.end_us,
        now_us=row.contact_us,
        steps=row.steps,
        attempts=tuple(attempt.attempt for attempt in attempts),
        validation=row.validation,
        known_until_us=row.known_until_us,
        estimated=estimates(row.assumed),
        ran_jobs=row.ran_jobs,
    )


def booked(settled: Amounts) -> Booked:
    """Sum up the settled part of a partition as rows hold it; what is 0 is left out."""
    own: Counter[tuple[Resource, Measure, Category, str]] = Counter()
    attempts: dict[AttemptKey, dict[tuple[Resource, Measure], Micros]] = {}
    for account, micros in settled.items():
        own[account.resource, account.measure, account.category, account.outcome] += micros
        if account.attempt is not None and micros:
            kinds = attempts.setdefault(account.attempt, {})
            kind = account.resource, account.measure
            kinds[kind] = kinds.get(kind, 0) + micros
    return Booked(dict(+own), attempts)
