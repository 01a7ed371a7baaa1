"""What was assumed of an entry's pilots, anew, when all that is known of the entry is known.

A pilot whose size or site is not known gets what its entry's others have reported by then, and
keeps it, so that a running pilot does not follow each other one.  Files are read in any order, so
an import goes over its entries at its end: then the order has made no difference.

Units: memory is MiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.pilot_facts import DefaultSize, ReportedSize, replace
from gwmond.model.pilots.stored_pilots import PilotId, PilotKind
from gwmond.pilots.factory.summaries import resize
from gwmond.pilots.memory.open_pilot import SIZES, OpenPilot
from gwmond.pilots.memory.sizes import Filled, Sizes, most


class SizeChange(NamedTuple):
    """What is to become of some pilots of an entry; ``rules``: by which their size is assumed."""

    size: Size
    rules: frozenset[Assumption]
    site: str
    factory: str


def changes(
    entry: str, kinds: Mapping[PilotKind, Sequence[PilotId]], memory_per_unit_mib: int
) -> Iterator[tuple[SizeChange, Sequence[PilotId]]]:
    """Yield which pilots are to become what, of those that are not so already.

    Where no pilot of the entry reports a size, or a site, what was assumed of it stays.
    """
    sizes = Sizes(memory_per_unit_mib)
    sites, factories = Counter[str](), Counter[str]()
    for kind, ids in sorted(kinds.items(), key=lambda kind: (-len(kind[1]), repr(kind[0]))):
        sizes.note(entry, *kind.reported[:3], number=len(ids))
        if kind.reported.site:
            sites[kind.site] += len(ids)
        if kind.factory and Assumption.NO_OUTPUT not in kind.rules:
            factories[kind.factory] += len(ids)
    site, factory = most(sites), most(factories)
    for kind, ids in kinds.items():
        reported = kind.reported
        filled = sizes.fill(entry, *reported[:3])
        size, rules = _filled(kind, reported, filled, sizes.reported(entry))
        change = SizeChange(
            size,
            rules,
            kind.site if reported.site or site is None else site,
            factory if factory is not None and Assumption.NO_OUTPUT in kind.rules else kind.factory,
        )
        if change != (kind.size, kind.rules & SIZES, kind.site, kind.factory):
            yield change, ids


def _filled(
    kind: PilotKind, reported: ReportedSize, filled: Filled, of_entry: frozenset[Assumption]
) -> tuple[Size, frozenset[Assumption]]:
    """Return a pilot's size, new only where something was missing and anything is known of it."""
    fresh = set()
    if None in {reported.cores, reported.memory_mib} and Assumption.SIZE in of_entry:
        fresh.add(Assumption.SIZE)
    if reported.gpus is None and Assumption.GPUS in of_entry:
        fresh.add(Assumption.GPUS)
    cores, memory_mib, _ = filled.size if Assumption.SIZE in fresh else kind.size
    gpus = (filled.size if Assumption.GPUS in fresh else kind.size).gpus
    rules = (filled.rules & fresh) | (kind.rules & (SIZES - fresh))
    return Size(cores, memory_mib, gpus), frozenset(rules)


def resized(pilot: OpenPilot, change: SizeChange) -> bool:
    """Give a pilot its size; return whether how long its jobs ran may depend on that."""
    size = DefaultSize(change.size, tuple(sorted(change.rules)))
    decisions = replace(pilot.facts.decisions, size=size)
    pilot.learn(replace(pilot.facts, decisions=decisions))
    resize(pilot, change.size)
    return any(run.summarised for run in pilot.runs.values())
