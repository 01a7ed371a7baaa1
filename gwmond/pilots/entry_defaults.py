"""What pilots of an entry have in common: for those of which nothing tells it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gwmond.model.pilot_evidence import PilotOutput
from gwmond.model.pilot_facts import Assumption
from gwmond.pilots.rules import Lookup
from gwmond.pilots.sizes import Sizes


class Entries:
    """Sites and factories by entry, and what the ledger knows of the sizes of their pilots.

    What was learnt before a restart is asked of the ledger, so that it makes no difference.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._sites: dict[str, str] = {}
        self._factories: dict[str, str] = {}
        self.known: set[str] = set()  # entries of which anything was told since the start

    def recall(self, entries: Collection[str], lookup: Lookup) -> None:
        """Learn from the ledger of entries that were not asked for before."""
        new = set(entries) - self.known
        if not new:
            return
        self.known |= new
        for entry, rows in lookup.pilots_of_entries(new).items():
            for row in rows:
                if row.closed and row.steps and Assumption.LIFE not in row.assumed:
                    reported = row.facts.reported(row.identity.origin)
                    self._sizes.note(entry, *reported[:3])
                if row.identity.key.site != entry:
                    self._sites.setdefault(entry, row.identity.key.site)
                if row.identity.factory:
                    self._factories.setdefault(entry, row.identity.factory)

    def learn(self, outputs: Sequence[PilotOutput], lookup: Lookup) -> None:
        """Learn from outputs."""
        self.recall({output.name.entry for output in outputs}, lookup)
        for output in outputs:
            entry = output.name.entry
            self._sizes.note(entry, output.cores, output.memory_mib, output.gpus)
            if output.name.site:
                self._sites[entry] = output.name.site
            if output.name.factory:
                self._factories[entry] = output.name.factory

    def site(self, entry: str) -> str:
        """Return the site of an entry's pilots, empty if none has told it."""
        return self._sites.get(entry, "")

    def factory(self, entry: str) -> str:
        """Return the factory of an entry's pilots, empty if none has told it."""
        return self._factories.get(entry, "")
