"""What follows from what was added up: lines of the advice, each with what it rests on.  Pure.

Units: lengths are seconds, amounts are micros, memory is MiB.  Intervals are of 90 %; None is what
cannot be said of so few.

What it would gain to send a job's output while the next job already runs: in the serial model a
slot transfers input and runs (``run``), then sends output (``upload``).  In the overlapping model
the output is sent from a slot of its own, and the next job begins in a new slot, which first waits
for that job (``idle``).  The gain in throughput is

    (upload - idle) / (upload + run)

which is negative where the upload is shorter than the wait (E. Boldt, "Improvements to GlideinWMS
Data Handling System", 2010, section 3.2).  It holds while jobs wait in the queue, while the
network has room, and while no upload is longer than the next run.

Whether it is so, pilots show that do it beside others that do not (docs/overlap.md): in both arms
the core-seconds in which programs of completed runs ran, of those that the pilots had.  The upload
counts in neither: one arm pays for it with a core, and the other does not.  Nor does the time until
a program begins, of which a new match takes more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import quantiles
from typing import NamedTuple, TypeAlias

import numpy as np

from gwmond.advise import idle_timeout
from gwmond.advise.idle_timeout import LEAST_PILOTS, LEAST_WAITS, Timeout, WaitArrays
from gwmond.advise.samples import Floats, Ratio, Z, quantile, share_interval
from gwmond.advise.tally import GPUS, Arm, EntryTally, GroupTally, Tried
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Category
from gwmond.model.units import MICRO

MOST_SENDERS = 4
LEAST = 20
"""With fewer runs, or fewer waits of new slots, nothing is said: too little data."""


class Quartiles(NamedTuple):
    """The quartiles of ``number`` lengths."""

    number: int
    low: float
    median: float
    high: float


class Overlap(NamedTuple):
    """What is measured at an entry for a group, and the gain by that.

    ``gain``: of the medians; ``least`` and ``most``: with each quartile where it is worst and best.
    """

    upload: Quartiles
    run: Quartiles
    idle: Quartiles
    gain: float
    least: float
    most: float

    @property
    def pays(self) -> bool | None:
        """Whether it pays in the worst quartiles, too; None: only in the best."""
        return True if self.least > 0 else None if self.most > 0 else False

    @property
    def senders(self) -> int:
        """How many may have to send for each core: as often as the next run ends before."""
        return min(MOST_SENDERS, max(1, math.ceil(self.upload.high / max(self.run.low, 1.0))))


def gain(upload_s: float, run_s: float, idle_s: float) -> float | None:
    """Return the change in throughput as a share; None where a job takes no time.

    >>> round(gain(30 * 60, 3600, 60), 4), round(gain(0, 3600, 60), 4), gain(0, 0, 60)
    (0.3222, -0.0167, None)
    """
    return (upload_s - idle_s) / (upload_s + run_s) if upload_s + run_s > 0 else None


def quartiles(lengths: Sequence[float]) -> Quartiles | None:
    """Return the quartiles; None for too little data."""
    if len(lengths) < LEAST:
        return None
    return Quartiles(len(lengths), *quantiles(lengths, n=4, method="inclusive"))


def overlap(
    uploads: Sequence[float], runs: Sequence[float], idles: Sequence[float]
) -> Overlap | None:
    """Return the projection from what was measured; None for too little data.

    ``uploads`` and ``runs`` are of the same runs of jobs; ``idles`` are of new slots: how long each
    waited for its first job.
    """
    upload, run, idle = map(quartiles, (uploads, runs, idles))
    if upload is None or run is None or idle is None:
        return None
    expected = gain(upload.median, run.median, idle.median)
    least = gain(upload.low, run.high, idle.high)
    most = gain(upload.high, run.low, idle.low)
    if expected is None or least is None or most is None:
        return None
    return Overlap(upload, run, idle, expected, min(least, expected), max(most, expected))


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
    ``late``: of the lost with a known time left, the share that had less than 90 % of runs need.
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
    measured = left >= 0
    had = left[measured]
    ends = measured & (lost == 1)
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
    """What a group's runs held of memory, cores or GPUs, and used; ``known`` of ``runs``.

    ``held``: the median; ``used``: the median, and what 95 % do not exceed, with its interval.
    ``micros``: what the unused part kept from others, at most; ``of_micros``: all that they held.
    """

    group: str
    resource: str
    runs: int
    known: int
    held: float | None
    used: float | None
    used_95: float | None
    interval: Interval | None
    micros: int | None
    of_micros: int


def request_lines(group: str, tally: GroupTally) -> Iterator[RequestLine]:
    for at, resource in enumerate(("memory (MiB)", "cores", "GPUs")):
        sample, runs = tally.samples[at], tally.gpu_runs if at == GPUS else tally.runs
        if at == GPUS and not runs:
            continue
        line = RequestLine(
            *(group, resource, runs, sample.seen, None, None, None, None),
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
    decided = tally.ran + tally.never
    held = [
        part / whole if whole else None
        for part, whole in zip(tally.held, tally.offered, strict=True)
    ]
    return AskedLine(
        key,
        asked,
        waiting,
        tally.pilots,
        decided,
        tally.never,
        share_interval(tally.never, decided) if decided else None,
        tally.never_micros,
        *held,
    )


ATTRIBUTE = (
    '<attr name="GLIDEIN_Overlap_{}" const="True" glidein_publish="False" job_publish="False" '
    'parameter="True" publish="True" type="int" value="{}"/>'
)
"""As the configuration of a factory's entry has it."""


class OverlapLine(NamedTuple):
    """What it would gain at an entry to send output while the next job runs; None: too little.

    ``group`` of accounting; None: all of them.  ``rate``: bytes sent in a second.
    """

    key: EntryKey
    group: str | None
    runs: int
    waits: int
    overlap: Overlap | None
    rate: float | None = None

    @property
    def break_even(self) -> float | None:
        """How many bytes a job has to send for a gain: what is sent while a new slot waits."""
        if self.rate is None or self.overlap is None:
            return None
        return self.rate * self.overlap.idle.median

    @property
    def configuration(self) -> str | None:
        """What to add to the factory's entry (docs/overlap.md); None: it does not surely pay."""
        if self.overlap is None or self.group is not None or not self.overlap.pays:
            return None
        senders = self.overlap.senders
        return ATTRIBUTE.format("Percent", 50) + (
            ATTRIBUTE.format("Senders", senders) if senders > 1 else ""
        )


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
        uploads, runs, sent = np.concatenate([sample.columns for sample in samples], axis=1)
        projection = overlap(list(uploads), list(runs), list(idle))
        known = (sent >= 0) & (uploads > 0)
        enough = known.sum() >= LEAST
        rate = float(sent[known].sum() / uploads[known].sum()) if enough else None
        lines.append(OverlapLine(key, group, uploads.size, idle.size, projection, rate))
    return lines


class TrialLine(NamedTuple):
    """Pilots of an entry and frontend group that do what is tried, beside those that do not.

    ``pilots``, ``shares``: with, without; a share is of the core-seconds that pilots had: those of
    completed runs (see ``EntryTally.arms``).  ``gain``: how much larger the first is than the
    second, with its interval.  Only pilots count that began while pilots of both kinds did.  None:
    too little.
    """

    key: EntryKey
    group: str
    pilots: tuple[int, int]
    shares: tuple[float | None, float | None]
    gain: float | None
    interval: Interval | None


def trial_lines(key: EntryKey, tally: EntryTally, tried: Tried) -> list[TrialLine]:
    """Return what pilots of an entry show, for each group of which some do what is tried."""
    lines = []
    for group in sorted(arm.group for arm in tally.arms if arm.tried == tried and arm.on):
        kinds = [Arm(tried, group, on) for on in (True, False)]
        arms = [tally.arms[kind].columns for kind in kinds if kind in tally.arms]
        since_s, until_s = max(arm[0].min() for arm in arms), min(arm[0].max() for arm in arms)
        ratios = [Ratio() for _ in (True, False)]
        for ratio, arm in zip(ratios, arms, strict=False):
            for began_s, ran, offered in arm.T:
                if since_s <= began_s <= until_s:
                    ratio.add(ran, offered)
        found = [ratio.value for ratio in ratios]
        counts = ratios[0].number, ratios[1].number
        line = TrialLine(key, group, counts, (found[0], found[1]), None, None)
        if min(counts) >= LEAST_PILOTS and found[0] and found[1]:
            errors = (ratio.error / (ratio.value or 1) for ratio in ratios)
            middle, half = math.log(found[0] / found[1]), Z * math.hypot(*errors)
            low, high = (math.expm1(middle + way * half) for way in (-1, 1))
            line = line._replace(gain=math.expm1(middle), interval=(low, high))
        lines.append(line)
    return lines


class PoolLoss(NamedTuple):
    """A loss of the pool; ``of_micros``: all time of the pilots; ``most``: where most of it is.

    ``cause``: a category of time, or "memory" or "cores" that runs held and did not use.
    """

    cause: str
    micros: int
    of_micros: int
    most: str
    most_micros: int


def losses(entries: Entries, groups: Mapping[str, GroupTally]) -> list[PoolLoss]:
    """Return the losses, the largest first: no time is in two of them."""
    total = sum(tally.amounts.total() for tally in entries.values())
    losses = []
    for category in Category:
        where = {key: tally.amounts[category] for key, tally in entries.items()}
        if category is not Category.GOODPUT and any(where.values()):
            key = max(where, key=lambda key: (where[key], key))
            name = f"entry {key.entry} ({key.site})"
            losses.append(PoolLoss(category.value, sum(where.values()), total, name, where[key]))
    for at, kind in enumerate(("memory", "cores")):
        unused = {group: tally.micros[at] for group, tally in groups.items()}
        if any(unused.values()):
            group = max(unused, key=lambda group: (unused[group], group))
            losses.append(
                PoolLoss(kind, sum(unused.values()), total, f"group {group}", unused[group])
            )
    return sorted(losses, key=lambda loss: (-loss.micros, loss.cause))
