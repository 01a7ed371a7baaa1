"""The page of time: what capacity and pilots were used for, over a chosen period."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from gwmond.model.times import SECOND_US
from gwmond.model.units import Resource
from gwmond.reports.changes.document import changes_parts
from gwmond.reports.changes.gather import Found, found_in
from gwmond.reports.ledger.ledger_reading import Unreadable, ledger_for_page, within_deadline
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.render.formats import UNKNOWN, number
from gwmond.reports.render.table import Column, Table, table
from gwmond.reports.sites.time_by_hour import NOT_SETTLED, RANGES, Times, Values, read
from gwmond.web.asking import TimeAsked
from gwmond.web.controls import FormField, Tab, address, last_tabs, ledger_page, place_fields
from gwmond.web.parts import View, time_text


class _Part(NamedTuple):
    """What is stacked: its name, and the class that has its colour."""

    name: str
    look: str


class _Chart(NamedTuple):
    title: str
    note: str
    parts: list[_Part]
    table: Table
    nothing: str


_CAPACITY = (
    "What our pilots held of the capacity, and the causes of the rest: docs/sites.md has the "
    "states. The capacity of a saturated site is not counted."
)
_PILOTS = (
    "What the time of pilots was spent on. It is settled some minutes after it has passed, and "
    "that of a job's run when the run ends: what its category will be is not known before."
)
_NOTHING = "Nothing is accounted in the whole hours of this period."
_OF_GROUP = "Capacity is that of sites and entries, and not divided by frontend groups."


def times_of(view: View, asked: TimeAsked) -> Times:
    """Return the time that is asked for; raises Unreadable."""
    chosen, now_s, config = RANGES[asked.last], view.now_us / SECOND_US, view.config
    unit_mib = config.canonical.memory_mib
    return read(config.ledger.url, chosen, now_s, asked.resource, asked.place, unit_mib)


def page(view: View, choice: TimeAsked) -> str:
    """Return the page, for which the ledger is read."""
    times, error, hours = Times(), "", RANGES[choice.last].hours
    try:
        times = times_of(view, choice)
    except Unreadable as unreadable:
        error = str(unreadable)
    looks = {str(info.category or NOT_SETTLED): f"c-{info.look}" for info in INFOS}
    nothing = _OF_GROUP if choice.group else _NOTHING
    found, changes = None, list[Part]()
    if not error and choice.resource == "cpu":
        try:
            found = _found(view, choice)
            changes = list(changes_parts(found))
        except Unreadable as unreadable:
            changes = [Paragraph(str(unreadable), "warning")]
    charts = [
        _chart("Capacity by state", _CAPACITY, times.starts, times.capacity, {}, nothing),
        _chart("Pilots by category", _PILOTS, times.starts, times.pilots, looks, _NOTHING),
    ]
    names: dict[Resource, str] = {"cpu": "CPU", "gpu": "GPUs"}
    return ledger_page(
        *("time", view, choice, error),
        choices=[
            *last_tabs("time", choice, choice.last),
            *(
                Tab(text, name == choice.resource, address("time", choice.but(resource=name)))
                for name, text in names.items()
            ),
        ],
        fields=[
            FormField("last", "", choice.last),
            FormField("resource", "", choice.resource),
            *place_fields(view.snapshot, choice.place),
        ],
        resource=choice.resource,
        step="1 day" if hours == 24 else "1 hour" if hours == 1 else f"{hours} hours",
        charts=charts,
        data=_data(times, charts, found),
        changes=changes,
    )


def _found(view: View, choice: TimeAsked) -> Found:
    """Return what began and was changed meanwhile; raises Unreadable."""
    period, go_on = RANGES[choice.last].period(view.now_us), within_deadline()
    with ledger_for_page(view.config.ledger.url) as ledger:
        return found_in(ledger, period, choice.place, go_on)


def _chart(
    title: str,
    note: str,
    starts: Sequence[int],
    values: Values,
    looks: dict[str, str],
    nothing: str,
) -> _Chart:
    parts = [_Part(name, looks.get(name, f"s-{name}")) for name in values]

    def column(name: str) -> Column[int]:
        def cell(step: int) -> str:
            value = values[name][step]
            return UNKNOWN if value is None else number(value, 1)

        return Column(name.replace("_", " "), cell)

    steps = range(len(starts)) if values else range(0)
    began: Column[int] = Column("from (UTC)", lambda step: time_text(starts[step])[:16], name=True)
    return _Chart(title, note, parts, table("", [began, *map(column, values)], steps), nothing)


def _marks(found: Found) -> list[int]:
    """Return when something was changed, or began to be lost, in epoch seconds."""
    times = {found.time_us(loss.since.first) for loss in found.losses}
    times |= {change.time_us for change in found.changes}
    return sorted(time_us // SECOND_US for time_us in times)


def _data(times: Times, charts: Sequence[_Chart], found: Found | None) -> Markup:
    """Return what the charts are drawn of, as JSON that cannot end the script it stands in."""
    data = {
        "starts": times.starts,
        "marks": [] if found is None else _marks(found),
        "charts": [
            [
                {
                    "name": part.name.replace("_", " "),
                    "look": part.look,
                    "values": values[part.name],
                }
                for part in chart.parts
            ]
            for chart, values in zip(charts, (times.capacity, times.pilots), strict=True)
        ],
    }
    return Markup(json.dumps(data).replace("<", "\\u003c"))
