"""What is known of sites and is not in the ledger yet: time by hour, peaks, why jobs waited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gwmond.model.demand.idle_history import GroupKey, WaitInterval, WaitLog, Waits
from gwmond.model.elapsed import Elapsed, Tick
from gwmond.model.entries.changes import Value, ValueLog, Values
from gwmond.model.facts import EntryKey
from gwmond.model.poll.batch import Asked, Batch, LedgerState, Peak
from gwmond.model.times import HOUR_S, SECOND_US
from gwmond.model.totals import Hour, Micros, SiteKey, microseconds, split_hours
from gwmond.model.units import Resource
from gwmond.service.pool.known_entries import Memory, entry_states, windows
from gwmond.sites.capacity import PeakWindow
from gwmond.sites.integrate import SiteTime

_WAITS_KEPT = 10_000
"""So many changes of reasons wait for the ledger."""
_POLLS_APART = 3
"""After more periods than these between two polls it is not known why jobs waited meanwhile."""


class UnstoredSites:
    """Site time waits summed by hour; ``tick``: the end of what is stored, None before the first.

    ``accounted``: the end of what is stored or waits.
    """

    def __init__(self) -> None:
        self.tick: Tick | None = None
        self.accounted: Tick | None = None
        self._time: dict[tuple[Hour, SiteKey], Micros] = {}
        self._since = 0.0  # the first of what waits
        self._waits = WaitLog()  # since when jobs wait for which reason
        self._changed_waits: dict[tuple[str, str, int], WaitInterval] = {}
        self._ran: Mapping[tuple[EntryKey, Resource | Asked], PeakWindow] = {}  # as stored
        self._values = ValueLog()
        self._changed_values: list[Value] = []

    def __len__(self) -> int:
        return len(self._time)

    def resume(self, state: LedgerState) -> None:
        """Go on from a ledger; if somebody else wrote it, forget all that waits."""
        if state.tick == self.tick:
            return
        self.drop()
        self._waits = WaitLog(state.waits, state.tick and microseconds(state.tick.wall))
        self._values = ValueLog(state.values)
        self.tick = self.accounted = state.tick

    def drop(self) -> None:
        """Forget what waits."""
        self._time.clear()
        self._changed_waits.clear()
        self._changed_values.clear()

    def add(self, tick: Tick, elapsed: Elapsed, increments: Iterable[SiteTime]) -> None:
        """Add the time of the interval that ends with ``tick``, divided among the hours.

        A series with nothing yet gets its zero.
        """
        start = tick.wall - elapsed.ms / 1000
        if not self._time:
            self._since = start
        start_us, end_us = microseconds(start), microseconds(tick.wall)
        for resource, state, reason, entry, amount in increments:
            key = SiteKey(resource, state, reason, *entry)
            self._time.setdefault((int(start // HOUR_S), key), 0)
            for hour, micros in split_hours(amount, start_us, end_us):
                self._time[hour, key] = self._time.get((hour, key), 0) + micros
        self.accounted = tick

    def note_waits(self, now: float, waits: Mapping[GroupKey, Waits], period_s: float) -> None:
        """Take note of why groups of jobs wait now.

        What is not stored for long is not known, as after any gap.
        """
        if len(self._changed_waits) < _WAITS_KEPT:
            gap_us = round(_POLLS_APART * period_s * SECOND_US)
            for row in self._waits.step(microseconds(now), waits, gap_us):
                self._changed_waits[row.schedd, row.identity, row.since_us] = row

    def note_values(self, now: float, values: Values) -> None:
        """Take note of what is set at entries now."""
        if len(self._changed_values) < _WAITS_KEPT:
            self._changed_values += self._values.step(microseconds(now), values)

    def batch(self, before: int, tick: Tick, memory: Memory) -> Batch:
        """Return all that waits; ``before``: the number of batches that are stored."""
        return Batch(
            before=before,
            now_us=microseconds(tick.wall),
            tick=tick,
            site_time=dict(self._time),
            site_since=self._since,
            entries=entry_states(memory, tick.wall),
            peaks=self._changed_peaks(memory),
            waits=tuple(self._changed_waits.values()),
            values=tuple(self._changed_values),
        )

    def _changed_peaks(self, memory: Memory) -> dict[EntryKey, tuple[Peak, ...]]:
        ran = windows(memory)
        changed = {at[0] for at, window in ran.items() if self._ran.get(at) != window}
        peaks: dict[EntryKey, list[Peak]] = {key: [] for key in changed}
        for (key, resource), window in ran.items():
            if key in changed:
                peaks[key] += [Peak(resource, *bucket) for bucket in window.buckets]
        return {key: tuple(sorted(of_entry)) for key, of_entry in peaks.items()}

    def stored_peaks(self, memory: Memory) -> None:
        """Take note that these peaks are in the ledger."""
        self._ran = windows(memory)

    def stored(self, batch: Batch) -> None:
        """Take note that a batch is in the ledger."""
        if batch.tick is None:
            return
        self.tick = batch.tick
        for at, micros in batch.site_time.items():
            self._time[at] = self._time.get(at, 0) - micros
        self._time = {at: micros for at, micros in self._time.items() if micros}
        for row in batch.waits:
            key = row.schedd, row.identity, row.since_us
            if self._changed_waits.get(key) == row:
                del self._changed_waits[key]
        del self._changed_values[: len(batch.values)]
