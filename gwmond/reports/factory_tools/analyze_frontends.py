"""The report that factory operators know from GlideinWMS's analyze_frontends, from ads.  Pure.

Units: means over the time in which a value was advertised (``F_seconds / F_watched_seconds`` of
``FactoryKind``): slots, jobs, pilots.  What was never advertised is None, and printed as "-".

How the original differs is in docs/analyze.md.

Source of the layout: glideinWMS, factory/tools/analyze_frontends (list_print, main).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.times import Period
from gwmond.model.units import MICRO
from gwmond.reports.factory_tools.analyze_entries import (
    RULE,
    ByFrontend,
    name_width,
    printline,
    shown,
    title,
)
from gwmond.reports.render.formats import percent, plain, ratio

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
_BLOCK = (
    *(("Registered:", "Regd", None), ("Claimed:", "Claimd", "Regd")),
    *(("Unmatched :", "Unmtchd", "Regd"), ("", "", None), ("Requested Idle:", "ReqIdle", None)),
    *(("", "", None), ("Jobs Running:", "JobRun", None), ("Jobs Run Here:", "JobHere", None)),
    *(("Jobs Idle:", "JobIdle", None), ("", "", None)),
)


Sums: TypeAlias = Mapping[str, float]
"""Sums of means over clients by column, with what shares are of; what no ad had is not there."""


def sums_of(means: Mapping[str, float]) -> Sums:
    """Return the sums of one client at one entry: shares are of clients of which both are known."""
    sums = {name: means[field] for name, field in FIELDS.items() if field in means}
    if {"Regd", "Unmtchd"} <= sums.keys():
        sums |= {"%UM": sums["Unmtchd"], "of %UM": sums["Regd"]}
    if "Regd" in sums and RUNNING in means:
        sums |= {"RunDiff": means[RUNNING] - sums["Regd"], "of %RD": means[RUNNING]}
    return sums


def columns_of(sums: Sums) -> dict[str, float | None]:
    """Return all columns; shares are 0 ... 1."""
    return {
        **{name: sums.get(name) for name in (*FIELDS, "RunDiff")},
        "%UM": ratio(sums.get("%UM"), sums.get("of %UM", 0)),
        "%RD": ratio(sums.get("RunDiff"), sums.get("of %RD", 0)),
    }


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

    def sums(self, client: str | None = None, entry: str | None = None) -> Sums:
        """Return the sums over all that fits."""
        sums: defaultdict[str, float] = defaultdict(float)
        for means in self.fitting(client, entry):
            for name, value in sums_of(means).items():
                sums[name] += value
        return sums

    def line(self, client: str | None = None, entry: str | None = None) -> dict[str, float | None]:
        return columns_of(self.sums(client, entry))


def watched(
    hours: Mapping[FactoryKey, int],
    period: Period,
    fits: Callable[[str, str], bool] = lambda _client, _entry: True,
) -> FrontendMeans:
    """Return the means from a ledger's hours; ``fits(client, entry)`` says which."""
    sums: defaultdict[tuple[str, str, FactoryKind], int] = defaultdict(int)
    for key, number in hours.items():
        if fits(key.client, key.entry):
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


def records(means: FrontendMeans) -> Iterator[dict[str, Any]]:
    """Yield all of it for JSON and CSV."""
    for part in means.parts():
        yield {**part, **_named(means.line(part["frontend"], part["entry"]))}


def _named(line: Mapping[str, float | None]) -> dict[str, float | None]:
    names = {**FIELDS, "RunDiff": "run_diff", "%UM": "unmatched_share", "%RD": "run_diff_share"}
    return {names[name]: value for name, value in line.items()}


def text(means: FrontendMeans, *, entries: bool, sort: str | None) -> list[str]:
    """Return the report: all, and lines for entries, or only for clients."""
    if not means.cells:
        return ["No ad of a client or of the factory was watched in this period."]
    hours = f"for {means.length / 3600:.1f} hours."
    lines = [RULE, f"Period of {means.length / 3600:.1f} hours:", "", *_block(means)]
    wide = name_width([*map(shown, means.frontends), *(means.entries() if entries else ())])

    def table(name: str, keys: Iterable[tuple[str, str | None, str | None]]) -> Iterator[str]:
        yield f"{name:<{wide}} {_columns(list(means.line()))}"
        rows = [(shown_as, means.line(client, entry)) for shown_as, client, entry in keys]
        if sort is not None:
            rows.sort(key=lambda row: (row[1][sort] is None, -(row[1][sort] or 0)))
        for shown_as, line in rows:
            yield f"{plain(shown_as):<{wide}} {_columns(_cells(line))}"

    if entries:
        lines += ["", *title(f"Per Entry (all frontends) stats {hours}")]
        lines += [*table("", ((entry, None, entry) for entry in means.entries())), ""]
        lines += title(f"Per Entry (per frontend) stats {hours}")[:-1]
        for client in means.frontends:
            lines += ["", *table(shown(client), ((e, client, e) for e in means.entries(client)))]
    else:
        lines += ["", *title(f"Frontend stats {hours}")]
        lines += table("", ((shown(client), client, None) for client in means.frontends))
    return [*lines, "", RULE, "LEGEND:", "", *LEGEND]


def _block(means: FrontendMeans) -> Iterator[str]:
    sums = means.sums()
    values = {**columns_of(sums), "of %RD": sums.get("of %RD")}

    def seconds(name: str | None) -> float | None:
        value = values[name] if name else None
        return None if value is None else value * means.length

    for label, name, share in _BLOCK:
        if not label:
            yield ""
            continue
        yield f"{label:<15} {printline(seconds(name), seconds(share), means.length)}"
    text = printline(seconds("RunDiff"), seconds("of %RD"), means.length)
    yield f"RunDiff (Running-ClientRegistered): {text}"


def _cells(line: Mapping[str, float | None]) -> list[str]:
    return [
        percent(value) if name.startswith("%") else "-" if value is None else f"{value:.1f}"
        for name, value in line.items()
    ]


def _columns(cells: list[str]) -> str:
    c = [f"{cell:>7}" for cell in cells]
    return f"{' '.join(c[:3])} | {c[3]} | {' '.join(c[4:7])} | {c[7]} {cells[8]:>6} {cells[9]:>6}"
