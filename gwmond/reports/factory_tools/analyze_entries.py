"""The figures that factory operators know from GlideinWMS's analyze_entries, from records.  Pure.

Units: amounts are microseconds of pilots' wall-clock time; shares are 0 ... 1.  What the lines and
columns mean, and how the original differs, is in docs/analyze.md; what they are made of in
``wall_clock``, and how they are printed in ``analyze_text``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gwmond.model.times import HOUR_US, Period
from gwmond.model.units import MICRO
from gwmond.reports.factory_tools import figures
from gwmond.reports.render.formats import ratio, seconds
from gwmond.reports.stored.wall_clock import WallClock, WallClockSums

C = TypeVar("C")

SHARES: Mapping[str, Callable[[WallClockSums], float | None]] = {
    "strt": lambda sums: ratio(sums.failed, sums.known_started),
    "fval": lambda sums: ratio(sums.failed_us, sums.started_us),
    "0job": lambda sums: ratio(sums.without_jobs, sums.known_jobs),
    "val": lambda sums: ratio(sums.validation, sums.validated_us),
    "idle": lambda sums: ratio(sums.idle, sums.validated_us),
    "wst": lambda sums: ratio(sums.waste, sums.time),
    "badp": lambda sums: ratio(sums.badput, sums.time),
}
AMOUNTS: Mapping[str, Callable[[WallClockSums], float]] = {
    "waste": lambda sums: sums.waste / HOUR_US,
    "time": lambda sums: sums.time / HOUR_US,
    "total": lambda sums: sums.pilots,
}
"""Hours, hours, pilots."""
COLUMNS: Mapping[str, Callable[[WallClockSums], float | None]] = {**SHARES, **AMOUNTS}


class ByFrontend(Generic[C]):
    """Something of each frontend at each entry."""

    cells: dict[tuple[str, str], C]

    @property
    def frontends(self) -> list[str]:
        return sorted({frontend for frontend, _ in self.cells})

    def entries(self, frontend: str | None = None) -> list[str]:
        return sorted({entry for name, entry in self.cells if frontend in {None, name}})

    def fitting(self, frontend: str | None, entry: str | None) -> list[C]:
        """Return the numbers of a frontend, of an entry, of both, or all."""
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
class Analysis(ByFrontend[WallClockSums]):
    """All pilots that ended in a period, by frontend and entry."""

    period: Period
    cells: dict[tuple[str, str], WallClockSums] = field(default_factory=dict)

    def add(self, pilot: WallClock) -> None:
        self.cells.setdefault((pilot.frontend, pilot.entry), WallClockSums()).add(pilot)

    def row(self, frontend: str | None = None, entry: str | None = None) -> WallClockSums:
        """Return all of a frontend, of an entry, of both, or all there is."""
        return WallClockSums().add_up(self.fitting(frontend, entry))


def notes(analysis: Analysis) -> list[str]:
    """Return what one has to know to read it, with how much of it is known."""
    sums = analysis.row()
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
    return lines


def records(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield all of it for JSON and CSV."""
    for part in analysis.parts():
        sums = analysis.row(part["frontend"], part["entry"])
        yield {
            **part,
            "pilots": sums.pilots,
            "jobs": sums.jobs if sums.numbered or not sums.pilots else None,
            "jobs_per_pilot": ratio(sums.jobs, sums.numbered),
            "average_job_length_seconds": ratio(sums.lengths_us, sums.known_lengths * MICRO),
            "time_seconds": seconds(sums.time),
            "used_seconds": seconds(sums.used),
            "validating_seconds": seconds(sums.validation),
            "idle_seconds": seconds(sums.idle),
            "wasted_seconds": seconds(sums.waste),
            "badput_seconds": seconds(sums.badput),
            "nosuccess_seconds": seconds(sums.nosuccess),
            "slots": sums.time / analysis.period.length_us,
            "used_per_wasted": ratio(sums.used, sums.waste),
            "efficiency": ratio(sums.used, sums.time),
            "goodput_fraction": ratio(sums.good, sums.time),
            **{f"{name}_share": share(sums) for name, share in SHARES.items()},
            **sums.known_json(),
            "used_by_statistics_seconds": seconds(sums.used_by_statistics),
            "good_by_statistics_seconds": seconds(sums.good_by_statistics),
            "pilots_with_known_validation": sums.known_validation,
            "pilots_with_assumed_size": sums.size_assumed,
            "pilots_settled": sums.settled,
        }
