"""What a command answers, as data.

A document is made of parts for people and of records for programs.  Parts are paragraphs, tables,
blocks of lines and plots; terminals, Markdown and pages show the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from gwmond.reports.render.table import Cell, Table

Role: TypeAlias = Literal["", "title", "heading", "soft", "caution", "warning"]
"""``warning``: terminals have it on standard error."""


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
    """A text in a drawing; ``anchor``: whether it begins, ends or is at ``x``."""

    x: float
    y: float
    text: str
    role: str
    anchor: Literal["start", "middle", "end"] = "start"
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
