"""What follows from what was added up: lines of the advice, each with what it rests on.  Pure.

Units: lengths are seconds, amounts are micros, memory is MiB.  Intervals are of 90 %; None is what
cannot be said of so few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from gwmond.advise import idle_timeout
from gwmond.advise.idle_timeout import LEAST_PILOTS, LEAST_WAITS, Timeout, WaitArrays
from gwmond.advise.samples import Floats, quantile, share_interval
from gwmond.advise.tally import EntryTally, GroupTally
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Category
from gwmond.model.units import MICRO
from gwmond.reports.stored.overlap import Overlap, overlap

Entries: TypeAlias = Mapping[EntryKey, EntryTally]
Interval: TypeAlias = tuple[float, float]

SETTINGS = {True: "GLIDEIN_Max_Idle", False: "GLIDEIN_Max_Tail"}
"""How long a pilot waits for its first job, and for the next one after a job."""


class TimeoutLine(NamedTuple):
    """An entry's timeout: what it rests on, what is best, and what that would save.

    ``gave_up_s``: the median of how long pilots had waited that ended without another job.
    ``validated``: of half of the pilots or more it is known how long their validation lasted; else
    it is missing in ``replacement_s``, and a longer timeout is better.
    """

    key: EntryKey
    setting: str
    waits: int
    pilots: int
    came: float | None
    gave_up_s: float | None
    replacement_s: float | None
    validated: bool
    timeout: Timeout | None
    saved_micros: int | None = None
    saved_interval: tuple[int, int] | None = None


def timeout_line(key: EntryKey, tally: EntryTally, *, first: bool) -> TimeoutLine | None:
    """Return what an entry's pilots say of one of its timeouts; None: they never waited."""
    sample = tally.waits[first]
    if not sample.seen:
        return None
    waits = WaitArrays(*sample.columns)
    gave_up = tally.gave_up[first]
    enough = gave_up.seen >= LEAST_PILOTS
    gave_up_s = float(np.median(gave_up.columns[0])) if enough else None
    cost = tally.ready if first else tally.replacement
    timeout = idle_timeout.best(waits, cost, gave_up_s, first=first)
    line = TimeoutLine(
        key,
        SETTINGS[first],
        sample.seen,
        np.unique(waits.pilots).size,
        float(waits.came.mean()),
        gave_up_s,
        tally.replacement.value,
        2 * tally.validated >= tally.ready.number,
        timeout,
    )
    if timeout is None or timeout.saved_s is None:
        return line
    units = tally.replacement.divisor if first else tally.units[False]
    low, high = (round(bound * units * MICRO) for bound in timeout.saved_interval_s)
    return line._replace(
        saved_micros=round(timeout.saved_s * units * MICRO), saved_interval=(low, high)
    )


class LostLine(NamedTuple):
    """Runs of an entry that completed or were cut off by their pilot's end (``lost``).

    ``early``: on pilots that ended long before the time that they announced.  ``run``: how long
    half, and 90 %, of the runs need; ``left``: the time that 90 %, and half, of them had left.
    ``late``: of the lost ones with a known time left those that had less than 90 % of runs need.
    """

    key: EntryKey
    runs: int
    lost: int
    share: Interval
    micros: int
    early: int
    run_s: tuple[float | None, float | None]
    left_s: tuple[float | None, float | None]
    late: float | None


def lost_line(key: EntryKey, tally: EntryTally) -> LostLine | None:
    """Return what became of an entry's runs; None if it had none."""
    runs = tally.runs
    if not runs.seen:
        return None
    length, completed, left, lost = runs.columns
    enough = runs.seen >= LEAST_WAITS
    half, most = (quantile(length, completed, share) if enough else None for share in (0.5, 0.9))
    known = left >= 0
    had = left[known]
    ends = known & (lost == 1)
    return LostLine(
        key,
        runs.seen,
        tally.lost,
        share_interval(tally.lost, runs.seen),
        tally.amounts[Category.PREEMPTION_BADPUT],
        tally.early,
        (half, most),
        (_quantile(had, 0.1), _quantile(had, 0.5)),
        float((left[ends] < most).mean()) if most is not None and ends.any() else None,
    )


def _quantile(values: Floats, share: float) -> float | None:
    if values.size < LEAST_WAITS:
        return None
    return float(np.quantile(values, share, method="inverted_cdf"))


class RequestLine(NamedTuple):
    """What a group's runs held of memory, or cores, and used; ``known`` of ``runs``.

    ``held``: the median; ``used``: the median, and what 95 % do not exceed, with its interval.
    ``micros``: what the unused part kept from others, at most; ``of_micros``: all that they held.
    """

    group: str
    what: str
    runs: int
    known: int
    held: float | None
    used: float | None
    used_95: float | None
    interval: Interval | None
    micros: int | None
    of_micros: int


def request_lines(group: str, tally: GroupTally) -> Iterator[RequestLine]:
    for at, what in enumerate(("memory (MiB)", "cores")):
        sample = tally.samples[at]
        line = RequestLine(
            *(group, what, tally.runs, sample.seen, None, None, None, None),
            micros=tally.micros[at] if sample.seen else None,
            of_micros=tally.held_micros[at],
        )
        if sample.seen >= LEAST_WAITS:
            held, used = sample.columns
            line = line._replace(
                held=float(np.median(held)),
                used=float(np.median(used)),
                used_95=_quantile(used, 0.95),
                interval=_quantile_interval(used, 0.95),
            )
        yield line


def _quantile_interval(values: Floats, share: float) -> Interval:
    """Return the interval of a quantile: the values at places that a binomial gives (normal)."""
    middle, half = share * values.size, 1.645 * (share * (1 - share) * values.size) ** 0.5
    ordered = np.sort(values)
    low, high = (min(max(round(middle + way * half), 0), values.size - 1) for way in (-1, 1))
    return float(ordered[low]), float(ordered[high])


class AskedLine(NamedTuple):
    """Pilots of an entry that ended, and what frontends asked for meanwhile.

    ``asked``, ``waiting``: idle pilots that were requested, and that waited, on average; None if no
    factory ad was seen.  ``never``: pilots that never ran a job, of ``known``, and what they had.
    ``cores``, ``memory``: shares that runs held of the pilots that ran jobs.
    """

    key: EntryKey
    asked: float | None
    waiting: float | None
    pilots: int
    known: int
    never: int
    share: Interval | None
    never_micros: int
    cores: float | None
    memory: float | None


def asked_line(
    key: EntryKey, tally: EntryTally, asked: float | None, waiting: float | None
) -> AskedLine:
    known = tally.ran + tally.never
    held = [
        part / whole if whole else None
        for part, whole in zip(tally.held, tally.offered, strict=True)
    ]
    return AskedLine(
        key,
        asked,
        waiting,
        tally.pilots,
        known,
        tally.never,
        share_interval(tally.never, known) if known else None,
        tally.never_micros,
        *held,
    )


class OverlapLine(NamedTuple):
    """What it would gain at an entry to send output while the next job runs; None: too little.

    ``group`` of accounting; None: all of them.
    """

    key: EntryKey
    group: str | None
    runs: int
    waits: int
    overlap: Overlap | None


def overlap_lines(key: EntryKey, tally: EntryTally) -> list[OverlapLine]:
    """Return the projection for an entry, and for its accounting groups where there are several.

    Only runs with a known upload count; new slots are the entry's.
    """
    first = tally.waits[True].columns
    idle = first[1][first[2] == 1]
    several = sorted(tally.uploads) if len(tally.uploads) > 1 else []
    lines = []
    for group in (None, *several) if tally.uploads else ():
        samples = [tally.uploads[name] for name in (tally.uploads if group is None else [group])]
        uploads, runs = np.concatenate([sample.columns for sample in samples], axis=1)
        found = overlap(list(uploads), list(runs), list(idle))
        lines.append(OverlapLine(key, group, uploads.size, idle.size, found))
    return lines


class Loss(NamedTuple):
    """A loss of the pool; ``of_micros``: all time of the pilots; ``most``: where most of it is.

    ``cause``: a category of time, or "memory" or "cores" that runs held and did not use.
    """

    cause: str
    micros: int
    of_micros: int
    most: str
    most_micros: int


def losses(entries: Entries, groups: Mapping[str, GroupTally]) -> list[Loss]:
    """Return the losses, the largest first: none has time of another one."""
    total = sum(tally.amounts.total() for tally in entries.values())
    found = []
    for category in Category:
        where = {key: tally.amounts[category] for key, tally in entries.items()}
        if category is not Category.GOODPUT and any(where.values()):
            key = max(where, key=lambda key: (where[key], key))
            name = f"entry {key.entry} ({key.site})"
            found.append(Loss(category.value, sum(where.values()), total, name, where[key]))
    for at, what in enumerate(("memory", "cores")):
        unused = {group: tally.micros[at] for group, tally in groups.items()}
        if any(unused.values()):
            group = max(unused, key=lambda group: (unused[group], group))
            found.append(Loss(what, sum(unused.values()), total, f"group {group}", unused[group]))
    return sorted(found, key=lambda loss: (-loss.micros, loss.cause))
