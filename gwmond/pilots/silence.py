"""Which pilots are silent: their ads were not renewed for two updates.

Units: times are microseconds since the epoch, by the collector's clock; the cursor has seconds.

Each poll says before when a pilot was heard of last that is silent (see ``sites.contacts``).
That is kept in the ledger beside the contacts, so that whoever reads it says the same as the poll.
"""

from __future__ import annotations

from collections.abc import Mapping

from gwmond.model.cursor_kinds import SILENT_BEFORE
from gwmond.model.digits import is_number
from gwmond.model.facts import Cursor
from gwmond.model.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots.kept import Kept

SOURCE = "collector"


class Silence:
    """Before when a pilot was heard of last that is silent; 0 if that is not known."""

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self._kept = Kept(SOURCE, SILENT_BEFORE, cursors)
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
    identity: PilotIdentity, end_us: int | None, heard_us: int, silent_before_us: int
) -> bool:
    """Return whether a pilot that collectors have shown is silent; one that has ended is not."""
    return end_us is None and identity.origin == "collector" and heard_us < silent_before_us
