"""``gwmond report --style``: what analyze_entries and analyze_frontends print, from the ledger.

Reads the ledger some pilots at a time, while the daemon writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.facts import Place
from gwmond.model.times import Period
from gwmond.reports.factory_tools import analyze_entries, analyze_frontends
from gwmond.reports.factory_tools.analyze_entries import (
    COLUMNS,
    Analysis,
    entries_text,
    frontends_text,
)
from gwmond.reports.factory_tools.analyze_frontends import SORTS
from gwmond.reports.ledger.ledger_reading import Age, pilots_ended
from gwmond.reports.render.document import Document, Paragraph, Part, TextLines
from gwmond.reports.render.periods import both, rfc3339
from gwmond.reports.stored.wall_clock import wall_clock

Style: TypeAlias = Literal["analyze-entries", "analyze-frontends"]
STYLES: tuple[Style, ...] = get_args(Style)
FORMS = ("table", "csv", "json", "markdown")


class AnalyzeQuestion(NamedTuple):
    """What is asked for.

    ``by_entry``: lines for entries, else only for frontends.
    """

    style: Style
    period: Period
    place: Place = Place()
    by_entry: bool = True
    sort: str | None = None


def asked(question: AnalyzeQuestion, by: str | None) -> AnalyzeQuestion:
    """Return the checked question; raises ``ValueError`` with the values that can be given."""
    if by not in {None, "entry", "group"}:
        raise ValueError(
            f'--by "{by}": --style {question.style} is by entry (the default) or group'
        )
    sort = question.sort
    if question.style == "analyze-entries":
        choices: Sequence[str] = list(COLUMNS)
        sort = None if sort is None else sort.lower()
    else:
        if question.place.site:
            raise ValueError(
                f"--site: what --style {question.style} tells is by entry; give --entry"
            )
        choices = list(SORTS)
        sort = None if sort is None else SORTS.get(sort.lower(), sort)
        choices = [*choices, *SORTS.values()]
    if sort is not None and sort not in choices:
        raise ValueError(
            f'--sort "{question.sort}": there is only {", ".join(dict.fromkeys(choices))}'
        )
    period = question.period if question.style == "analyze-entries" else question.period.whole_hours
    return question._replace(by_entry=by != "group", sort=sort, period=period)


def document(ledger: LedgerReader, asked: AnalyzeQuestion, age: Age) -> tuple[Document, bool]:
    """Return a report, and whether no pilot ended, or nothing was watched."""
    since, until = map(rfc3339, asked.period)
    place = asked.place
    only = [f"{label} {name}" for label, name in place.named.items()]
    where = ", ".join(only) or "all entries"
    title = f"{asked.style} from gwmond's records, {where}: {since} to {until}"
    if asked.style == "analyze-entries":
        analysis = Analysis(asked.period)
        for pilot in pilots_ended(ledger, asked.period, place):
            analysis.add(wall_clock(pilot))
        made = entries_text if asked.by_entry else frontends_text
        notes, lines = analyze_entries.notes(analysis), made(analysis, asked.sort)
        records, empty = list(analyze_entries.records(analysis)), not analysis.cells
    else:
        watched = analyze_frontends.watched(
            ledger.factory_hours(*asked.period.hours),
            asked.period,
            lambda client, entry: place.covers(place.site, entry, client),
        )
        lines = analyze_frontends.text(watched, entries=asked.by_entry, sort=asked.sort)
        notes = analyze_frontends.notes(watched)
        records = list(analyze_frontends.records(watched))
        empty = not watched.cells

    def parts() -> list[Part]:
        paragraphs = [Paragraph(text) for text in (age.text, *notes)]
        return [Paragraph(title, "title"), *paragraphs, TextLines("", lines)]

    def record() -> dict[str, Any]:
        return {
            **age.as_json(),
            "style": asked.style,
            "period": {**both("from", asked.period.since_us), **both("to", asked.period.until_us)},
            "only": dict.fromkeys(place._fields) | place.named,
            "notes": notes,
            "records": records,
        }

    return Document(parts, record, lambda: records, lambda: records[0]), empty
