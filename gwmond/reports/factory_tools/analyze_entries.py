"""The figures that factory operators know from GlideinWMS's analyze_entries, from records.  Pure.

Units: amounts are microseconds of pilots' wall-clock time; shares are 0 ... 1.  What the lines and
columns mean, and how the original differs, is in docs/analyze.md; what they are made of in
``wall_clock``.

The text is made of blocks of sums, and of a line for each entry.  Figures have one decimal where
the original has none.  Source of the layout: glideinWMS, factory/tools/analyze_entries (blockprint,
lineprint, frontend_print); the 2022 accounting report, figure 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gwmond.model.times import HOUR_US, Period
from gwmond.model.units import MICRO
from gwmond.reports.factory_tools import figures
from gwmond.reports.factory_tools.figures import job_length, marked, number_text, per_pilot
from gwmond.reports.render.formats import percent, plain, quotient, ratio, seconds
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


def ordered(
    names: Iterable[str], rows: Callable[[str], WallClockSums], sort: str | None
) -> list[str]:
    """Return names, or the largest of a column first; what is not known comes last."""
    sorted_names = sorted(names)
    if sort is None:
        return sorted_names
    values = {name: COLUMNS[sort](rows(name)) for name in sorted_names}
    return sorted(sorted_names, key=lambda name: (values[name] is None, -(values[name] or 0), name))


RULE = "-" * 40
NOTHING = "No pilot ended in this period. See gwmond report --help: --from"

LEGEND = (
    "K, M, G - 10^3, 10^6, 10^9 (seconds; hours and slots where it says so)",
    "n/k   - of glideins whose number of jobs is not known; ~: estimated in part",
    "strt, fval, 0job, val, idle (columns): of glideins of which it is known",
    "strt  - % of glideins in which HTCondor never started (validation failed)",
    "fval  - % of time, all of glideins in which HTCondor never started",
    "0job  - % of glideins that ran no job",
    "val   - % of time before the validation ended, failed or not",
    "idle  - % of time after it, without jobs",
    "wst   - % of time without jobs",
    "badp  - % of time, all but that of jobs that exited 0",
    "waste - hours without jobs",
    "time  - hours of glideins",
    "total - number of glideins",
)
_LINES: Mapping[str, tuple[bool, Callable[[WallClockSums], int | None]]] = {
    "time": (False, lambda sums: sums.time),
    "time used": (True, lambda sums: sums.used),
    "time validating": (False, lambda sums: sums.validation),
    "time idle": (True, lambda sums: sums.idle),
    "time not known": (True, lambda sums: sums.not_known),
    "time wasted": (True, lambda sums: sums.waste),
    "badput": (True, lambda sums: sums.badput),
    "nosuccess": (True, lambda sums: sums.nosuccess),
}
"""Lines of a block: whether they rest on the time of jobs, and that time."""
_ALL = "Total/Average"
_OF_JOBS = {"idle", "wst", "badp"}
"""Columns that rest on the time of jobs."""


def entries_text(analysis: Analysis, sort: str | None = None) -> list[str]:
    """Return the report: all, entries, and frontends with their entries."""
    if not analysis.cells:
        return [NOTHING]
    everything = analysis.row()
    length = analysis.period.length_us / MICRO
    wide = name_width([*analysis.entries(), _ALL])
    lines = [RULE, f"Period of {length / 3600:.1f} hours:", ""]
    lines += block(everything, length, None)
    lines += ["", *title(f"Per Entry (all frontends) stats for {length / 3600:.1f} hours.")]
    lines.append(_header(wide))
    for entry in ordered(analysis.entries(), lambda name: analysis.row(entry=name), sort):
        lines.append(_entry(entry, analysis.row(entry=entry), wide))
    lines.append(_entry(_ALL, everything, wide))
    lines += ["", *title(f"Per Entry (per frontend) stats for {length / 3600:.1f} hours.")]
    for frontend in analysis.frontends:
        lines += [RULE, f"{shown(frontend)}:", ""]
        lines += [*block(analysis.row(frontend), length, everything), "", _header(wide)]
        rows = {entry: analysis.row(frontend, entry) for entry in analysis.entries(frontend)}
        for entry in ordered(rows, rows.__getitem__, sort):
            lines.append(_entry(entry, rows[entry], wide))
        lines += [_entry(_ALL, analysis.row(frontend), wide), ""]
    return [*lines, RULE, "LEGEND:", "", *LEGEND]


def frontends_text(analysis: Analysis, sort: str | None = None) -> list[str]:
    """Return a line for each frontend and none for entries, in slots (the original's ``-m``)."""
    if not analysis.cells:
        return [NOTHING]
    length = analysis.period.length_us / MICRO
    lines = title(f"Frontend stats for {length / 3600:.1f} hours.")
    names = ("used", "u%", "val", "v%", "idle", "i%", "waste", "w%")
    pairs = "|".join(f"{names[i]:>7} {names[i + 1]:>6}" for i in range(0, 8, 2))
    wide = name_width(map(shown, analysis.frontends))
    lines.append(f"{'Units: Slots':<{wide}} {'total':>7}|{pairs}|{'usd/wst':>9} {'eff':>7}")
    for frontend in ordered(analysis.frontends, analysis.row, sort):
        lines.append(f"{shown(frontend):<{wide}} {_frontend(analysis.row(frontend), length)}")
    return lines


def shown(frontend: str) -> str:
    """Return a frontend as the original names it; jobs may not show for whom a pilot was."""
    return f"frontend_{plain(frontend)}" if frontend else "(frontend not known)"


def title(text: str) -> list[str]:
    return [RULE, RULE, text, ""]


def block(sums: WallClockSums, length: float, everything: WallClockSums | None) -> list[str]:
    """Return a block; that of all pilots says "Total" where the others have their share."""
    total = "" if everything else "Total "
    every, guess = everything.pilots if everything else 0, sums.by_statistics
    share = f" - {100 * sums.pilots / every:.1f}% of total" if every else ""
    jobs = number_text(sums.jobs, sums.numbered, sums.pilots)
    average = f"Avg jobs/glidein: {per_pilot(sums)}, avg job len: {job_length(sums, 'h')}"
    lines = [f"{total}Glideins: {sums.pilots}{share}", f"{total}Jobs: {jobs} ({average})", ""]
    for label, (of_jobs, value) in _LINES.items():
        micros = value(sums)
        if label == "time not known" and micros is None:
            continue
        seconds = None if micros is None else micros / MICRO
        whole = None if label == "time" else sums.time / MICRO
        text = printline(seconds, whole, length, guess=guess if of_jobs else 0)
        lines.append(f"{f'{total}{label}:':<{len(total) + 17}}{text}")
    per = "-" if not sums.waste else f"{sums.used / sums.waste:.1f}"
    efficiency, goodput = (
        marked(quotient(ratio(part, sums.time)), guess) for part in (sums.used, sums.good)
    )
    return [
        *lines,
        f"Time used/time wasted: {marked(per, guess)}",
        f"Time efficiency: {efficiency}  Goodput fraction: {goodput}",
    ]


def km(number: float) -> str:
    """Return a number with one decimal and K, M or G, as the original does.

    >>> km(497.7), km(719_000), km(-31_300_000), km(2.5e9)
    ('497.7', '719.0K', '-31.3M', '2.5G')
    """
    sign, size = ("-" if number < 0 else ""), abs(number)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if int(size) >= unit:
            return f"{sign}{size / unit:.1f}{letter}"
    return f"{sign}{size:.1f}"


def printline(seconds: float | None, whole: float | None, length: float, *, guess: int = 0) -> str:
    """Return seconds, and as hours, slots and a share of something (None: no share).

    ``guess``: of how many pilots it is estimated.
    """
    if seconds is None:
        return f"{'-':>6}"
    share = ""
    if whole is not None:
        share = f" - {f'{100 * seconds / whole:.1f}' if whole else 'NA':>5}%"
    hours, slots = km(seconds / 3600), km(seconds / length)
    return f"{marked(km(seconds), guess):>6} ({hours:>6} hours - {slots:>5} slots{share})"


def name_width(names: Iterable[str]) -> int:
    """Return how wide the column of names is."""
    return max(len(plain(name)) for name in names)


def _header(wide: int) -> str:
    return _line("", [*SHARES, *AMOUNTS], wide)


def _line(name: str, cells: list[str], wide: int) -> str:
    s = [f"{cell:>6}" for cell in cells[:7]]
    waste, time, number = cells[7:]
    left = f"{name:<{wide}} {' '.join(s[:3])} | {' '.join(s[3:])}"
    return f"{left} | {waste:>8} {time:>8} | {number:>6}"


def _entry(name: str, sums: WallClockSums, wide: int) -> str:
    cells = {column: percent(share(sums)) for column, share in SHARES.items()}
    for column, amount in AMOUNTS.items():
        cells[column] = f"{amount(sums):.{0 if column == 'total' else 1}f}"
    guesses = (sums.by_statistics if column in _OF_JOBS else 0 for column in cells)
    return _line(plain(name), list(map(marked, cells.values(), guesses)), wide)


def _frontend(sums: WallClockSums, length: float) -> str:
    pairs, guess = [], sums.by_statistics
    for micros, rests in (
        (sums.used, guess),
        (sums.validation, 0),
        (sums.idle, guess),
        (sums.waste, guess),
    ):
        slots = marked("-" if micros is None else km(micros / MICRO / length), rests)
        pairs.append(f"{slots:>7} {marked(percent(ratio(micros, sums.time)), rests):>6}")
    per = marked(quotient(ratio(sums.used, sums.waste)), guess)
    efficiency = marked(quotient(ratio(sums.used, sums.time)), guess)
    total = km(sums.time / MICRO / length)
    return f"{total:>7}|{'|'.join(pairs)}|{per:>9} {efficiency:>7}"
