"""When ads are renewed, which pilots are silent, what was seen when: facts, kept as cursors.

Units: microseconds, times since the epoch by the collector's clock; the cursors have whole seconds.

**Gaps.** Whether an ad that is gone was invalidated or has expired is told by how old it was when
it was seen last (``update_gaps``).  The times between updates are in the ledger: a daemon that was
started a moment ago knows as much as the one before.

**Silence.** A pilot is silent if its ads were not renewed for two updates.  Each poll says before
when a pilot was heard of last that is silent (see ``sites.contacts``).  That is kept beside the
contacts, so that whoever reads it says the same as the poll.

**Looks.** Most is seen in each look, so that only the time of the last complete look is stored at
each poll.  Beside it is stored, of each pilot and run, when it was seen last if that was at another
time: as it is not there any more, or was shown by a look that was not complete.  What a poll has
seen and could not store is lost with the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gwmond.model.cursor_kinds import LOOKS, SILENT_BEFORE, UPDATE_GAPS
from gwmond.model.digits import is_number
from gwmond.model.facts import Cursor
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotRow, RunRow
from gwmond.model.pilots.update_gaps import UpdateGaps
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.memory.ends import is_failed
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun


class PersistedState:
    """A text, under the name of a cursor; ``text`` is what is stored."""

    def __init__(self, source: str, kind: str, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self._name = source, kind
        before = cursors.get(self._name)
        self.text = self._offered = before.state if before is not None else ""

    def offer(self, text: str) -> tuple[Cursor, ...]:
        """Return the cursor that has a text; none, if that is what is stored."""
        self._offered = text
        return (Cursor(*self._name, text, None),) if text != self.text else ()

    def stored(self) -> None:
        """Say that what was offered last is in the ledger."""
        self.text = self._offered


SOURCE = "collector"


class StoredGaps(PersistedState):
    """The times between updates of ads (see ``update_gaps``)."""

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        super().__init__(SOURCE, UPDATE_GAPS, cursors)
        self._gaps = UpdateGaps.of(self.text)
        self._new: tuple[list[int], list[int]] = [], []

    def note(self, gap_us: int, *, timed: bool) -> None:
        """Take in the time between two updates of one pilot's ads, which was watched meanwhile.

        ``timed``: a timer may have made it.
        """
        self._new[not timed].append(gap_us // SECOND_US)

    def two_updates_us(self, lifetime_us: int, now_us: int) -> int:
        """Return after how long without an update an ad of this lifetime is stale."""
        if any(self._new):
            self._gaps = self._gaps.add(now_us // SECOND_US, *self._new)
            self._new = [], []
        return self._gaps.two_updates(lifetime_us // SECOND_US) * SECOND_US

    def cursors(self, now_us: int) -> tuple[Cursor, ...]:
        """Return the times, if they are not those that are stored."""
        self.two_updates_us(0, now_us)
        return self.offer(self._gaps.text)


class Silence(PersistedState):
    """Before when a pilot was heard of last that is silent; 0 if that is not known."""

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        super().__init__(SOURCE, SILENT_BEFORE, cursors)
        self.before_us = silent_before_us(cursors)

    def note(self, before_us: int | None) -> None:
        """Take in what a poll says; None: it says nothing."""
        if before_us is not None:
            self.before_us = before_us

    def cursors(self) -> tuple[Cursor, ...]:
        """Return what is not stored yet."""
        return self.offer(str(self.before_us // SECOND_US)) if self.before_us else ()


def silent_before_us(cursors: Mapping[tuple[str, str], Cursor]) -> int:
    """Return the same as it is stored."""
    cursor = cursors.get((SOURCE, SILENT_BEFORE))
    return int(cursor.state) * SECOND_US if cursor is not None and is_number(cursor.state) else 0


def is_silent(
    identity: PilotIdentity, end_us: int | None, last_heard_us: int, silent_before_us: int
) -> bool:
    """Return whether a pilot that collectors have shown is silent; one that has ended is not."""
    return end_us is None and identity.origin == "collector" and last_heard_us < silent_before_us


def silent_pilots(pilots: Iterable[OpenPilot], silent_before_us: int) -> list[OpenPilot]:
    """Return the pilots that are silent, those that were heard of latest first."""
    silent = [
        pilot
        for pilot in pilots
        if is_silent(pilot.identity, pilot.end_us, pilot.last_heard_us, silent_before_us)
        and not is_failed(pilot)
    ]
    return sorted(silent, key=lambda pilot: (-pilot.last_heard_us, pilot.id))


class Looks(PersistedState):
    """When all pilots and all claims were last looked at, and when it was settled; 0: never.

    ``watched_us``: since when collectors have shown all pilots at each poll, without a gap; 0: they
    do not.  ``asked_us``: when they were asked last.
    """

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        super().__init__(SOURCE, LOOKS, cursors)
        words = self.text.split()
        times = tuple(map(int, words)) if all(map(is_number, words)) else ()
        self.pilots_us, self.claims_us, self.settled_us = (*times, 0, 0, 0)[:3]
        self.watched_us, self.asked_us = (*times[3:], 0, 0)[:2]

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
        times = self.pilots_us, self.claims_us, self.settled_us, self.watched_us, self.asked_us
        return self.offer(" ".join(map(str, times)))

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
