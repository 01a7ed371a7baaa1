"""What pilots of an entry have in common: for those where it is not known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import PilotOutput
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.assign import PilotAssignment
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.sizes import Sizes
from gwmond.pilots.runs.matcher import RunMatcher

MOST_ENTRIES = 10_000
"""Where more have been known, those of the past are forgotten, as by a restart."""


class Entries:
    """Sites and factories by entry, and what the ledger knows of the sizes of their pilots.

    What was learnt before a restart is asked of the ledger, so that it makes no difference.
    """

    def __init__(self, sizes: Sizes, cache: PilotCache) -> None:
        self._sizes, self._cache = sizes, cache
        self.known: set[str] = set()  # entries for which anything was reported since the start

    def unknown(self, entries: Iterable[str]) -> set[str]:
        """Return those of entries of which the ledger was not asked yet."""
        return set(entries) - self.known

    def forget_old(self) -> None:
        """Forget all but what pilots in memory tell, where it is of too many entries."""
        if max(len(self.known), len(self._cache.sites), len(self._cache.factories)) > MOST_ENTRIES:
            self.known = set()
            self._cache.forget_places()

    def load(self, entries: Collection[str], stored: Mapping[str, Sequence[PilotRow]]) -> None:
        """Learn from what the ledger has of entries."""
        for entry in set(entries) - self.known:
            for row in stored.get(entry, ()):
                if row.closed and row.steps and Assumption.LIFE not in row.assumed:
                    reported = row.facts.reported(row.identity.origin)
                    self._sizes.note(entry, *reported[:3])
                self._cache.note_place(row.identity)
        self.known |= set(entries)

    def learn(self, outputs: Sequence[PilotOutput]) -> None:
        """Learn from outputs."""
        for output in outputs:
            entry = output.name.entry
            self._sizes.note(entry, output.cores, output.memory_mib, output.gpus)
            if output.name.site:
                self._cache.sites[entry] = output.name.site
            if output.name.factory:
                self._cache.factories[entry] = output.name.factory

    def site(self, entry: str) -> str:
        """Return the site of an entry's pilots, empty if none has reported it."""
        return self._cache.sites.get(entry, "")

    def factory(self, entry: str) -> str:
        """Return the factory of an entry's pilots, empty if none has reported it."""
        return self._cache.factories.get(entry, "")


class KnownPilots(NamedTuple):
    """The pilots in memory, which pilot each fact is of, their sizes, their runs."""

    cache: PilotCache
    assignment: PilotAssignment
    sizes: Sizes
    matcher: RunMatcher
    rules: Rules
