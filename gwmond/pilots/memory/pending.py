"""What is posted and not stored yet, pilot by pilot, so that one of them can be left out.

Units: amounts are micros.

How much of a pilot rests on which rule is counted with the pilot, in canonical micros of each
resource on which the rule bears: so it can be set against the canonical time of all pilots.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from gwmond.model.pilot_life import Assumption, Category, Outcome, divided
from gwmond.model.pilots.stored_pilots import (
    ASSUMED,
    MICROS,
    CountKey,
    PilotCorrection,
    PilotId,
    PilotSeries,
)
from gwmond.model.poll.batch import Batch, Part, Parts
from gwmond.model.runs.phases import Measured, bucket_of, counted_lengths
from gwmond.model.totals import Hour, Micros
from gwmond.model.units import RESOURCES, Resource
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun
from gwmond.pilots.memory.posting import Correction, own

_Increment: TypeAlias = tuple[PilotSeries, Mapping[Hour, Micros]]


class PendingAmounts:
    """Increments and corrections of hours that wait to be stored."""

    def __init__(self) -> None:
        self._added: defaultdict[PilotId, list[_Increment]] = defaultdict(list)
        self._corrections: list[PilotCorrection] = []

    def add(self, pilot: PilotId, increments: Sequence[_Increment]) -> None:
        """Take in what is new of a pilot."""
        if increments:
            self._added[pilot] += increments

    def correct(self, pilot: PilotId, corrections: Iterable[Correction], now_us: int) -> None:
        """Take in what was posted of a pilot otherwise before."""
        self._corrections += [
            PilotCorrection(now_us, pilot, hour, series, micros, cause)
            for hour, series, micros, cause in corrections
        ]

    @property
    def pilots(self) -> Collection[PilotId]:
        """The pilots of which increments wait."""
        return self._added.keys()

    @property
    def corrections(self) -> tuple[PilotCorrection, ...]:
        """Return all corrections, as they were made."""
        return tuple(self._corrections)

    def increments(
        self, pilot_ids: Iterable[PilotId] | None = None
    ) -> dict[PilotSeries, dict[Hour, Micros]]:
        """Return the increments of some pilots, or all, summed."""
        sums: defaultdict[PilotSeries, defaultdict[Hour, Micros]] = defaultdict(
            lambda: defaultdict(int)
        )
        for pilot in self._added if pilot_ids is None else pilot_ids:
            for series, hours in self._added.get(pilot, ()):
                summed = sums[series]
                for hour, micros in hours.items():
                    summed[hour] += micros
        return {series: dict(hours) for series, hours in sums.items()}

    def forget(self, pilot: PilotId) -> None:
        """Take out what waits of a pilot."""
        self._added.pop(pilot, None)
        self._corrections = [
            correction for correction in self._corrections if correction.pilot != pilot
        ]

    def clear(self) -> None:
        """Say that all of it is stored."""
        self._added.clear()
        self._corrections.clear()


class PendingCounts:
    """Counts that are not stored yet, by pilot."""

    def __init__(self, memory_per_unit_mib: int) -> None:
        self._memory_per_unit_mib = memory_per_unit_mib
        self._changes: defaultdict[PilotId, Counter[CountKey]] = defaultdict(Counter)

    @property
    def pilots(self) -> Collection[PilotId]:
        """The pilots of which changes wait."""
        return self._changes.keys()

    def changes(self, pilots: Iterable[PilotId] | None = None) -> dict[CountKey, int]:
        """Return what is to be added to the stored counts; negative where one was revised."""
        sums: Counter[CountKey] = Counter()
        for change in self._changes if pilots is None else pilots:
            sums.update(self._changes.get(change, ()))
        return {key: n for key, n in sums.items() if n}

    def forget(self, pilot: PilotId) -> None:
        """Take out what waits of a pilot."""
        self._changes.pop(pilot, None)

    def clear(self) -> None:
        """Say that the changes are stored."""
        self._changes.clear()

    def count(self, pilot: OpenPilot) -> None:
        """Count a pilot and its runs by what is decided of them now, under its name of now."""
        for run in pilot.removed:
            self._run(run, None, known=False)
        pilot.removed.clear()
        if pilot.is_renamed:
            self.uncount(pilot)
        pilot.posted_as = pilot.identity
        for run in pilot.runs.values():
            self._run(run, run.outcome, known=True)
        self._pilot(pilot, own(pilot))

    def uncount(self, pilot: OpenPilot) -> None:
        """Take a pilot and its runs out, under the name under which they were counted."""
        for run in (*pilot.removed, *pilot.runs.values()):
            self._run(run, None, known=False)
        self._pilot(pilot, None)

    def _run(self, run: OpenRun, outcome: Outcome | None, *, known: bool) -> None:
        """Count a run by its outcome; one that is not ``known`` any more is not counted at all."""
        if run.summarised:
            return  # it is no run of a job
        if run.counted == outcome and not run.dirty and known:
            return
        none, place = Category.UNCLASSIFIED, _labels(run.pilot)
        lengths: Mapping[Measured, Micros] = {}
        if outcome is not None:
            lengths = counted_lengths(run.facts, run.start_us, run.end_us)
        failure = run.merged.ending.failed_transfer if known else None
        now = outcome, lengths, failure
        before = run.counted, run.counted_us, run.counted_failure
        if now == before:
            return
        change = self._changes[run.pilot.id]
        for (counted, counted_us, failed), sign in ((before, -1), (now, 1)):
            if counted is not None:
                change[CountKey("runs", counted.category, counted.label, *place)] += sign
            for what, length_us in counted_us.items():
                change[CountKey(what, none, bucket_of(what, length_us), *place)] += sign
                change[CountKey(MICROS[what], none, "", *place)] += sign * length_us
            if failed is not None:
                change[CountKey("failed_transfers", none, failed, *place)] += sign
        run.counted, run.counted_us, run.counted_failure = now
        run.dirty = True

    def _assumed(self, pilot: OpenPilot, category: Category | None) -> None:
        now: Counter[tuple[Assumption, Resource]] = Counter()
        for resource in RESOURCES if category is not None and pilot.assumed else ():
            for rule, within in divided(pilot.assumed, resource):
                now[rule, resource] += pilot.canonical_total(
                    resource, self._memory_per_unit_mib, within
                )
        now = +now
        site, entry, group = _labels(pilot)
        for counted, amounts, sign in (
            (pilot.counted, pilot.counted_micros, -1),
            (category, now, 1),
        ):
            for (rule, resource), micros in amounts.items():
                own_ = counted or Category.UNCLASSIFIED
                key = CountKey(ASSUMED[resource], own_, rule, site, entry, group)
                self._changes[pilot.id][key] += sign * micros
        pilot.dirty |= pilot.counted_micros != now
        pilot.counted_micros = now

    def _pilot(self, pilot: OpenPilot, category: Category | None) -> None:
        self._assumed(pilot, category)
        site, entry, group = _labels(pilot)
        for counted, n in ((pilot.counted, -1), (category, 1)):
            if counted is not None:
                self._changes[pilot.id][CountKey("pilots", counted, "", site, entry, group)] += n
        pilot.dirty |= pilot.counted != category  # stored with the count, or it is counted again
        pilot.counted = category


def _labels(pilot: OpenPilot) -> tuple[str, str, str]:
    """Return the site, entry and group under which a pilot is counted."""
    identity = pilot.posted_as or pilot.identity
    return *identity.key, identity.group


def split_by_pilot(batch: Batch, changes: PendingAmounts, counts: PendingCounts) -> Parts:
    """Return what a batch has of each pilot and of each place, by number and name."""
    parts: defaultdict[Part, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in batch.pilots:
        parts[row.id]["pilots"].append(row)
    for name in ("runs", "corrections"):
        for part in getattr(batch, name):
            parts[part.pilot][name].append(part)
    for name in ("moved", "heard", "sights"):
        for part in getattr(batch, name):
            parts[part[0]][name].append(part)
    for pilot in batch.withdrawn:
        parts[pilot]["withdrawn"].append(pilot)
    for pilot in (*changes.pilots, *counts.pilots):
        parts[pilot].setdefault("pilots", [])
    for place in batch.places:
        parts[place.name]["places"].append(place)
    return {
        part: Batch(
            before=batch.before,
            now_us=batch.now_us,
            pilots=tuple(found["pilots"]),
            runs=tuple(found["runs"]),
            moved=tuple(found["moved"]),
            withdrawn=tuple(found["withdrawn"]),
            increments=changes.increments([part]) if isinstance(part, int) else {},
            corrections=tuple(found["corrections"]),
            counts=counts.changes([part]) if isinstance(part, int) else {},
            places=tuple(found["places"]),
            heard=tuple(found["heard"]),
            sights=tuple(found["sights"]),
        )
        for part, found in parts.items()
    }
