"""How large a pilot is whose size is not known.

Units: memory is MiB.

In this order: what most pilots of the entry have; what its glideresource ads say that a frontend
gets there; a canonical unit for each core, one core if that is not known either.  A pilot's own
number counts before all of these: where it has its cores and not its memory, it has the memory
that most of the entry with as many cores have; where there is none, as much for each core as most
pilots of the entry have.  With its memory alone the same the other way, in whole cores.  The same
for GPUs, but that most entries have none: where neither its other pilots nor its ads have any,
there is none, and nothing was assumed.

What is resolved so is estimated (``Assumption.SIZE``, ``Assumption.GPUS``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from gwmond.model.facts import EntryRequest, Size
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.pilot_facts import DefaultSize, replace
from gwmond.model.sizes import is_below_one_unit
from gwmond.model.units import MAX_CORES, MAX_MEMORY_MIB
from gwmond.pilots.memory.open_pilot import OpenPilot

LEAST_MEMORY_MIB = 16
"""No pilot has less: what says so is a dummy."""
_KINDS = 100

T = TypeVar("T", float, str, tuple[float, float])


class Filled(NamedTuple):
    """A whole size, and by which rules."""

    size: Size
    rules: frozenset[Assumption]


class Sizes:
    """What is known of the sizes of each entry's pilots."""

    def __init__(self, memory_per_unit_mib: int) -> None:
        self._unit = Size(1, memory_per_unit_mib)
        self.below_one_unit: set[str] = set()
        """Entries with a pilot that is a canonical unit only as a pilot is at least one."""
        self._sizes: defaultdict[str, Counter[tuple[float, float]]] = defaultdict(Counter)
        self._gpus: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self._expected: dict[str, Size] = {}

    def expect(self, expected: Mapping[str, Size]) -> None:
        """Remember what entries' pilots are expected to have."""
        self._expected.update({e: s for e, s in expected.items() if _sound(*s[:2])})

    def note(
        self,
        entry: str,
        cores: float | None,
        memory_mib: float | None,
        gpus: float | None,
        number: int = 1,
    ) -> None:
        """Say what a number of pilots of an entry have, as far as it is known."""
        if cores is not None and memory_mib is not None and _sound(cores, memory_mib):
            _add(self._sizes[entry], (cores, memory_mib), number)
            self._measure(entry, cores, memory_mib)
        if gpus is not None and 0 <= gpus <= MAX_CORES:
            _add(self._gpus[entry], gpus, number)

    def reported(self, entry: str) -> frozenset[Assumption]:
        """Return which of a pilot's facts any pilot of an entry has reported."""
        reported = {
            Assumption.SIZE: bool(self._sizes.get(entry)),
            Assumption.GPUS: bool(self._gpus.get(entry)),
        }
        return frozenset(rule for rule, number in reported.items() if number)

    def note_pilot(self, pilot: OpenPilot) -> None:
        """Note what was reported of a pilot's size."""
        if pilot.steps and not pilot.known_from_jobs_only:
            reported = pilot.facts.reported(pilot.identity.origin)
            self.note(pilot.identity.key.entry, *reported[:3])

    def fill(
        self,
        entry: str,
        cores: float | None = None,
        memory_mib: float | None = None,
        gpus: float | None = None,
    ) -> Filled:
        """Return a size for a pilot, by what is known; implausible values count as missing."""
        cores, memory_mib, gpus = plausible(cores, memory_mib, gpus)
        rules = set()
        if cores is None or memory_mib is None:
            rules.add(Assumption.SIZE)
            cores, memory_mib = self._whole(entry, cores, memory_mib)
        self._measure(entry, cores, memory_mib)
        if gpus is None:
            expected = self._expected.get(entry)
            usually = most(self._gpus.get(entry))
            gpus = usually if usually is not None else expected.gpus if expected is not None else 0
            if gpus > 0:
                rules.add(Assumption.GPUS)
        return Filled(Size(cores, memory_mib, gpus), frozenset(rules))

    def _measure(self, entry: str, cores: float, memory_mib: float) -> None:
        if is_below_one_unit(Size(cores, memory_mib), round(self._unit.memory_mib)):
            self.below_one_unit.add(entry)

    def _whole(
        self, entry: str, cores: float | None, memory_mib: float | None
    ) -> tuple[float, float]:
        """Return a size of which this is known, and not both."""
        sizes = self._sizes.get(entry)
        usual = most(sizes) or self._expected.get(entry, (None, None))[:2]
        if usual[0] is None or usual[1] is None:
            cores = self._unit.cores if cores is None else cores
            memory = cores * self._unit.memory_mib if memory_mib is None else memory_mib
            return cores, min(memory, MAX_MEMORY_MIB)
        reported = cores, memory_mib
        same = {
            size: number
            for size, number in (sizes or {}).items()
            if all(mine in {None, its} for mine, its in zip(reported, size, strict=True))
        }
        if alike := most(Counter(same)):
            return alike
        if cores is not None:
            memory = cores * usual[1] / usual[0]
            return cores, min(max(memory, LEAST_MEMORY_MIB), MAX_MEMORY_MIB)
        memory = usual[1] if memory_mib is None else memory_mib
        return min(max(round(memory * usual[0] / usual[1]), 1), MAX_CORES), memory

    def default(self, pilot: OpenPilot) -> DefaultSize:
        """Return a size for a pilot that has reported none."""
        size, rules = self.fill(pilot.identity.key.entry)
        return DefaultSize(size, tuple(sorted(rules)))

    def assume(self, pilot: OpenPilot) -> None:
        """Assign a default size to a pilot that has reported none.

        What was assumed first stays, so that it does not follow each other pilot of the entry;
        only a single unit, for want of anything better, gives way to what is learnt later.
        """
        unit = [step.size for step in pilot.steps] == [self._unit]
        if not pilot.steps or (unit and Assumption.SIZE in pilot.assumed):
            decisions = replace(pilot.facts.decisions, size=self.default(pilot))
            pilot.learn(replace(pilot.facts, decisions=decisions))


def plausible(
    cores: float | None, memory_mib: float | None, gpus: float | None
) -> tuple[float | None, float | None, float | None]:
    """Return parts of a size, None where that makes no sense."""
    return (
        cores if cores is not None and 0 < cores <= MAX_CORES else None,
        memory_mib
        if memory_mib is not None and LEAST_MEMORY_MIB <= memory_mib <= MAX_MEMORY_MIB
        else None,
        gpus if gpus is not None and 0 <= gpus <= MAX_CORES else None,
    )


def expected_sizes(requests: Iterable[EntryRequest]) -> dict[str, Size]:
    """Return what pilots of each entry are expected to have, by the ad that was heard last."""
    ordered = sorted(requests, key=lambda request: request.last_heard)
    return {key.entry.entry: key.pilot_size for key in ordered if key.pilot_size is not None}


def _sound(cores: float, memory_mib: float) -> bool:
    return 0 < cores <= MAX_CORES and LEAST_MEMORY_MIB <= memory_mib <= MAX_MEMORY_MIB


def most(counts: Counter[T] | None) -> T | None:
    """Return what is most frequent; of several the least."""
    return min(counts, key=lambda size: (-counts[size], size)) if counts else None


def _add(to: Counter[T], value: T, number: int) -> None:
    to[value] += number
    if len(to) > _KINDS:  # an entry whose pilots are all different: forget the rare ones
        for rare, _ in to.most_common()[_KINDS // 2 :]:
            del to[rare]
