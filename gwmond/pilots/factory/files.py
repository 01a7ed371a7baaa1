"""What a factory's files report of pilots: their outputs, its queue, its summary.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gwmond.model.pilots.file_facts import CompletedPilot, FileFact, PilotOutput, QueueEvent
from gwmond.model.poll.pilot_keys import PilotKeys, PilotRows
from gwmond.model.problem_names import ProblemName
from gwmond.pilots.factory.entry_defaults import Entries
from gwmond.pilots.factory.jobs import FactoryJobs
from gwmond.pilots.factory.known_pilots import KnownPilots
from gwmond.pilots.factory.outputs import Outputs
from gwmond.pilots.factory.queue_records import QueueRecords
from gwmond.pilots.factory.records import NewFact, PlaceFact
from gwmond.pilots.life.rules import FAR_US, ExpectedInput
from gwmond.pilots.memory.cache import place_of
from gwmond.pilots.memory.missing_end import give_up
from gwmond.pilots.memory.open_pilot import OpenPilot


class FactoryFacts:
    """Hands each kind of fact to what joins it with pilots; ``places`` is what waits for them."""

    def __init__(self, known: KnownPilots) -> None:
        self._cache = known.cache
        self._entries = Entries(known.sizes, known.cache)
        self._outputs = Outputs(known, self._entries)
        self.places = QueueRecords()
        self._jobs = FactoryJobs(known, self._entries, self.places)

    @property
    def left_out(self) -> Counter[ProblemName]:
        """How many facts could not be accounted so far, by the reason.

        Without outputs without a time, which are named when they are read.
        """
        found = Counter({ProblemName.BAD_TIME: self._outputs.absurd})
        found[ProblemName.TOO_MANY_RUNS] = self._outputs.crowded
        found.update(self.places.left_out)
        return found

    def shown(self, reason: ProblemName, number: int) -> str:
        """Say how many facts could not be accounted, and the latest of their pilots, if known."""
        name = self.places.named.get(reason)
        return f"{number} records" + (f", the latest of the pilot {name}" if name else "")

    def resized(self, pilot: OpenPilot) -> None:
        """Say that its cores are others: what a summary reports of it is used anew."""
        if pilot.identity.factory_job and not pilot.pruned:
            self.places.change(place_of(pilot.identity))

    @property
    def entries(self) -> frozenset[str]:
        """The entries for which files have reported since the start."""
        return frozenset(self._entries.known)

    def keys(self, facts: Sequence[FileFact]) -> PilotKeys:
        """Return the keys of what may be stored of the pilots and places of facts."""
        keys = self._outputs.keys([fact for fact in facts if isinstance(fact, PilotOutput)])
        keys.update(self.places.keys(_of_places(facts)))
        return keys

    def load(self, rows: PilotRows) -> None:
        """Take in what was fetched."""
        self._entries.load(rows.keys.entries, rows.entries)
        self.places.load_stored(rows)

    def take(self, facts: Sequence[FileFact]) -> list[NewFact]:
        """Take in facts; return those of the factory that it had not reported before.

        Those that wait for missing runs are taken in when this is called again.
        """
        outputs = [fact for fact in facts if isinstance(fact, PilotOutput)]
        self.places.reported(self._outputs.take(outputs))
        return self.places.take(_of_places(facts))

    def settle(self, now_us: int, expected: ExpectedInput) -> None:
        """Use what can be used by now, and by what more may be reported."""
        for pilot in self._cache.pilots.values():
            if pilot.changed_since_us < FAR_US and pilot.end_us is not None:
                self._jobs.mark_changed(pilot)
        self._jobs.settle(now_us, expected)
        for pilot in self._cache.pilots.values():
            if pilot.end_unknown:
                place = place_of(pilot.identity)
                if place not in self.places and not self.places.is_missing(place):
                    give_up(pilot)


def _of_places(facts: Sequence[FileFact]) -> list[PlaceFact]:
    """Return the facts that are of a job of a factory."""
    return [fact for fact in facts if isinstance(fact, QueueEvent | CompletedPilot | PilotOutput)]
