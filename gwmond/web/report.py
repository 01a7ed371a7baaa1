"""The page of reports: where pilots' time went, by site, user, project, outcome and more."""

from __future__ import annotations

from collections.abc import Iterator

from gwmond.reports.ledger.ledger_reading import Age, Unreadable
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.report import report_document
from gwmond.reports.report.gather import gather
from gwmond.reports.report.groupings import GROUPINGS
from gwmond.reports.report.report import Report, Scope
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.web.asking import ReportPage
from gwmond.web.controls import FormField, last_tabs, ledger_page, place_fields
from gwmond.web.parts import View
from gwmond.web.pilots import HIDDEN

MOST = 100
"""Groups of a page."""


def page(view: View, chosen: ReportPage) -> str:
    """Return the report; by users only where these are shown."""
    parts: list[Part] = []
    error, by = "", tuple(dict.fromkeys(filter(None, (chosen.by, chosen.then_by))))
    if "user" in by and not view.shows_jobs:
        error = HIDDEN
    else:
        scope = Scope(RANGES[chosen.last].period(view.now_us).whole_hours, by, chosen.place)
        try:
            with view.ledger as (ledger, age):
                parts = list(_parts(gather(ledger, scope, view.config, counted=True), age))
        except Unreadable as unreadable:
            error = str(unreadable)
    return ledger_page(
        *("report", view, chosen, error, parts),
        title=f"Pilots by {' and '.join(by)}",
        choices=last_tabs("report", chosen, chosen.last),
        fields=[
            FormField("last", "", chosen.last),
            *place_fields(view.snapshot, chosen.place),
            FormField("by", "By", chosen.by, choices=_names(view)),
            FormField("then_by", "And by", chosen.then_by, choices=[("", "-"), *_names(view)]),
        ],
    )


def _names(view: View) -> list[tuple[str, str]]:
    names = [name for name in GROUPINGS if name != "user" or view.shows_jobs]
    return [(name, name.replace("_", " ")) for name in names]


def _parts(report: Report, age: Age) -> Iterator[Part]:
    """Yield what the command shows, without what the page has; of many groups the first."""
    left = len(report.groups) - MOST
    shown = report._replace(groups=dict(report.ordered[:MOST]))
    parts = list(report_document.parts(shown, age))
    last = [part for part in parts if isinstance(part, Paragraph) and part.role == "soft"]
    above = {report_document.title(report), age.text, *(part.text for part in last)}
    for part in parts:
        if not isinstance(part, Paragraph) or part.text not in above:
            yield part
    if left > 0:
        yield Paragraph(f"The first {MOST} groups: {left} more are in gwmond report and REST.")
    yield from last
