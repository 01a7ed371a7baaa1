"""A trace as a waterfall: a line a span, in a tree, with a bar where its time is.

Terminals have lines of characters, pages a drawing and a table.  A pilot's runs are links of its
span: they are drawn below its parts.  Units: times are microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gwmond.model.pilot_life import Category, Interval, beside
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.pilots.timeline import axis, clock
from gwmond.reports.pilots.traced import Traced
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.document import (
    Document,
    Drawing,
    Paragraph,
    Part,
    Rectangle,
    Spans,
    Word,
)
from gwmond.reports.render.formats import words
from gwmond.reports.render.periods import both, short, span
from gwmond.reports.render.table import Cell, Column, table
from gwmond.traces.spans import Link, Span, SpanName

MOST, _CAUSES = 200, 3
"""Lines; of more the first are shown."""
_WAITING = frozenset({SpanName.QUEUE, SpanName.REQUESTED, SpanName.PENDING})
_OWN = frozenset({SpanName.IDLE, SpanName.RETIREMENT})
_WHOLE = frozenset({SpanName.JOB, SpanName.PILOT})
_COLOURS = {
    **{info.look: info.colour for info in INFOS},
    "waiting": "yellow",
    "moving": "bright_blue",
    "whole": "bright_black",
}
_LABEL, _STEP, _WIDTH = 170, 18, 900


class SpanBar(NamedTuple):
    """A line; ``look``: a category, ``waiting``, ``moving``, ``whole`` or ``open``.

    ``note`` says how it ended, or what it is.  ``job``, ``pilot``: whose page it leads to.
    """

    label: str
    depth: int
    start_us: int
    end_us: int
    look: str
    note: str = ""
    error: bool = False
    job: str = ""
    pilot: int = 0

    @property
    def length(self) -> str:
        """How long it is; of less than a minute to the tenth of a second."""
        length_us = self.end_us - self.start_us
        return f"{length_us / SECOND_US:.1f}s" if length_us < 60 * SECOND_US else span(length_us)


def bars(traced: Traced) -> list[SpanBar]:
    """Return all lines, from the top."""
    children: defaultdict[bytes, list[Span]] = defaultdict(list)
    ids = {span.context.span_id for span in traced.spans}
    for child in sorted(traced.spans, key=lambda x: (x.start_us, x.name is not SpanName.QUEUE)):
        children[child.parent_id if child.parent_id in ids else b""].append(child)

    pilots = {run.start_us: run.pilot for run in traced.runs}

    def below(parent: bytes, depth: int) -> Iterator[SpanBar]:
        for child in children[parent]:
            number = pilots.get(child.start_us, 0) if child.name is SpanName.RUN else 0
            yield _bar(child, depth, traced.posted)._replace(pilot=number)
            yield from below(child.context.span_id, depth + 1)

    lines = list(below(b"", 0))
    if traced.pilot is not None and lines:
        last = lines[0].end_us
        lines += [_of_run(n, run, last) for n, run in enumerate(traced.runs, 1)]
    return lines


def document(traced: Traced, age: Age, width: int, most: int = MOST) -> Document:
    """Return a trace in all forms; the picture has so many columns."""
    return Document(
        lambda: _parts(traced, age, width, most),
        lambda: {**age.as_json(), "spans": [_json(span) for span in traced.spans]},
    )


_ELSEWHERE = (
    "Spans that the job makes itself (gwmond-trace.sh) are in the same trace, below its runs: at "
    "the receiver to which the job sends them."
)


def _parts(traced: Traced, age: Age, width: int, most: int) -> Iterator[Part]:
    lines = bars(traced)
    root = traced.spans[0]
    yield Paragraph(age.text)
    yield Paragraph(traced.title, "heading")
    ends = f"{short(lines[0].start_us)} to {short(lines[0].end_us)} UTC"
    yield Paragraph(f"{ends}, {lines[0].length}; trace {root.context.trace_id.hex()}")
    if root.name is SpanName.JOB and root.parent_id:
        yield Paragraph(f"it continues the trace of span {root.parent_id.hex()}")
    elif root.name is SpanName.JOB and root.links:
        yield Paragraph(f"its submitter's trace: {root.links[0].context.trace_id.hex()}")
    yield Paragraph("")
    yield from _lines(lines[:most], width)
    if len(lines) > most:
        yield Paragraph(f"({len(lines) - most} more lines: --format json has all spans)")
    if root.name is SpanName.JOB:
        yield Paragraph(_ELSEWHERE, "soft")


def page_parts(traced: Traced, age: Age, cell: Callable[[SpanBar], str]) -> Iterator[Part]:
    """Yield a trace's parts for pages: a drawing, and a table; ``cell``: of its last column."""
    lines = bars(traced)
    for part in _parts(traced, age, _WIDTH, MOST):
        if isinstance(part, Paragraph) and part.role != "heading":
            yield part
    yield Paragraph("A run and its program have the colour of the category of their time:")
    yield _drawing(traced.title, lines[:MOST])
    start = lines[0].start_us
    columns: list[Column[SpanBar]] = [
        Column("span", lambda bar: f"{'· ' * bar.depth}{bar.label}", name=True),
        Column("begin", lambda bar: short(bar.start_us), text=True),
        Column("after", lambda bar: f"+{span(bar.start_us - start)}"),
        Column("length", lambda bar: bar.length),
        Column("what", lambda bar: bar.note, text=True),
        Column("see", cell, text=True),
    ]
    yield table("Spans", columns, lines[:MOST])


def _lines(bars: Sequence[SpanBar], width: int) -> Iterator[Spans]:
    """Yield the lines of a terminal: name, bar, length and note."""
    names = [f"{'  ' * bar.depth}{bar.label}" for bar in bars]
    label = max(map(len, names)) + 2
    notes = [f" {bar.length:>7}  {bar.note}".rstrip() for bar in bars]
    columns = max(20, width - label - max(map(len, notes)) - 1)
    start, end = bars[0].start_us, bars[0].end_us
    for line in reversed(axis(start, end, columns)):
        yield Spans([Cell(f"{'':{label}}{line}", "bright_black")])
    for bar, name, note in zip(bars, names, notes, strict=True):
        first, last = _place(bar, start, end, columns)
        yield Spans(
            [
                Cell(f"{name:<{label}}{' ' * first}"),
                Cell("█" * (last - first), _COLOURS[bar.look]),
                Cell(" " * (columns - last)),
                Cell(note, "red" if bar.error else ""),
            ]
        )


def _drawing(title: str, bars: Sequence[SpanBar]) -> Drawing:
    """Return the same as bars, one below the other."""
    start, end = bars[0].start_us, bars[0].end_us
    text = f"{title}: {len(bars)} lines over {bars[0].length}, which the table below has too"
    drawing = Drawing("Waterfall", text, _WIDTH, (len(bars) + 1) * _STEP)
    scale = (_WIDTH - _LABEL) / max(1, end - start)
    for number, bar in enumerate(bars):
        y = number * _STEP
        hint = f"{bar.label}: +{span(bar.start_us - start)}, {bar.length} {bar.note}".rstrip()
        drawing.words.append(Word(bar.depth * 10, y + 13, bar.label[:26], "label", hint=hint))
        first, last = (max(0, min(end, at) - start) for at in (bar.start_us, bar.end_us))
        x, width = _LABEL + first * scale, max(1.0, (last - first) * scale)
        drawing.rectangles.append(Rectangle(bar.look, min(x, _WIDTH - 1), y + 3, width, 12, hint))
    drawing.words += clock(start, end, _LABEL, _WIDTH, len(bars) * _STEP + 13)
    return drawing


def _bar(span: Span, depth: int, posted: Sequence[Interval]) -> SpanBar:
    tags = dict(span.attributes)
    number = tags.get("htcondor.run.number")
    label = f"run {number}" if span.name is SpanName.RUN and number is not None else span.name.value
    look = "moving"
    if span.name in _WAITING:
        look = "waiting"
    elif span.name in _OWN:
        look = Category.PILOT_OVERHEAD.value
    elif span.name in _WHOLE:
        look = "whole"
    elif span.name in {SpanName.RUN, SpanName.EXECUTE}:
        look = str(tags.get("gwmond.category") or "open")
    elif span.error and span.name is SpanName.VALIDATION:
        look = Category.VALIDATION_FAILS.value
    return SpanBar(
        label, depth, span.start_us, span.end_us, look, _note(span, posted), bool(span.error)
    )


def _note(span: Span, posted: Sequence[Interval]) -> str:
    """Return what to say of a span beside its bar."""
    tags = dict(span.attributes)
    notes = [
        span.error or str(tags.get("gwmond.outcome", "")) if span.name is not SpanName.QUEUE else ""
    ]
    if span.name is SpanName.RUN:
        notes.append(str(tags.get("gwms.site", "")))
    if span.name is SpanName.PILOT:
        notes.append(str(tags.get("gwmond.category", "")).replace("_", " "))
    if span.name in {SpanName.VALIDATION, SpanName.TEST}:
        notes.append(str(tags.get("gwms.validation.test", "")))
    moved = tags.get("htcondor.transfer.bytes")
    notes.append("" if moved is None else f"{int(moved) / 1e6:.1f} MB")
    events = [dict(event.attributes) for event in span.events]
    notes += [str(event["gwmond.outcome"]) for event in events if "gwmond.outcome" in event]
    causes = [str(event["gwmond.wait.cause"]) for event in events if "gwmond.wait.cause" in event]
    notes.append(", then ".join(words(cause) for cause in causes[-_CAUSES:]))
    notes.append(_loose(span, posted) if tags.get("gwmond.settled") is False else "")
    return ", ".join(filter(None, notes))


def _loose(whole: Span, posted: Sequence[Interval]) -> str:
    """Return how much of the time of a span that may still change is not settled."""
    open_us = sum(end - start for start, end in beside((whole.start_us, whole.end_us), posted))
    part = 0 < open_us < whole.end_us - whole.start_us
    return f"{span(open_us)} not settled" if part else "not settled"


def _of_run(number: int, run: RunRow, until_us: int) -> SpanBar:
    end = until_us if run.end_us is None else max(run.end_us, run.start_us)
    outcome = run.outcome
    look = outcome.category.value if outcome else "open"
    job = " ".join((run.key.job.split("#")[1:2] or [run.key.job]) + [run.user.partition("@")[0]])
    note = ", ".join(filter(None, (outcome.label if outcome else "", job.strip())))
    failed = outcome is not None and outcome.category is not Category.GOODPUT
    return SpanBar(f"run {number}", 1, run.start_us, end, look, note, failed, job=run.key.job)


def _place(bar: SpanBar, start_us: int, end_us: int, columns: int) -> tuple[int, int]:
    """Return the first column of a bar, and the one after its last: at least one is drawn."""
    length = max(1, end_us - start_us)
    first = max(0, min(columns - 1, (bar.start_us - start_us) * columns // length))
    last = -(-(bar.end_us - start_us) * columns // length)
    return first, max(first + 1, min(columns, last))


def _json(span: Span) -> dict[str, Any]:
    return {
        **_ids(span),
        "parent_span_id": span.parent_id.hex() or None,
        "name": span.name.value,
        "kind": span.kind,
        **both("start", span.start_us),
        **both("end", span.end_us),
        "error": span.error or None,
        "attributes": dict(span.attributes),
        "events": [
            {"name": event.name, **both("time", event.time_us), **dict(event.attributes)}
            for event in span.events
        ],
        "dropped_events": span.dropped_events,
        "links": [{**_ids(link), "attributes": dict(link.attributes)} for link in span.links],
        "dropped_links": span.dropped_links,
    }


def _ids(span: Span | Link) -> dict[str, str]:
    return {"trace_id": span.context.trace_id.hex(), "span_id": span.context.span_id.hex()}
