"""What pages show of stored pilots: those of a place, and the life of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

from gwmond.config.settings import Config
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotRow
from gwmond.pilots.memory.ad_times import silent_before_us
from gwmond.reports.ledger.ledger_reading import Age, age_of, ledger_for_page
from gwmond.reports.ledger.open_runs import open_runs
from gwmond.reports.ledger.waiting_periods import later_us, rules
from gwmond.reports.pilots import pilot_document
from gwmond.reports.pilots.listing import PilotList, SortBy, stored_pilots
from gwmond.reports.pilots.story import Story, story_of
from gwmond.reports.pilots.timeline import BLANK, lanes
from gwmond.reports.pilots.traced import Traced, find_job, trace_of_job, trace_of_pilot
from gwmond.reports.pilots.waterfall import SpanBar, page_parts
from gwmond.reports.render.categories import INFO
from gwmond.reports.render.document import Drawing, Paragraph, Part, Rectangle, Spans, Word
from gwmond.reports.render.formats import words
from gwmond.reports.render.periods import span
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot

MOST = 100
"""Pilots of a list."""

_COLUMNS, _LANES = 240, 40
_LABEL, _STEP, _WIDTH = 60, 18, 900


Position: TypeAlias = tuple[int, int] | None
"""After which pilot a list goes on: its time (microseconds) and its number; None: at the first."""


def pilots_shown(
    config: Config, now_us: int, wanted: PilotFilter, after: Position
) -> tuple[list[StoredPilot], Position]:
    """Return the latest ``MOST`` of the pilots that are wanted, and after which the others come.

    Raises Unreadable.
    """
    with ledger_for_page(config.ledger.url) as ledger:
        return pilots_listed(ledger, config, now_us, wanted, MOST, after)


def pilots_listed(
    ledger: LedgerReader,
    config: Config,
    now_us: int,
    wanted: PilotFilter,
    most: int,
    after: Position,
) -> tuple[list[StoredPilot], Position]:
    """Return the latest of the pilots that are wanted, and after which the others come."""
    past = wanted.running is False
    as_of = AsOf(now_us, config.canonical.memory_mib, silent_before_us(ledger.cursors()))
    sort: SortBy = "end" if past else "start"
    found = stored_pilots(ledger, wanted, as_of, sort=sort, limit=most + 1, after=after)
    if len(found) <= most:
        return found, None
    last = found[most - 1].row
    time_us = last.end_us if past else last.start_us
    assert time_us is not None
    return found[:most], (time_us, last.id)


def pilot_list(
    config: Config, now_us: int, wanted: PilotFilter, most: int, after: Position
) -> tuple[PilotList, Position]:
    """Return the same as ``gwmond pilots`` lists them.  Raises Unreadable."""
    with ledger_for_page(config.ledger.url) as ledger:
        age = age_of(ledger, now_us, config.poll.interval)
        found, following = pilots_listed(ledger, config, now_us, wanted, most, after)
        waits = open_runs(ledger, rules(config), later_us(config), wanted.place)
    return PilotList(age, found, following is not None, waits, ""), following


def pilot_story(config: Config, now_us: int, number: int) -> tuple[Story, Age] | None:
    """Return a pilot's story, and the ledger's age; None if there is none.  Raises Unreadable."""
    with ledger_for_page(config.ledger.url) as ledger:
        row = ledger.pilots_by_id([number]).get(number)
        if row is None:
            return None
        age = age_of(ledger, now_us, config.poll.interval)
        return story_of(ledger, row, now_us, rules(config)), age


def life(
    config: Config, now_us: int, number: int, *, shows_jobs: bool
) -> tuple[PilotRow, list[Part]] | None:
    """Return a pilot, and all that is known of it; None if there is none.  Raises Unreadable.

    Without ``shows_jobs`` its jobs and their users are not named.
    """
    found = pilot_story(config, now_us, number)
    if found is None:
        return None
    story, age = found
    if not shows_jobs:
        story = story._replace(runs=tuple(r._replace(row=r.row.unnamed) for r in story.runs))
    parts = pilot_document.document(story, age, 80, _LANES).parts()
    return story.pilot.row, list(_with_drawing(story, parts))


def traced(config: Config, now_us: int, job: str, pilot: int) -> tuple[Traced, Age] | None:
    """Return a job's trace, or a pilot's, and the ledger's age; None if there is none.

    ``job`` is a GlobalJobId, or cluster.proc.  Raises Unreadable, and SeveralJobs.
    """
    with ledger_for_page(config.ledger.url) as ledger:
        age = age_of(ledger, now_us, config.poll.interval)
        until_us, joined = age.written_us or now_us, config.traces.join_at_most
        if job:
            known = find_job(ledger, job)
            found = trace_of_job(ledger, known, joined, until_us) if known else None
        else:
            row = ledger.pilots_by_id([pilot]).get(pilot)
            found = row and trace_of_pilot(ledger, row, joined, until_us)
    return (found, age) if found is not None and found.spans else None


def trace(
    config: Config,
    now_us: int,
    job: str,
    pilot: int,
    see: Callable[[SpanBar], str],
    *,
    shows_jobs: bool,
) -> tuple[str, list[Part]] | None:
    """Return the title and the parts of a job's trace, or of a pilot's; None if there is none.

    ``see`` makes the links of a line.  Without ``shows_jobs`` the jobs of a pilot, and their users,
    are not named.  Raises Unreadable, and SeveralJobs.
    """
    found = traced(config, now_us, job, pilot)
    if found is None:
        return None
    shown, age = found
    if not shows_jobs:
        shown = shown._replace(runs=[run.unnamed for run in shown.runs])
    return shown.title, list(page_parts(shown, age, see))


def _with_drawing(story: Story, parts: Iterable[Part]) -> Iterator[Part]:
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
    rows = lanes(story, _COLUMNS, _LANES)
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
                kind = mark.category.value if mark.category else "open"
                name = words(INFO[mark.category].category or "not settled")
                part = " beside jobs" if mark.text.islower() else ""
                since, to = ((until - start) * column // _COLUMNS for column in (at, end))
                hint = f"{lane.label}: {name}{part}, +{span(since)} to +{span(to)}"
                x, width = _LABEL + at * scale, (end - at) * scale
                drawing.rectangles.append(Rectangle(kind, x, y + 3, width, _STEP - 6, hint))
    bottom = len(rows) * _STEP + 13
    drawing.words += [
        Word(_LABEL, bottom, "0", "tick"),
        Word(_WIDTH, bottom, f"+{span(until - start)}", "tick", "end"),
    ]
    return drawing
