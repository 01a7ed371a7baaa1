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
from gwmond.reports.pilots.timeline import axis
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
from gwmond.traces.ids import SpanName
from gwmond.traces.spans import Link, Span

MOST, _CAUSES = 200, 3
"""Lines; of more the first are shown."""
_WAITING = frozenset({SpanName.QUEUE, SpanName.REQUESTED, SpanName.PENDING})
_OWN = frozenset({SpanName.IDLE, SpanName.RETIREMENT})
_WHOLE = frozenset({SpanName.JOB, SpanName.PILOT})
_COLOURS = {
    **{(info.category or "open"): info.colour for info in INFOS},
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
    known = {span.context.span_id for span in traced.spans}
    for one in sorted(traced.spans, key=lambda one: (one.start_us, one.name is not SpanName.QUEUE)):
        children[one.parent_id if one.parent_id in known else b""].append(one)

    pilots = {run.start_us: run.pilot for run in traced.runs}

    def below(parent: bytes, depth: int) -> Iterator[SpanBar]:
        for one in children[parent]:
            number = pilots.get(one.start_us, 0) if one.name is SpanName.RUN else 0
            yield _bar(one, depth, traced.posted)._replace(pilot=number)
            yield from below(one.context.span_id, depth + 1)

    found = list(below(b"", 0))
    if traced.pilot is not None and found:
        last = found[0].end_us
        found += [_of_run(n, run, last) for n, run in enumerate(traced.runs, 1)]
    return found


def document(traced: Traced, age: Age, width: int, most: int = MOST) -> Document:
    """Return a trace in all forms; the picture has so many columns."""
    return Document(
        lambda: _parts(traced, age, width, most),
        lambda: {**age.as_json(), "spans": [_json(one) for one in traced.spans]},
    )


_ELSEWHERE = (
    "Spans that the job makes itself (gwmond-trace.sh) are in the same trace, below its runs: at "
    "the receiver to which the job sends them."
)


def _parts(traced: Traced, age: Age, width: int, most: int) -> Iterator[Part]:
    found = bars(traced)
    root = traced.spans[0]
    yield Paragraph(age.text)
    yield Paragraph(traced.title, "heading")
    ends = f"{short(found[0].start_us)} to {short(found[0].end_us)} UTC"
    yield Paragraph(f"{ends}, {found[0].length}; trace {root.context.trace_id.hex()}")
    if root.name is SpanName.JOB and root.parent_id:
        yield Paragraph(f"it continues the trace of span {root.parent_id.hex()}")
    elif root.name is SpanName.JOB and root.links:
        yield Paragraph(f"its submitter's trace: {root.links[0].context.trace_id.hex()}")
    yield Paragraph("")
    yield from _lines(found[:most], width)
    if len(found) > most:
        yield Paragraph(f"({len(found) - most} more lines: --format json has all spans)")
    if root.name is SpanName.JOB:
        yield Paragraph(_ELSEWHERE, "soft")


def page_parts(traced: Traced, age: Age, cell: Callable[[SpanBar], str]) -> Iterator[Part]:
    """Yield a trace's parts for pages: a drawing, and a table; ``cell``: of its last column."""
    found = bars(traced)
    for part in _parts(traced, age, _WIDTH, MOST):
        if isinstance(part, Paragraph) and part.role != "heading":
            yield part
    yield Paragraph(
        "A run and its program have the colour of the category of their time; waits are grey, "
        "transfers and starts light blue:"
    )
    yield _drawing(traced.title, found[:MOST])
    start = found[0].start_us
    columns: list[Column[SpanBar]] = [
        Column("span", lambda bar: f"{'· ' * bar.depth}{bar.label}", name=True),
        Column("begin", lambda bar: short(bar.start_us), text=True),
        Column("after", lambda bar: f"+{span(bar.start_us - start)}"),
        Column("length", lambda bar: bar.length),
        Column("what", lambda bar: bar.note, text=True),
        Column("see", cell, text=True),
    ]
    yield table("Spans", columns, found[:MOST])


def _lines(found: Sequence[SpanBar], width: int) -> Iterator[Spans]:
    """Yield the lines of a terminal: name, bar, length and note."""
    names = [f"{'  ' * bar.depth}{bar.label}" for bar in found]
    label = max(map(len, names)) + 2
    notes = [f" {bar.length:>7}  {bar.note}".rstrip() for bar in found]
    columns = max(20, width - label - max(map(len, notes)) - 1)
    start, end = found[0].start_us, found[0].end_us
    for line in reversed(axis(start, end, columns)):
        yield Spans([Cell(f"{'':{label}}{line}", "bright_black")])
    for bar, name, note in zip(found, names, notes, strict=True):
        first, last = _place(bar, start, end, columns)
        yield Spans(
            [
                Cell(f"{name:<{label}}{' ' * first}"),
                Cell("█" * (last - first), _COLOURS[bar.look]),
                Cell(" " * (columns - last)),
                Cell(note, "red" if bar.error else ""),
            ]
        )


def _drawing(title: str, found: Sequence[SpanBar]) -> Drawing:
    """Return the same as bars, one below the other."""
    start, end = found[0].start_us, found[0].end_us
    text = f"{title}: {len(found)} lines over {found[0].length}, which the table below has too"
    drawing = Drawing("Waterfall", text, _WIDTH, (len(found) + 1) * _STEP)
    scale = (_WIDTH - _LABEL) / max(1, end - start)
    for number, bar in enumerate(found):
        y = number * _STEP
        hint = f"{bar.label}: +{span(bar.start_us - start)}, {bar.length} {bar.note}".rstrip()
        drawing.words.append(Word(bar.depth * 10, y + 13, bar.label[:26], "label", hint=hint))
        first, last = (max(0, min(end, at) - start) for at in (bar.start_us, bar.end_us))
        x, width = _LABEL + first * scale, max(1.0, (last - first) * scale)
        drawing.rectangles.append(Rectangle(bar.look, min(x, _WIDTH - 1), y + 3, width, 12, hint))
    bottom = len(found) * _STEP + 13
    drawing.words += [
        Word(_LABEL, bottom, "0", "tick"),
        Word(_WIDTH, bottom, f"+{span(end - start)}", "tick", "end"),
    ]
    return drawing


def _bar(one: Span, depth: int, posted: Sequence[Interval]) -> SpanBar:
    known = dict(one.attributes)
    number = known.get("htcondor.run.number")
    label = f"run {number}" if one.name is SpanName.RUN and number is not None else one.name.value
    look = "moving"
    if one.name in _WAITING:
        look = "waiting"
    elif one.name in _OWN:
        look = Category.PILOT_OVERHEAD.value
    elif one.name in _WHOLE:
        look = "whole"
    elif one.name in {SpanName.RUN, SpanName.EXECUTE}:
        look = str(known.get("gwmond.category") or "open")
    elif one.error and one.name is SpanName.VALIDATION:
        look = Category.VALIDATION_FAILS.value
    return SpanBar(
        label, depth, one.start_us, one.end_us, look, _note(one, posted), bool(one.error)
    )


def _note(one: Span, posted: Sequence[Interval]) -> str:
    """Return what to say of a span beside its bar."""
    known = dict(one.attributes)
    found = [
        one.error or str(known.get("gwmond.outcome", "")) if one.name is not SpanName.QUEUE else ""
    ]
    if one.name is SpanName.RUN:
        found.append(str(known.get("gwms.site", "")))
    if one.name is SpanName.PILOT:
        found.append(str(known.get("gwmond.category", "")).replace("_", " "))
    if one.name in {SpanName.VALIDATION, SpanName.TEST}:
        found.append(str(known.get("gwms.validation.test", "")))
    moved = known.get("htcondor.transfer.bytes")
    found.append("" if moved is None else f"{int(moved) / 1e6:.1f} MB")
    said = [dict(event.attributes) for event in one.events]
    found += [str(event["gwmond.outcome"]) for event in said if "gwmond.outcome" in event]
    causes = [str(event["gwmond.wait.cause"]) for event in said if "gwmond.wait.cause" in event]
    found.append(", then ".join(words(cause) for cause in causes[-_CAUSES:]))
    found.append(_loose(one, posted) if known.get("gwmond.settled") is False else "")
    return ", ".join(filter(None, found))


def _loose(one: Span, posted: Sequence[Interval]) -> str:
    """Return how much of the time of a span that may still change is not settled."""
    open_us = sum(end - start for start, end in beside((one.start_us, one.end_us), posted))
    part = 0 < open_us < one.end_us - one.start_us
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


def _json(one: Span) -> dict[str, Any]:
    return {
        **_ids(one),
        "parent_span_id": one.parent_id.hex() or None,
        "name": one.name.value,
        "kind": one.kind,
        **both("start", one.start_us),
        **both("end", one.end_us),
        "error": one.error or None,
        "attributes": dict(one.attributes),
        "events": [
            {"name": event.name, **both("time", event.time_us), **dict(event.attributes)}
            for event in one.events
        ],
        "dropped_events": one.dropped_events,
        "links": [{**_ids(link), "attributes": dict(link.attributes)} for link in one.links],
        "dropped_links": one.dropped_links,
    }


def _ids(one: Span | Link) -> dict[str, str]:
    return {"trace_id": one.context.trace_id.hex(), "span_id": one.context.span_id.hex()}
