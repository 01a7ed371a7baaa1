"""A batch pilot by pilot, so that what the ledger refuses of it can be left out alone."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from gwmond.model.stored_pilots import Part, Parts, PilotBatch
from gwmond.pilots.changes import Changes
from gwmond.pilots.counts import Counts


def divide(batch: PilotBatch, changes: Changes, counts: Counts) -> Parts:
    """Return what a batch has of each pilot and of each place, by number and name."""
    parts: defaultdict[Part, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in batch.pilots:
        parts[row.id]["pilots"].append(row)
    for name in ("attempts", "corrections"):
        for part in getattr(batch, name):
            parts[part.pilot][name].append(part)
    for name in ("moved", "heard"):
        for part in getattr(batch, name):
            parts[part[0]][name].append(part)
    for pilot in batch.withdrawn:
        parts[pilot]["withdrawn"].append(pilot)
    for pilot in (*changes.pilots, *counts.pilots):
        parts[pilot].setdefault("pilots", [])
    for place in batch.places:
        parts[place.name]["places"].append(place)
    return {
        part: PilotBatch(
            before=batch.before,
            now_us=batch.now_us,
            pilots=tuple(found["pilots"]),
            attempts=tuple(found["attempts"]),
            moved=tuple(found["moved"]),
            withdrawn=tuple(found["withdrawn"]),
            increments=changes.increments([part]) if isinstance(part, int) else {},
            corrections=tuple(found["corrections"]),
            counts=counts.changes([part]) if isinstance(part, int) else {},
            places=tuple(found["places"]),
            heard=tuple(found["heard"]),
        )
        for part, found in parts.items()
    }
