"""The tables of a page as CSV: an address with ``csv=NUMBER`` has that table, as it is shown.

Made of the page itself, so whatever is shown there can be had.  In cells of numbers what is not
known is empty, and thousands are not grouped.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from urllib.parse import urlencode

from markupsafe import Markup

from gwmond.reports.render.formats import UNKNOWN
from gwmond.reports.render.writing import write_csv

_END = "</table></div>"
_CELLS, _PICTURE = ("td", "th"), "svg"


class _Rows(HTMLParser):
    """Collects the rows of each table; what pictures say to the mouse is no text of a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None
        self._number = self._drawn = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in _CELLS:
            self._cell, self._number = [], ("class", "n") in attrs
        elif tag == _PICTURE:
            self._drawn = True

    def handle_endtag(self, tag: str) -> None:
        if tag == _PICTURE:
            self._drawn = False
        if tag in _CELLS and self._cell is not None:
            text = " ".join("".join(self._cell).split()).replace("\u00ad", "")
            if self._number and tag == "td":
                text = "" if text == UNKNOWN else re.sub("(?<=[0-9]),(?=[0-9]{3})", "", text)
            self.tables[-1][-1].append(text)
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None and not self._drawn:
            self._cell.append(data)


def csv_of(page: str, number: int) -> str | None:
    """Return a table of a page, the first is 1; None if there are not so many."""
    reader = _Rows()
    reader.feed(page)
    if not 1 <= number <= len(reader.tables):
        return None
    into = io.StringIO()
    head, *rows = reader.tables[number - 1]
    write_csv(into, head, rows)
    return into.getvalue()


def with_csv_links(page: str, query: Mapping[str, str]) -> str:
    """Return a page with a link below each table; ``query``: the parameters of its address."""
    first, *others = page.split(_END)  # every text in a page is escaped: none has this
    linked = Markup('{}<p class="csv"><a href="?{}">CSV</a></p>')
    for number, after in enumerate(others, 1):
        asked = urlencode({**query, "csv": number})
        first += str(linked.format(Markup(_END), asked)) + after
    return first
