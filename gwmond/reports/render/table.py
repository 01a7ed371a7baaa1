"""A table as data: columns are records, cells are text with perhaps a colour and a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

R = TypeVar("R")
_ROUNDED = frozenset({"0", "0.0", "0.00", "0%", "0.0%", "-"})
_ZERO, _ROUNDS = "all of it is 0", "all of it rounds to 0"
_UNKNOWN = "nothing is known of it"


class Cell(str):
    """The text of a cell; ``style`` colours it on terminals, ``hint`` explains it on pages."""

    __slots__ = ("hint", "style")
    style: str
    hint: str

    def __new__(cls, text: str, style: str = "", hint: str = "") -> Cell:
        made = super().__new__(cls, text)
        made.style, made.hint = style, hint
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a column is laid out.

    - ``name``: it says which row it is, and is repeated where a table is divided.  Names and
      ``text`` are aligned to the left.  A name that is ``text`` as well is short: pages give it no
      more room.  ``head``: many rows share it, so that it may stand above.
    - ``wrap``: its text may be wrapped, but not made narrower than that; 0: it is not.
    - ``share``: a share of the column before, with which it stays.
    - ``zero``: it is left out, and named in a note, where all of it is 0, or rounds to 0.
    - ``rank``: of a table that is too wide columns of higher rank are first to be moved below.
    - ``hint``: what it is, for pages.
    """

    name: bool = False
    text: bool = False
    head: bool = False
    wrap: int = 0
    share: bool = False
    zero: bool = False
    rank: int = 0
    hint: str = ""

    @property
    def left(self) -> bool:
        return self.name or self.text


@dataclass(frozen=True, slots=True)
class Column(Layout, Generic[R]):
    """A column of records; soft hyphens in ``header`` say where it may be divided."""

    header: str
    cell: Callable[[R], str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a text for each row and column.

    ``total`` is the last line, ``note`` says what one has to know of the columns.  ``nothing`` is
    said instead of headers, total and note where there is no row.
    """

    title: str
    columns: tuple[Column[Any], ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...] | None = None
    note: str = ""
    nothing: str = ""

    @property
    def instead(self) -> str:
        """What is said instead of the table; empty if the table is shown."""
        return "" if self.rows else self.nothing

    @property
    def headers(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.header.replace("\u00ad", "") for column in self.columns)

    @property
    def headings(self) -> tuple[Cell, ...]:
        """The names with their hints, and with soft hyphens, for pages."""
        return tuple(Cell(column.header, "", column.hint) for column in self.columns)

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """All rows, and the total if there is one."""
        return self.rows if self.total is None else (*self.rows, self.total)

    def without_nothing(self) -> Table:
        """Return it without empty columns; a note names those of zeros."""
        out = {at: why for at in range(len(self.columns)) if (why := self._nothing(at)) is not None}
        for at, column in enumerate(self.columns):
            if column.share and at - 1 in out:
                out.setdefault(at, "")
        if not out or not self.lines:
            return self
        named = (
            self._named([at for at, why in out.items() if why == kind], kind)
            for kind in (_ZERO, _ROUNDS, _UNKNOWN)
        )
        return replace(
            self.keeping([at for at in range(len(self.columns)) if at not in out]),
            note=" ".join(filter(None, (self.note, *named))),
        )

    def _nothing(self, at: int) -> str | None:
        """Return why a column is not shown, empty if it has no texts; None: it is shown."""
        column, texts = self.columns[at], {line[at] for line in self.lines} - {""}
        if column.name:
            return None
        if not texts:
            return ""
        if texts == {"?"}:
            return _UNKNOWN
        if not column.zero or not texts <= _ROUNDED:
            return None
        if texts == {"-"}:
            return _UNKNOWN
        return _ZERO if texts <= {"0", "-"} else _ROUNDS

    def _named(self, out: Sequence[int], why: str) -> str:
        names = ", ".join(self.headers[at] for at in out if not self.columns[at].share)
        return f"Not shown, as {why}: {names.removesuffix('.')}." if names else ""

    def keeping(self, places: Sequence[int]) -> Table:

        def kept(cells: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(cells[at] for at in places)

        total = None if self.total is None else kept(self.total)
        return replace(
            self, columns=kept(self.columns), rows=tuple(map(kept, self.rows)), total=total
        )


def name_columns(headers: Iterable[str], heads: int = 0) -> list[Column[Any]]:
    """Return the columns of ``names``, which each row has; the first may stand above."""

    def name(at: int) -> Callable[[Any], str]:
        return lambda row: row.names[at]

    return [
        Column(header, name(at), name=True, head=at < heads) for at, header in enumerate(headers)
    ]


def table(
    title: str,
    columns: Iterable[Column[R]],
    rows: Iterable[R],
    total: R | None = None,
    note: str = "",
    nothing: str = "",
) -> Table:
    all_columns = tuple(columns)

    def cells(row: R) -> tuple[str, ...]:
        return tuple(column.cell(row) for column in all_columns)

    last = None if total is None else cells(total)
    return Table(title, all_columns, tuple(map(cells, rows)), last, note, nothing)
