"""A report as a document: its paragraphs, tables and plots, and its records.

Amounts are hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from gwmond.model.pilot_facts import Category
from gwmond.reports import figures, report_plots, report_suspects
from gwmond.reports.categories import CATEGORIES, CPU, GPU, LOOK, Kind
from gwmond.reports.figures import Figures
from gwmond.reports.groupings import GROUPINGS
from gwmond.reports.ledger_reading import Age
from gwmond.reports.periods import rfc3339
from gwmond.reports.render.document import Definitions, Document, Paragraph, Part, TextLines
from gwmond.reports.render.formats import hours, number, percent, ratio, right
from gwmond.reports.render.table import Column, Table, table
from gwmond.reports.report import SITE_STATES, Group, Key, Report
from gwmond.reports.report_records import DEFINITIONS, blank, csv_rows, notes, report_json

_TITLES = {
    CPU: "CPUs: canonical hours",
    ("cpu", "resource"): "CPUs: core-hours",
    GPU: "GPUs: chip-hours (both measures are the same)",
}


class _Row(NamedTuple):
    """A line: a group with its names."""

    names: tuple[str, ...]
    group: Group


def document(report: Report, age: Age) -> Document:
    """Return a report in all forms."""
    return Document(
        lambda: parts(report, age),
        lambda: report_json(report, age),
        lambda: csv_rows(report),
        lambda: blank(report),
    )


def parts(report: Report, age: Age) -> Iterator[Part]:
    """Yield what people read."""
    yield Paragraph(title(report), "title")
    since, until = report.scope.period
    yield Paragraph(f"{rfc3339(since)} to {rfc3339(until)}")
    yield Paragraph(age.text)
    yield Paragraph(age.warning, "warning")
    for note in notes(report):
        yield Paragraph(note, "soft")
    if not report.groups:
        yield Paragraph(
            "Nothing was settled in this period. See gwmond report --help: --from", "heading"
        )
    else:
        yield from report_plots.plots(report, label)
        yield from tables(report)
        block = report.total.figures
        if block is not None and report.counted:
            lines = block.block(report.scope.period.length_us)
            yield TextLines("All pilots that ended in the period", lines)
    yield Definitions(DEFINITIONS)


def title(report: Report) -> str:
    """Return the report's title."""
    scope = report.scope
    places = (scope.site, scope.entry, scope.group)
    only = ", ".join(place for place in places if place is not None)
    return f"Pilots by {' and '.join(scope.by)}" + (f": {only}" if only else "")


def label(report: Report, key: Key) -> tuple[str, ...]:
    """Return a group's names for people."""
    return tuple(GROUPINGS[by].named(value) for by, value in zip(report.scope.by, key, strict=True))


def tables(report: Report) -> list[Table]:
    """Return the tables of a report; failures that were asked for are first."""
    made = [] if report.failures is None else report.failures.tables(report.most)
    made += [report_suspects.table_of(report.suspects)] if report.suspects else []
    made += measures({kind: _hours(report, kind) for kind in report.kinds})
    if report.counted and report.scope.of_pilots:
        made.append(_operators(report))
    return made


def measures(by_kind: dict[Kind, Table]) -> list[Table]:
    """Return the tables of hours; of core-hours only the rows that differ from canonical hours."""
    canonical, resource = by_kind.get(CPU), by_kind.get(("cpu", "resource"))
    if canonical is None or resource is None:
        return list(by_kind.values())
    shared = len(resource.columns)
    same = {row[:shared] for row in canonical.rows}
    rows = tuple(row for row in resource.rows if row not in same)
    if not rows and (canonical.total or ())[:shared] == resource.total:
        both = replace(canonical, title=f"{canonical.title} (core-hours are the same)")
        return [both, *(made for kind, made in by_kind.items() if kind[0] != "cpu")]
    note = "Rows that are not here have the same core-hours as canonical hours."
    less = replace(resource, rows=rows, note=note if len(rows) < len(resource.rows) else "")
    return [less if made is resource else made for made in by_kind.values()]


def _hours(report: Report, kind: Kind) -> Table:
    columns = [*_names(report), *_amounts(report, kind)]
    rows = [_Row(label(report, key), group) for key, group in report.ordered]
    return table(_TITLES[kind], columns, rows, _total(report))


def _names(report: Report) -> Iterator[Column[_Row]]:
    by = report.scope.by

    def name(at: int) -> Callable[[_Row], str]:
        return lambda row: row.names[at]

    for at, header in enumerate(by):
        yield Column(header, name(at), name=True, head=at + 1 < len(by))


def _amounts(report: Report, kind: Kind) -> Iterator[Column[_Row]]:
    """Yield the columns of a measure; those that canonical hours alone have are the last."""
    scope, all_of_it = report.scope, report.total.total(kind)
    yield Column("total", lambda row: hours(row.group.total(kind)))
    yield Column("of all", lambda row: percent(ratio(row.group.total(kind), all_of_it)))
    if "category" not in scope.by:
        for category in CATEGORIES:
            if category in scope.known:
                yield from _part(kind, category)
        yield Column("efficiency", lambda row: percent(row.group.efficiency(kind)))
        if scope.basis != "runs_ended":
            yield Column("utilization", lambda row: percent(row.group.utilization(kind)))
    yield Column("estimated", lambda row: percent(row.group.estimated_share(kind)), zero=True)
    if scope.of_pilots:
        yield Column("settled", lambda row: percent(row.group.settled_share(kind)))
    if scope.of_sites and kind[1] == "canonical":
        for state, header in zip(SITE_STATES, ("bottleneck", "no demand"), strict=True):
            yield _waiting(kind, state, header)
    if kind != CPU:
        return
    if scope.of_verdicts:
        yield Column("verdicts right", lambda row: right(*row.group.verdicts_right), zero=True)
    if report.counted:
        if scope.of_pilots:
            yield Column("pilots", lambda row: number(row.group.pilots))
        yield Column("runs", lambda row: number(row.group.runs))
        yield Column("runs open", lambda row: number(row.group.open_runs), zero=True)


def _part(kind: Kind, category: Category) -> Iterator[Column[_Row]]:
    header = LOOK[category].header
    yield Column(header, lambda row: hours(row.group.sums[*kind, category]), zero=True)
    yield Column("%", lambda row: percent(row.group.share(kind, category), 0), share=True)


def _waiting(kind: Kind, state: str, header: str) -> Column[_Row]:
    def cell(row: _Row) -> str:
        site = row.group.site_time
        return hours(None if site is None else site[kind[0], state])

    return Column(header, cell, zero=True)


def _operators(report: Report) -> Table:
    def cell(column: Column[Figures]) -> Column[_Row]:
        return Column(column.header, lambda row: column.cell(row.group.figures or Figures()))

    return table(
        "Pilots that ended, in the columns of analyze_entries: core-hours of whole lives",
        [*_names(report), *map(cell, figures.COLUMNS)],
        [
            _Row(label(report, key), group)
            for key, group in report.ordered
            if group.figures is not None and group.figures.pilots
        ],
        _total(report),
        figures.NOTE,
    )


def _total(report: Report) -> _Row:
    return _Row(("all", *[""] * (len(report.scope.by) - 1)), report.total)
