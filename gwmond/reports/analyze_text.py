"""How reports in the style of analyze_entries are laid out, as lines of text.  Pure.

Units: see ``analyze_entries``, which has the figures.

Source of the layout: glideinWMS, factory/tools/analyze_entries (blockprint, lineprint,
frontend_print); the 2022 accounting report, figure 10.

The text is made of blocks of sums, and of a line for each entry.  Exact figures have one decimal
where the original has none.  What the original would print stands below each line, if it is
compared: cut to whole per cents and hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gwmond.model.units import MICRO
from gwmond.reports.analyze_entries import AMOUNTS, COLUMNS, SHARES, Analysis, Compared, Numbers
from gwmond.reports.analyze_rounding import km
from gwmond.reports.figures import NOT_KNOWN, marked, number_text
from gwmond.reports.render.formats import plain, quotient, ratio


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
