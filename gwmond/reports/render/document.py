"""What a command answers, as data, and written as ``--format`` asks.

A document is made of parts for people and of records for programs.  Parts are paragraphs, tables,
blocks of lines and plots; terminals, Markdown and pages show the same ones.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TextIO, TypeAlias

from gwmond.reports.render.formats import flatten
from gwmond.reports.render.table import Cell, Table

Role: TypeAlias = Literal["", "title", "heading", "soft", "caution", "warning"]
"""``warning``: terminals have it on standard error."""
Form: TypeAlias = Literal["table", "json", "csv", "markdown", "html"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Paragraph(NamedTuple):
    """A sentence or more."""

    text: str
    role: Role = ""


class TextLines(NamedTuple):
    """Lines that are shown as they are; without a title (None) right below what is before."""

    title: str | None
    lines: Sequence[str]


class Sentences(NamedTuple):
    """Sentences of which each is one of a list."""

    texts: Sequence[str]


class Spans(tuple[Cell, ...]):
    """One line of coloured pieces, for terminals only."""

    __slots__ = ()


class Definitions(NamedTuple):
    """Words and what they mean; terminals have them in ``--help``."""

    meanings: Mapping[str, str]


class Rectangle(NamedTuple):
    """A coloured part of a bar; lengths are the drawing's own units."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    hint: str


class Word(NamedTuple):
    """A text in a drawing; ``anchor``: whether it begins or ends at ``x``."""

    x: float
    y: float
    text: str
    role: str
    anchor: Literal["start", "end"] = "start"
    hint: str = ""


class GridLine(NamedTuple):
    """A horizontal line of a drawing."""

    x1: float
    x2: float
    y: float


@dataclass(slots=True)
class Drawing:
    """A plot, for pages only; ``text`` describes it, ``note`` says what is not in it."""

    title: str
    text: str
    width: float
    height: float
    rectangles: list[Rectangle] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    lines: list[GridLine] = field(default_factory=list)
    note: str = ""


Part: TypeAlias = Paragraph | Table | TextLines | Sentences | Spans | Definitions | Drawing


class Document(NamedTuple):
    """An answer; only what the format asks for is made.

    - ``parts``: what people read.
    - ``record``: what JSON has.
    - ``rows``: what CSV has, a record for each line, nested or not.
    - ``blank``: a record with all columns of CSV, in their order.
    """

    parts: Callable[[], Iterable[Part]]
    record: Callable[[], object]
    rows: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    blank: Callable[[], Mapping[str, Any]] = dict


def add_format(parser: argparse._ActionsContainer, *forms: Form) -> None:
    """Add ``--format``; the first form is the default."""
    parser.add_argument("--format", choices=forms, default=forms[0])


def text(
    document: Document, form: str, *, terminal: bool | None = None, width: int | None = None
) -> str:
    """Return a document as text; ``terminal``: coloured, and as wide as that (None: look)."""
    into = io.StringIO()
    match form:
        case "json":
            json.dump(document.record(), into, indent=2)
            into.write("\n")
        case "csv":
            columns = list(flatten(document.blank()))
            rows = (flatten(row) for row in document.rows())
            write_csv(into, columns, ([row.get(name) for name in columns] for row in rows))
        case "markdown":
            from gwmond.reports.render.markdown import markdown  # noqa: PLC0415 (seldom needed)

            into.write(markdown(document.parts()))
        case "html":
            from gwmond.reports.render.html import html  # noqa: PLC0415 (jinja2 is seldom needed)

            into.write(html(document.parts()))
        case _:
            from rich.console import Console  # noqa: PLC0415 (not for programs)

            from gwmond.reports.render import terminal as screen  # noqa: PLC0415

            colours = terminal if terminal is not None else sys.stdout.isatty()
            width = width or screen.room(terminal=terminal)
            console = Console(file=into, width=width, force_terminal=colours)
            screen.show(console, document.parts())
    return into.getvalue()


def write_csv(into: TextIO, columns: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """Write CSV: a line of ``columns``, and a line for each row.

    Names come from strangers (sites, users, failures), and a spreadsheet evaluates a cell that
    begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return (OWASP, "CSV Injection").  So
    a text that begins so, or a header, gets an apostrophe in front.  Numbers stay numbers.
    """
    writer = csv.writer(into, lineterminator="\n")
    writer.writerow(map(_harmless, columns))
    writer.writerows(map(_harmless, row) for row in rows)


def _harmless(cell: object) -> object:
    text = cell if isinstance(cell, str) else ""
    return f"'{text}" if text.lstrip(" \n").startswith(_FORMULA) else cell
