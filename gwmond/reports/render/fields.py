"""Properties of records, as one list, from which follow tables, JSON and CSV.

A ``Datum`` has a value, its unit, its name in JSON and CSV, and its column in tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, TypeVar

from gwmond.reports.render.formats import hours, seconds
from gwmond.reports.render.periods import both, short, span
from gwmond.reports.render.table import Column, Layout

R = TypeVar("R")


class Unit(NamedTuple):
    """How values of a unit are written: by ``record`` in JSON and CSV, by ``text`` in tables."""

    record: Callable[[str, Any], Mapping[str, Any]]
    text: Callable[[Any], str]


def _text(value: object) -> str:
    """Return a text as it is, which may be a coloured cell."""
    return value if isinstance(value, str) else "" if value is None else str(value)


PLAIN = Unit(lambda key, value: {key: value}, _text)
HOURS = Unit(lambda key, us: {f"{key}_seconds": seconds(us)}, hours)
"""An amount in micros: seconds in JSON, hours in tables."""
TIME = Unit(both, short)
"""Microseconds since the epoch; JSON has them twice, as text and in seconds."""
LENGTH = Unit(
    lambda key, us: {f"{key}_seconds": seconds(us)}, lambda us: "" if us is None else span(us)
)
"""Microseconds."""


@dataclass(frozen=True, slots=True)
class Datum(Layout, Generic[R]):
    """One property of records, such as when a pilot began.

    - ``key``: its name in JSON and CSV, to which the unit is added; empty: it is in tables only.
    - ``at``: where tables have its column, by this order; 0: they do not have it.  ``header``: of
      the column, if it is not the key.  ``cell``: its text, if not ``value`` as the unit says.
    """

    key: str
    value: Callable[[R], Any]
    at: int = 0
    header: str = ""
    unit: Unit = PLAIN
    cell: Callable[[R], str] | None = None


def record(fields: Iterable[Datum[R]], row: R) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in fields:
        if field.key:
            made |= field.unit.record(field.key, field.value(row))
    return made


def columns(fields: Iterable[Datum[R]]) -> list[Column[R]]:
    return [_column(field) for field in sorted(fields, key=lambda field: field.at) if field.at]


def _column(field: Datum[R]) -> Column[R]:
    layout = {part.name: getattr(field, part.name) for part in fields(Layout)}
    cell = field.cell or (lambda row: field.unit.text(field.value(row)))
    return Column(field.header or field.key, cell, **layout)
