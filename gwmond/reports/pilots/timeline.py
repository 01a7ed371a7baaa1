"""A pilot's life as lanes of letters: one for its own time, one for each run of a job.

A letter stands for the category to which most of that stretch of time goes (see ``categories``), so
that it can be read without colours.  A stretch in which a run was at all is marked, however short.
Units: times are microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from gwmond.model.pilot_life import Category
from gwmond.reports.pilots.story import OwnSpan, RunStory, Story
from gwmond.reports.render.categories import INFO
from gwmond.reports.render.periods import short, span

NOTHING = " "
BUSY = "·"
"""In the pilot's own lane: nothing is left for it."""
BLANK = {NOTHING, BUSY}


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
    found: Counter[Mark] = Counter()
    for part in spans:
        if (length := min(part.end_us, end) - max(part.start_us, start)) > 0:
            letter = INFO[part.category].letter
            cell = Mark(letter.lower() if part.free == "part" else letter, part.category)
            found[cell] += length
    covered = sum(found.values())
    found[Mark(BUSY)] = end - start - covered
    return max(found, key=lambda cell: (found[cell], cell.text))


def _of_run(run: RunStory, until_us: int) -> Callable[[int, int], Mark]:
    row = run.row
    last = until_us if row.end_us is None else max(row.end_us, row.start_us + 1)
    category = None if row.outcome is None else row.outcome.category

    def mark(start: int, end: int) -> Mark:
        there = row.start_us < end and start < last
        return Mark(INFO[category].letter, category) if there else Mark(NOTHING)

    return mark
