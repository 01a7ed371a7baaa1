"""What is booked and not stored yet, pilot by pilot, so that one of them can be left out.

Amounts are micros.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from gwmond.model.stored_pilots import Hour, Micros, PilotCorrection, PilotId, PilotSeries
from gwmond.pilots.booking import Entry


class Changes:
    """Increments and corrections of hours that wait to be stored."""

    def __init__(self) -> None:
        self._added: defaultdict[PilotId, list[Entry]] = defaultdict(list)
        self._corrections: list[PilotCorrection] = []

    def take(self, pilot: PilotId, entries: Iterable[Entry], now_us: int) -> None:
        """Take in what was booked of a pilot."""
        for entry in entries:
            if entry.cause:
                self._corrections.append(
                    PilotCorrection(
                        now_us, pilot, entry.hour, entry.series, entry.micros, entry.cause
                    )
                )
            else:
                self._added[pilot].append(entry)

    @property
    def pilots(self) -> Collection[PilotId]:
        """The pilots of which increments wait."""
        return self._added.keys()

    @property
    def corrections(self) -> tuple[PilotCorrection, ...]:
        """Return all corrections, as they were made."""
        return tuple(self._corrections)

    def increments(
        self, pilot_ids: Iterable[PilotId] | None = None
    ) -> Mapping[tuple[Hour, PilotSeries], Micros]:
        """Return the increments of some pilots, or all, summed."""
        sums: defaultdict[tuple[Hour, PilotSeries], Micros] = defaultdict(int)
        pilots = (
            self._added.values()
            if pilot_ids is None
            else (self._added.get(id_, ()) for id_ in pilot_ids)
        )
        for entries in pilots:
            for entry in entries:
                sums[entry.hour, entry.series] += entry.micros
        return {at: micros for at, micros in sums.items() if micros}

    def forget(self, pilot: PilotId) -> None:
        """Take out what waits of a pilot."""
        self._added.pop(pilot, None)
        self._corrections = [
            correction for correction in self._corrections if correction.pilot != pilot
        ]

    def clear(self) -> None:
        """Say that all of it is stored."""
        self._added.clear()
        self._corrections.clear()
