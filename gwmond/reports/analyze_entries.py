"""The report that factory operators know from GlideinWMS's analyze_entries, from records.  Pure.

Units: ``Numbers`` are seconds of pilots' wall-clock time; shares are 0 ... 1.  What the lines and
columns mean is in docs/analyze.md, what the exact ones are made of in ``wall_clock``, and how the
original rounds in ``analyze_rounding``.

Source of the layout: glideinWMS, factory/tools/analyze_entries (blockprint, lineprint,
frontend_print); the 2022 accounting report, figure 10.

The text is made of blocks of sums, and of a line for each entry.  Exact figures have one decimal
where the original has none.  What the original would print stands below each line, if it is
compared: cut to whole per cents and hours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from gwmond.model.times import Period
from gwmond.model.units import MICRO
from gwmond.reports import figures
from gwmond.reports.analyze_rounding import NUMBERLESS, Archive, data_sets, km, ranges
from gwmond.reports.figures import NOT_KNOWN, marked, number_text
from gwmond.reports.pilot_sums import WallClockSums
from gwmond.reports.render.formats import plain, quotient, ratio
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


def ordered(names: Iterable[str], rows: Callable[[str], Compared], sort: str | None) -> list[str]:
    """Return names, or the largest of a column first; what is not known comes last."""
    sorted_names = sorted(names)
    if sort is None:
        return sorted_names
    values = {name: COLUMNS[sort](rows(name).numbers) for name in sorted_names}
    return sorted(sorted_names, key=lambda name: (values[name] is None, -(values[name] or 0), name))


RULE = "-" * 40
ORIGINAL = "analyze_entries"
_BELOW = f"  {ORIGINAL}: "
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
_LINES = (
    ("time", "time"),
    ("time used", "used"),
    ("time validating", "validation"),
    ("time idle", "idle"),
    ("time wasted", "waste"),
    ("badput", "badput"),
    ("nosuccess", "nosuccess"),
)


_ALL = "Total/Average"
_OF_JOBS = {"used", "idle", "waste", "badput", "nosuccess", "wst", "badp"}
"""Lines and columns that rest on the time of jobs."""


def entries_text(analysis: Analysis, sort: str | None = None) -> list[str]:
    """Return the report: all, entries, and frontends with their entries."""
    if not analysis.cells:
        return [NOTHING]
    everything = analysis.row()
    length = analysis.period.length_us / MICRO
    wide = name_width([*analysis.entries(), _ALL], ORIGINAL if analysis.compare else "")
    lines = [RULE, f"Period of {length / 3600:.1f} hours:", ""]
    lines += block(everything, length, None)
    lines += ["", *title(f"Per Entry (all frontends) stats for {length / 3600:.1f} hours.")]
    lines.append(_header(wide))
    for entry in ordered(analysis.entries(), lambda name: analysis.row(entry=name), sort):
        lines += _entry(entry, analysis.row(entry=entry), wide)
    lines += _entry(_ALL, everything, wide)
    lines += ["", *title(f"Per Entry (per frontend) stats for {length / 3600:.1f} hours.")]
    for frontend in analysis.frontends:
        lines += [RULE, f"{shown(frontend)}:", ""]
        lines += [*block(analysis.row(frontend), length, everything), "", _header(wide)]
        rows = {entry: analysis.row(frontend, entry) for entry in analysis.entries(frontend)}
        for entry in ordered(rows, rows.__getitem__, sort):
            lines += _entry(entry, rows[entry], wide)
        lines += [*_entry(_ALL, analysis.row(frontend), wide), ""]
    return [*lines, RULE, "LEGEND:", "", *LEGEND]


def frontends_text(analysis: Analysis, sort: str | None = None) -> list[str]:
    """Return a line for each frontend and none for entries, in slots (the original's ``-m``)."""
    if not analysis.cells:
        return [NOTHING]
    length = analysis.period.length_us / MICRO
    lines = title(f"Frontend stats for {length / 3600:.1f} hours.")
    names = ("used", "u%", "val", "v%", "idle", "i%", "waste", "w%")
    pairs = "|".join(f"{names[i]:>7} {names[i + 1]:>6}" for i in range(0, 8, 2))
    wide = name_width(map(shown, analysis.frontends), ORIGINAL if analysis.compare else "")
    lines.append(f"{'Units: Slots':<{wide}} {'total':>7}|{pairs}|{'usd/wst':>9} {'eff':>7}")
    for frontend in ordered(analysis.frontends, analysis.row, sort):
        row = analysis.row(frontend)
        lines.append(f"{shown(frontend):<{wide}} {_frontend(row.numbers, length, cut=False)}")
        if row.printed is not None:
            its = _frontend(row.printed, length, cut=True)
            lines.append(f"{f'  {ORIGINAL}':<{wide}} {its}")
    return lines


def shown(frontend: str) -> str:
    """Return a frontend as the original names it; jobs may not show for whom a pilot was."""
    return f"frontend_{plain(frontend)}" if frontend else "(frontend not known)"


def title(text: str) -> list[str]:
    return [RULE, RULE, text, ""]


def block(row: Compared, length: float, everything: Compared | None) -> list[str]:
    """Return a block; that of all pilots says "Total" where the others have their share."""
    total = "" if everything else "Total "
    mine = list(_block(row.numbers, everything and everything.numbers, length, total, cut=False))
    its: list[str | None] = [None] * len(mine)
    if row.printed is not None:
        whole = everything and everything.printed
        its = [text for _, text in _block(row.printed, whole, length, total, cut=True)]
    wide = len(total) + 17 if row.printed is None else max(len(total) + 17, len(_BELOW))
    lines = []
    for (label, text), below in zip(mine, its, strict=True):
        if text is not None:
            lines.append(f"{f'{total}{label}:':<{wide}}{text}" if label else text)
        if below:
            lines.append(f"{_BELOW:<{wide if label else 0}}{below}")
    return lines


def _block(
    numbers: Numbers, whole: Numbers | None, length: float, total: str, *, cut: bool
) -> Iterator[tuple[str, str | None]]:
    """Yield labels and texts: without a label it is a whole line; None: there is no such line."""
    every = whole.pilots if whole else 0
    share = f" - {100 * numbers.pilots / every:.1f}% of total" if every else ""
    yield "", f"{total}Glideins: {numbers.pilots}{share}"
    yield "", f"{total}{_jobs(numbers)}"
    yield "", ""
    for label, name in _LINES:
        value, base = getattr(numbers, name), None if name == "time" else numbers.time
        guess = numbers.estimated if name in _OF_JOBS else 0
        text = printline(value, base, length, cut=cut, guess=guess)
        yield label, None if cut and value is None else text
        if name == "idle":
            rest, guess = not_known(numbers), numbers.by_statistics
            text = printline(rest, numbers.time, length, cut=cut, guess=guess)
            yield "time not known", None if rest is None else text
    share = "-" if not numbers.waste else f"{numbers.used / numbers.waste:.1f}"
    yield "", f"Time used/time wasted: {marked(share, numbers.estimated)}"
    efficiency, goodput = (
        marked(quotient(value), numbers.estimated)
        for value in (numbers.efficiency, numbers.goodput_fraction)
    )
    yield "", f"Time efficiency: {efficiency}  Goodput fraction: {goodput}"


def not_known(numbers: Numbers) -> float | None:
    """Return seconds without jobs of glideins whose end of validation is not known.

    Validating, idle and these are all that is wasted; None: there are no such glideins.
    """
    if numbers.validated_s >= numbers.time:
        return None
    return max(0.0, numbers.waste - (numbers.validation or 0) - (numbers.idle or 0))


def _jobs(numbers: Numbers) -> str:
    known = numbers.numbered or not numbers.pilots
    per = quotient(ratio(numbers.jobs, numbers.numbered)) if known else NOT_KNOWN
    length = NOT_KNOWN if numbers.numbered < numbers.pilots else "-"
    if numbers.job_length is not None:
        length = marked(f"{numbers.job_length / 3600:.2f}h", numbers.from_start)
    jobs = number_text(numbers.jobs, numbers.numbered, numbers.pilots)
    return f"Jobs: {jobs} (Avg jobs/glidein: {per}, avg job len: {length})"


def printline(
    seconds: float | None, number: float | None, length: float, *, cut: bool, guess: int = 0
) -> str:
    """Return seconds, and as hours, slots and a share of something (None: no share).

    ``guess``: of how many pilots it is estimated.
    """
    if seconds is None:
        return f"{'-':>6}"
    share = ""
    if number is not None:
        percent = 100 * seconds / number if number else None
        shown = "NA" if percent is None else str(int(percent)) if cut else f"{percent:.1f}"
        share = f" - {shown:>{2 if cut else 5}}%"
    hours, slots = km(seconds / 3600), km(seconds / length)
    return f"{marked(km(seconds), guess):>6} ({hours:>6} hours - {slots:>5} slots{share})"


def name_width(names: Iterable[str], original: str = "") -> int:
    """Return how wide the column of names is; ``original``: what stands below each, if compared."""
    return max(len(plain(name)) for name in (*names, f"  {original}"))


def _header(wide: int) -> str:
    return _line("", [*SHARES, *AMOUNTS], wide)


def _line(name: str, cells: list[str], wide: int) -> str:
    s = [f"{cell:>6}" for cell in cells[:7]]
    waste, time, number = cells[7:]
    left = f"{name:<{wide}} {' '.join(s[:3])} | {' '.join(s[3:])}"
    return f"{left} | {waste:>8} {time:>8} | {number:>6}"


def _entry(name: str, row: Compared, wide: int) -> Iterator[str]:
    yield _line(plain(name), _cells(row.numbers, cut=False), wide)
    if row.printed is not None:
        yield _line(f"  {ORIGINAL}", _cells(row.printed, cut=True), wide)


def _cells(numbers: Numbers, *, cut: bool) -> list[str]:
    percents = {name: percent(share(numbers), cut=cut) for name, share in SHARES.items()}
    for name, amount in AMOUNTS.items():
        percents[name] = (
            str(int(amount(numbers))) if cut or name == "total" else f"{amount(numbers):.1f}"
        )
    guess = numbers.estimated
    return [marked(cell, guess if name in _OF_JOBS else 0) for name, cell in percents.items()]


def percent(share: float | None, *, cut: bool) -> str:
    if share is None:
        return "-"
    return f"{int(100 * share)}%" if cut else f"{100 * share:.1f}%"


def _frontend(numbers: Numbers, length: float, *, cut: bool) -> str:
    pairs, guess = [], numbers.estimated
    for value, rests in (
        (numbers.used, guess),
        (numbers.validation, 0),
        (numbers.idle, guess),
        (numbers.waste, guess),
    ):
        share = ratio(value, numbers.time)
        slots = marked("-" if value is None else km(value / length), rests)
        pairs.append(f"{slots:>7} {marked(percent(share, cut=cut), rests):>6}")
    per = marked(quotient(ratio(numbers.used, numbers.waste)), guess)
    efficiency = marked(quotient(numbers.efficiency), guess)
    total = km(numbers.time / length)
    return f"{total:>7}|{'|'.join(pairs)}|{per:>9} {efficiency:>7}"
