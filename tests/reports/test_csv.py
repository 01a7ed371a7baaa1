"""CSV that a spreadsheet opens: names of strangers are never formulas."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from gwmond.reports.render import writing
from tests.build.code import FILES, imports


def cells(*row: object) -> list[str]:
    into = io.StringIO()
    writing.write_csv(into, ["a"] * len(row), [row])
    return list(csv.reader(io.StringIO(into.getvalue())))[1]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", " =", "\n=", "\t\t"])
def test_a_text_that_begins_like_a_formula_begins_with_an_apostrophe(begin: str) -> None:
    """Of names in cells and in headers."""
    text = f'{begin}HYPERLINK("http://x.example";"a")'
    assert cells(text, f"T2{text}") == [f"'{text}", f"T2{text}"]
    into = io.StringIO(newline="")
    writing.write_csv(into, [text], [])
    assert next(csv.reader(io.StringIO(into.getvalue(), newline=""))) == [f"'{text}"]


def test_numbers_stay_numbers() -> None:
    """Negative ones, too; and what is not known is empty."""
    assert cells(-1, -0.5, 3, None, True, "", "T2_Example") == [
        *("-1", "-0.5", "3", "", "True", "", "T2_Example")
    ]


def test_all_csv_is_written_here() -> None:
    """No other module makes a writer of its own."""
    writers = [path for path in FILES if any(found.module == "csv" for found in imports(path))]
    assert writers == [Path(writing.__file__)]
