"""A pilot's life as lanes of letters: one for its own time, one for each run of a job.

A letter stands for the category to which most of that stretch of time goes (see ``categories``), so
that it can be read without colours.  A stretch in which a run was at all is marked, however short.
Pages draw the same lanes.  Units: times are microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from gwmond.model.pilot_life import Category
from gwmond.model.times import SECOND_US
from gwmond.reports.pilots.story import OwnSpan, RunStory, Story
from gwmond.reports.render.categories import INFO
from gwmond.reports.render.document import Drawing, Paragraph, Part, Rectangle, Spans, Word
from gwmond.reports.render.formats import words
from gwmond.reports.render.periods import short, span

NOTHING = " "
BUSY = "·"
"""In the pilot's own lane: nothing is left for it."""
BLANK = {NOTHING, BUSY}
MOST = 40
"""Runs that are drawn, unless another number is asked for."""
_COLUMNS, _LABEL, _STEP, _WIDTH = 240, 60, 18, 900
"""Of the drawing."""


class Mark(NamedTuple):
    """One character, and the category that colours it; ``lower``: only a part of the pilot."""

    text: str
    category: Category | None = None


class Lane(NamedTuple):
    """A line of the picture."""

    label: str
    marks: tuple[Mark, ...]


def lanes(story: Story, columns: int, most: int | None = None) -> list[Lane]:
    """Return the pilot's own lane and those of its runs, each of so many columns."""
    start, until = story.pilot.life_now.start_us, story.pilot.life_now.effective_end_us
    edges = [start + (until - start) * i // columns for i in range(columns + 1)]
    made = [Lane("pilot", _marks(edges, lambda a, b: _own(story.own, a, b)))]
    for number, run in enumerate(story.runs[:most], 1):
        made.append(Lane(f"run {number}", _marks(edges, _of_run(run, until))))
    return made


def axis(start_us: int, until_us: int, columns: int) -> tuple[str, str]:
    """Return a line of ticks, and one of how long after the start they are."""
    ticks, labels = ["─"] * columns, [" "] * columns
    stride = max(12, columns // 8)
    for column in range(0, columns, stride):
        text = f"+{span((until_us - start_us) * column // columns)}" if column else "0"
        if column + len(text) <= columns:
            ticks[column] = "┬"
            labels[column : column + len(text)] = text
    return "".join(ticks), "".join(labels)


def ends(story: Story) -> str:
    """Return from when to when, for the title."""
    life = story.pilot.life_now
    doing = "silent" if story.pilot.state == "silent" else "still runs"
    until = short(life.effective_end_us) + ("" if life.end_us is not None else f" ({doing})")
    return f"{short(life.start_us)} to {until} UTC, {span(life.effective_end_us - life.start_us)}"


def _marks(edges: Sequence[int], mark: Callable[[int, int], Mark]) -> tuple[Mark, ...]:
    return tuple(mark(a, max(b, a + 1)) for a, b in pairwise(edges))


def _own(spans: Sequence[OwnSpan], start: int, end: int) -> Mark:
    """Return what is the pilot's own in most of a stretch; in small letters: beside jobs."""
    lengths: Counter[Mark] = Counter()
    for part in spans:
        if (length := min(part.end_us, end) - max(part.start_us, start)) > 0:
            letter = INFO[part.category].letter
            cell = Mark(letter.lower() if part.free == "part" else letter, part.category)
            lengths[cell] += length
    covered = sum(lengths.values())
    lengths[Mark(BUSY)] = end - start - covered
    return max(lengths, key=lambda cell: (lengths[cell], cell.text))


def _of_run(run: RunStory, until_us: int) -> Callable[[int, int], Mark]:
    row = run.row
    last = until_us if row.end_us is None else max(row.end_us, row.start_us + 1)
    category = None if row.outcome is None else row.outcome.category

    def mark(start: int, end: int) -> Mark:
        there = row.start_us < end and start < last
        return Mark(INFO[category].letter, category) if there else Mark(NOTHING)

    return mark


def with_drawing(story: Story, parts: Iterable[Part]) -> Iterator[Part]:
    """Yield a document's parts, with a drawing where terminals have their picture."""
    drawn = False
    for part in parts:
        if isinstance(part, Spans):
            if not drawn:
                yield Paragraph("Each bar is coloured by the category of its time:")
                yield _drawing(story)
            drawn = True
        else:
            yield part


def _drawing(story: Story) -> Drawing:
    """Return a pilot's own time and its runs as bars, one below the other."""
    start, until = story.pilot.life_now.start_us, story.pilot.life_now.effective_end_us
    rows = lanes(story, _COLUMNS, MOST)
    scale = (_WIDTH - _LABEL) / _COLUMNS
    text = f"the pilot's own time, and its first {len(rows) - 1} runs, over {span(until - start)}"
    drawing = Drawing("Its time", text, _WIDTH, len(rows) * _STEP + _STEP)
    for number, lane in enumerate(rows):
        y = number * _STEP
        drawing.words.append(Word(0, y + 13, lane.label, "label"))
        end = 0
        for mark, marks in groupby(lane.marks):
            at, end = end, end + len(tuple(marks))
            if mark.text not in BLANK:
                info = INFO[mark.category]
                name = words(info.category or "not settled")
                part = " beside jobs" if mark.text.islower() else ""
                since, to = ((until - start) * column // _COLUMNS for column in (at, end))
                hint = f"{lane.label}: {name}{part}, +{span(since)} to +{span(to)}"
                x, width = _LABEL + at * scale, (end - at) * scale
                drawing.rectangles.append(Rectangle(info.look, x, y + 3, width, _STEP - 6, hint))
    drawing.words += clock(start, until, _LABEL, _WIDTH, len(rows) * _STEP + 13)
    return drawing


_MINUTE_US = 60 * SECOND_US
_DAY_US = 1440 * _MINUTE_US
_EVERY = tuple(_MINUTE_US * n for n in (1, 5, 15, 30, 60, 120, 180, 360, 720))
_TICKS, _HALF = 8, 34  # so many times at most; half the width of the last one


def clock(start_us: int, until_us: int, left: float, right: float, y: float) -> list[Word]:
    """Return times of day for the axis of a drawing, at round ones; at midnight the date."""
    length = max(1, until_us - start_us)
    every = next((step for step in _EVERY if length <= _TICKS * step), 0)
    every = every or -(-length // _TICKS // _DAY_US) * _DAY_US
    words = []
    for at in range(-(-start_us // every) * every, until_us + 1, every):
        x = left + (right - left) * (at - start_us) / length
        text = short(at)[5:10] if at % _DAY_US == 0 else short(at)[11:16]
        words.append(Word(min(x, right - _HALF), y, text, "tick", "middle"))
    if not words:
        return [Word(left, y, f"{short(start_us)[11:]} UTC", "tick")]
    return [*words[:-1], words[-1]._replace(text=f"{words[-1].text} UTC")]
