"""A report as tables of text: what the terminal, Markdown and HTML all show.

Amounts are hours; "-" is a share of nothing, "?" what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gwmond.model.pilot_facts import Category
from gwmond.reports.category_time import CATEGORIES, Kind, hours, percent, ratio, right, words
from gwmond.reports.failures import CAUSE, Failures
from gwmond.reports.failures import HEADERS as PLACE
from gwmond.reports.figures import HEADERS, Figures
from gwmond.reports.figures import NOTE as FIGURES_NOTE
from gwmond.reports.periods import rfc3339, short
from gwmond.reports.report import NOT_KNOWN, SITE_STATES, Group, Key, Report
from gwmond.reports.report_suspects import HEADERS as SUSPECTED
from gwmond.reports.report_suspects import NOTE as SUSPECTED_NOTE
from gwmond.reports.report_suspects import Suspected, total_row
from gwmond.reports.table_text import empty, not_shown

_TITLES = {
    ("cpu", "canonical"): "CPUs: canonical hours",
    ("cpu", "resource"): "CPUs: core-hours",
    ("gpu", "canonical"): "GPUs: chip-hours (both measures are the same)",
}
_SHORT = {
    "goodput": "goodput",
    "misconfiguration_badput": "misconfig.",
    "preemption_badput": "preemption",
    "unclassified": "unclassified",
    "pilot_overhead": "overhead",
    "decision_problem": "decision problem",
    "validation_fails": "validation fails",
}
_NAMELESS = {
    "outcome": "(pilots' own time)",
    "node": "(not known)",
    "user": "(not known)",
    "failure": "(validation did not fail)",
}


_LEFT_OUT = {
    *_SHORT.values(),
    *("bottleneck", "no demand", "runs open", "estimated", "verdicts right"),
}
_NOTHING = {"0", "0.0", "0.0%", "0%", "-"}


class Section(NamedTuple):
    """A table; ``names`` columns at the left are text, and many rows share the first ``heads``.

    ``total`` is its last line, ``note`` what one has to know of it.
    """

    title: str
    names: int
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...]
    heads: int = 0
    note: str = ""

    @property
    def shown(self) -> Section:
        """The table without columns that are 0 or unknown everywhere, which the note names then."""
        every = (*self.rows, self.total)
        zero = empty(self.headers, every, _LEFT_OUT, _NOTHING)
        unknown = empty(self.headers, every, _LEFT_OUT, {"?"})
        out = {*zero, *unknown}
        if not out:
            return self

        def kept(cells: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(cell for at, cell in enumerate(cells) if at not in out)

        told = not_shown(self.headers, zero)
        not_told = not_shown(self.headers, unknown, "nothing was recorded of it")
        return self._replace(
            headers=kept(self.headers),
            rows=tuple(map(kept, self.rows)),
            total=kept(self.total),
            note=" ".join(filter(None, (self.note, told, not_told))),
        )


def title(report: Report) -> str:
    """Return the report's title."""
    scope = report.scope
    places = (scope.site, scope.entry, scope.group)
    only = ", ".join(place for place in places if place is not None)
    return f"Pilots by {' and '.join(scope.by)}" + (f": {only}" if only else "")


def period(report: Report) -> str:
    """Return from when to when."""
    since, until = report.scope.period
    return f"{rfc3339(since)} to {rfc3339(until)}"


def label(report: Report, key: Key) -> tuple[str, ...]:
    """Return a group's names for people."""
    named = []
    for by, value in zip(report.scope.by, key, strict=True):
        if isinstance(value, int):
            named.append(short(value)[: 10 if by == "day" else 16])
        elif by == "category":
            named.append(words(value))
        elif by == "failure" and value == NOT_KNOWN:
            named.append("(not known whether it failed)")
        else:
            named.append(value or _NAMELESS.get(by, "(none)"))
    return tuple(named)


def sections(report: Report) -> list[Section]:
    """Return the tables of a report, without what is 0 everywhere; failures asked for are first."""
    made = [] if report.failures is None else _failures(report.failures, report.most)
    made += [_suspects(report.suspects)] if report.suspects else []
    made += measures([_hours(report, kind) for kind in report.kinds])
    if report.counted and report.scope.of_pilots:
        made.append(_operators(report))
    return [section.shown for section in made]


def measures(made: list[Section]) -> list[Section]:
    """Return the tables of hours; of core-hours only the rows that differ from canonical hours."""
    titles = _TITLES["cpu", "canonical"], _TITLES["cpu", "resource"]
    canonical, resource = (
        next((section for section in made if section.title == t), None) for t in titles
    )
    if canonical is None or resource is None:
        return made
    columns = len(resource.headers)
    same = {row[:columns] for row in canonical.rows}
    rows = tuple(row for row in resource.rows if row not in same)
    if rows or canonical.total[:columns] != resource.total:
        note = "Rows that are not here have the same core-hours as canonical hours."
        note = note if len(rows) < len(resource.rows) else ""
        return [
            section._replace(rows=rows, note=note) if section is resource else section
            for section in made
        ]
    both = canonical._replace(title=f"{canonical.title} (core-hours are the same)")
    return [
        both if section is canonical else section for section in made if section is not resource
    ]


def _failures(failures: Failures, most: int) -> list[Section]:
    *causes, every = failures.cause_rows()
    return [
        Section(
            title="Validation failures of pilots that ended, by class and test: their whole lives",
            names=len(CAUSE),
            headers=failures.cause_headers(),
            rows=tuple(causes),
            total=every,
            note=failures.cause_note,
        ),
        Section(
            title="Validation failures of pilots that ended, by entry and node: their whole lives",
            names=len(PLACE),
            headers=failures.headers(),
            rows=tuple(failures.rows(most)),
            total=failures.total_row(),
            heads=3,
            note="The nodes of an entry where most failed are first." + failures.left_out(most),
        ),
    ]


def _suspects(suspects: tuple[Suspected, ...]) -> Section:
    return Section(
        title="Suspected black holes: places where jobs exit with 0 far sooner than elsewhere",
        names=4,
        headers=SUSPECTED,
        rows=tuple(one.cells for one in suspects),
        total=total_row(suspects),
        note=SUSPECTED_NOTE,
    )


def _hours(report: Report, kind: Kind) -> Section:
    scope = report.scope
    known = [category for category in CATEGORIES if category in scope.known]
    by_category = "category" in scope.by
    first = kind == ("cpu", "canonical")
    columns: list[tuple[str, Callable[[Group], str]]] = [
        ("total", lambda group: hours(group.total(kind))),
        ("of all", lambda g: percent(ratio(g.total(kind), report.total.total(kind)))),
    ]
    if not by_category:
        for category in known:
            columns.append((_SHORT[category], _part(kind, category)))
            columns.append(("%", _share(kind, category)))
        columns += [
            ("efficiency", lambda group: percent(group.efficiency(kind))),
        ]
        if scope.basis != "runs_ended":
            columns.append(("utilization", lambda group: percent(group.utilization(kind))))
    columns.append(("estimated", lambda group: percent(group.estimated_share(kind))))
    if scope.of_pilots:
        columns.append(("settled", lambda group: percent(group.settled_share(kind))))
    if scope.of_sites and kind[1] == "canonical":
        for state, header in zip(SITE_STATES, ("bottleneck", "no demand"), strict=True):
            columns.append((header, _site(kind, state)))
    if first and scope.of_verdicts:
        columns.append(("verdicts right", lambda group: right(*group.verdicts_right)))
    if first and report.counted:
        if scope.of_pilots:
            columns.append(("pilots", lambda group: _count(group.pilots)))
        columns.append(("runs", lambda group: _count(group.runs)))
        columns.append(("runs open", lambda group: _count(group.open_runs)))
    return Section(
        title=_TITLES[kind],
        names=len(scope.by),
        headers=(*scope.by, *(header for header, _ in columns)),
        rows=tuple(
            (*label(report, key), *(cell(group) for _, cell in columns))
            for key, group in report.ordered
        ),
        total=_total(report, (cell(report.total) for _, cell in columns)),
        heads=len(scope.by) - 1,
    )


def _operators(report: Report) -> Section:
    return Section(
        title="Pilots that ended, in the columns of analyze_entries: core-hours of whole lives",
        names=len(report.scope.by),
        headers=(*report.scope.by, *HEADERS),
        rows=tuple(
            (*label(report, key), *group.figures.cells())
            for key, group in report.ordered
            if group.figures is not None and group.figures.pilots
        ),
        total=_total(report, (report.total.figures or Figures()).cells()),
        heads=len(report.scope.by) - 1,
        note=FIGURES_NOTE,
    )


def _total(report: Report, cells: Iterable[str]) -> tuple[str, ...]:
    return ("all", *[""] * (len(report.scope.by) - 1), *cells)


def _part(kind: Kind, category: Category) -> Callable[[Group], str]:
    return lambda group: hours(group.sums[*kind, category])


def _share(kind: Kind, category: Category) -> Callable[[Group], str]:
    return lambda group: percent(group.share(kind, category), 0)


def _site(kind: Kind, state: str) -> Callable[[Group], str]:
    return lambda g: hours(None if g.site_time is None else g.site_time[kind[0], state])


def _count(number: int | None) -> str:
    return "?" if number is None else str(number)
