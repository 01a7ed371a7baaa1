"""A report as JSON and as CSV: amounts in seconds, times twice, what is not known is null.

In CSV each group is a line with all that JSON has of it, under the same names joined with ``_``;
all groups together are only in JSON, so that a sum over lines counts nothing twice.  Where failures
of validations are asked for, CSV has these instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gwmond.model.pilot_facts import MEASURES
from gwmond.model.units import RESOURCES
from gwmond.reports import report_suspects
from gwmond.reports.categories import CATEGORIES, KINDS, categories_json, kinds_json
from gwmond.reports.failures import DEFINITION, NAMES, Failures
from gwmond.reports.figures import Figures
from gwmond.reports.groupings import STEPS
from gwmond.reports.ledger_reading import Age
from gwmond.reports.open_runs import as_json as waits_json
from gwmond.reports.open_runs import sentence
from gwmond.reports.periods import both
from gwmond.reports.pilot_jobs import told_by_statistics, told_numbered
from gwmond.reports.render.formats import ratio, seconds
from gwmond.reports.report import SITE_STATES, Group, Key, Report, Scope

DEFINITIONS: Mapping[str, str] = {
    "efficiency": "goodput / all settled time",
    "utilization": "time in which jobs ran, whatever became of them / all settled time, so 1 less "
    "the share of pilots' own time (pilot_overhead, decision_problem, validation_fails)",
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
    "statistics tell that jobs ran: used and good are estimated, and neither the number of jobs "
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
    "tell of a pilot's jobs their time is in it, and no run.",
}

_VERDICTS = (
    "Verdicts right: of pilots that registered in the period, how often a job came within "
    "site.verdict_check where a bottleneck was told, or none where demand was insufficient "
    "(docs/verdicts.md has what that does not cover)."
)


def notes(report: Report) -> list[str]:
    """Return what one has to know to read a report."""
    figures = report.total.figures
    sentences = [
        _BASIS[report.scope.basis],
        "Numbers of pilots and runs are of those that ended in the period.",
        "Canonical: 1 core with its memory, or 1 GPU; resource: cores or GPUs as they are.",
    ]
    if report.waits:
        sentences.append(sentence(report.waits))
    if report.total.verdicts:
        sentences.append(_VERDICTS)
    if figures is not None and figures.numbered < figures.pilots:
        sentences.append(told_numbered(figures.numbered, figures.pilots))
    if figures is not None and figures.by_statistics:
        sentences.append(told_by_statistics(figures.by_statistics, figures.pilots))
    return sentences


def record(key: Key, group: Group, report: Report) -> dict[str, Any]:
    """Return a group for JSON."""
    return {**_named(key, report.scope), **_values(group, report)}


def report_json(report: Report, age: Age) -> dict[str, Any]:
    """Return all of it."""
    scope = report.scope
    step = "hour" if scope.step_us == STEPS["hour"] else "day"
    return {
        **age.as_json(),
        "period": {**both("from", scope.period.since_us), **both("to", scope.period.until_us)},
        "by": list(scope.by),
        "only": {"site": scope.site, "entry": scope.entry, "group": scope.group},
        "basis": scope.basis,
        "notes": notes(report),
        "not_settled": waits_json(report.waits),
        "definitions": dict(DEFINITIONS),
        "groups": [record(key, group, report) for key, group in report.ordered],
        "total": _values(report.total, report),
        "validation_failures": _failures(report.failures),
        "suspected_black_holes": None
        if report.failures is None
        else [suspect._asdict() for suspect in report.suspects],
        "series_step": step if scope.step_us <= STEPS["day"] else "week",
        "series": [
            {
                **both("start", start),
                "categories": categories_json(report.series[start].sums, scope.known),
            }
            for start in sorted(report.series)
        ],
    }


def _failures(failures: Failures | None) -> dict[str, Any] | None:
    return (
        None
        if failures is None
        else {"groups": failures.records(), "total": failures.total_record()}
    )


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
    return record(key, Group(figures=Figures()), report)


def _named(key: Key, scope: Scope) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for by, value in zip(scope.by, key, strict=True):
        named |= both(by, value) if isinstance(value, int) else {by: value}
    return named


def _values(group: Group, report: Report) -> dict[str, Any]:
    scope, all_canonical = report.scope, {}
    for resource in RESOURCES:
        kind = resource, MEASURES[1]
        all_canonical[resource] = ratio(group.total(kind), report.total.total(kind))
    site = group.site_time
    waited = {
        (resource, state): None if site is None else site[resource, state]
        for resource in RESOURCES
        for state in SITE_STATES
    }
    return {
        "categories": categories_json(group.sums, scope.known),
        "shares": {
            resource: {
                measure: {
                    category.value: group.share((resource, measure), category)
                    for category in CATEGORIES
                    if category in scope.known
                }
                for measure in MEASURES
            }
            for resource in RESOURCES
        },
        "total": kinds_json({kind: group.total(kind) for kind in KINDS}),
        "unsettled": kinds_json(
            {kind: None if group.unsettled is None else group.unsettled[kind] for kind in KINDS}
        ),
        "share_of_all": all_canonical,
        **{
            name: {r: {m: getattr(group, name)((r, m)) for m in MEASURES} for r in RESOURCES}
            for name in ("efficiency", "utilization", "settled_share", "estimated_share")
        },
        "pilots_ended": group.pilots,
        "runs_ended": group.runs,
        "runs_ended_not_settled": group.open_runs,
        "site_time": {
            resource: {
                f"{state}_canonical_seconds": seconds(waited[resource, state])
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
        "analyze_entries": _figures(group.figures, scope),
    }


def _figures(figures: Figures | None, scope: Scope) -> dict[str, Any]:
    if figures is None:
        return dict.fromkeys(Figures().as_json(scope.period.length_us))
    return figures.as_json(scope.period.length_us)
