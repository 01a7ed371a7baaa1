"""What a factory's queue and summary report on each of its jobs: in memory, and to be stored.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.pilots.file_facts import CompletedPilot, PilotOutput
from gwmond.model.poll.pilot_keys import PilotKeys, PilotRows
from gwmond.model.problem_names import ProblemName
from gwmond.pilots.factory.records import NewFact, PlaceFact, add
from gwmond.pilots.life.rules import sane


class Agenda:
    """Names and times, at most one pending time of each that counts: the earliest."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._next: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, name: str, due_us: int) -> None:
        """Have a name looked at then; if it is before, then it has to be added again."""
        if name not in self._next or due_us < self._next[name]:
            self._next[name] = due_us
            heappush(self._heap, (due_us, name))

    def take(self, now_us: int) -> set[str]:
        """Return the names that are due, and forget them."""
        names: set[str] = set()
        while self._heap and self._heap[0][0] <= now_us:
            due_us, name = heappop(self._heap)
            if self._next.get(name) == due_us:
                del self._next[name]
            names.add(name)
        return names


class QueueRecords:
    """Places of which more may follow, by name; ``left_out`` counts what is not used, and why."""

    def __init__(self) -> None:
        self._places: dict[str, QueueRecord] = {}
        self._told_us: dict[str, int] = {}
        self._changed: set[str] = set()
        self._fresh: set[str] = (
            set()
        )  # at which something was reported, at the time of the next use
        self._unread: set[str] = set()  # outputs there may have grown before the start
        self._dirty: set[str] = set()
        self._asked: set[str] = set()  # of which all that is stored is in memory
        self._agenda = Agenda()
        self.left_out: Counter[ProblemName] = Counter()
        self.named: dict[ProblemName, str] = {}  # the latest place of each problem

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> QueueRecord:
        return self._places[name]

    def load(self, places: Iterable[QueueRecord]) -> None:
        """Go on with places that are open."""
        for place in places:
            self._places[place.name] = place
            for names in (self._changed, self._fresh, self._unread):
                names.add(place.name)

    def keys(self, facts: Iterable[PlaceFact]) -> PilotKeys:
        """Return the keys of what may be stored of the places of facts."""
        keys = PilotKeys()
        for name in (fact.name for fact in facts):
            if name.cluster is not None and name.proc is not None:
                keys.add_place(name.entry, f"{name.cluster}.{name.proc}")
        return keys

    def load_stored(self, rows: PilotRows) -> None:
        """Take in the places that were fetched and are not in memory."""
        self._asked |= rows.keys.places
        new = rows.places.keys() - self._places.keys()
        self._places |= {name: rows.places[name] for name in new}
        self._fresh |= new  # so that what is open again is waited for, but not for ever

    def take(self, facts: Sequence[PlaceFact]) -> list[NewFact]:
        """Take in events and lines, and that outputs have come; return those not reported before.

        What is of no place, or of no time that makes sense, is among them.
        """
        by_place: defaultdict[tuple[str, str], list[PlaceFact]] = defaultdict(list)
        new: list[NewFact] = []
        for fact in facts:
            name = fact.name
            at_us = fact.written_us if isinstance(fact, CompletedPilot) else fact.at_us
            if not sane(at_us):
                self.left_out[ProblemName.BAD_TIME] += not isinstance(fact, PilotOutput)
                new.append(fact)
            elif name.cluster is not None and name.proc is not None:
                by_place[name.entry, f"{name.cluster}.{name.proc}"].append(fact)
            else:
                new.append(fact)
        for place, new_facts in by_place.items():
            new += self._add(QueueRecord(*place, open=False), new_facts)
        return new

    def _add(self, unknown: QueueRecord, facts: Sequence[PlaceFact]) -> list[NewFact]:
        """Take in the facts of a place, which is ``unknown`` if it neither is here nor stored."""
        name = unknown.name
        before = self._places.get(name, unknown)
        after, new, cut = add(before, facts)
        if cut and ProblemName.TOO_MANY_EVENTS not in before.checked:
            self.left_out[ProblemName.TOO_MANY_EVENTS] += 1
            self.named[ProblemName.TOO_MANY_EVENTS] = name
            after = after._replace(checked=(*after.checked, ProblemName.TOO_MANY_EVENTS.value))
        if after != before:
            more = after._replace(outputs=before.outputs) != before
            self._put(after._replace(open=True) if more else after)
            self._changed.add(name)
            self._fresh |= {name} if more else set()
        return new

    def change(self, name: str) -> None:
        """Say that more is known of a pilot there: what was reported there is used anew."""
        self._changed.add(name)

    def reported(self, names: Iterable[str]) -> None:
        """Say that outputs at places have come: all that is reported there is used anew."""
        names = set(names)
        self._changed |= names
        self._fresh |= names
        self._unread -= names

    def again(self, name: str, due_us: int) -> None:
        """Have what was reported at a place used anew then."""
        self._agenda.add(name, due_us)

    def due(self, now_us: int, late_us: int, missing: PilotKeys) -> list[str]:
        """Return the places to be used now, sorted; ``late_us``: up to when it was waited for.

        Those of which what is stored was not asked for yet are ``missing``.
        """
        self._changed |= self._agenda.take(late_us)
        for name in self._changed - self._asked:
            entry, _, number = name.rpartition("#")
            missing.add_place(entry, number)
        self._changed -= self._asked - self._places.keys()  # nothing is stored of these
        names = self._changed & self._asked
        fresh = self._fresh & names
        self._told_us |= dict.fromkeys(fresh, now_us)
        self._fresh -= fresh
        self._changed -= names
        return sorted(names)

    def is_missing(self, name: str) -> bool:
        """Return whether what is stored of a place is to be used and was not asked for yet."""
        return name in self._changed and name not in self._asked

    def told_us(self, name: str, now_us: int) -> int:
        """Return when something was reported at a place last, or gwmond was started; else now."""
        return self._told_us.get(name, now_us)

    def unread(self, name: str) -> bool:
        """Return whether no output at a place was read since the start."""
        return name in self._unread

    def keep(self, name: str, *, waits: bool) -> None:
        """Say whether more may follow from a place."""
        place = self._places[name]
        if place.open is not waits:
            self._put(place._replace(open=waits))

    def leave(self, name: str, problem: ProblemName) -> bool:
        """Count a problem, once for a place; return True."""
        if self.once(name, problem.value):
            self.left_out[problem] += 1
            self.named[problem] = name
        return True

    def once(self, name: str, word: str) -> bool:
        """Note a word at a place; return whether it is new there."""
        place = self._places[name]
        if word in place.checked:
            return False
        self._put(place._replace(checked=(*place.checked, word)))
        return True

    def leave_out(self, name: str) -> None:
        """Forget what is not stored of a place, as it cannot be."""
        self._places.pop(name, None)
        self._told_us.pop(name, None)
        for names in (self._dirty, self._changed, self._fresh, self._unread):
            names.discard(name)

    def rows(self) -> tuple[QueueRecord, ...]:
        """Return the places that are not stored as they are."""
        return tuple(self._places[name] for name in sorted(self._dirty))

    def stored(self) -> None:
        """Say that they are stored; forget those of which nothing more is expected."""
        self._dirty.clear()
        self._asked.clear()
        for name in [name for name, record in self._places.items() if not record.open]:
            if name not in self._changed:
                del self._places[name]
                self._told_us.pop(name, None)
                self._fresh.discard(name)

    def _put(self, place: QueueRecord) -> None:
        self._places[place.name] = place
        self._dirty.add(place.name)
