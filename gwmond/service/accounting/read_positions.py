"""How far each source's records have been taken, and what is not in the ledger yet of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gwmond.ledger.database.columns import identity
from gwmond.model.cursor_kinds import BEGIN_KINDS
from gwmond.model.facts import Cursor


class ReadPositions:
    """The cursors of all sources, by source and kind."""

    def __init__(self) -> None:
        self._cursors: dict[tuple[str, str], Cursor] = {}
        self._moved_on: set[tuple[str, str]] = set()

    def resume(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        """Go on from what a ledger holds."""
        self._cursors = dict(cursors)
        self.stored()

    def stored(self) -> None:
        """Take note that all of them are in the ledger."""
        self._moved_on.clear()

    def pruned(self, left: Iterable[tuple[str, str]]) -> None:
        """Forget those that the ledger has forgotten; ``left``: what it still has."""
        keys = {*left, *self._moved_on}
        self._cursors = {key: cursor for key, cursor in self._cursors.items() if key in keys}

    def move_on(self, cursor: Cursor | None) -> None:
        """Take note how far a source has been read."""
        if cursor is None:
            return
        cursor = cursor._replace(source=identity(cursor.source))  # as it comes back from the ledger
        key = cursor.source, cursor.kind
        if cursor != self._cursors.get(key):
            self._cursors[key] = cursor
            self._moved_on.add(key)

    @property
    def unstored(self) -> list[Cursor]:
        """Those that are not in the ledger yet."""
        return [self._cursors[key] for key in sorted(self._moved_on)]

    @property
    def all(self) -> tuple[Cursor, ...]:
        """Those of all sources, begins of histories as well."""
        return tuple(self._cursors.values())

    @property
    def of_records(self) -> tuple[Cursor, ...]:
        """Those of records, in the order of their sources."""
        kinds = set(BEGIN_KINDS.values())
        return tuple(cursor for key, cursor in sorted(self._cursors.items()) if key[1] not in kinds)

    def of(self, source: str, kind: str) -> Cursor | None:
        """Return how far a source's records have been taken."""
        return self._cursors.get((identity(source), kind))
