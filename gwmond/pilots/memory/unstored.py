"""What is posted and counted of a pilot, and not stored yet: so one pilot can be left out.

Units: amounts are micros.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gwmond.model.pilots.stored_pilots import CountKey, PilotCorrection, PilotId, PilotSeries
from gwmond.model.poll.batch import Batch, Part, Parts
from gwmond.model.totals import Hour, Micros

Increments: TypeAlias = list[tuple[PilotSeries, Mapping[Hour, Micros]]]


@dataclass(slots=True)
class Unstored:
    """What is new of a pilot by hour, what was posted otherwise before, and what is counted."""

    increments: Increments = field(default_factory=list)
    corrections: list[PilotCorrection] = field(default_factory=list)
    counts: Counter[CountKey] = field(default_factory=Counter)


def joined_increments(parts: Iterable[Unstored]) -> dict[PilotSeries, dict[Hour, Micros]]:
    """Return the increments of pilots, summed."""
    sums: defaultdict[PilotSeries, defaultdict[Hour, Micros]] = defaultdict(
        lambda: defaultdict(int)
    )
    for part in parts:
        for series, hours in part.increments:
            summed = sums[series]
            for hour, micros in hours.items():
                summed[hour] += micros
    return {series: dict(hours) for series, hours in sums.items()}


def joined_counts(parts: Iterable[Unstored]) -> dict[CountKey, int]:
    """Return what is to be added to the stored counts; negative where one was revised."""
    sums: Counter[CountKey] = Counter()
    for part in parts:
        sums.update(part.counts)
    return {key: n for key, n in sums.items() if n}


def divided(batch: Batch, unstored: Mapping[PilotId, Unstored]) -> Parts:
    """Return what a batch has of each pilot and of each place, by number and name."""
    parts: defaultdict[Part, dict[str, Any]] = defaultdict(lambda: defaultdict(tuple))
    for number, part in unstored.items():
        parts[number]["increments"] = joined_increments([part])
        parts[number]["counts"] = joined_counts([part])
    for row in batch.pilots:
        parts[row.id]["pilots"] += (row,)
    for name in ("runs", "corrections"):
        for row in getattr(batch, name):
            parts[row.pilot][name] += (row,)
    for name in ("moved", "heard", "sights"):
        for row in getattr(batch, name):
            parts[row[0]][name] += (row,)
    for pilot in batch.withdrawn:
        parts[pilot]["withdrawn"] += (pilot,)
    for place in batch.places:
        parts[place.name]["places"] += (place,)
    return {part: Batch(batch.before, batch.now_us, **found) for part, found in parts.items()}
