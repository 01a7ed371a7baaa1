"""The page of time: what capacity and pilots were used for, over a chosen period."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.units import RESOURCES, Resource
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.formats import UNKNOWN, number
from gwmond.reports.render.table import Column, Table, table
from gwmond.reports.sites.time_by_hour import RANGES, Times, Values
from gwmond.web.asking import TimeAsked
from gwmond.web.controls import FormField, Tab, address, heading, place_fields, place_links
from gwmond.web.parts import render, time_text


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
    "that of a job's run when the run ends: the last hours are not whole yet."
)
_NOTHING = "Nothing is accounted in the whole hours of this period."
_OF_GROUP = "Capacity is that of sites and entries, and not divided by frontend groups."


def page(s: Snapshot | None, choice: TimeAsked, times: Times, error: str = "") -> str:
    """Return the page; ``error`` says why nothing could be read."""
    hours = RANGES[choice.last].hours
    looks = {str(info.category): f"c-{info.category}" for info in INFOS if info.category}
    nothing = _OF_GROUP if choice.group else _NOTHING
    charts = [
        _chart("Capacity by state", _CAPACITY, times.starts, times.capacity, {}, nothing),
        _chart("Pilots by category", _PILOTS, times.starts, times.pilots, looks, _NOTHING),
    ]
    return render(
        "time",
        title="Time",
        heading=heading(s, choice.place),
        links=place_links(choice.place, but="time"),
        choices=_choices(choice),
        fields=[
            FormField("last", "", choice.last),
            FormField("resource", "", choice.resource),
            *place_fields(s, choice.place),
        ],
        parts=(),
        more=(),
        resource=choice.resource,
        step="1 day" if hours == 24 else "1 hour" if hours == 1 else f"{hours} hours",
        error=error,
        charts=charts,
        data=_data(times, charts),
    )


def _choices(choice: TimeAsked) -> list[Tab]:
    """Return links to the other periods and resources."""
    found = [
        Tab(
            chosen.name,
            last == choice.last,
            address("time", choice.but(last=last)),
        )
        for last, chosen in RANGES.items()
    ]
    names: dict[Resource, str] = {"cpu": "CPU", "gpu": "GPUs"}
    for resource in RESOURCES:
        target = address("time", choice.but(resource=resource))
        found.append(Tab(names[resource], resource == choice.resource, target))
    return found


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


def _data(times: Times, charts: Sequence[_Chart]) -> Markup:
    """Return what the charts are drawn of, as JSON that cannot end the script it stands in."""
    data = {
        "starts": times.starts,
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
