"""How often pilots' ads are renewed, and which pilots are silent; kept in the ledger as cursors.

Units: microseconds, times since the epoch by the collector's clock; the cursors have whole seconds.

**Gaps.** Whether an ad that is gone was invalidated or has expired is told by how old it was when
it was seen last (``update_gaps``).  The times between updates are in the ledger: a daemon that was
started a moment ago knows as much as the one before.

**Silence.** A pilot is silent if its ads were not renewed for two updates.  Each poll says before
when a pilot was heard of last that is silent (see ``sites.contacts``).  That is kept beside the
contacts, so that whoever reads it says the same as the poll.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gwmond.model.cursor_kinds import SILENT_BEFORE, UPDATE_GAPS
from gwmond.model.digits import is_number
from gwmond.model.facts import Cursor
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.pilots.update_gaps import UpdateGaps
from gwmond.model.times import SECOND_US
from gwmond.pilots.memory.failed import is_failed
from gwmond.pilots.memory.open_pilot import OpenPilot


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


class StoredGaps:
    """The times between updates of ads (see ``update_gaps``)."""

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self._kept = PersistedState(SOURCE, UPDATE_GAPS, cursors)
        self._gaps = UpdateGaps.of(self._kept.text)
        self._new: list[int] = []

    def note(self, gap_us: int) -> None:
        """Take in the time between two updates of one pilot's ads, which was watched meanwhile."""
        self._new.append(gap_us // SECOND_US)

    def two_updates_us(self, lifetime_us: int, now_us: int) -> int:
        """Return after how long without an update an ad of this lifetime is stale."""
        if self._new:
            self._gaps = self._gaps.add(now_us // SECOND_US, self._new)
            self._new.clear()
        return self._gaps.two_updates(lifetime_us // SECOND_US) * SECOND_US

    def cursors(self, now_us: int) -> tuple[Cursor, ...]:
        """Return the times, if they are not those that are stored."""
        self.two_updates_us(0, now_us)
        return self._kept.offer(self._gaps.text)

    def stored(self) -> None:
        """Say that the last cursor is in the ledger."""
        self._kept.stored()


class Silence:
    """Before when a pilot was heard of last that is silent; 0 if that is not known."""

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self._kept = PersistedState(SOURCE, SILENT_BEFORE, cursors)
        self.before_us = silent_before_us(cursors)

    def note(self, before_us: int | None) -> None:
        """Take in what a poll says; None: it says nothing."""
        if before_us is not None:
            self.before_us = before_us

    def cursors(self) -> tuple[Cursor, ...]:
        """Return what is not stored yet."""
        return self._kept.offer(str(self.before_us // SECOND_US)) if self.before_us else ()

    def stored(self) -> None:
        """Say that the last cursor is in the ledger."""
        self._kept.stored()


def silent_before_us(cursors: Mapping[tuple[str, str], Cursor]) -> int:
    """Return the same as it is stored."""
    kept = cursors.get((SOURCE, SILENT_BEFORE))
    return int(kept.state) * SECOND_US if kept is not None and is_number(kept.state) else 0


def is_silent(
    identity: PilotIdentity, end_us: int | None, last_heard_us: int, silent_before_us: int
) -> bool:
    """Return whether a pilot that collectors have shown is silent; one that has ended is not."""
    return end_us is None and identity.origin == "collector" and last_heard_us < silent_before_us


def silent_pilots(pilots: Iterable[OpenPilot], silent_before_us: int) -> list[OpenPilot]:
    """Return the pilots that are silent, those that were heard of latest first."""
    found = [
        pilot
        for pilot in pilots
        if is_silent(pilot.identity, pilot.end_us, pilot.last_heard_us, silent_before_us)
        and not is_failed(pilot)
    ]
    return sorted(found, key=lambda pilot: (-pilot.last_heard_us, pilot.id))
