"""What the accounting of pilots asks of the ledger, and what the ledger answers.

The accounting makes no query.  Each step collects the keys of what may be stored and is not in
memory; these are fetched in one batch, and then the step runs.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple, TypeAlias

from gwmond.model.factory.jobs import QueueRecord, place_name
from gwmond.model.pilots.stored_pilots import PilotId, PilotRow, RunRow

Moment: TypeAlias = tuple[str, int]
"""A node (``short_node``), and a time at which a line about it was written."""


@dataclass(slots=True)
class PilotKeys:
    """Keys of what is to be fetched.

    - ``startds``: names of startds, of which all pilots are asked for.
    - ``bare_startds``: such names up to the ``@``.
    - ``factory.jobs``: ``schedd#cluster.proc``; ``factory.numbers``: of any schedd.
    - ``on_nodes``: pilots that ended and were on a node at one of these moments;
      ``nameless``: pilots without a startd's name that may have been.
    - ``entries``: some of the latest pilots of these entries.
    - ``places``: what a factory's queue and summary say there (see ``QueueRecord``).
    - ``jobs``: all runs of these jobs, and the pilots on which they were.
    - ``pilots``: pilots by number; ``whole``: all runs on these pilots.
    - ``guard_us``: by how much the clock of a node may differ.
    """

    startds: set[str] = field(default_factory=set)
    bare_startds: set[str] = field(default_factory=set)
    factory_jobs: set[str] = field(default_factory=set)
    factory_numbers: set[str] = field(default_factory=set)
    on_nodes: set[Moment] = field(default_factory=set)
    nameless: set[Moment] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    pilots: set[PilotId] = field(default_factory=set)
    whole: set[PilotId] = field(default_factory=set)
    guard_us: int = 0

    def __bool__(self) -> bool:
        """Return whether anything is asked for."""
        return any(getattr(self, name) for name in _SETS)

    def update(self, other: PilotKeys) -> None:
        """Ask for the keys of the other, too."""
        for name in _SETS:
            getattr(self, name).update(getattr(other, name))
        self.guard_us = max(self.guard_us, other.guard_us)

    def add_place(self, entry: str, number: str) -> None:
        """Ask for all that is stored of a job of a factory (``cluster.proc``)."""
        self.places.add(place_name(entry, number))
        self.factory_numbers.add(number)


_SETS = tuple(kind.name for kind in fields(PilotKeys) if kind.name != "guard_us")


class PilotRows(NamedTuple):
    """What is stored under some keys; what is not stored has no entry."""

    keys: PilotKeys
    pilots: Sequence[PilotRow]
    entries: Mapping[str, Sequence[PilotRow]]
    places: Mapping[str, QueueRecord]
    runs: Sequence[RunRow]
    whole: Mapping[PilotId, Sequence[RunRow]]
