"""Pilots that are experiments on verdicts (``pilots.verdict_check``), and what is to be stored.

An experiment is stored with the batch in which its pilot is, and counted with the one that stores
its result: so each counts once, whenever the process ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TypeAlias

from gwmond.model.entries.experiments import Experiment, PilotResult
from gwmond.model.facts import Pilot
from gwmond.model.pilots.stored_pilots import CountKey, PilotId
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.verdict_check import Verdicts, Watched, registered, result, waited

ByName: TypeAlias = Mapping[str, Sequence[OpenPilot]]


class Experiments:
    """Experiments that are open, and those that changed since the last batch was stored."""

    def __init__(self, stored: Iterable[Experiment], wait_us: int) -> None:
        self._open = {key.pilot: key for key in stored}
        self._changed: dict[PilotId, Experiment] = {}
        self._begun = set(self._open)
        self._wait_us = wait_us

    def begin(self, before: Verdicts, shown: Iterable[Pilot], now_us: int, by_name: ByName) -> None:
        """Take in known pilots that have registered since ``before``."""
        for pilot, experiment in registered(before, shown, now_us, self._wait_us):
            same = max(by_name.get(pilot.name, ()), key=attrgetter("start_us"), default=None)
            if same is not None and same.id not in self._begun:
                self._begun.add(same.id)
                self._open[same.id] = experiment._replace(pilot=same.id)
                self._changed[same.id] = self._open[same.id]

    def settle(self, pilots: Mapping[PilotId, OpenPilot], known_us: int) -> None:
        """Decide what can be; one of which the accounting has no pilot any more was none."""
        self._begun &= pilots.keys()
        for number, key in list(self._open.items()):
            pilot = pilots.get(number)
            found = PilotResult.VOID if pilot is None else self._result(key, pilot, known_us)
            if found is not PilotResult.OPEN:
                del self._open[number]
                self._changed[number] = key._replace(result=found)

    def _result(self, experiment: Experiment, pilot: OpenPilot, known_us: int) -> PilotResult:
        starts: dict[bool, list[int]] = {True: [], False: []}
        for run in pilot.runs.values():
            if not run.summarised:
                starts[waited(run.key.job, experiment.verdict_us)].append(run.start_us)
        first_us, other_us = (min(starts[then], default=None) for then in (True, False))
        watched = Watched(first_us, other_us, pilot.end_us, pilot.last_heard_us)
        return result(experiment, watched, known_us, self._wait_us)

    def rows(self) -> tuple[Experiment, ...]:
        """Return what is to be stored."""
        return tuple(self._changed[number] for number in sorted(self._changed))

    def counts(self) -> Counter[CountKey]:
        """Return how many verdicts were confirmed and refuted that are to be stored."""
        return Counter(
            CountKey("verdicts", key.verdict.state, str(key.agreed).lower(), *key.entry, key.group)
            for key in self._changed.values()
            if key.agreed is not None
        )

    def stored(self) -> None:
        """Say that they are stored."""
        self._changed.clear()
