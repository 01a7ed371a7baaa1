"""Plots of a report as SVG text: bars by group, and a series over time, stacked by category.

All text is escaped; colours are classes (``c-goodput`` ...) that the page defines, for light and
dark.  Units: amounts are micros, shown as hours; lengths are the SVG's own units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from gwmond.model.pilot_facts import Category
from gwmond.reports.category_time import HOUR, Kind, hours, percent, ratio, words
from gwmond.reports.report import Group

STACK: tuple[Category, ...] = (
    Category.GOODPUT,
    Category.PILOT_OVERHEAD,
    Category.DECISION_PROBLEM,
    Category.VALIDATION_FAILS,
    Category.MISCONFIGURATION_BADPUT,
    Category.PREEMPTION_BADPUT,
    Category.UNCLASSIFIED,
)
"""In which order categories are stacked: neighbours have colours that are easy to tell apart."""

_WIDTH = 960
_LABEL, _VALUE = 230, 110
_BAR, _STEP = 18, 26
_HEIGHT, _LEFT, _BOTTOM, _TOP = 240, 70, 34, 12
_LABEL_CHARACTERS = 34


class Bar(NamedTuple):
    """A stack: what it is called, and its group."""

    label: str
    group: Group


def bars(bars_: Sequence[Bar], kind: Kind, title: str) -> str:
    """Return horizontal bars, one for each group."""
    largest = max((bar.group.total(kind) for bar in bars_), default=0) or 1
    width = _WIDTH - _LABEL - _VALUE
    height = len(bars_) * _STEP + 6
    drawn = []
    for number, bar in enumerate(bars_):
        y, x = number * _STEP + 4, float(_LABEL)
        middle = y + _BAR - 5
        drawn.append(
            f'<text class="label" x="{_LABEL - 8}" y="{middle}" text-anchor="end">'
            f"{escape(_cut(bar.label))}<title>{escape(bar.label)}</title></text>"
        )
        for category, micros in _stack(bar.group, kind):
            length = width * micros / largest
            drawn.append(_rect(category, (x, y, length, _BAR), _said(bar, category, kind)))
            x += length
        total = hours(bar.group.total(kind))
        drawn.append(f'<text class="value" x="{x + 6:.2f}" y="{middle}">{total} h</text>')
    return _svg(height, title, drawn)


def series(steps: Sequence[Bar], kind: Kind, title: str) -> str:
    """Return a column for each step of time."""
    top = _nice(max((bar.group.total(kind) for bar in steps), default=0) / HOUR)
    width, height = _WIDTH - _LEFT - 10, _HEIGHT - _BOTTOM - _TOP
    drawn = []
    for tick in range(5):
        y = _TOP + height - height * tick / 4
        drawn.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y}" y2="{y}"/>')
        told = f"{top * tick / 4:,.6g}"
        drawn.append(
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{told}</text>'
        )
    step = width / max(1, len(steps))
    every = max(1, math.ceil(130 / step))
    for number, bar in enumerate(steps):
        x, y = _LEFT + number * step, float(_TOP + height)
        for category, micros in _stack(bar.group, kind):
            length = height * micros / HOUR / top
            y -= length
            box = x, y, max(0.5, step - min(2.0, step / 5)), length
            drawn.append(_rect(category, box, _said(bar, category, kind)))
        if number % every == 0 and x + 60 < _WIDTH:
            drawn.append(
                f'<text class="tick" x="{x:.2f}" y="{_HEIGHT - 12}">{escape(bar.label)}</text>'
            )
    return _svg(_HEIGHT, title, drawn)


def _stack(group: Group, kind: Kind) -> Iterable[tuple[Category, int]]:
    for category in STACK:
        if (micros := group.sums[*kind, category]) > 0:
            yield category, micros


def _said(bar: Bar, category: Category, kind: Kind) -> str:
    micros = bar.group.sums[*kind, category]
    share = percent(ratio(micros, bar.group.total(kind)))
    return f"{bar.label}: {words(category)} {hours(micros)} h ({share})"


def _rect(category: Category, box: tuple[float, float, float, float], said: str) -> str:
    x, y, width, height = box
    return (
        f'<rect class="c-{category}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" '
        f'height="{height:.2f}"><title>{escape(said)}</title></rect>'
    )


def _svg(height: int, title: str, drawn: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>{"".join(drawn)}</svg>'
    )


def _nice(value: float) -> float:
    """Return a round number that is not less: 1, 2, 4, 5, 8 or 10 times a power of ten.

    >>> _nice(0), _nice(7), _nice(0.3), _nice(1234)
    (1.0, 8.0, 0.4, 2000.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    fits = (times * power for times in (1, 2, 4, 5, 8, 10) if times * power >= value)
    return round(next(fits, 10 * power), 9)


def _cut(label: str) -> str:
    whole = len(label) <= _LABEL_CHARACTERS
    return label if whole else f"{label[: _LABEL_CHARACTERS - 1]}…"
