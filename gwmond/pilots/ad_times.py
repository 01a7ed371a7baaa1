"""How often pilots' ads are renewed, and which pilots are silent; kept in the ledger as cursors.

Units: microseconds, times since the epoch by the collector's clock; the cursors have whole seconds.

**Gaps.** A collector drops an ad that was not renewed for its lifetime, which it may have set
otherwise (CLASSAD_LIFETIME) than the ad says (ClassAdLifetime), or than its default of 900 s.  So
an ad that was not renewed for twice as long as usual counts as expired.  The latest gaps are in the
ledger: a daemon that was started a moment ago knows as much as the one before.

**Silence.** A pilot is silent if its ads were not renewed for two updates.  Each poll says before
when a pilot was heard of last that is silent (see ``sites.contacts``).  That is kept beside the
contacts, so that whoever reads it says the same as the poll.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from gwmond.model.cursor_kinds import SILENT_BEFORE, UPDATE_GAPS
from gwmond.model.digits import is_number
from gwmond.model.facts import Cursor
from gwmond.model.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots.failed import is_failed
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.rules import FAR_US


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
_GAPS, _STORED, _FEW = 1000, 100, 5


class UpdateGaps:
    """The latest gaps; few of them show nothing."""

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self._kept = PersistedState(SOURCE, UPDATE_GAPS, cursors)
        self._gaps: deque[int] = deque(maxlen=_GAPS)
        self._gaps.extend(
            int(word) * SECOND_US for word in self._kept.text.split() if is_number(word)
        )

    def note(self, gap_us: int) -> None:
        """Take in the time between two updates of one pilot's ads, which was watched meanwhile."""
        self._gaps.append(gap_us)

    def longest_us(self) -> int:
        """Return how long an ad that is alive may go without an update; far, if not known."""
        if len(self._gaps) < _FEW:
            return FAR_US
        return 2 * sorted(self._gaps)[len(self._gaps) * 9 // 10]

    def cursors(self) -> tuple[Cursor, ...]:
        """Return the latest gaps, if they are not those that are stored."""
        latest = list(self._gaps)[-_STORED:]
        return self._kept.offer(" ".join(str(-(-number // SECOND_US)) for number in latest))

    def stored(self) -> None:
        """Say that the last cursor is in the ledger."""
        self._kept.stored()


SOURCE = "collector"


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
