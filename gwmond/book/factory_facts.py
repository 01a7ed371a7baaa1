"""What a factory's files tell of pilots: their outputs, its queue, its summary.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gwmond.accounting.factory_jobs import NewFact, Place
from gwmond.accounting.pilot_evidence import CompletedPilot, FileFact, PilotOutput, QueueEvent
from gwmond.book.entries import Entries
from gwmond.book.factory_jobs import FactoryJobs
from gwmond.book.joining import Joining
from gwmond.book.outputs import Outputs
from gwmond.book.rules import FAR_US, Lookup, Rules
from gwmond.book.shelf import Shelf
from gwmond.book.sightings import Sightings
from gwmond.book.unended import give_up


class FactoryFacts:
    """Hands each kind of fact to what joins it with pilots."""

    def __init__(self, shelf: Shelf, sightings: Sightings, joining: Joining, rules: Rules) -> None:
        self._shelf = shelf
        self._joining = joining
        self._entries = entries = Entries(sightings.sizes)
        self._outputs = Outputs(shelf, sightings, joining, entries, rules)
        self._jobs = FactoryJobs(shelf, sightings, joining, entries, rules)
        self._watched_us: int | None = None
        self._seen_us = 0

    def load(self, places: Iterable[Place]) -> None:
        """Go on with what waits for its pilot."""
        self._jobs.load(places)

    @property
    def left_out(self) -> Counter[str]:
        """How many facts could not be accounted so far, by the reason.

        Without outputs that tell no time, which are named when they are read.
        """
        found = Counter({"bad_time": self._outputs.absurd})
        found["too_many_runs"] = self._outputs.crowded
        found.update(self._jobs.left_out)
        return found

    @property
    def entries(self) -> frozenset[str]:
        """The entries of which files have told since the start."""
        return frozenset(self._entries.known)

    def watch(self, now_us: int, period_us: int, *, complete: bool) -> None:
        """Note whether collectors show all pilots, without a gap."""
        if not complete:
            self._watched_us = None
        elif self._watched_us is None or now_us - self._seen_us > 3 * period_us:
            self._watched_us = now_us
        self._seen_us = now_us

    def take(self, facts: Sequence[FileFact], lookup: Lookup) -> list[NewFact]:
        """Take in facts; return those of the factory that it had not told before."""
        outputs = [of for of in facts if isinstance(of, PilotOutput)]
        if outputs:
            self._jobs.reported(self._outputs.take(outputs, lookup))
        told = [of for of in facts if isinstance(of, QueueEvent | CompletedPilot | PilotOutput)]
        return self._jobs.take(told, lookup) if told else []

    def hurry(self, ahead_us: int) -> None:
        """Wait for better as if it were so much later: no more comes of the files."""
        self._jobs.ahead_us = ahead_us

    def settle(self, now_us: int, clock_us: int, lookup: Lookup) -> None:
        """Use what can be used by now, by the clock at ``clock_us``."""
        for pilot in self._shelf.pilots.values():
            if pilot.from_us < FAR_US and pilot.end_us is not None:
                self._jobs.touch(pilot)
        self._jobs.settle(now_us, clock_us, self._watched_us, lookup)
        for pilot in self._shelf.pilots.values():
            if pilot.waits and not self._jobs.knows(pilot):
                give_up(pilot)

    def leave_out(self, place: str) -> None:
        """Forget what is not stored of a place, as it cannot be."""
        self._jobs.leave_out(place)

    def rows(self) -> tuple[Place, ...]:
        """Return what waits and is not stored."""
        return self._jobs.rows()

    def stored(self) -> None:
        """Say that it is stored."""
        self._jobs.stored()
