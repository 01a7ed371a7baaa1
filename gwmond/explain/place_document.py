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
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.table import Column, table

_SHOWN = 20


def place_document(here: PlaceSituation) -> Document:
    """Return what is said of a place, in all forms."""
    found = place_answers(here)
    return Document(lambda: _parts(here, found), lambda: _record(here, found))


def place_line(here: PlaceSituation, answer: Explanation) -> str:
    """Return the line of a place: its name, its state, the reason."""
    jobs = f"HAS {counted(here.running, 'JOB').upper()}" if here.running else "HAS NO JOB"
    return f"{capital(here.name)} {jobs}: {answer.text}."


def _parts(here: PlaceSituation, found: Sequence[Explanation]) -> Iterator[Part]:
    yield from answer_parts(place_line(here, found[0]), found, here.missing)
    if here.row is not None:
        yield table("The entry:", ENTRY_COLUMNS, [(here.entry, here.row)])
    if here.startd:
        yield Paragraph(_pilot(here))
    if kept := here.kept(here.groups):
        yield table("What keeps idle jobs from it:", _KEPT, kept)
    if here.could_run:
        left = len(here.could_run) - _SHOWN
        note = f"And {counted(left, 'group')} more." if left > 0 else ""
        title = "Groups of idle jobs that could run on an empty pilot there:"
        yield table(title, _GROUPS, here.could_run[:_SHOWN], note=note)
    if text := negotiator_text(here.negotiators, here.now):
        yield Paragraph(text)
    for missing in here.missing:
        yield Paragraph(f"Not known: {missing} could not be read.", "caution")


def _pilot(here: PlaceSituation) -> str:
    """Return what a pilot has, and for how long."""
    (pilot,) = here.pilots
    whole = size_text(pilot.size) if pilot.size else "a size that is not known"
    free = " and ".join(map(size_text, pilot.free)) or "nothing"
    left = "" if pilot.remaining_s is None else f" It ends in {duration(pilot.remaining_s)}."
    group = f" of {pilot.group}" if pilot.group else ""
    return f"The pilot{group} has {whole}, of which {free} is free.{left}"


_KEPT: tuple[Column[Kept], ...] = (
    Column("reason", lambda kept: words(kept.obstacle.name), name=True),
    Column("idle jobs", lambda kept: str(kept.jobs)),
    Column("groups", lambda kept: str(kept.groups)),
    Column("in words", lambda kept: kept.obstacle.text, text=True, wrap=30),
    Column("whose move", lambda kept: kept.obstacle.mover.value, text=True, wrap=12),
)
_GROUPS: tuple[Column[GroupHere], ...] = (
    Column("accounting group", lambda here: here.group.accounting_group, name=True),
    Column("schedd", lambda here: here.group.schedd, name=True),
    Column("idle jobs", lambda here: str(here.group.jobs)),
    Column("ask for", lambda here: size_text(here.group.size), text=True),
    Column("now", lambda here: words(here.obstacle.name), text=True),
    Column("other entries", lambda here: str(len(here.offer.elsewhere)), zero=True),
    Column("such as", lambda here: names_text(here.offer.elsewhere), text=True, wrap=20),
)


def _record(here: PlaceSituation, found: Sequence[Explanation]) -> dict[str, Any]:
    return {
        "site": here.entry.site,
        "entry": here.entry.entry,
        "pilot": here.startd or None,
        "first_line": place_line(here, found[0]),
        "reasons": reason_records(found),
        "jobs_running": here.running,
        "jobs_idle": here.jobs,
        "jobs_that_could_run": sum(one.group.jobs for one in here.could_run),
        "pilots": len(here.pilots),
        "obstacles": [
            {
                "reason": kept.obstacle.name,
                "text": kept.obstacle.text,
                "whose_move": kept.obstacle.mover.value,
                "jobs": kept.jobs,
                "groups": kept.groups,
            }
            for kept in here.kept(here.groups)
        ],
        "groups": [
            {
                "accounting_group": one.group.accounting_group,
                "schedd": one.group.schedd,
                "jobs": one.group.jobs,
                "now": one.obstacle.name,
                "negotiator_said": dict(one.offer.words),
                "elsewhere": [key.entry for key in one.offer.elsewhere],
            }
            for one in here.could_run
        ],
        "negotiators": None
        if here.negotiators is None
        else [one._asdict() for one in here.negotiators],
        "not_read": list(here.missing),
    }
