"""The report that factory operators know from GlideinWMS's analyze_entries, from records.  Pure.

Units: ``Numbers`` are seconds of pilots' wall-clock time; shares are 0 ... 1.  What the lines and
columns mean is in docs/analyze.md, what the exact ones are made of in ``analyze_pilots``, and how
the original rounds in ``analyze_rounding``.

Source of the layout: glideinWMS, factory/tools/analyze_entries (blockprint, lineprint,
frontend_print); the 2022 accounting report, figure 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gwmond.model.times import Period
from gwmond.model.units import MICRO
from gwmond.reports.analyze_pilots import PilotFigures, PilotSums, total
from gwmond.reports.analyze_rounding import Archive, Printed, data_sets
from gwmond.reports.pilot_jobs import told_by_statistics, told_numbered
from gwmond.reports.render.formats import ratio


class KnownOf(NamedTuple):
    """Of how many pilots it is known whether HTCondor started, and whether jobs ran.

    ``started_s`` and ``validated_s``: the time of those of which it is known whether HTCondor
    started, and when the validation ended.
    """

    started: int
    jobs: int
    started_s: float
    validated_s: float


class Numbers(NamedTuple):
    """What is printed of some pilots, exact or as the original has it; None: not known.

    ``known``: what shares are of; None: all is known, or taken to be.  ``numbered``: of how many
    pilots it is known how many jobs they ran; ``by_statistics``: of how many only statistics tell.
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
    numbered: int
    by_statistics: int
    known: KnownOf | None = None
    from_start: int = 0

    @property
    def estimated(self) -> int:
        """Of how many pilots the time of jobs is estimated, at least."""
        return max(self.by_statistics, self.from_start)

    @property
    def base(self) -> KnownOf:
        """What shares are of."""
        return self.known or KnownOf(self.pilots, self.pilots, self.time, self.time)

    @property
    def efficiency(self) -> float | None:
        """Time used / time."""
        return ratio(self.used, self.time)

    @property
    def goodput_fraction(self) -> float | None:
        """What is not badput / time."""
        return ratio(self.time - self.badput, self.time)


SHARES: Mapping[str, Callable[[Numbers], float | None]] = {
    "strt": lambda sums: ratio(sums.failed, sums.base.started),
    "fval": lambda sums: ratio(sums.all_validation, sums.base.started_s),
    "0job": lambda sums: ratio(sums.without_jobs, sums.base.jobs),
    "val": lambda sums: ratio(sums.validation, sums.base.validated_s),
    "idle": lambda sums: ratio(sums.idle, sums.base.validated_s),
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


def exact(sums: PilotSums) -> Numbers:
    """Return what records tell; validation and idle are of pilots of which they are known."""
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
        waste=sums.waste / MICRO,
        badput=sums.badput / MICRO,
        nosuccess=sums.nosuccess / MICRO,
        numbered=sums.numbered,
        by_statistics=sums.by_statistics,
        known=KnownOf(
            sums.known_started, sums.known_jobs, sums.started_us / MICRO, sums.validated_us / MICRO
        ),
    )


def original(printed: Printed, by_statistics: int = 0, from_start: int = 0) -> Numbers:
    """Return what analyze_entries has of the same pilots.

    Of some only statistics tell of jobs; of others not when the programs of all runs began.
    """
    return Numbers(
        pilots=printed.pilots,
        jobs=printed.jobs,
        job_length=ratio(printed.used - printed.numberless, printed.jobs),
        failed=printed.failed,
        all_validation=printed.all_validation,
        without_jobs=printed.without_jobs,
        time=printed.time,
        used=printed.used,
        validation=printed.validation,
        idle=printed.idle,
        waste=printed.waste,
        badput=printed.badput,
        nosuccess=None,
        numbered=max(0, printed.pilots - by_statistics),
        by_statistics=by_statistics,
        from_start=from_start,
    )


@dataclass(slots=True)
class ArchivedPilots:
    """The pilots of one frontend at one entry; ``archive`` is None unless it is compared."""

    archive: Archive | None
    sums: PilotSums = field(default_factory=PilotSums)


class Compared(NamedTuple):
    """One line or block: exact, and as the original has it if that is compared."""

    sums: PilotSums
    numbers: Numbers
    printed: Numbers | None


@dataclass(slots=True)
class Analysis:
    """All pilots that ended in a period, by frontend and entry."""

    period: Period
    compare: bool
    cells: dict[tuple[str, str], ArchivedPilots] = field(default_factory=dict)

    def add(self, pilot_figures: PilotFigures) -> None:
        """Count a pilot."""
        key = pilot_figures.frontend, pilot_figures.entry
        if key not in self.cells:
            archive = Archive(self.period.length_us // MICRO) if self.compare else None
            self.cells[key] = ArchivedPilots(archive)
        cell = self.cells[key]
        cell.sums.add(pilot_figures)
        if cell.archive is not None:
            before_s = (self.period.until_us - pilot_figures.ended_us - 1) / MICRO
            cell.archive.add(
                before_s, data_sets(pilot_figures.finished), pilot_figures.finished.numberless_s
            )

    @property
    def frontends(self) -> list[str]:
        """All frontends, by name."""
        return sorted({frontend for frontend, _ in self.cells})

    def entries(self, frontend: str | None = None) -> list[str]:
        """Return all entries, or those of a frontend, by name."""
        return sorted({entry for name, entry in self.cells if frontend in {None, name}})

    def row(self, frontend: str | None = None, entry: str | None = None) -> Compared:
        """Return all of a frontend, of an entry, of both, or all there is.

        The original adds up what it has cut for each frontend and entry; so does this.
        """
        if frontend is not None and entry is not None:
            cells = [self.cells[frontend, entry]]
        else:
            cells = [
                cell
                for (name, at), cell in self.cells.items()
                if frontend in {None, name} and entry in {None, at}
            ]
        sums = total(cell.sums for cell in cells)
        if not self.compare:
            return Compared(sums, exact(sums), None)
        printed = Printed()
        for cell in cells:
            if cell.archive is not None:
                printed.add(cell.archive.counts(), cell.archive.numberless)
        return Compared(sums, exact(sums), original(printed, sums.by_statistics, sums.from_start))


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
    if sums.numbered < sums.pilots:
        lines.append(told_numbered(sums.numbered, sums.pilots))
    if sums.by_statistics:
        lines.append(told_by_statistics(sums.by_statistics, sums.pilots))
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
            "Where only statistics tell of jobs, the original has their number too, and counts as "
            "good only what exited with status 0; neither is stored."
        )
    return lines


def records(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield all of it for JSON and CSV: everything, entries, frontends, entries of frontends."""
    yield _record(analysis, "total", None, None)
    for entry in analysis.entries():
        yield _record(analysis, "entry", None, entry)
    for frontend in analysis.frontends:
        yield _record(analysis, "frontend", frontend, None)
        for entry in analysis.entries(frontend):
            yield _record(analysis, "frontend_entry", frontend, entry)


def _record(
    analysis: Analysis, part: str, frontend: str | None, entry: str | None
) -> dict[str, Any]:
    row, period_s = analysis.row(frontend, entry), analysis.period.length_us / MICRO
    found: dict[str, Any] = {"part": part, "frontend": frontend, "entry": entry}
    found |= _values(row.numbers, period_s)
    found |= row.sums.known_json()
    found["used_by_statistics_seconds"] = row.sums.used_by_statistics / MICRO
    found["good_by_statistics_seconds"] = row.sums.good_by_statistics / MICRO
    found["pilots_with_known_validation"] = row.sums.known_validation
    found["pilots_with_assumed_size"] = row.sums.size_assumed
    found["pilots_settled"] = row.sums.settled
    if row.printed is not None:
        found["analyze_entries"] = {
            **_values(row.printed, period_s),
            "pilots_with_unknown_program_start": row.printed.from_start,
        }
    return found


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


def ordered(names: Iterable[str], rows: Callable[[str], Compared], sort: str | None) -> list[str]:
    """Return names, or the largest of a column first; what is not known comes last."""
    every = sorted(names)
    if sort is None:
        return every
    values = {name: COLUMNS[sort](rows(name).numbers) for name in every}
    return sorted(every, key=lambda name: (values[name] is None, -(values[name] or 0), name))
