"""What the book keeps in the ledger as a cursor, though it is of no source that is read."""

from __future__ import annotations

from collections.abc import Mapping

from gwmond.model.facts import Cursor


class Kept:
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
