"""Tables and documents as lines of text that fit into a width: nothing is cut off.

A table that is too wide is made narrower in this order: headers in several lines; texts that may
be wrapped; names that many rows share in a line of their own above them; less room between
columns; last, the columns in several tables, each with the rows' names.  Only a name that is wider
than all the room makes a line longer than it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gwmond.reports.render.document import Paragraph, Part, Sentences, Spans, TextLines
from gwmond.reports.render.formats import plain
from gwmond.reports.render.table import Cell, Table

PIPED = 120
"""Columns where the output is no terminal."""
_NARROWEST = 80
_GAP = 2
_SOFT = "\u00ad"
_STYLES = {"title": "bold", "heading": "bold", "soft": "bright_black", "caution": "yellow"}


def room(*, terminal: bool | None = None) -> int:
    """Return how many columns there are; None: of a terminal if standard output is one."""
    if terminal if terminal is not None else sys.stdout.isatty():
        return max(_NARROWEST, shutil.get_terminal_size((PIPED, 24)).columns)
    return PIPED


def show(console: Console, parts: Iterable[Part]) -> None:
    """Print the parts of a document, with an empty line before each heading, table and block."""
    for part in parts:
        match part:
            case Paragraph():
                if part.role != "warning":
                    before = "\n" if part.role == "heading" else ""
                    say(console, before + part.text, _STYLES.get(part.role, ""))
            case Table():
                _table(console, part)
            case TextLines():
                if part.title is not None:
                    say(console, f"\n{part.title}" if part.title else "", "bold")
                for line in part.lines:
                    console.print(Text(plain(line), _style(line)), soft_wrap=True)
            case Sentences():
                say(console, "\n".join(["", *part.texts]))
            case Spans():
                console.print(_spans(part), soft_wrap=True)


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence or more, wrapped between words."""
    console.print(Text(plain(text, keep="\n"), style))


def _style(text: str) -> str:
    return text.style if isinstance(text, Cell) else ""


def _spans(part: Iterable[Cell]) -> Text:
    line = Text(no_wrap=True)
    for cell in part:
        line.append(plain(cell), cell.style)
    return line


def _table(console: Console, table: Table) -> None:
    shown = table.without_nothing()
    if table.title:
        say(console, f"\n{table.title}", "bold")
    if table.instead:
        say(console, table.instead)
        return
    console.print(Text("\n").join(lines(shown, console.width)), soft_wrap=True)
    if shown.note:
        say(console, shown.note, "bright_black")


def lines(table: Table, width: int) -> Iterator[Text]:
    """Yield the lines of a table, or of several with an empty line between."""
    layout = _Layout(table)
    names = [at for at, column in enumerate(table.columns) if column.name]
    rest = [at for at, column in enumerate(table.columns) if not column.name]
    numbers = range(len(table.columns))
    layout.deep = not layout.fits(numbers, width)
    if not layout.fits(numbers, width):
        layout.wrap(numbers, width)
    if not layout.fits(numbers, width):
        layout.heads = [at for at in names if table.columns[at].head]
        names = [at for at in names if at not in layout.heads]
    if not layout.fits([*names, *rest], width):
        layout.gap = 1
        if not layout.fits([*names, *rest], width):
            layout.gap = _GAP
    for number, block in enumerate(layout.blocks(names, rest, width)):
        if number:
            yield Text()
        layout.wrap([*names, *block], width)  # there may be more room now
        yield from layout.lines([*names, *block])


class _Layout:
    """The columns of a table with their widths; ``deep``: headers may have several lines."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._columns = table.columns
        numbers = range(len(table.columns))
        self._cells = [
            max((_length(line[at]) for line in table.lines), default=0) for at in numbers
        ]
        self._longest = {
            at: max((_longest(line[at]) for line in table.lines), default=0)
            for at in numbers
            if table.columns[at].wrap
        }
        self._most: dict[int, int] = {}
        self.heads: list[int] = []
        self.deep = False
        self.gap = _GAP

    def _header(self, at: int) -> list[str]:
        header = self._columns[at].header
        width = max(self._width_of_cells(at), _longest(header))
        return wrapped(header, width if self.deep else len(header))

    def _width_of_cells(self, at: int) -> int:
        return min(self._cells[at], self._most.get(at, self._cells[at]))

    def _indent(self, at: int) -> int:
        return _GAP if self.heads and at == len(self.heads) else 0

    def _width(self, at: int) -> int:
        header = max(map(cell_len, self._header(at)))
        return max(header, self._width_of_cells(at)) + self._indent(at)

    def _sum(self, columns: Sequence[int]) -> int:
        return sum(map(self._width, columns)) + self.gap * max(0, len(columns) - 1)

    def fits(self, columns: Sequence[int], width: int) -> bool:
        return self._sum(columns) <= width

    def wrap(self, columns: Sequence[int], width: int) -> None:
        """Make columns that may be wrapped as narrow as is needed, or as may be."""
        may = [at for at in columns if self._columns[at].wrap]
        for at in sorted(may, key=self._width, reverse=True):
            left = width - self._sum(columns) + self._width(at)
            self._most[at] = max(self._columns[at].wrap, left, self._longest[at])

    def blocks(self, names: Sequence[int], rest: Sequence[int], width: int) -> list[list[int]]:
        """Return which columns go together; a share stays with what it is a share of."""
        pairs: list[list[int]] = []
        for at in rest:
            if pairs and self._columns[at].share:
                pairs[-1].append(at)
            else:
                pairs.append([at])
        blocks: list[list[int]] = [[]]
        for pair in sorted(pairs, key=lambda pair: self._columns[pair[0]].rank):
            if blocks[-1] and not self.fits([*names, *blocks[-1], *pair], width):
                blocks.append([])
            blocks[-1] += pair
        return [sorted(block) for block in blocks]

    def lines(self, columns: Sequence[int]) -> Iterator[Text]:
        widths = [(at, self._indent(at), self._width(at)) for at in columns]
        headers = [[Text(part, "bold") for part in self._header(at)] for at in columns]
        deep = max(map(len, headers))
        yield from self._row(
            widths, [[Text()] * (deep - len(header)) + header for header in headers]
        )
        for head, rows in self._headed():
            if head is not None:
                yield head
            for row in rows:
                yield from self._row(widths, [self._parts(row[at], at) for at in columns])
        if (total := self._table.total) is not None:
            named = list(total)
            named[len(self.heads)] = total[0]
            bold = [[Text(part.plain, "bold") for part in self._parts(named[at], at)]
                    for at in columns]  # fmt: skip
            # Not indented: it is of all, not of the last head.
            yield from self._row([(at, 0, width) for at, _, width in widths], bold)

    def _headed(self) -> Iterator[tuple[Text | None, Sequence[Sequence[str]]]]:
        """Yield rows below what they share, in the order of the first of each."""
        if not self.heads:
            yield None, self._table.rows
            return
        groups: dict[tuple[str, ...], list[Sequence[str]]] = {}
        for row in self._table.rows:
            groups.setdefault(tuple(row[at] for at in self.heads), []).append(row)
        for shared, rows in groups.items():
            yield Text(plain("  ".join(name for name in shared if name))), rows

    def _parts(self, cell: str, at: int) -> list[Text]:
        text = plain(cell, keep=_SOFT)
        most = self._most.get(at, len(text))
        return [Text(part, _style(cell)) for part in wrapped(text, most)]

    def _row(
        self, widths: Sequence[tuple[int, int, int]], cells: Sequence[Sequence[Text]]
    ) -> Iterator[Text]:
        """Yield the lines of a row; each column has its number, its indent and its width."""
        for number in range(max(map(len, cells))):
            line = Text()
            for place, ((at, indent, width), parts) in enumerate(zip(widths, cells, strict=True)):
                text = parts[number] if number < len(parts) else Text()
                pad = width - indent - text.cell_len
                line.append(" " * ((self.gap if place else 0) + indent))
                if self._columns[at].left:
                    line.append_text(text).append(" " * pad)
                else:
                    line.append(" " * pad).append_text(text)
            line.rstrip()
            yield line


def _length(cell: str) -> int:
    return cell_len(plain(cell.replace(_SOFT, "")))


def _longest(text: str) -> int:
    """Return the width of what cannot be divided; a word that goes on needs room for a hyphen."""
    words = (word.split(_SOFT) for word in plain(text, keep=_SOFT).split())
    return max(
        (cell_len(part) + (n + 1 < len(word)) for word in words for n, part in enumerate(word)),
        default=0,
    )


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, divided between words and at soft hyphens.

    >>> wrapped("unexplained %", 11), wrapped("provi\u00adsioned", 7), wrapped("bottle\u00adneck", 12)
    (['unexplained', '%'], ['provi-', 'sioned'], ['bottleneck'])
    """  # noqa: E501
    if cell_len(text.replace(_SOFT, "")) <= width:
        return [text.replace(_SOFT, "")]
    lines = [""]
    for word in text.split(" "):
        parts = word.split(_SOFT)
        for number, part in enumerate(parts):
            hyphen = number + 1 < len(parts)
            longer = f"{lines[-1]}{' ' if not number and lines[-1] else ''}{part}"
            if not lines[-1] or cell_len(longer) + hyphen <= width:
                lines[-1] = longer
                continue
            lines[-1] += "-" if number else ""
            lines.append(part)
    return lines
