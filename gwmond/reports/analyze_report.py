"""``gwmond report --style``: what analyze_entries and analyze_frontends told, from the ledger.

Reads the ledger some pilots at a time, while the daemon writes.
"""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from gwmond.ledger.reader import LedgerReader
from gwmond.model.times import Period
from gwmond.reports import analyze_entries, analyze_frontends, csv_text
from gwmond.reports.analyze_entries import COLUMNS, Analysis
from gwmond.reports.analyze_frontends import SORTS, Watched
from gwmond.reports.analyze_pilots import figures_of
from gwmond.reports.analyze_text import entries_text, frontends_text
from gwmond.reports.ledger_reading import Age
from gwmond.reports.periods import both, rfc3339
from gwmond.reports.pilot_tables import flatten
from gwmond.reports.pilots_ended import pilots_ended
from gwmond.reports.report_markdown import escape
from gwmond.reports.table_text import PIPED

Style: TypeAlias = Literal["analyze-entries", "analyze-frontends"]
STYLES: tuple[Style, ...] = get_args(Style)
Form: TypeAlias = Literal["table", "csv", "json", "markdown"]
FORMS: tuple[Form, ...] = get_args(Form)


class Asked(NamedTuple):
    """What is asked for; None of a place: all.

    ``by_entry``: lines for entries, else only for frontends.  ``compare``: with the originals'
    figures below each line.
    """

    style: Style
    period: Period
    site: str | None = None
    entry: str | None = None
    group: str | None = None
    by_entry: bool = True
    sort: str | None = None
    compare: bool = False


def asked(question: Asked, by: str | None) -> Asked:
    """Return what is asked for, checked; else ``ValueError``, which tells what can be given."""
    if by not in {None, "entry", "group"}:
        raise ValueError(
            f'--by "{by}": --style {question.style} is by entry (the default) or group'
        )
    sort = question.sort
    if question.style == "analyze-entries":
        known: Sequence[str] = list(COLUMNS)
        sort = None if sort is None else sort.lower()
    else:
        if question.site is not None:
            raise ValueError(
                f"--site: what --style {question.style} tells is by entry; give --entry"
            )
        known = list(SORTS)
        sort = None if sort is None else SORTS.get(sort.lower(), sort)
        known = [*known, *SORTS.values()]
    if sort is not None and sort not in known:
        raise ValueError(
            f'--sort "{question.sort}": there is only {", ".join(dict.fromkeys(known))}'
        )
    period = question.period if question.style == "analyze-entries" else question.period.whole_hours
    return question._replace(by_entry=by != "group", sort=sort, period=period)


class Told(NamedTuple):
    """A report in all it can be written as; ``empty``: no pilot ended, or nothing was watched."""

    asked: Asked
    title: str
    notes: list[str]
    records: list[dict[str, Any]]
    lines: list[str]
    empty: bool = False

    def written(self, age: Age, form: str, width: int = PIPED) -> str:
        """Return it as a text, whose notes are wrapped to a width, CSV, JSON or Markdown."""
        match form:
            case "csv":
                return self._csv()
            case "json":
                return json.dumps(self._json(age), indent=2) + "\n"
            case "markdown":
                return self._markdown(age)
        told = [line for note in self.notes for line in textwrap.wrap(note, width)]
        return "\n".join([self.title, age.told, *told, "", *self.lines]) + "\n"

    def _json(self, age: Age) -> dict[str, Any]:
        period = self.asked
        return {
            **age.as_json(),
            "style": period.style,
            "period": {
                **both("from", period.period.since_us),
                **both("to", period.period.until_us),
            },
            "only": {"site": period.site, "entry": period.entry, "group": period.group},
            "notes": self.notes,
            "records": self.records,
        }

    def _csv(self) -> str:
        into = io.StringIO()
        flat = [flatten(record) for record in self.records]
        csv_text.write(into, flat[0], (record.values() for record in flat))
        return into.getvalue()

    def _markdown(self, age: Age) -> str:
        told = [f"# {escape(self.title)}", *(escape(text) for text in (age.told, *self.notes))]
        return "\n\n".join([*told, "\n".join(f"    {line}" for line in self.lines)]) + "\n"


def tell(ledger: LedgerReader, period: Asked) -> Told:
    """Return a report."""
    since, until = map(rfc3339, period.period)
    only = [
        f"{name} {value}"
        for name, value in (("site", period.site), ("entry", period.entry), ("group", period.group))
        if value is not None
    ]
    where = ", ".join(only) or "all entries"
    title = f"{period.style} from gwmond's records, {where}: {since} to {until}"
    if period.style == "analyze-entries":
        analysis = _entries(ledger, period)
        lines = entries_text if period.by_entry else frontends_text
        return Told(
            *(period, title, analyze_entries.notes(analysis)),
            list(analyze_entries.records(analysis)),
            lines(analysis, period.sort),
            not analysis.cells,
        )
    watched = _frontends(ledger, period)
    return Told(
        *(period, title, analyze_frontends.notes(watched)),
        list(analyze_frontends.records(watched, compare=period.compare)),
        analyze_frontends.text(
            watched, entries=period.by_entry, sort=period.sort, compare=period.compare
        ),
        not watched.means,
    )


def _entries(ledger: LedgerReader, period: Asked) -> Analysis:
    analysis = Analysis(period.period, period.compare)
    for row, attempts in pilots_ended(
        ledger, period.period, period.site, period.entry, period.group
    ):
        analysis.add(figures_of(row, attempts))
    return analysis


def _frontends(ledger: LedgerReader, period: Asked) -> Watched:
    def wanted(client: str, entry: str) -> bool:
        return period.entry in {None, entry} and period.group in {None, client}

    return analyze_frontends.watched(
        ledger.factory_hours(*period.period.hours), period.period, wanted
    )
