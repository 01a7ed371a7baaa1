"""Documents as pages, and the tables of all pages: no scripts, nothing fetched.

Jinja2 escapes whatever comes from a pool (autoescape).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

import gwmond
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.render.formats import words
from gwmond.reports.render.table import Table

_ROOMY = 20
"""A table of more columns is set in small type, with shares below what they are shares of."""

_LONG_TEXT = 24
"""A column of texts that are wrapped no narrower than that makes a table too wide for a phone."""

_LONG = 20
"""Letters of a word that is whole wherever it stands."""

_OTHERS = {
    "open": "not settled",
    "waiting": "waiting",
    "moving": "validation, transfers and the like",
    "whole": "from begin to end",
}
"""Colours of drawings that are no category's."""


def with_joints(text: str) -> str:
    """Return a text whose long words may be divided after _, @ and #; pages divide no others."""
    if isinstance(text, Markup) or max(map(len, text.split()), default=0) <= _LONG:
        return text
    return Markup("<wbr>").join(re.split("(?<=[_@#])(?=.)", text))


def html(parts: Iterable[Part]) -> str:
    """Return a document as one file, for light and dark screens and paper."""
    blocks = list(parts)
    titles = [part.text for part in blocks if isinstance(part, Paragraph)][:2]
    return template("report_file.html.j2").render(
        parts=blocks, title=", ".join(titles), version=gwmond.__version__
    )


@cache
def template(name: str) -> Template:
    """Return a template of ``gwmond/data``."""
    environment = Environment(
        loader=FileSystemLoader(Path(gwmond.__file__).parent / "data"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals.update(looks=[info for info in INFOS if info.category], others=_OTHERS)
    environment.filters.update(
        words=words,
        dense=lambda table: len(table.columns) > _ROOMY,
        long=lambda column: column.wrap > _LONG_TEXT,
        tall=lambda table: any(column.wrap > _LONG_TEXT for column in table.columns),
        joints=with_joints,
        shown=Table.without_nothing,
        kind=lambda part: type(part).__name__,
    )
    return environment.get_template(name)
