"""Keeps totals in the ledger, through whatever happens to it.

While the ledger cannot be written (disk full, locked by another daemon, damaged, database away),
increments wait here, added up by hour, and counters stand still: what is shown is what is stored,
so a counter never goes back after a restart.  Every poll tries again.  What waits is dropped when
the ledger turns out to have been written by somebody else meanwhile, for that time is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gwmond.config.settings import LedgerOptions
from gwmond.ledger.errors import LedgerConflict, LedgerError, LedgerRefused
from gwmond.ledger.pilot_prune import Retention
from gwmond.ledger.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model import totals as model
from gwmond.model.elapsed import Elapsed, Tick
from gwmond.model.facts import Berth, EntryKey, Problem
from gwmond.model.names import Standing
from gwmond.model.snapshot import Checked, LedgerStatus, checked_verdicts
from gwmond.model.times import HOUR_S
from gwmond.model.units import RESOURCES, Resource
from gwmond.service.known_entries import EMPTY, Memory, Recalled
from gwmond.sites.capacity import PeakWindow
from gwmond.sites.integrate import SiteTime

if TYPE_CHECKING:  # commands that poll once do without
    from gwmond.service.pilot_keeper import PilotKeeper

_PRUNE_EVERY_S = 3600.0
_PROBLEMS_A_COMMIT = 100


class Keeper:
    """The daemon's hold on its ledger; ``accounted`` is the time up to which time was accounted."""

    def __init__(self, options: LedgerOptions) -> None:
        self._options = options
        self._ledger: Ledger | None = None
        self._stored: Tick | None = None
        self._peaks: Mapping[tuple[EntryKey, Resource], PeakWindow] = {}
        self._waiting: dict[tuple[model.SiteKey, int, int], model.Increment] = {}
        self._error = ""
        self._last_commit: float | None = None
        self._pruned_at = 0.0
        self.accounted: Tick | None = None
        self.totals: dict[model.SiteKey, model.Total] = {}

    @property
    def status(self) -> LedgerStatus:
        """Return how the ledger does."""
        return LedgerStatus(not self._error, self._error, self._last_commit, len(self._waiting))

    @property
    def ledger(self) -> Ledger | None:
        """The ledger as long as it is open."""
        return self._ledger

    def open(self, memory: Memory, window_hours: int) -> tuple[Memory, list[Problem]]:
        """Open the ledger unless it is open; return the memory with what the ledger remembers."""
        if self._ledger is not None:
            return memory, []
        ledger: Ledger | None = None
        try:
            ledger = Ledger.open(self._options.url)
            state = ledger.load()
        except LedgerError as error:
            if ledger is not None:
                ledger.close()
            return memory, self._failed(error)
        self._ledger = ledger
        if state.tick != self._stored:
            self._waiting.clear()
            self._stored = self.accounted = state.tick
        self.totals = dict(state.totals)
        self._error = ""
        return _recall(memory, state, window_hours), []

    def add(
        self,
        tick: Tick,
        elapsed: Elapsed,
        increments: Iterable[SiteTime],
        memory: Memory,
        problems: Iterable[Problem],
        pilots: PilotKeeper | None = None,
    ) -> list[Problem]:
        """Account the interval that ends with ``tick``, and store it with all that waits.

        What was settled of pilots is stored in the same transaction.
        """
        end = tick.wall
        start = end - elapsed.ms / 1000
        for increment in increments:
            key = model.SiteKey(
                increment.resource, increment.state, increment.reason, *increment.entry
            )
            self._wait(model.Increment(key, increment.amount, start, end))
        self.accounted = tick
        if self._ledger is None:
            return []
        batch = model.Batch(
            before=self._stored,
            tick=tick,
            increments=tuple(self._waiting.values()),
            entries=_entries(memory, end),
            peaks=self._changed_peaks(memory),
            problems=tuple(
                model.TimedProblem(end, problem) for problem in list(problems)[:_PROBLEMS_A_COMMIT]
            ),
        )
        try:
            _store(self._ledger, batch, pilots)
        except LedgerConflict as error:
            self.close()
            return self._failed(error)
        except LedgerRefused as error:  # such as an interval of decades, from a clock of 1970
            self._waiting.clear()
            return self._failed(error)
        except LedgerError as error:
            if error.reopen:
                self.close()
            return self._failed(error)
        for stored in batch.increments:
            before = self.totals.get(stored.key, model.Total(0, stored.start))
            self.totals[stored.key] = before._replace(micros=before.micros + stored.micros)
        self._waiting.clear()
        self._stored, self._last_commit = tick, end
        self._peaks = memory.peaks
        self._error = ""
        return self._prune(end)

    def close(self) -> None:
        """Close the ledger, so that another may write it; ``open`` opens it again."""
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    def lost(self, error: LedgerError) -> None:
        """Take note that the ledger failed elsewhere, and has to be opened again."""
        self.close()
        self._error = str(error)

    def _wait(self, increment: model.Increment) -> None:
        """Add to what waits: increments of one series within one hour become one.

        One that reaches over a full hour stays apart, because its parts are divided by time.
        """
        at = increment.key, int(increment.start // HOUR_S), int(increment.end // HOUR_S)
        if before := self._waiting.get(at):
            increment = increment._replace(
                micros=before.micros + increment.micros, start=min(before.start, increment.start)
            )
        self._waiting[at] = increment

    def _changed_peaks(self, memory: Memory) -> dict[EntryKey, tuple[model.Peak, ...]]:
        changed = {
            key
            for (key, resource), window in memory.peaks.items()
            if self._peaks.get((key, resource)) != window
        }
        return {
            key: tuple(
                model.Peak(resource, hour, units)
                for resource in RESOURCES
                if (window := memory.peaks.get((key, resource)))
                for hour, units in window.export()
            )
            for key in changed
        }

    def _prune(self, now: float) -> list[Problem]:
        if self._ledger is None or now - self._pruned_at < _PRUNE_EVERY_S:
            return []
        options = self._options
        try:
            retention = Retention(
                hours_s=options.hours_retention,
                pilots_s=options.pilots_retention,
                attempts_s=options.attempts_retention,
                corrections_s=options.corrections_retention,
                problems_s=options.problems_retention,
            )
            self._ledger.prune(now, retention)
        except LedgerError as error:
            return self._failed(error)
        self._pruned_at = now
        return []

    def _failed(self, error: LedgerError) -> list[Problem]:
        """Return what is told; the remedy is its end, as that may be a command to be copied."""
        self._error = str(error)
        what = f"ledger {error.where}: {error.what}. Counters stand still until this is mended."
        return [Problem("ledger", error.problem, f"{what} {error.remedy}")]


def _store(ledger: Ledger, batch: model.Batch, pilots: PilotKeeper | None) -> None:
    """Store site time and what was settled of pilots; raises LedgerError, also of pilots alone.

    Where pilots' time is refused and no pilot is at fault, site time is stored without it.
    """
    if pilots is None:
        ledger.commit(batch)
        return
    settled = pilots.batch()
    try:
        try:
            ledger.commit(batch._replace(pilots=settled))
        except LedgerRefused as error:
            if settled is None:
                raise
            settled = pilots.without_refused(settled)
            if settled is None:
                pilots.failed(error)
            ledger.commit(batch._replace(pilots=settled))
    except LedgerError as error:
        pilots.failed(error)
        raise
    if settled is None:
        pilots.passed()
    else:
        pilots.stored(settled)


def _entries(memory: Memory, now: float) -> dict[EntryKey, model.EntryState]:
    return {
        key: model.EntryState(
            first_seen,
            memory.last_seen.get(key, now),
            {
                r: units
                for r in RESOURCES
                if (units := memory.provisioned.get((key, r))) is not None
            },
        )
        for key, first_seen in memory.first_seen.items()
    }


def _recall(memory: Memory, state: model.LedgerState, window_hours: int) -> Memory:
    """Return a memory that has what the ledger remembers, and what was seen since."""
    peaks = dict(memory.peaks)
    for key, found in state.peaks.items():
        for peak in found:
            at = key, peak.resource
            peaks[at] = peaks.get(at, PeakWindow(window_hours)).add(peak.hour, peak.units)
    provisioned = {(k, r): n for k, s in state.entries.items() for r, n in s.provisioned.items()}
    first_seen = {k: s.first_seen for k, s in state.entries.items()}
    earlier = {k: min(t, memory.first_seen.get(k, t)) for k, t in first_seen.items()}
    return memory._replace(
        first_seen={**memory.first_seen, **earlier},
        provisioned={**provisioned, **memory.provisioned},
        peaks=peaks,
        recalled=_names(state),
    )


def _names(state: model.LedgerState) -> Recalled | None:
    """Return the names that the ledger knows; those without an entry's row were seen until now."""
    if state.tick is None:
        return None
    now = state.tick.wall
    entries = {
        key: Standing(
            entry_state.first_seen, max(entry_state.first_seen, entry_state.last_accounted or 0.0)
        )
        for key, entry_state in state.entries.items()
    }
    groups = {}
    for (key, group), created in state.groups.items():
        entry = entries.setdefault(key, Standing(created, now))
        groups[Berth(key, group)] = Standing(min(created, entry.last), entry.last)
    return Recalled(entries, groups, now)


def remembered(url: str, window_hours: int) -> tuple[Memory, Mapping[EntryKey, Checked] | None]:
    """Return what a ledger remembers, and which verdicts pilots have checked; writes nothing.

    Nothing is remembered, and no verdict is known (None), when there is no ledger yet.
    """
    try:
        with LedgerReader.open(url) as ledger:
            state = ledger.load()
    except LedgerError:
        return EMPTY, None
    return _recall(EMPTY, state, window_hours), checked_verdicts(state.verdicts)
