"""A report as a document: its paragraphs, tables and plots in hours, and its records.

JSON and CSV have amounts in seconds, and times twice; what is not known is null.  In CSV each group
is a line with all that JSON has of it, under the same names joined with ``_``; all groups together
are only in JSON, so that a sum over lines counts nothing twice.  Where failures of validations are
asked for, CSV has these instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from gwmond.model.pilot_life import Category, Kind
from gwmond.model.units import RESOURCES
from gwmond.reports.factory_tools import figures
from gwmond.reports.failures.failures import DEFINITION, NAMES
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.ledger.open_runs import as_json as waits_json
from gwmond.reports.ledger.open_runs import sentence
from gwmond.reports.render.categories import (
    CATEGORIES,
    CPU,
    GPU,
    INFO,
    INFOS,
    by_kind,
    categories_json,
    kinds_json,
    shares_json,
)
from gwmond.reports.render.document import Definitions, Document, Paragraph, Part, TextLines
from gwmond.reports.render.formats import hours, number, percent, ratio, right, seconds
from gwmond.reports.render.periods import both, rfc3339
from gwmond.reports.render.table import Column, Table, name_columns, table
from gwmond.reports.report import report_plots, report_suspects
from gwmond.reports.report.groupings import GROUPINGS, STEPS
from gwmond.reports.report.report import SITE_STATES, Group, Key, Report, Scope
from gwmond.reports.stored.pilot_sums import PilotSums

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
    yield Paragraph(f"{rfc3339(since)} to {rfc3339(until)}, in whole hours")
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
        ended = report.total.ended
        if ended is not None and ended.pilots and report.counted:
            lines = figures.block(ended, report.scope.period.length_us)
            yield TextLines("All pilots that ended in the period", lines)
    yield Definitions(DEFINITIONS)


def title(report: Report) -> str:
    scope = report.scope
    only = ", ".join(scope.place.named.values())
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
        merged = replace(canonical, title=f"{canonical.title} (core-hours are the same)")
        return [merged, *(made for kind, made in by_kind.items() if kind[0] != "cpu")]
    note = "Rows that are not here have the same core-hours as canonical hours."
    less = replace(resource, rows=rows, note=note if len(rows) < len(resource.rows) else "")
    return [less if made is resource else made for made in by_kind.values()]


def _hours(report: Report, kind: Kind) -> Table:
    columns = [*_names(report), *_amounts(report, kind)]
    rows = [_Row(label(report, key), group) for key, group in report.ordered]
    return table(_TITLES[kind], columns, rows, _total(report))


def _names(report: Report) -> list[Column[_Row]]:
    return name_columns(report.scope.by, heads=len(report.scope.by) - 1)


def _amounts(report: Report, kind: Kind) -> Iterator[Column[_Row]]:
    """Yield the columns of a measure; those that canonical hours alone have are the last."""
    scope, all_of_it = report.scope, report.total.total(kind)
    yield Column("total", lambda row: hours(row.group.total(kind)))
    yield Column("of all", lambda row: percent(ratio(row.group.total(kind), all_of_it)))
    if "category" not in scope.by:
        for category in CATEGORIES:
            if category in scope.known:
                yield from _part(kind, category)
        if "part" not in scope.by:
            yield Column("efficiency", lambda row: percent(row.group.efficiency(kind)))
            if scope.basis != "runs_ended":
                yield Column("utilization", lambda row: percent(row.group.utilization(kind)))
    yield Column("estimated", lambda row: percent(row.group.estimated_share(kind)), zero=True)
    if scope.counts_pilots:
        yield Column("settled", lambda row: percent(row.group.settled_share(kind)))
    if scope.of_sites and kind[1] == "canonical":
        for state, header in zip(SITE_STATES, ("bottleneck", "no demand"), strict=True):
            yield _waiting(kind, state, header)
    if kind != CPU:
        return
    if scope.of_verdicts:
        yield Column("verdicts right", lambda row: right(*row.group.verdicts_right), zero=True)
    if report.counted:
        if scope.counts_pilots:
            yield Column(
                "pilots", lambda x: number(x.group.ended.pilots if x.group.ended else None)
            )
        yield Column("runs", lambda row: number(row.group.runs))
        yield Column("runs open", lambda row: number(row.group.open_runs), zero=True)


def _part(kind: Kind, category: Category) -> Iterator[Column[_Row]]:
    header = INFO[category].header
    yield Column(header, lambda row: hours(row.group.sums[*kind, category]), zero=True)
    yield Column("%", lambda row: percent(row.group.share(kind, category), 0), share=True)


def _waiting(kind: Kind, state: str, header: str) -> Column[_Row]:
    def cell(row: _Row) -> str:
        site = row.group.site_time
        return hours(None if site is None else site[kind[0], state])

    return Column(header, cell, zero=True)


def _operators(report: Report) -> Table:
    def cell(column: Column[PilotSums]) -> Column[_Row]:
        return Column(column.header, lambda row: column.cell(row.group.ended or PilotSums()))

    return table(
        "Pilots that ended, in the columns of analyze_entries: core-hours of whole lives",
        [*_names(report), *map(cell, figures.COLUMNS)],
        [
            _Row(label(report, key), group)
            for key, group in report.ordered
            if group.ended is not None and group.ended.pilots
        ],
        _total(report),
        figures.NOTE,
        "No pilot ended in the period.",
    )


def _total(report: Report) -> _Row:
    return _Row(("all", *[""] * (len(report.scope.by) - 1)), report.total)


_OWN = ", ".join(info.category for info in INFOS if info.category and not info.of_jobs)
DEFINITIONS: Mapping[str, str] = {
    **{info.category.value: info.meaning for info in INFOS if info.category},
    "part": "of a pilot's life: what it has idle in validation, asleep (after one that failed), at "
    "the start of HTCondor, until its first job, between and beside jobs, after the last (tail), "
    "and in retirement; or its jobs",
    "efficiency": "goodput / all settled time",
    "utilization": "time in which jobs ran, whatever became of them / all settled time, so 1 less "
    f"the share of pilots' own time ({_OWN})",
    "settled_share": "settled time / settled and unsettled time: what is missing is not known yet",
    "estimated_share": "settled time that rests on an estimate / all settled time",
    "share_of_all": "the group's settled canonical time / that of all groups",
    "site_time": "spare capacity of the site for which jobs waited (provisioning_bottleneck) or "
    "not (insufficient_demand), canonical seconds",
    "verdicts_checked": "verdicts on entries, checked by pilots that registered in the period: "
    "agreed is how many were right (a job within site.verdict_check after a bottleneck, none after "
    "insufficient demand). Pilots rarely start where demand is missing, those that start together "
    "share the jobs, and other states are not checked",
    "analyze_entries": "of pilots that ended in the period, by their whole life, in core-seconds: "
    "used: jobs ran; waste: the rest; badput: all but runs that exited 0; failed_validation: all "
    "of pilots whose validation failed; idle: overhead, pilots that never ran a job, and "
    "validation that passed; slots: total / period; "
    "average_job_length: wall-clock time of a run; by_statistics: of pilots of which only "
    "statistics say that jobs ran: used and good are estimated, and neither the number of jobs "
    "nor their length is known",
    "validation_failures": DEFINITION,
    "suspected_black_holes": report_suspects.DEFINITION,
}
_BASIS = {
    "time_spent": "Hours are those spent in the period (whole hours, UTC), by all pilots.",
    "pilots_ended": "Hours are the whole lives of the pilots that ended in the period: each counts "
    "in one period, also for what it did before.",
    "runs_ended": "Hours are those of the runs of jobs that ended in the period, each whole; time "
    "of pilots without jobs belongs to no run and is not in this report. Where only statistics "
    "have a pilot's jobs their time is in it, and no run.",
}

_VERDICTS = (
    "Verdicts right: of pilots that registered in the period, how often a job came within "
    "site.verdict_check where a bottleneck was reported, or none where demand was insufficient "
    "(docs/verdicts.md has what that does not cover)."
)


_PHASES = (
    "Phases: input is transferred (stage_in), the program runs (execute), output is transferred "
    "(stage_out); the wait for a transfer is part of it. The time of a run is divided in "
    "proportion to their lengths; the rest lies between them, or no record has them. A run counts "
    "in each of its phases."
)

_PARTS = (
    "Parts: what a pilot has idle until its validation ended (asleep after one that failed), until "
    "HTCondor has started, until its first job, between jobs, beside them, after the last one "
    "(tail), and after GLIDEIN_ToRetire all that no job has, also beside jobs (retirement). How "
    "much of a part is estimated or not settled is not known."
)
_INSTITUTIONS = "Institutions: by ads of pilots that registered, so failed validations have none."

_OF_NAME = {"phase": _PHASES, "part": _PARTS, "institution": _INSTITUTIONS}


def notes(report: Report) -> list[str]:
    """Return what one has to know to read a report."""
    sentences = [
        _BASIS[report.scope.basis],
        "Numbers of pilots and runs are of those that ended in the period.",
        "Canonical: 1 core with its memory, or 1 GPU; resource: cores or GPUs as they are.",
    ]
    if report.waits:
        sentences.append(sentence(report.waits))
    if report.total.open_runs and {"category", "outcome"} & set(report.scope.by):
        sentences.append(
            "Runs that are not settled have no category and no outcome yet: only the last line "
            "has their number (runs open)."
        )
    if far_down := _far_down(report):
        sentences.append(
            f"Many runs in few hours, so far down: {far_down}. /failures, and gwmond report "
            "--failures, have what failed by number."
        )
    if report.total.verdicts:
        sentences.append(_VERDICTS)
    sentences += [text for name, text in _OF_NAME.items() if name in report.scope.by]
    return sentences + (figures.notes(report.total.ended) if report.total.ended else [])


_MANY, _OFTEN, _NAMED = 20, 10, 3
"""A group has many runs in few hours: so many, and a share of runs so many times that of hours."""


def _far_down(report: Report) -> str:
    """Return the groups with many runs in few hours, the most runs first; a black hole is one."""
    runs, time = report.total.runs or 0, report.total.total(CPU)
    if report.scope.basis != "runs_ended":
        return ""
    found = [
        (group.runs or 0, " / ".join(label(report, key)), group.total(CPU))
        for key, group in report.ordered
        if (group.runs or 0) >= _MANY
        and (group.runs or 0) * time > _OFTEN * group.total(CPU) * runs
    ]
    largest = sorted(found, key=lambda one: -one[0])[:_NAMED]
    return ", ".join(f"{name} ({number} runs, {hours(spent)} h)" for number, name, spent in largest)


def record(key: Key, group: Group, report: Report) -> dict[str, Any]:
    return {**_named(key, report.scope), **_values(group, report)}


def report_json(report: Report, age: Age) -> dict[str, Any]:
    scope, failures = report.scope, report.failures
    step = "hour" if scope.step_us == STEPS["hour"] else "day"
    return {
        **age.as_json(),
        "period": {**both("from", scope.period.since_us), **both("to", scope.period.until_us)},
        "by": list(scope.by),
        "only": dict.fromkeys(scope.place._fields) | scope.place.named,
        "basis": scope.basis,
        "notes": notes(report),
        "not_settled": waits_json(report.waits),
        "definitions": dict(DEFINITIONS),
        "groups": [record(key, group, report) for key, group in report.ordered],
        "total": _values(report.total, report),
        "validation_failures": failures
        and {"groups": failures.records(), "total": failures.total_record()},
        "suspected_black_holes": failures and [x._asdict() for x in report.suspects],
        "series_step": step if scope.step_us <= STEPS["day"] else "week",
        "series": [
            {
                **both("start", start),
                "categories": categories_json(report.series[start].sums, scope.known),
            }
            for start in sorted(report.series)
        ],
    }


def csv_rows(report: Report) -> list[dict[str, Any]]:
    """Return what CSV has: each group, or each failure where these were asked for."""
    if report.failures is not None:
        return report.failures.records()
    return [record(key, group, report) for key, group in report.ordered]


def blank(report: Report) -> dict[str, Any]:
    """Return a record that has all columns of CSV."""
    if report.failures is not None:
        return {**dict.fromkeys(NAMES), **report.failures.total_record()}
    key = tuple(0 if by in STEPS else "" for by in report.scope.by)
    return record(key, Group(ended=PilotSums()), report)


def _named(key: Key, scope: Scope) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for by, value in zip(scope.by, key, strict=True):
        named |= both(by, value) if isinstance(value, int) else {by: value}
    return named


def _values(group: Group, report: Report) -> dict[str, Any]:
    scope, everything = report.scope, report.total
    return {
        "categories": categories_json(group.sums, scope.known),
        "shares": shares_json(group.sums, scope.known),
        "total": by_kind(lambda kind: seconds(group.total(kind)), "_seconds"),
        "unsettled": kinds_json(group.unsettled),
        "share_of_all": {
            kind[0]: ratio(group.total(kind), everything.total(kind)) for kind in (CPU, GPU)
        },
        "efficiency": by_kind(group.efficiency),
        "utilization": by_kind(group.utilization),
        "settled_share": by_kind(group.settled_share),
        "estimated_share": by_kind(group.estimated_share),
        "pilots_ended": group.ended and group.ended.pilots,
        "runs_ended": group.runs,
        "runs_ended_not_settled": group.open_runs,
        "site_time": {
            resource: {
                f"{state}_canonical_seconds": None
                if group.site_time is None
                else seconds(group.site_time[resource, state])
                for state in SITE_STATES
            }
            for resource in RESOURCES
        },
        "verdicts_checked": {
            state: {
                word: None if group.verdicts is None else group.verdicts[state, agreed]
                for word, agreed in (("agreed", True), ("disagreed", False))
            }
            for state in SITE_STATES
        },
        "analyze_entries": figures.as_json(group.ended, scope.period.length_us),
    }
