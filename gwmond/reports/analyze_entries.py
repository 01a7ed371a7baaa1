"""The figures that factory operators know from GlideinWMS's analyze_entries, from records.  Pure.

Units: ``Numbers`` are seconds of pilots' wall-clock time; shares are 0 ... 1.  What the lines and
columns mean is in docs/analyze.md, what the exact ones are made of in ``wall_clock``, how the
original rounds in ``analyze_rounding``, and how they are printed in ``analyze_text``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from gwmond.model.times import Period
from gwmond.model.units import MICRO
from gwmond.reports import figures
from gwmond.reports.analyze_rounding import NUMBERLESS, Archive, data_sets, ranges
from gwmond.reports.pilot_sums import WallClockSums
from gwmond.reports.render.formats import ratio
from gwmond.reports.wall_clock import WallClock

C = TypeVar("C")


class Numbers(NamedTuple):
    """What is printed of some pilots, exact or as the original has it; None: not known.

    ``known_started``, ``known_jobs``: of how many pilots it is known whether HTCondor started, and
    whether jobs ran; ``started_s``, ``validated_s``: the time of those of which it is known whether
    it started, and when the validation ended.  ``numbered``: of how many pilots it is known how
    many jobs they ran; ``by_statistics``: of how many they are known from statistics only.
    ``from_start``: of how many some runs count from their start, for want of their program's.
    """

    pilots: int
    jobs: int
    job_length: float | None
    failed: int
    all_validation: float
    without_jobs: int
    time: float
    used: float
    validation: float | None
    idle: float | None
    waste: float
    badput: float
    nosuccess: float | None
    known_started: int
    known_jobs: int
    started_s: float
    validated_s: float
    numbered: int
    by_statistics: int
    from_start: int = 0

    @property
    def estimated(self) -> int:
        """Of how many pilots the time of jobs is estimated, at least."""
        return max(self.by_statistics, self.from_start)

    @property
    def efficiency(self) -> float | None:
        """Time used / time."""
        return ratio(self.used, self.time)

    @property
    def goodput_fraction(self) -> float | None:
        """What is not badput / time."""
        return ratio(self.time - self.badput, self.time)


SHARES: Mapping[str, Callable[[Numbers], float | None]] = {
    "strt": lambda sums: ratio(sums.failed, sums.known_started),
    "fval": lambda sums: ratio(sums.all_validation, sums.started_s),
    "0job": lambda sums: ratio(sums.without_jobs, sums.known_jobs),
    "val": lambda sums: ratio(sums.validation, sums.validated_s),
    "idle": lambda sums: ratio(sums.idle, sums.validated_s),
    "wst": lambda sums: ratio(sums.waste, sums.time),
    "badp": lambda sums: ratio(sums.badput, sums.time),
}
AMOUNTS: Mapping[str, Callable[[Numbers], float]] = {
    "waste": lambda sums: sums.waste / 3600,
    "time": lambda sums: sums.time / 3600,
    "total": lambda sums: sums.pilots,
}
"""Hours, hours, pilots."""
COLUMNS: Mapping[str, Callable[[Numbers], float | None]] = {**SHARES, **AMOUNTS}


def exact(sums: WallClockSums) -> Numbers:
    """Return what records have; validation and idle are of pilots of which they are known."""
    known = sums.known_validation > 0 or not sums.pilots
    return Numbers(
        pilots=sums.pilots,
        jobs=sums.jobs,
        job_length=ratio(sums.lengths_us / MICRO, sums.known_lengths),
        failed=sums.failed,
        all_validation=sums.failed_us / MICRO,
        without_jobs=sums.without_jobs,
        time=sums.time / MICRO,
        used=sums.used / MICRO,
        validation=sums.validation / MICRO if known else None,
        idle=sums.idle / MICRO if known else None,
        waste=(sums.time - sums.used) / MICRO,
        badput=(sums.time - sums.good) / MICRO,
        nosuccess=(sums.used - sums.good) / MICRO,
        known_started=sums.known_started,
        known_jobs=sums.known_jobs,
        started_s=sums.started_us / MICRO,
        validated_s=sums.validated_us / MICRO,
        numbered=sums.numbered,
        by_statistics=sums.by_statistics,
    )


def original(counts: Counter[str], by_statistics: int = 0, from_start: int = 0) -> Numbers:
    """Return what analyze_entries has of the same pilots; ``counts`` are its data sets.

    Of some the jobs are known from statistics only; of others not when the programs of all runs
    began.
    """
    pilots, time, used = counts["Glideins"], counts["Lasted"], counts["JobsLasted"]
    return Numbers(
        pilots=pilots,
        jobs=counts["JobsNr"],
        job_length=ratio(used - counts[NUMBERLESS], counts["JobsNr"]),
        failed=counts["FailedNr"],
        all_validation=counts["validation_All"],
        without_jobs=counts["JobsNr_None"],
        time=time,
        used=used,
        validation=ranges(counts, "validation"),
        idle=ranges(counts, "idle"),
        waste=time - used,
        badput=time - counts["JobsGoodput"],
        nosuccess=None,
        known_started=pilots,
        known_jobs=pilots,
        started_s=time,
        validated_s=time,
        numbered=max(0, pilots - by_statistics),
        by_statistics=by_statistics,
        from_start=from_start,
    )


class ByFrontend(Generic[C]):
    """Something of each frontend at each entry."""

    cells: dict[tuple[str, str], C]

    @property
    def frontends(self) -> list[str]:
        return sorted({frontend for frontend, _ in self.cells})

    def entries(self, frontend: str | None = None) -> list[str]:
        return sorted({entry for name, entry in self.cells if frontend in {None, name}})

    def fitting(self, frontend: str | None, entry: str | None) -> list[C]:
        """Return what is of a frontend, of an entry, of both, or all there is."""
        return [
            cell
            for (name, at), cell in self.cells.items()
            if frontend in {None, name} and entry in {None, at}
        ]

    def parts(self) -> Iterator[dict[str, str | None]]:
        """Yield what has a record: everything, entries, frontends, entries of frontends."""
        yield {"part": "total", "frontend": None, "entry": None}
        for entry in self.entries():
            yield {"part": "entry", "frontend": None, "entry": entry}
        for frontend in self.frontends:
            yield {"part": "frontend", "frontend": frontend, "entry": None}
            for entry in self.entries(frontend):
                yield {"part": "frontend_entry", "frontend": frontend, "entry": entry}


@dataclass(slots=True)
class ArchivedPilots:
    """The pilots of one frontend at one entry; ``archive`` is None unless it is compared."""

    archive: Archive | None
    sums: WallClockSums = field(default_factory=WallClockSums)


class Compared(NamedTuple):
    """One line or block: exact, and as the original has it if that is compared."""

    sums: WallClockSums
    numbers: Numbers
    printed: Numbers | None


@dataclass(slots=True)
class Analysis(ByFrontend[ArchivedPilots]):
    """All pilots that ended in a period, by frontend and entry."""

    period: Period
    compare: bool
    cells: dict[tuple[str, str], ArchivedPilots] = field(default_factory=dict)

    def add(self, pilot: WallClock) -> None:
        key = pilot.frontend, pilot.entry
        if key not in self.cells:
            archive = Archive(self.period.length_us // MICRO) if self.compare else None
            self.cells[key] = ArchivedPilots(archive)
        cell = self.cells[key]
        cell.sums.add(pilot)
        if cell.archive is not None:
            before_s, finished = (self.period.until_us - pilot.ended_us - 1) / MICRO, pilot.finished
            numberless = {NUMBERLESS: finished.numberless_s}
            cell.archive.add(before_s, data_sets(finished) | numberless)

    def row(self, frontend: str | None = None, entry: str | None = None) -> Compared:
        """Return all of a frontend, of an entry, of both, or all there is.

        The original adds up what it has cut for each frontend and entry; so does this.
        """
        cells = self.fitting(frontend, entry)
        sums = WallClockSums().add_up(cell.sums for cell in cells)
        if not self.compare:
            return Compared(sums, exact(sums), None)
        counts: Counter[str] = Counter()
        for cell in cells:
            if cell.archive is not None:
                counts.update(cell.archive.counts())
        return Compared(sums, exact(sums), original(counts, sums.by_statistics, sums.from_start))


def notes(analysis: Analysis) -> list[str]:
    """Return what one has to know to read it, with how much of it is known."""
    sums = analysis.row().sums
    lines = [
        "Pilots that ended in the period, each with its whole life, in wall-clock time of pilots: "
        "one of 8 cores counts as one, and a job on 1 of its cores uses an eighth of its time."
    ]
    if min(sums.known_started, sums.known_validation) < sums.pilots:
        lines.append(
            f"Whether HTCondor started is known of {sums.known_started} of {sums.pilots} pilots "
            f"(strt, fval), when validation ended of {sums.known_validation} (val, idle): columns "
            "of entries are shares of those. Shares of all time are those of blocks, where others' "
            'time without jobs is "time not known", and of lines of frontends.'
        )
    if sums.known_jobs < sums.pilots:
        lines.append(
            f"Whether jobs ran is known of {sums.known_jobs} of {sums.pilots} pilots, of which "
            "0job is the share."
        )
    lines += figures.notes(sums)
    if sums.size_assumed:
        lines.append(
            f"Of {sums.size_assumed} of {sums.pilots} pilots the cores are assumed, and so is the "
            "time used."
        )
    if sums.settled < sums.pilots:
        lines.append(
            f"{sums.pilots - sums.settled} of {sums.pilots} pilots are not settled yet: their "
            "figures may change."
        )
    if sums.pruned:
        lines.append(
            f"Of {sums.pruned} of {sums.pilots} pilots not all runs are kept any more: their time "
            "used is from totals, and the length of these runs is not known."
        )
    if analysis.compare:
        lines.append(
            '"analyze_entries" is what the original would print of the same pilots after its '
            "roundings (docs/analyze.md)."
        )
    if analysis.compare and sums.from_start:
        lines.append(
            f"Of {sums.from_start} of {sums.pilots} pilots it is not known of all runs when their "
            'program began: these runs count in "analyze_entries" from their start, the transfer '
            "of input included, which the original leaves out. What rests on these is marked ~."
        )
    if analysis.compare and sums.by_statistics:
        lines.append(
            "Where jobs are known from statistics only, the original has their number too, and "
            "counts as good only what exited with status 0; neither is stored."
        )
    return lines


def records(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield all of it for JSON and CSV."""
    period_s = analysis.period.length_us / MICRO
    for part in analysis.parts():
        row = analysis.row(part["frontend"], part["entry"])
        found: dict[str, Any] = {
            **part,
            **_values(row.numbers, period_s),
            **row.sums.known_json(),
            "used_by_statistics_seconds": row.sums.used_by_statistics / MICRO,
            "good_by_statistics_seconds": row.sums.good_by_statistics / MICRO,
            "pilots_with_known_validation": row.sums.known_validation,
            "pilots_with_assumed_size": row.sums.size_assumed,
            "pilots_settled": row.sums.settled,
        }
        if row.printed is not None:
            found["analyze_entries"] = {
                **_values(row.printed, period_s),
                "pilots_with_unknown_program_start": row.printed.from_start,
            }
        yield found


def _values(numbers: Numbers, period_s: float) -> dict[str, Any]:
    return {
        "pilots": numbers.pilots,
        "jobs": numbers.jobs if numbers.numbered or not numbers.pilots else None,
        "jobs_per_pilot": ratio(numbers.jobs, numbers.numbered),
        "average_job_length_seconds": numbers.job_length,
        "time_seconds": numbers.time,
        "used_seconds": numbers.used,
        "validating_seconds": numbers.validation,
        "idle_seconds": numbers.idle,
        "wasted_seconds": numbers.waste,
        "badput_seconds": numbers.badput,
        "nosuccess_seconds": numbers.nosuccess,
        "slots": numbers.time / period_s,
        "used_per_wasted": ratio(numbers.used, numbers.waste),
        "efficiency": numbers.efficiency,
        "goodput_fraction": numbers.goodput_fraction,
        **{f"{name}_share": share(numbers) for name, share in SHARES.items()},
    }
