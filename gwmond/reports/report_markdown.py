"""A report as Markdown tables, for issues, wikis and mail."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gwmond.reports.ledger_reading import Age
from gwmond.reports.report import Report
from gwmond.reports.report_records import DEFINITIONS, notes
from gwmond.reports.report_sections import Section, period, sections, title

_SPECIAL = re.compile(
    r"""[\\`*\[\]|~]              # code, emphasis, links, cells
    | (?<![^\W_])_+ | _+(?![^\W_])  # emphasis; within a word it is none
    | \#+$                       # the end of a heading
    | <(?=[A-Za-z/!?]) | &(?=\#?\w+;)  # HTML""",
    re.VERBOSE,
)


def markdown(report: Report, age: Age) -> str:
    """Return the text; names from the pool cannot be taken for Markdown or HTML."""
    warning = f"**{escape(age.warning)}**" if age.warning else ""
    told = [period(report), age.told, *notes(report)]
    parts = [f"# {escape(title(report))}", *(escape(text) for text in told), warning]
    for section in sections(report):
        parts += [f"## {escape(section.title)}", escape(section.note), _table(section)]
    figures = report.total.figures
    if figures is not None and report.counted:
        block = "\n".join(f"    {line}" for line in figures.block(report.scope.period.length_us))
        parts += ["## All pilots that ended in the period", block]
    parts.append("## Definitions")
    parts.append("\n".join(f"- {escape(n)}: {escape(text)}" for n, text in DEFINITIONS.items()))
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line, after other text or in a cell.

    >>> print(escape("a|b_c _d_ (2 of 3) <b> & <1 s"))
    a\|b_c \_d\_ (2 of 3) \<b> & <1 s
    """
    return _SPECIAL.sub(lambda found: "".join(f"\\{c}" for c in found[0]), " ".join(text.split()))


def _table(section: Section) -> str:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    sides = ["---" if i < section.names else "---:" for i in range(len(section.headers))]
    every = (section.headers, *section.rows, section.total)
    lines = [row([escape(cell) for cell in cells]) for cells in every]
    return "\n".join([lines[0], row(sides), *lines[1:]])
