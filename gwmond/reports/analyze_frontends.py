"""The report that factory operators know from GlideinWMS's analyze_frontends, from ads.  Pure.

Units: means over the time in which a value was advertised (``F_seconds / F_watched_seconds`` of
``FactoryKind``): slots, jobs, pilots.  What was never advertised is None, and printed as "-".

The original prints means over five minutes, averaged over the period, times its length, cut to
whole seconds, and has 0 where nothing was advertised.  What it calls "all frontends" of an entry is
only the last frontend's (it begins anew with each); here it is their sum.

Source of the layout: glideinWMS, factory/tools/analyze_frontends (list_print, main).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gwmond.model.factory_totals import FactoryKey, FactoryKind
from gwmond.model.times import Period
from gwmond.model.units import MICRO
from gwmond.reports.analyze_entries import (
    RULE,
    ByFrontend,
    name_width,
    percent,
    printline,
    shown,
    title,
)
from gwmond.reports.analyze_rounding import km
from gwmond.reports.render.formats import plain, ratio

ORIGINAL = "analyze_frontends"

FIELDS: Mapping[str, str] = {
    "Regd": "client_slots_total",
    "Claimd": "client_slots_running",
    "Unmtchd": "client_slots_idle",
    "ReqIdle": "asked_idle",
    "JobRun": "client_jobs_running",
    "JobHere": "client_jobs_here",
    "JobIdle": "client_jobs_idle",
}
"""Columns that are printed as advertised, by the field of ``Monitor``."""
RUNNING = "status_running"
SORTS: Mapping[str, str] = {
    **{name.lower(): name for name in (*FIELDS, "RunDiff", "%UM", "%RD")},
    "registered": "Regd",
    "claimed": "Claimd",
    "unmatched": "Unmtchd",
    "rundiff": "RunDiff",
    "jobsrunning": "JobRun",
    "jobsrunhere": "JobHere",
    "jobsidle": "JobIdle",
    "%unmatched": "%UM",
    "%rundiff": "%RD",
}
"""What one can sort by: columns, and the original's names."""
LEGEND = (
    "Means over the time in which the value was advertised; -: never advertised",
    "Regd - registered slots (ClientGlideTotal)",
    "Claimd - claimed slots (ClientGlideRunning)",
    "Unmtchd - unmatched slots (ClientGlideIdle)",
    "ReqIdle - idle pilots that the client asks for",
    "JobRun - the client's jobs that run anywhere; JobHere - that run here; JobIdle - that wait",
    "RunDiff - StatusRunning - ClientGlideTotal: running pilots that are not registered",
    "%UM - unmatched / registered",
    "%RD - RunDiff / StatusRunning",
)
_LEGEND_COMPARED = (
    f"{ORIGINAL} - what the original prints: seconds, means x the period; 0: never advertised"
)
_BLOCK = (
    *(("Registered:", "Regd", None), ("Claimed:", "Claimd", "Regd")),
    *(("Unmatched :", "Unmtchd", "Regd"), ("", "", None), ("Requested Idle:", "ReqIdle", None)),
    *(("", "", None), ("Jobs Running:", "JobRun", None), ("Jobs Run Here:", "JobHere", None)),
    *(("Jobs Idle:", "JobIdle", None), ("", "", None)),
)


@dataclass(slots=True)
class FrontendLine:
    """Sums of means over clients; a column without an entry was never advertised.

    ``unmatched`` and ``difference`` are numerator and divisor of %UM and %RD, of clients of which
    both are known.
    """

    values: dict[str, float] = field(default_factory=dict)
    unmatched: tuple[float, float] | None = None
    difference: tuple[float, float] | None = None

    @property
    def told(self) -> dict[str, float | None]:
        """All columns; shares are 0 ... 1."""
        run_diff = None if self.difference is None else self.difference[0]
        return {
            **{name: self.values.get(name) for name in FIELDS},
            "RunDiff": run_diff,
            "%UM": _ratio(self.unmatched),
            "%RD": _ratio(self.difference),
        }


def _ratio(numbers: tuple[float, float] | None) -> float | None:
    return None if numbers is None else ratio(*numbers)


def line_of(means: Mapping[str, float]) -> FrontendLine:
    """Return the line of one client at one entry from its means by field."""
    values = {name: means[field] for name, field in FIELDS.items() if field in means}
    line = FrontendLine(values)
    if {"Regd", "Unmtchd"} <= values.keys():
        line.unmatched = values["Unmtchd"], values["Regd"]
    if "Regd" in values and RUNNING in means:
        line.difference = means[RUNNING] - values["Regd"], means[RUNNING]
    return line


def add_up(lines: Iterable[FrontendLine]) -> FrontendLine:
    """Return the sum of lines, over what is known."""
    found = FrontendLine()
    for line in lines:
        for name, value in line.values.items():
            found.values[name] = found.values.get(name, 0) + value
        found.unmatched = _plus(found.unmatched, line.unmatched)
        found.difference = _plus(found.difference, line.difference)
    return found


def _plus(
    mine: tuple[float, float] | None, other: tuple[float, float] | None
) -> tuple[float, float] | None:
    if mine is None or other is None:
        return mine or other
    return mine[0] + other[0], mine[1] + other[1]


@dataclass(slots=True)
class FrontendMeans(ByFrontend[dict[str, float]]):
    """What the clients' and the factory's ads had over a period, by client and entry."""

    period: Period
    cells: dict[tuple[str, str], dict[str, float]]
    watched_s: int

    @property
    def length(self) -> float:
        """The period in seconds."""
        return self.period.length_us / MICRO

    def line(self, client: str | None = None, entry: str | None = None) -> FrontendLine:
        """Return the sum over all that fits."""
        return add_up(map(line_of, self.fitting(client, entry)))

    def printed(self, client: str | None = None, entry: str | None = None) -> FrontendLine:
        """Return the same in seconds as the original has it: cut one by one, and 0 for unknown."""
        columns = (*FIELDS.values(), RUNNING)
        return add_up(
            line_of({name: float(int(means.get(name, 0) * self.length)) for name in columns})
            for means in self.fitting(client, entry)
        )


def watched(
    hours: Mapping[FactoryKey, int],
    period: Period,
    wanted: Callable[[str, str], bool] = lambda _client, _entry: True,
) -> FrontendMeans:
    """Return the means from a ledger's hours; ``wanted(client, entry)`` says which."""
    sums: defaultdict[tuple[str, str, FactoryKind], int] = defaultdict(int)
    for key, number in hours.items():
        if wanted(key.client, key.entry):
            sums[key.client, key.entry, key.kind] += number
    means: dict[tuple[str, str], dict[str, float]] = {}
    for (client, entry, kind), seconds in sums.items():
        if kind.value.endswith("_watched_seconds") and seconds:
            name = kind.value.removesuffix("_watched_seconds")
            amount = sums.get((client, entry, FactoryKind(f"{name}_seconds")), 0)
            means.setdefault((client, entry), {})[name] = amount / seconds
    longest = (n for (_, _, kind), n in sums.items() if kind is FactoryKind.WATCHED_SECONDS)
    return FrontendMeans(period, means, max(longest, default=0))


def notes(means: FrontendMeans) -> list[str]:
    """Return what one has to know to read it."""
    return [
        "Means of what the clients' ads (glideresource) and the factory's (glidefactoryclient) "
        "told, over the time in which they told it, in whole hours (UTC).",
        f"They were watched for {means.watched_s / 3600:.1f} of {means.length / 3600:.1f} hours.",
    ]


def records(means: FrontendMeans, *, compare: bool) -> Iterator[dict[str, Any]]:
    """Yield all of it for JSON and CSV."""
    for part in means.parts():
        where = part["frontend"], part["entry"]
        found: dict[str, Any] = {**part, **_named(means.line(*where))}
        if compare:
            found[ORIGINAL] = _named(means.printed(*where))
        yield found


def _named(line: FrontendLine) -> dict[str, float | None]:
    names = {**FIELDS, "RunDiff": "run_diff", "%UM": "unmatched_share", "%RD": "run_diff_share"}
    return {names[name]: value for name, value in line.told.items()}


def text(means: FrontendMeans, *, entries: bool, sort: str | None, compare: bool) -> list[str]:
    """Return the report: all, and lines for entries, or only for clients."""
    if not means.cells:
        return ["No ad of a client or of the factory was watched in this period."]
    hours = f"for {means.length / 3600:.1f} hours."
    lines = [RULE, f"Period of {means.length / 3600:.1f} hours:", "", *_block(means)]
    names = [*map(shown, means.frontends), *(means.entries() if entries else ())]
    wide = name_width(names, ORIGINAL if compare else "")

    def table(name: str, keys: Iterable[tuple[str, str | None, str | None]]) -> Iterator[str]:
        yield f"{name:<{wide}} {_columns(list(means.line().told))}"
        rows = [(key, means.line(*key[1:])) for key in keys]
        if sort is not None:
            rows.sort(key=lambda row: (row[1].told[sort] is None, -(row[1].told[sort] or 0)))
        for (shown_as, client, entry), line in rows:
            yield f"{plain(shown_as):<{wide}} {_columns(_cells(line, cut=False))}"
            if compare:
                cells = _cells(means.printed(client, entry), cut=True)
                yield f"{f'  {ORIGINAL}':<{wide}} {_columns(cells)}"

    if not entries:
        lines += ["", *title(f"Frontend stats {hours}")]
        return [
            *lines,
            *table("", ((shown(c), c, None) for c in means.frontends)),
            *_legend(compare=compare),
        ]
    lines += ["", *title(f"Per Entry (all frontends) stats {hours}")]
    lines += [*table("", ((entry, None, entry) for entry in means.entries())), ""]
    lines += title(f"Per Entry (per frontend) stats {hours}")[:-1]
    for client in means.frontends:
        lines += ["", *table(shown(client), ((e, client, e) for e in means.entries(client)))]
    return [*lines, *_legend(compare=compare)]


def _legend(*, compare: bool) -> list[str]:
    return ["", RULE, "LEGEND:", "", *LEGEND, *([_LEGEND_COMPARED] if compare else [])]


def _block(means: FrontendMeans) -> Iterator[str]:
    line = means.line()
    values = line.told

    def seconds(name: str | None) -> float | None:
        value = values[name] if name else None
        return None if value is None else value * means.length

    for label, name, share in _BLOCK:
        if not label:
            yield ""
            continue
        yield f"{label:<15} {printline(seconds(name), seconds(share), means.length, cut=False)}"
    base = None if line.difference is None else line.difference[1] * means.length
    text = printline(seconds("RunDiff"), base, means.length, cut=False)
    yield f"RunDiff (Running-ClientRegistered): {text}"


def _cells(line: FrontendLine, *, cut: bool) -> list[str]:
    cells = []
    for name, value in line.told.items():
        if name.startswith("%"):
            cells.append(percent(0 if value is None and cut else value, cut=cut))
        else:
            cells.append("-" if value is None else km(value) if cut else f"{value:.1f}")
    return cells


def _columns(cells: list[str]) -> str:
    c = [f"{cell:>7}" for cell in cells]
    return f"{' '.join(c[:3])} | {c[3]} | {' '.join(c[4:7])} | {c[7]} {cells[8]:>6} {cells[9]:>6}"
