"""Tables as lines of text that fit into a width: nothing is cut off, and names stay whole.

What does not fit is told in this order: headers in two lines; texts that may be wrapped; names
that many rows share in a line of their own above them; last, the columns in several tables, each
with the rows' names.  Only a name that is wider than all the room makes a line longer than it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

Cell: TypeAlias = str | Text

PIPED = 120
"""Columns where the output is no terminal."""
_NARROWEST = 80
_GAP = 2
_WITH_THE_LAST = {"%", "share"}  # such a column stays with the one before


class Grid(NamedTuple):
    """A table: ``names`` columns at the left tell what a row is of, the others are told of it.

    Columns of ``texts`` are aligned to the left, as names are, those of ``wrapped`` may be
    wrapped, but not made narrower than that.  The first ``heads`` names may stand above their rows.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    names: int = 1
    total: Sequence[Cell] | None = None
    texts: Collection[str] = ()
    wrapped: Mapping[str, int] = MappingProxyType({})
    heads: int = 0


def room(*, terminal: bool | None = None) -> int:
    """Return how many columns there are; None: of a terminal if standard output is one."""
    if terminal if terminal is not None else sys.stdout.isatty():
        return max(_NARROWEST, shutil.get_terminal_size((PIPED, 24)).columns)
    return PIPED


def show(console: Console, grid: Grid) -> None:
    """Print a table in the console's width."""
    for line in lines(grid, console.width):
        console.print(line, soft_wrap=True)


def empty(
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    may: Collection[str],
    nothing: Collection[str],
) -> list[int]:
    """Return the columns in which all cells say nothing; a share goes with the column before.

    Only columns of ``may`` are meant.
    """
    found: list[int] = []
    for at, header in enumerate(headers):
        with_it = header in _WITH_THE_LAST and at - 1 in found
        if with_it or (header in may and all(str(row[at]) in nothing for row in rows)):
            found.append(at)
    return found


def not_shown(headers: Sequence[str], out: Collection[int], why: str = "all of it is 0") -> str:
    """Return the sentence that says which columns were left out; empty if none was."""
    names = [headers[at] for at in out if headers[at] not in _WITH_THE_LAST]
    return f"Not shown, as {why}: {', '.join(names).removesuffix('.')}." if names else ""


def tell(console: Console, text: str, style: str = "") -> None:
    """Print a sentence or more, wrapped between words."""
    console.print(Text(plain(text, keep="\n"), style))


def plain(text: str, *, keep: str = "") -> str:
    r"""Return a text without what a terminal would obey.

    >>> plain("entry\x1b[2J")
    'entry?[2J'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else "?" for letter in text)


def lines(grid: Grid, width: int) -> Iterator[Text]:
    """Yield the lines of a table, or of several with an empty line between."""
    table = _Table(grid)
    names, rest = list(range(grid.names)), list(range(grid.names, len(grid.headers)))
    if not table.fits([*names, *rest], width):
        table.two_lines = True
    if not table.fits([*names, *rest], width):
        table.wrap([*names, *rest], width)
    if grid.heads and not table.fits([*names, *rest], width):
        table.heads, names = grid.heads, names[grid.heads :]
    for number, block in enumerate(table.blocks(names, rest, width)):
        if number:
            yield Text()
        table.wrap([*names, *block], width)  # there may be more room now
        yield from table.lines([*names, *block])


class _Table:
    """A table whose columns have widths."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._every = [*grid.rows, *([] if grid.total is None else [grid.total])]
        self._most: dict[int, int] = {}
        self._cells = [
            max((_len(row[column]) for row in self._every), default=0)
            for column in range(len(grid.headers))
        ]
        self.heads = 0
        self.two_lines = False

    def _header(self, column: int) -> list[str]:
        header = self._grid.headers[column]
        return (
            _halves(header)
            if self.two_lines and cell_len(header) > self._cells[column]
            else [header]
        )

    def _width(self, column: int) -> int:
        header = max(map(cell_len, self._header(column)))
        indent = _GAP if self.heads and column == self.heads else 0
        return max(header, min(self._cells[column], self._most.get(column, 10**6))) + indent

    def _sum(self, columns: Sequence[int]) -> int:
        return sum(map(self._width, columns)) + _GAP * max(0, len(columns) - 1)

    def fits(self, columns: Sequence[int], width: int) -> bool:
        """Return whether these columns fit side by side."""
        return self._sum(columns) <= width

    def wrap(self, columns: Sequence[int], width: int) -> None:
        """Make columns that may be wrapped as narrow as is needed, or as may be."""
        may = [column for column in columns if self._grid.headers[column] in self._grid.wrapped]
        for column in sorted(may, key=self._width, reverse=True):
            left = width - self._sum(columns) + self._width(column)
            words = (len(word) for row in self._every for word in str(row[column]).split())
            least = self._grid.wrapped[self._grid.headers[column]]
            self._most[column] = max(least, left, *words, 0)

    def blocks(self, names: Sequence[int], rest: Sequence[int], width: int) -> list[list[int]]:
        """Return which columns go together; a share stays with what it is a share of."""
        pairs: list[list[int]] = []
        for column in rest:
            if pairs and self._grid.headers[column] in _WITH_THE_LAST:
                pairs[-1].append(column)
            else:
                pairs.append([column])
        found: list[list[int]] = [[]]
        for pair in pairs:
            if found[-1] and not self.fits([*names, *found[-1], *pair], width):
                found.append([])
            found[-1] += pair
        return found

    def lines(self, columns: Sequence[int]) -> Iterator[Text]:
        """Yield the lines of some columns."""
        headers = [[Text(part, "bold") for part in self._header(column)] for column in columns]
        deep = max(map(len, headers))
        yield from self._row(
            columns, [[Text()] * (deep - len(header)) + header for header in headers]
        )
        for head, rows in self._headed():
            if head is not None:
                yield head
            for row in rows:
                yield from self._row(columns, [self._parts(row, column) for column in columns])
        if (total := self._grid.total) is not None:
            named = [*total]
            named[self.heads] = total[0]
            cells = [self._parts(named, column) for column in columns]
            yield from self._row(columns, [[_bold(part) for part in cell] for cell in cells])

    def _headed(self) -> Iterator[tuple[Text | None, Iterable[Sequence[Cell]]]]:
        """Yield rows below what they share, in the order of the first of each."""
        if not self.heads:
            yield None, self._grid.rows
            return
        found: dict[tuple[str, ...], list[Sequence[Cell]]] = {}
        for row in self._grid.rows:
            found.setdefault(tuple(map(str, row[: self.heads])), []).append(row)
        for shared, rows in found.items():
            yield Text(plain("  ".join(name for name in shared if name))), rows

    def _parts(self, row: Sequence[Cell], column: int) -> list[Text]:
        cell = row[column]
        text = Text(plain(cell)) if isinstance(cell, str) else cell
        if not text.plain.isprintable():
            text = Text(plain(text.plain), text.style)
        most = self._most.get(column)
        if most is None or text.cell_len <= most:
            return [text]
        return list(text.wrap(Console(width=most), most))

    def _row(self, columns: Sequence[int], cells: Sequence[Sequence[Text]]) -> Iterator[Text]:
        for number in range(max(map(len, cells))):
            line = Text()
            for place, (column, parts) in enumerate(zip(columns, cells, strict=True)):
                text = parts[number] if number < len(parts) else Text()
                pad = self._width(column) - text.cell_len
                line.append(" " * (_GAP if place else 0))
                if self._left(column):
                    indent = _GAP if self.heads and column == self.heads else 0
                    line.append(" " * indent).append_text(text).append(" " * (pad - indent))
                else:
                    line.append(" " * pad).append_text(text)
            line.rstrip()
            yield line

    def _left(self, column: int) -> bool:
        return column < self._grid.names or self._grid.headers[column] in self._grid.texts


def _len(cell: Cell) -> int:
    return cell_len(plain(str(cell)))


def _bold(text: Text) -> Text:
    return Text(text.plain, "bold") if text.plain else text


def _halves(header: str) -> list[str]:
    """Return a header in two lines, as even as its words allow.

    >>> _halves("unexplained %"), _halves("total"), _halves("validation fails h")
    (['unexplained', '%'], ['total'], ['validation', 'fails h'])
    """
    words = header.split(" ")
    ways = [
        [" ".join(words[:place]), " ".join(words[place:])] for place in range(1, len(words))
    ] or [[header]]
    return min(ways, key=lambda way: max(map(cell_len, way)))
