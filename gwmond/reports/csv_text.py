"""CSV, as every command writes it: what a spreadsheet would take for a formula is text.

Names come from strangers (sites, users, failures), and a spreadsheet evaluates a cell that begins
with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return (OWASP, "CSV Injection").  So a text
that begins so, or a header, gets an apostrophe in front.  Numbers stay numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TextIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write(into: TextIO, columns: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """Write a line of ``columns``, and a line for each row."""
    writer = csv.writer(into, lineterminator="\n")
    writer.writerow(map(_harmless, columns))
    writer.writerows(map(_harmless, row) for row in rows)


def _harmless(cell: object) -> object:
    text = cell if isinstance(cell, str) else ""
    return f"'{text}" if text.lstrip(" \n").startswith(_FORMULA) else cell
