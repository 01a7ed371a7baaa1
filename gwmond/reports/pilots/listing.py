"""The list of pilots: where, since when, doing what, for whom, and where the time went.

A property of each pilot is a ``Datum`` in ``FIELDS``: table, JSON and CSV follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.reading.reader import LedgerReader, Order
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Category, Validation
from gwmond.model.pilots.pilot_facts import GPU_MODEL, INSTITUTION
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotIdentity, PilotRow
from gwmond.model.runs.waits import Wait
from gwmond.reports.ledger import open_runs
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.render import fields
from gwmond.reports.render.categories import (
    CPU,
    GPU,
    categories_json,
    kinds_json,
    of_kind,
    share,
    shares_json,
    within,
)
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.fields import HOURS, LENGTH, TIME, Datum
from gwmond.reports.render.formats import counted, hours, percent
from gwmond.reports.render.periods import short
from gwmond.reports.render.table import Cell, table
from gwmond.reports.stored.stored_pilot import AsOf, State, StoredPilot

SortBy: TypeAlias = Literal["start", "end", "contact", "name", "id", "site", "left", "hours"]


def stored_pilots(
    ledger: LedgerReader,
    choice: PilotFilter,
    as_of: AsOf,
    *,
    sort: SortBy = "start",
    reverse: bool = False,
    limit: int | None = None,
    after: Position = None,
) -> list[StoredPilot]:
    """Return the pilots of a choice; by time: the latest first, unless reversed.

    ``after``: by start or end, only those after the one with that time and number.  Which are
    silent, ``as_of`` tells.
    """
    if choice.doing:
        doing = choice.doing._replace(silent_before_us=as_of.silent_before_us)
        choice = choice._replace(doing=doing)
    in_ledger: dict[str, Order] = {x: x for x in ("start", "end", "contact", "name", "id")}
    order = in_ledger.get(sort)
    latest_first = sort in {"start", "end", "contact", "id"}
    rows = ledger.pilot_rows(
        choice,
        order=order or "start",
        descending=latest_first != reverse if order else True,
        limit=limit if order else None,
        after=after,
    )
    pilots = [
        StoredPilot(row, runs.get(row.id, ()), as_of)
        for some in chunks(rows)
        for runs in [ledger.runs_of([row.id for row in some])]
        for row in some
    ]
    if order is None:
        pilots.sort(key=_KEYS[sort], reverse=reverse)
    return pilots if limit is None else pilots[:limit]


Position: TypeAlias = tuple[int, int] | None
"""After which pilot a list goes on: its time (microseconds) and its number; None: at the first."""


def page_of(
    ledger: LedgerReader, choice: PilotFilter, as_of: AsOf, most: int, after: Position
) -> tuple[list[StoredPilot], Position]:
    """Return the latest pilots of a choice, and after which the others come."""
    past = choice.running is False
    sort: SortBy = "end" if past else "start"
    pilots = stored_pilots(ledger, choice, as_of, sort=sort, limit=most + 1, after=after)
    if len(pilots) <= most:
        return pilots, None
    last = pilots[most - 1].row
    time_us = last.end_us if past else last.start_us
    assert time_us is not None
    return pilots[:most], (time_us, last.id)


_KEYS: Mapping[str, Callable[[StoredPilot], Any]] = {
    "site": lambda pilot: (*pilot.identity.key, pilot.identity.group, -pilot.row.start_us),
    "left": lambda pilot: (
        min((left for left in _left(pilot) if left is not None), default=1 << 62),
        pilot.row.id,
    ),
    "hours": lambda pilot: (-pilot.offered[CPU], pilot.row.id),
}
"""Orders that the ledger does not know."""


def _left(pilot: StoredPilot) -> tuple[int | None, int | None]:
    return pilot.left_us(pilot.row.retire_us), pilot.left_us(pilot.row.die_us)


# --- Properties of each ----------------------------------------------------------------------

_COLOURS: Mapping[State, str] = {
    "running": "green",
    "idle": "cyan",
    "open": "cyan",
    "retiring": "yellow",
    "silent": "red",
    "failed": "red",
    "ended": "bright_black",
}


def size_text(pilot: StoredPilot) -> str:
    """Return a pilot's resources in short: ``8c 16000M 1g = 8u``."""
    size = pilot.size
    gpus = f" {size.gpus:g}g" if size.gpus else ""
    text = f"{size.cores:g}c {size.memory_mib:.0f}M{gpus} = {pilot.canonical_units}u"
    offered, virtual = pilot.offered_size, len(pilot.virtual_slots)
    if offered != size:
        text += f", offers {offered.cores:g}c {offered.memory_mib:.0f}M"
    text += f" +{counted(virtual, 'virtual slot')}" if virtual else ""
    return text + (f" +{counted(int(pilot.senders), 'sender')}" if pilot.senders else "")


def some_users(pilot: StoredPilot) -> tuple[tuple[str, ...], str]:
    """Return some users whose jobs ran on it, or are running there, and how many more there are."""
    users = pilot.users if pilot.state == "ended" else pilot.users_now
    return users[:3], f" +{len(users) - 3}" if len(users) > 3 else ""


def _users_text(pilot: StoredPilot) -> str:
    users, more = some_users(pilot)
    return ", ".join(users) + more


def _node(pilot: StoredPilot) -> str:
    """Return the node, unless the name has it."""
    return "" if pilot.identity.node in pilot.identity.name else pilot.identity.node


def _heard(pilot: StoredPilot) -> str:
    return short(pilot.last_heard_us) if pilot.row.end_us is None else ""


def _posted(categories: Collection[Category]) -> Callable[[StoredPilot], int]:
    return lambda pilot: of_kind(pilot.settled, CPU, categories)


def _of_gpus(cell: Callable[[StoredPilot], str]) -> Callable[[StoredPilot], str]:
    return lambda pilot: cell(pilot) if pilot.offered[GPU] else ""


_GOOD = within("good")
FIELDS: tuple[Datum[StoredPilot], ...] = (
    Datum("id", lambda p: p.row.id, 1, name=True),
    Datum("name", lambda p: p.identity.name, 31, "pilot", text=True),
    Datum("site", lambda p: p.identity.key.site, 2, text=True),
    Datum("entry", lambda p: p.identity.key.entry, 3, text=True),
    Datum("group", lambda p: p.identity.group, 34, text=True),
    Datum("factory", lambda p: p.identity.factory, 33, text=True),
    Datum("factory_job", lambda p: p.identity.factory_job or None),
    Datum("node", lambda p: p.identity.node or None, 32, cell=_node, text=True),
    Datum("origin", lambda p: p.identity.origin),
    Datum("start", lambda p: p.row.start_us, 6, "since (UTC)", TIME, text=True),
    Datum("end", lambda p: p.row.end_us, 7, "until (UTC)", TIME, text=True),
    Datum("last_contact", lambda p: p.last_heard_us, 8, "heard of (UTC)", TIME, _heard, text=True),
    Datum("retires", lambda p: p.row.retire_us, unit=TIME),
    Datum("dies", lambda p: p.row.die_us, unit=TIME),
    Datum("until_retire", lambda p: _left(p)[0], 10, "retires", LENGTH, text=True),
    Datum("until_die", lambda p: _left(p)[1], 11, "dies", LENGTH, text=True),
    Datum("cores", lambda p: p.size.cores),
    Datum("memory_mib", lambda p: p.size.memory_mib),
    Datum("gpus", lambda p: p.size.gpus),
    Datum("gpu_model", lambda p: p.row.facts.attribute(GPU_MODEL)),
    Datum("institution", lambda p: p.row.facts.attribute(INSTITUTION)),
    Datum("offered_cores", lambda p: p.offered_size.cores),
    Datum("offered_memory_mib", lambda p: p.offered_size.memory_mib),
    Datum("virtual_slots", lambda p: len(p.virtual_slots)),
    Datum("senders", lambda p: p.senders),
    Datum("canonical_units", lambda p: p.canonical_units),
    Datum("", size_text, 9, "size", text=True),
    Datum("state", lambda p: p.state),
    Datum("", lambda p: Cell(p.doing, _COLOURS[p.state]), 4, "doing", text=True, wrap=40),
    Datum("end_source", lambda p: p.row.end_source or None),
    Datum("validation", lambda p: p.row.validation.shown),
    Datum("validation_failure", lambda p: p.row.failure),
    Datum("running_jobs", lambda p: len(p.running)),
    Datum("runs", lambda p: p.jobs.number),
    Datum("runs_pruned", lambda p: p.row.runs_pruned),
    Datum("users_now", lambda p: list(p.users_now)),
    Datum("users", lambda p: list(p.users), 5, cell=_users_text, text=True, wrap=20),
    Datum("categories", lambda p: categories_json(p.settled)),
    Datum("shares", lambda p: shares_json(p.settled)),
    Datum("unsettled", lambda p: kinds_json(p.unsettled)),
    Datum("", lambda p: p.offered[CPU], 20, "hours", HOURS),
    Datum("", _posted(_GOOD), 21, "good", HOURS, zero=True),
    Datum("", lambda p: percent(share(p.settled, CPU, _GOOD), 0), 22, "%", share=True),
    Datum("", _posted(within("badput")), 23, "badput", HOURS, zero=True),
    Datum("", _posted(within("own")), 24, "own", HOURS, zero=True),
    Datum("", _posted(within("uncl.")), 25, "uncl.", HOURS, zero=True),
    Datum("", lambda p: p.unsettled[CPU], 26, "open", HOURS),
    Datum("", _of_gpus(lambda p: hours(p.offered[GPU])), 27, "GPU hours"),
    Datum("", _of_gpus(lambda p: percent(share(p.settled, GPU, _GOOD), 0)), 28, "%", share=True),
)
"""In the order of JSON and CSV; amounts are seconds there, hours in the table.

Cells are empty where there is nothing to say, JSON has null where nothing is known.
"""


def record(pilot: StoredPilot) -> dict[str, Any]:
    return fields.record(FIELDS, pilot)


class PilotList(NamedTuple):
    """Pilots, with the ledger's age and what runs wait for; ``why`` there are none, if so."""

    age: Age
    pilots: Sequence[StoredPilot]
    truncated: bool
    waits: Sequence[Wait]
    why: str

    @property
    def document(self) -> Document:
        return Document(
            self._parts, self._record, lambda: map(record, self.pilots), lambda: record(NOBODY)
        )

    def _record(self) -> dict[str, Any]:
        return {
            **self.age.as_json(),
            "truncated": self.truncated,
            "not_settled": open_runs.as_json(self.waits),
            "pilots": list(map(record, self.pilots)),
        }

    def _parts(self) -> Iterator[Part]:
        yield Paragraph(self.age.text)
        if self.waits:
            yield Paragraph(open_runs.sentence(self.waits))
        pilots = [pilot for pilot in self.pilots if pilot.row.facts.output is not None]
        if overloaded := sum(pilot.offered_size != pilot.size for pilot in pilots):
            text = f"Overloaded, by their outputs: {overloaded} of {counted(len(pilots), 'pilot')}"
            yield Paragraph(f"{text}; what they offer beyond their size is no capacity")
        if self.pilots:
            yield table("", fields.columns(FIELDS), self.pilots)
        else:
            yield Paragraph(f"No such pilots: {self.why}")


NOBODY = StoredPilot(
    PilotRow(
        id=0,
        identity=PilotIdentity("", 0, "", "", EntryKey("", ""), "", ""),
        start_us=0,
        end_us=0,
        posted_last_heard_us=0,
        steps=(),
        validation=Validation.UNKNOWN,
        assumed={},
        end_source="",
        retire_us=None,
        die_us=None,
        known_until_us=None,
        settled_until_us=0,
        ran_jobs=False,
        closed=True,
        settled={},
    )
)
"""What has all columns, and no pilot is."""
