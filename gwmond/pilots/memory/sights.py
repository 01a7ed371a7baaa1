"""When a poll last saw pilots and claims: a fact, which outlives the daemon.

Units: times are microseconds since the epoch.

Most is seen in each look, so that only the time of the last complete look is stored at each poll.
Beside it is stored, of each pilot and run, when it was seen last if that was at another time: as it
is not there any more, or was shown by a look that was not complete.  What a poll has seen and could
not store is lost with the process.
"""

from __future__ import annotations

from collections.abc import Mapping

from gwmond.model.cursor_kinds import LOOKS
from gwmond.model.digits import is_number
from gwmond.model.facts import Cursor
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.runs.run_facts import Source
from gwmond.pilots.memory.ad_times import SOURCE, PersistedState
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun


class Looks:
    """When all pilots and all claims were last looked at, and when it was settled; 0: never.

    ``watched_us``: since when collectors have shown all pilots at each poll, without a gap; 0: they
    do not.  ``asked_us``: when they were asked last.
    """

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self._kept = PersistedState(SOURCE, LOOKS, cursors)
        words = self._kept.text.split()
        known = tuple(map(int, words)) if all(map(is_number, words)) else ()
        self.pilots_us, self.claims_us, self.settled_us = (*known, 0, 0, 0)[:3]
        self.watched_us, self.asked_us = (*known[3:], 0, 0)[:2]

    def watch(self, now_us: int, period_us: int, *, complete: bool) -> None:
        """Note whether collectors show all pilots now."""
        if not complete:
            self.watched_us = 0
        elif not self.watched_us or now_us - self.asked_us > 3 * period_us:
            self.watched_us = now_us
        self.asked_us = now_us

    def cursors(self) -> tuple[Cursor, ...]:
        """Return what is not stored yet; nothing before the first look."""
        if not self.pilots_us and not self.claims_us:
            return ()
        seen = self.pilots_us, self.claims_us, self.settled_us, self.watched_us, self.asked_us
        return self._kept.offer(" ".join(map(str, seen)))

    def stored(self) -> None:
        """Say that the last cursor is in the ledger."""
        self._kept.stored()

    def polled_us(self, pilot: OpenPilot) -> int | None:
        """Return when a pilot was found last, as it is to be stored: None, if by the last look."""
        return None if pilot.last_polled_us == self.pilots_us else pilot.last_polled_us

    def recall_pilot(self, pilot: OpenPilot, row: PilotRow) -> None:
        """Take over from its row when a pilot was seen last."""
        pilot.stored_polled_us = row.last_polled_us
        pilot.last_polled_us = self.pilots_us if row.last_polled_us is None else row.last_polled_us

    def shown_us(self, run: OpenRun) -> int | None:
        """Return when a slot showed a run last, as it is to be stored."""
        last_us = None if run.merged.ending.over else run.last_shown_us
        now = last_us == self.claims_us and Source.LIVE_SLOT in run.merged.sources
        return None if now else last_us

    def recall_run(self, run: OpenRun, row: RunRow) -> None:
        """Take over from its row when a run was shown last."""
        run.stored_shown_us = last_us = row.last_shown_us
        if run.merged.ending.over:
            return
        run.gone = last_us is not None and last_us <= self.claims_us
        if last_us is None and Source.LIVE_SLOT in run.merged.sources:
            last_us = self.claims_us or None
        run.last_shown_us = last_us
