"""A document, written as ``--format`` asks."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable
from typing import Literal, TextIO, TypeAlias

from gwmond.reports.render.document import Document
from gwmond.reports.render.formats import flatten

Form: TypeAlias = Literal["table", "json", "csv", "markdown", "html"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


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
