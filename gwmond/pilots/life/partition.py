"""Where a pilot's time goes, exactly, and what of it is settled.

Units: amounts are micros (10^-6 of one core, chip or canonical unit for one second), times are
microseconds, an hour is ``epoch // 3600`` (UTC).

Source of the rules: design page, section 3; the 2022 accounting report, "OSG Usage
Classification".  The pilot's own time (all that no run gets) belongs to the first that holds:

=========================== ===================================================================
``pilot_overhead``          a run is known: the first job decides, whatever else is known
``validation_fails``        validation failed
``decision_problem``        it has ended, had passed, and no source can report a run any more
``unclassified``            the same, but it is not known whether it passed validation, or ran jobs
(undecided)                 otherwise
=========================== ===================================================================

A segment is settled as soon as that is decided, all that ran in it has an outcome, and no source
can report another run in it.

Invariants, for each resource and measure: settled + unsettled = total; nothing in a
partition is negative; the order of facts does not matter; and for two versions of a pilot's facts
``settled(before) + increments + corrections = settled(after)``, where increments are never negative
and corrections arise only for time that was settled before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from gwmond.model.facts import Evidence
from gwmond.model.pilot_life import (
    KINDS,
    Category,
    Interval,
    Kind,
    Measure,
    Outcome,
    PilotLife,
    RunKey,
    Validation,
)
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource
from gwmond.pilots.life.segments import (
    Estimated,
    Segment,
    by_hours,
    cut,
    kinds,
    offered,
    parts,
    readings,
    rests_on_estimate,
    sizes,
)

OWN = (
    Category.PILOT_OVERHEAD,
    Category.VALIDATION_FAILS,
    Category.DECISION_PROBLEM,
    Category.UNCLASSIFIED,
)
"""What a pilot's own time can be."""


class Row(NamedTuple):
    """Where an amount is posted; ``outcome`` and ``run_key`` are empty for the pilot's own time."""

    hour: int
    resource: Resource
    measure: Measure
    category: Category
    outcome: str
    evidence: Evidence
    run_key: RunKey | None


class Account(NamedTuple):
    """The same without the hour, of all runs together."""

    resource: Resource
    measure: Measure
    category: Category
    outcome: str
    evidence: Evidence


Amounts: TypeAlias = dict[Row, int]
Totals: TypeAlias = dict[tuple[Resource, Measure], int]


class Increments(NamedTuple):
    """What is added: by account and hour, and the part of that which each run gets in all."""

    hourly: dict[Account, dict[int, int]]
    runs: dict[RunKey, dict[Kind, int]]


class Partition(NamedTuple):
    """All of a pilot's time, in micros; ``total`` is counted apart from the other two."""

    settled: Amounts
    unsettled: Totals
    total: Totals


class CorrectionCause(StrEnum):
    """Why time that was settled is not posted any more as it was."""

    REVISED = "revised"  # it is settled still, but divided in another way
    WITHDRAWN = "withdrawn"  # it is not settled any more, or not part of the pilot's life


class Correction(NamedTuple):
    """A signed change of what was settled before."""

    row: Row
    micros: int
    cause: CorrectionCause


_Gain: TypeAlias = tuple[Sequence[Kind], Outcome, bool, Estimated]
"""What reads the same, by whose outcome, whether it is the pilot's own, and what is estimated."""


class Delta(NamedTuple):
    """From one version of a pilot's facts to the next; no increment is 0 or less.

    ``settled_to_us``: up to when all of the later version is settled, from the window's begin on.
    """

    increments: Increments
    corrections: tuple[Correction, ...]
    settled_to_us: int


class _Divided(NamedTuple):
    """A segment with all that decides how it is posted; ``own`` is None if undecided."""

    segment: Segment
    own: Outcome | None
    settled: bool

    @property
    def described(self) -> tuple[object, ...]:
        return (self.own, *self.segment.described)

    @property
    def names(self) -> list[tuple[Outcome, RunKey | None]]:
        """As what its parts are posted once it is settled: the pilot's own first."""
        if self.own is None:
            raise ValueError("the pilot's own category is not decided")
        names: list[tuple[Outcome, RunKey | None]] = [(self.own, None)]
        for run in self.segment.running:
            if run.outcome is None:
                raise ValueError(f"{run.key} has no outcome")
            names.append((run.outcome, run.key))
        return names


def own_category(life: PilotLife) -> Category | None:
    """Return the category of the pilot's own time, None as long as it is not decided."""
    if life.runs or life.ran_jobs:
        return Category.PILOT_OVERHEAD
    if life.validation is Validation.FAILED:
        return Category.VALIDATION_FAILS
    if life.end_us is None or life.known_us < life.effective_end_us:
        return None
    if life.validation is Validation.PASSED:
        return Category.DECISION_PROBLEM
    return Category.UNCLASSIFIED


def partition(
    life: PilotLife, window: Interval | None = None, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> Partition:
    """Divide a pilot's life, or the part of it within ``window``."""
    settled: Counter[Row] = Counter()
    unsettled: Counter[tuple[Resource, Measure]] = Counter()
    for divided in _divided(life, window):
        interval = divided.segment.start_us, divided.segment.end_us
        if divided.settled:
            settled.update(_posted(divided, interval, memory_per_unit_mib))
            continue
        for resource, measure in kinds(divided.segment):
            part = parts(divided.segment, interval, resource, measure, memory_per_unit_mib)
            unsettled[resource, measure] += part.own + sum(part.runs)
    return Partition(_nonzero(settled), dict(+unsettled), total(life, window, memory_per_unit_mib))


def total(
    life: PilotLife, window: Interval | None = None, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> Totals:
    """Return what the pilot had to offer: its resources over its life, and nothing else."""
    steps, interval = sizes(life), _within(life, window)
    totals = {kind: offered(steps, kind, interval, memory_per_unit_mib) for kind in KINDS}
    return {kind: micros for kind, micros in totals.items() if micros}


def advance(
    before: PilotLife | None,
    after: PilotLife,
    window: Interval | None = None,
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> Delta:
    """Return what to add to what is posted, now that ``after`` is known instead of ``before``.

    Newly settled time gives increments; time settled before that is now posted otherwise, or not
    at all, gives corrections, whose sum is the exact difference.

    With a window only that part of the life is compared: runs that end before or begin after
    it may be left out of both versions if ``ran_jobs`` is set instead.  The window must cover all
    that changed, so all of the life where ``own_category`` changes.
    """
    start, until = _within(after, window)
    settled = _settled(after, window)
    first = settled[0] if settled else (start, start)
    settled_to_us = min(until, first[1] if first[0] == start else start)
    gains = _Gains(memory_per_unit_mib)
    if before is None or not _settled(before, window):
        for stretch in settled:  # what goes on beside it, and will for long, is not divided
            for divided in _divided(after, stretch):
                gains.add(divided, (divided.segment.start_us, divided.segment.end_us))
        return Delta(gains.increments, (), settled_to_us)
    old, new = _divided(before, window), _divided(after, window)
    corrections: dict[CorrectionCause, Counter[Row]] = {
        cause: Counter() for cause in CorrectionCause
    }
    for interval, was, now in _overlay(old, new):
        old_one = was if was is not None and was.settled else None
        new_one = now if now is not None and now.settled else None
        if old_one is None:
            if new_one is not None:
                gains.add(new_one, interval)
        elif new_one is None:
            corrections[CorrectionCause.WITHDRAWN].subtract(
                _posted(old_one, interval, memory_per_unit_mib)
            )
        elif old_one.described != new_one.described:
            corrections[CorrectionCause.REVISED].subtract(
                _posted(old_one, interval, memory_per_unit_mib)
            )
            corrections[CorrectionCause.REVISED].update(
                _posted(new_one, interval, memory_per_unit_mib)
            )
    signed = tuple(
        Correction(row, micros, cause)
        for cause, rows in corrections.items()
        for row, micros in sorted(
            _nonzero(rows).items(), key=lambda item: (*item[0][:-1], item[0].run_key or ())
        )
    )
    return Delta(gains.increments, signed, settled_to_us)


def is_settled(segment: Segment, own: Category | None) -> bool:
    """Return whether a segment's time is posted; ``own`` is the category of the pilot's own."""
    return own is not None and segment.known and segment.finished


def settled_times(life: PilotLife) -> tuple[Interval, ...]:
    """Return when a pilot's time is posted, whatever it is: sorted, disjoint, none empty."""
    return tuple(_settled(life, None))


def _within(life: PilotLife, window: Interval | None) -> Interval:
    """Return the part of a life within ``window``; it may end before it begins."""
    start, until = life.start_us, life.effective_end_us
    return (start, until) if window is None else (max(start, window[0]), min(until, window[1]))


def _settled(life: PilotLife, window: Interval | None) -> list[Interval]:
    """Return the stretches of the segments that are settled, as long as can be, in order."""
    if own_category(life) is None:
        return []
    at, until = _within(life, window)
    known_us = min(until, life.known_us)
    going_on = sorted(
        (run.start_us, until if (end_us := run.held_until_us) is None else min(end_us, until))
        for run in life.runs
        if run.outcome is None
    )
    stretches = []
    for begin, end in going_on:
        if begin >= known_us:
            break
        if end > max(at, begin):
            if begin > at:
                stretches.append((at, begin))
            at = end
    return [*stretches, (at, known_us)] if at < known_us else stretches


def _divided(life: PilotLife, window: Interval | None) -> list[_Divided]:
    category = own_category(life)
    own = None if category is None else Outcome(category, "")
    return [
        _Divided(segment, own, settled=is_settled(segment, category))
        for segment in cut(life, window)
    ]


class _Gains:
    """Adds up what intervals within settled segments have brought; nothing is 0 or less.

    Kinds that read the same, and hours and runs, are taken apart only at the end.
    """

    def __init__(self, memory_per_unit_mib: int) -> None:
        self._memory_per_unit_mib = memory_per_unit_mib
        self._hourly: defaultdict[_Gain, dict[int, int]] = defaultdict(dict)
        self._runs: defaultdict[tuple[Sequence[Kind], RunKey], int] = defaultdict(int)

    def add(self, divided: _Divided, interval: Interval) -> None:
        """Add what an interval within a settled segment has brought."""
        segment = divided.segment
        hours, edges = by_hours(interval)
        names = divided.names
        for alike, read in readings(segment, edges, self._memory_per_unit_mib):
            for (outcome, key), at in zip(names, read, strict=True):
                micros = at[-1] - at[0]
                if not micros:
                    continue
                if key is not None:
                    self._runs[alike, key] += micros
                posted = self._hourly[alike, outcome, key is None, segment.estimated]
                if len(hours) == 1:
                    posted[hours[0]] = posted.get(hours[0], 0) + micros
                    continue
                for hour, (early, late) in zip(hours, pairwise(at), strict=True):
                    posted[hour] = posted.get(hour, 0) + late - early

    @property
    def increments(self) -> Increments:
        """All of it."""
        increments = Increments({}, {})
        for (alike, outcome, own, estimated), hours in self._hourly.items():
            for resource, measure in alike:
                account = _account(resource, measure, outcome, estimated, own=own)
                posted = increments.hourly.setdefault(account, {})
                for hour, micros in hours.items():
                    if micros:
                        posted[hour] = posted.get(hour, 0) + micros
        for (alike, key), micros in self._runs.items():
            of_run = increments.runs.setdefault(key, {})
            for kind in alike:
                of_run[kind] = of_run.get(kind, 0) + micros
        return increments


def _posted(divided: _Divided, interval: Interval, memory_per_unit_mib: int) -> Amounts:
    """Return what an interval within a settled segment has brought, of each run."""
    hours, edges = by_hours(interval)
    posted: Amounts = {}
    for alike, read in readings(divided.segment, edges, memory_per_unit_mib):
        for resource, measure in alike:
            for (outcome, key), at in zip(divided.names, read, strict=True):
                estimated = divided.segment.estimated
                account = _account(resource, measure, outcome, estimated, own=key is None)
                for hour, early, late in zip(hours, at, at[1:], strict=False):
                    if late != early:
                        row = Row(hour, *account, key)
                        posted[row] = posted.get(row, 0) + late - early
    return posted


def _account(
    resource: Resource, measure: Measure, outcome: Outcome, estimated: Estimated, *, own: bool
) -> Account:
    """Return where the pilot's ``own`` time is posted, or that of runs with an outcome."""
    assumed = rests_on_estimate(estimated, resource, measure, own=own)
    evidence: Evidence = "estimated" if assumed else outcome.evidence
    return Account(resource, measure, outcome.category, outcome.label, evidence)


def _overlay(
    old: list[_Divided], new: list[_Divided]
) -> Iterator[tuple[Interval, _Divided | None, _Divided | None]]:
    """Cut both versions at all edges of either, and pair what covers the same time."""
    ends = {
        edge
        for divided in (*old, *new)
        for edge in (divided.segment.start_us, divided.segment.end_us)
    }
    was, now = 0, 0
    for start, end in pairwise(sorted(ends)):
        was, now = _reach(old, was, start), _reach(new, now, start)
        yield (start, end), _at(old, was, start), _at(new, now, start)


def _reach(segments: list[_Divided], index: int, time: int) -> int:
    while index < len(segments) and segments[index].segment.end_us <= time:
        index += 1
    return index


def _at(segments: list[_Divided], index: int, time: int) -> _Divided | None:
    begun = index < len(segments) and segments[index].segment.start_us <= time
    return segments[index] if begun else None


def _nonzero(rows: Iterable[tuple[Row, int]] | Mapping[Row, int]) -> Amounts:
    return {row: micros for row, micros in dict(rows).items() if micros}
