"""Documents as Markdown, for issues, wikis and mail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gwmond.reports.render.document import Definitions, Paragraph, Part, Sentences, TextLines
from gwmond.reports.render.table import Table

_SPECIAL = re.compile(
    r"""[\\`*\[\]|~]              # code, emphasis, links, cells
    | (?<![^\W_])_+ | _+(?![^\W_])  # emphasis; within a word it is none
    | \#+$                       # the end of a heading
    | <(?=[A-Za-z/!?]) | &(?=\#?\w+;)  # HTML""",
    re.VERBOSE,
)


def markdown(parts: Iterable[Part]) -> str:
    """Return the text; names from the pool cannot be taken for Markdown or HTML."""
    blocks = (block for part in parts for block in _blocks(part))
    return "\n\n".join(block for block in blocks if block) + "\n"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line, after other text or in a cell.

    >>> print(escape("a|b_c _d_ (2 of 3) <b> & <1 s"))
    a\|b_c \_d\_ (2 of 3) \<b> & <1 s
    """
    return _SPECIAL.sub(lambda match: "".join(f"\\{c}" for c in match[0]), " ".join(text.split()))


def _blocks(part: Part) -> list[str]:
    match part:
        case Paragraph():
            marks = {"title": "# {}", "heading": "## {}", "warning": "**{}**"}
            return [marks.get(part.role, "{}").format(escape(part.text)) if part.text else ""]
        case Table():
            shown = part.without_nothing()
            heading = f"## {escape(shown.title)}" if shown.title else ""
            body = [_table(shown), escape(shown.note)]
            return [heading, *([escape(shown.instead)] if shown.instead else body)]
        case TextLines():
            heading = f"## {escape(part.title)}" if part.title else ""
            return [heading, "\n".join(f"    {line}" for line in part.lines)]
        case Sentences():
            return ["\n".join(f"- {escape(text)}" for text in part.texts)]
        case Definitions():
            items = (f"- {escape(word)}: {escape(text)}" for word, text in part.meanings.items())
            return ["## Definitions", "\n".join(items)]
        case _:
            return []


def _table(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    sides = ["---" if column.left else "---:" for column in table.columns]
    lines = [row([escape(cell) for cell in cells]) for cells in (table.headers, *table.lines)]
    return "\n".join([lines[0], row(sides), *lines[1:]])
