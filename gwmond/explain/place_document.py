"""The explanation of a pilot, or of an entry: the answer in three lines, then the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gwmond.explain.document import ENTRY_COLUMNS, answer_parts, reason_records
from gwmond.explain.phrases import capital, duration, names_text, size_text
from gwmond.explain.places import (
    GroupHere,
    Kept,
    PlaceSituation,
    negotiator_text,
    place_answers,
)
from gwmond.explain.reasons import Explanation
from gwmond.reports.render import fields
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.fields import Datum
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.table import table

_SHOWN = 20


def place_document(here: PlaceSituation) -> Document:
    """Return what is said of a place, in all forms."""
    reasons = place_answers(here)
    return Document(lambda: _parts(here, reasons), lambda: _record(here, reasons))


def place_line(here: PlaceSituation, answer: Explanation) -> str:
    """Return the line of a place: its name, its state, the reason."""
    jobs = f"HAS {counted(here.running, 'JOB').upper()}" if here.running else "HAS NO JOB"
    return f"{capital(here.name)} {jobs}: {answer.text}."


def _parts(here: PlaceSituation, reasons: Sequence[Explanation]) -> Iterator[Part]:
    yield from answer_parts(place_line(here, reasons[0]), reasons, here.missing)
    if here.row is not None:
        yield table("The entry:", ENTRY_COLUMNS, [(here.entry, here.row)])
    if here.startd:
        yield Paragraph(_pilot(here))
    if kept := here.kept(here.groups):
        yield table("What keeps idle jobs from it:", fields.columns(_KEPT), kept)
    if here.could_run:
        left = len(here.could_run) - _SHOWN
        note = f"And {counted(left, 'group')} more." if left > 0 else ""
        title = "Groups of idle jobs that could run on an empty pilot there:"
        yield table(title, fields.columns(_GROUPS), here.could_run[:_SHOWN], note=note)
    if text := negotiator_text(here.negotiators, here.now):
        yield Paragraph(text)
    for missing in here.missing:
        yield Paragraph(f"Not known: {missing} could not be read.", "caution")


def _pilot(here: PlaceSituation) -> str:
    """Return what a pilot has, and for how long."""
    (pilot,) = here.pilots
    whole = size_text(pilot.size) if pilot.size else "a size that is not known"
    free = " and ".join(map(size_text, pilot.free)) or "nothing"
    left = "" if pilot.dies is None else f" It ends in {duration(max(0, pilot.dies - here.now))}."
    group = f" of {pilot.group}" if pilot.group else ""
    return f"The pilot{group} has {whole}, of which {free} is free.{left}"


_KEPT: tuple[Datum[Kept], ...] = (
    Datum("reason", lambda x: x.obstacle.name, 1, cell=lambda x: words(x.obstacle.name), name=True),
    Datum("text", lambda kept: kept.obstacle.text, 4, "in words", text=True, wrap=30),
    Datum("whose_move", lambda x: x.obstacle.mover.value, 5, "whose move", text=True, wrap=12),
    Datum("jobs", lambda kept: kept.jobs, 2, "idle jobs"),
    Datum("groups", lambda kept: kept.groups, 3),
)
_GROUPS: tuple[Datum[GroupHere], ...] = (
    Datum("accounting_group", lambda x: x.group.accounting_group, 1, "accounting group", name=True),
    Datum("schedd", lambda here: here.group.schedd, 2, name=True),
    Datum("jobs", lambda here: here.group.jobs, 3, "idle jobs"),
    Datum("", lambda here: size_text(here.group.size), 4, "ask for", text=True),
    Datum("now", lambda x: x.obstacle.name, 5, cell=lambda x: words(x.obstacle.name), text=True),
    Datum("negotiator_said", lambda here: dict(here.offer.words)),
    Datum("", lambda here: len(here.offer.elsewhere), 6, "other entries", zero=True),
    Datum(
        *("elsewhere", lambda here: [key.entry for key in here.offer.elsewhere], 7, "such as"),
        cell=lambda here: names_text(here.offer.elsewhere),
        text=True,
        wrap=20,
    ),
)


def _record(here: PlaceSituation, reasons: Sequence[Explanation]) -> dict[str, Any]:
    return {
        "site": here.entry.site,
        "entry": here.entry.entry,
        "pilot": here.startd or None,
        "first_line": place_line(here, reasons[0]),
        "reasons": reason_records(reasons),
        "jobs_running": here.running,
        "jobs_idle": here.jobs,
        "jobs_that_could_run": sum(g.group.jobs for g in here.could_run),
        "pilots": len(here.pilots),
        "obstacles": [fields.record(_KEPT, kept) for kept in here.kept(here.groups)],
        "groups": [fields.record(_GROUPS, g) for g in here.could_run],
        "negotiators": None
        if here.negotiators is None
        else [n._asdict() for n in here.negotiators],
        "not_read": list(here.missing),
    }
