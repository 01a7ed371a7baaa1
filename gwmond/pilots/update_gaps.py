"""How long pilots usually let pass between two updates of their ads, as it was watched lately.

Units: microseconds; the cursor has whole seconds.

A collector drops an ad that was not renewed for its lifetime, which it may have set otherwise
(CLASSAD_LIFETIME) than the ad says (ClassAdLifetime), or than its default of 900 s.  So an ad that
was not renewed for twice as long as usual counts as expired.  The latest gaps are in the ledger: a
daemon that was started a moment ago knows as much as the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from gwmond.model.cursor_kinds import UPDATE_GAPS
from gwmond.model.digits import is_number
from gwmond.model.facts import Cursor
from gwmond.model.times import SECOND_US
from gwmond.pilots.kept import Kept
from gwmond.pilots.rules import FAR_US

SOURCE = "collector"
_GAPS, _STORED, _FEW = 1000, 100, 5


class UpdateGaps:
    """The latest gaps; few of them tell nothing."""

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self._kept = Kept(SOURCE, UPDATE_GAPS, cursors)
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
