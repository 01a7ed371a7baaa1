"""Plots of a report: bars by group, and a series over time, stacked by category.

Units: amounts are micros, shown as hours; lengths are the drawing's own units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gwmond.model.pilot_life import Category, Kind
from gwmond.model.times import HOUR_US
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.document import Drawing, GridLine, Rectangle, Word
from gwmond.reports.render.formats import hours, percent, ratio, words
from gwmond.reports.render.periods import short
from gwmond.reports.report.groupings import STEPS
from gwmond.reports.report.report import Group, Key, Report

_MOST = 25
_WIDTH = 960
_LABEL, _VALUE = 230, 110
_BAR, _STEP = 18, 26
_HEIGHT, _LEFT, _BOTTOM, _TOP = 240, 70, 34, 12
_LABEL_CHARACTERS = 34


class Bar(NamedTuple):
    """A stack: what it is called, and its group."""

    label: str
    group: Group


def plots(report: Report, label: Callable[[Report, Key], tuple[str, ...]]) -> Iterator[Drawing]:
    """Yield the plots of a report, over time and by group."""
    for resource, unit in (("cpu", "canonical hours of CPUs"), ("gpu", "chip-hours of GPUs")):
        kind = next((kind for kind in report.kinds if kind == (resource, "canonical")), None)
        if kind is None:
            continue
        if steps := _steps(report):
            step = report.scope.step_us
            name = "hour" if step == STEPS["hour"] else "day" if step == STEPS["day"] else "week"
            at = "" if report.scope.basis == "time_spent" else " in which they ended"
            title = f"{name}{at}: {unit}"
            yield series(steps, kind, f"By {title}", title)
        if report.groups and not set(report.scope.by) <= set(STEPS):
            largest, others = _largest(report, kind, label)
            by = " and ".join(report.scope.by)
            more = f" (the {len(largest)} largest)" if others else ""
            drawing = bars(largest, kind, f"By {by}: {unit}{more}", f"{unit} by {by}")
            if others:  # one bar of all would dwarf the largest
                total = hours(sum(bar.group.total(kind) for bar in others))
                drawing.note = f"{len(others)} others: {total} h together"
            yield drawing


def bars(stacks: Sequence[Bar], kind: Kind, title: str, text: str) -> Drawing:
    """Return horizontal bars, one for each group."""
    largest = max((bar.group.total(kind) for bar in stacks), default=0) or 1
    width = _WIDTH - _LABEL - _VALUE
    drawing = Drawing(title, text, _WIDTH, len(stacks) * _STEP + 6)
    for number, bar in enumerate(stacks):
        y, x = number * _STEP + 4, float(_LABEL)
        middle = y + _BAR - 5
        drawing.words.append(Word(_LABEL - 8, middle, _cut(bar.label), "label", "end", bar.label))
        for category, micros in _stack(bar.group, kind):
            length = width * micros / largest
            drawing.rectangles.append(
                Rectangle(category, x, y, length, _BAR, _hint(bar, category, kind))
            )
            x += length
        drawing.words.append(Word(x + 6, middle, f"{hours(bar.group.total(kind))} h", "value"))
    return drawing


def series(steps: Sequence[Bar], kind: Kind, title: str, text: str) -> Drawing:
    """Return a column for each step of time."""
    top = _nice(max((bar.group.total(kind) for bar in steps), default=0) / HOUR_US)
    width, height = _WIDTH - _LEFT - 10, _HEIGHT - _BOTTOM - _TOP
    drawing = Drawing(title, text, _WIDTH, _HEIGHT)
    for tick in range(5):
        y = _TOP + height - height * tick / 4
        drawing.lines.append(GridLine(_LEFT, _WIDTH - 10, y))
        drawing.words.append(Word(_LEFT - 6, y + 4, f"{top * tick / 4:,.6g}", "tick", "end"))
    step = width / max(1, len(steps))
    stride = max(1, math.ceil(130 / step))
    for number, bar in enumerate(steps):
        x, y = _LEFT + number * step, float(_TOP + height)
        for category, micros in _stack(bar.group, kind):
            length = height * micros / HOUR_US / top
            y -= length
            wide = max(0.5, step - min(2.0, step / 5))
            drawing.rectangles.append(
                Rectangle(category, x, y, wide, length, _hint(bar, category, kind))
            )
        if number % stride == 0 and x + 60 < _WIDTH:
            drawing.words.append(Word(x, _HEIGHT - 12, bar.label, "tick"))
    return drawing


def _steps(report: Report) -> list[Bar]:
    """Return all steps of the period, those without time too."""
    step, (since, until) = report.scope.step_us, report.scope.period
    shown = slice(5, 16) if step == STEPS["hour"] else slice(10)
    starts = range(since // step * step, until, step) if report.series else ()
    return [Bar(short(start)[shown], report.series.get(start, Group())) for start in starts]


def _largest(
    report: Report, kind: Kind, label: Callable[[Report, Key], tuple[str, ...]]
) -> tuple[list[Bar], list[Bar]]:
    """Return the largest groups, and the others where there are many.

    The largest is first, unless the report is in an order of its own: of time, of categories.
    """
    bars = [Bar(" / ".join(label(report, key)), group) for key, group in report.ordered]
    bars = [bar for bar in bars if bar.group.total(kind)]
    by_size = sorted(bars, key=lambda bar: -bar.group.total(kind))
    ids = {id(bar) for bar in by_size[:_MOST]}
    in_order = bars if report.scope.by[0] in {*STEPS, "category"} else by_size
    return [bar for bar in in_order if id(bar) in ids], by_size[_MOST:]


def _stack(group: Group, kind: Kind) -> Iterator[tuple[Category, int]]:
    for info in INFOS:
        if info.category and (micros := group.sums[*kind, info.category]) > 0:
            yield info.category, micros


def _hint(bar: Bar, category: Category, kind: Kind) -> str:
    micros = bar.group.sums[*kind, category]
    share = percent(ratio(micros, bar.group.total(kind)))
    return f"{bar.label}: {words(category)} {hours(micros)} h ({share})"


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
