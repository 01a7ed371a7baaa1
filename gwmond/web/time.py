"""The page of time: what capacity and pilots were used for, over a chosen period."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from gwmond.model.facts import EntryKey
from gwmond.model.units import RESOURCES, Resource
from gwmond.reports.categories import INFOS
from gwmond.reports.render.formats import UNKNOWN, number
from gwmond.reports.render.table import Column, Table, table
from gwmond.reports.time_by_hour import RANGES, Range, Times, Values
from gwmond.web.parts import entry_link, render, site_link, time_text


class Choice(NamedTuple):
    """Which time a page shows, and of which place; an empty name stands for all."""

    last: str = "24h"
    resource: Resource = "cpu"
    site: str = ""
    entry: str = ""

    @property
    def range(self) -> Range:
        """The period and its steps."""
        return RANGES[self.last]


class _Part(NamedTuple):
    """What is stacked: its name, and the class that has its colour."""

    name: str
    look: str


class _Chart(NamedTuple):
    title: str
    note: str
    parts: list[_Part]
    table: Table


_CAPACITY = (
    "What our pilots held of the capacity, and the causes of the rest: docs/sites.md has the "
    "states. The capacity of a saturated site is not counted."
)
_PILOTS = (
    "What the time of pilots was spent on. It is settled some minutes after it has passed, and "
    "that of a job's run when the run ends: the last hours are not whole yet."
)


def page(choice: Choice, times: Times, error: str = "") -> str:
    """Return the page; ``error`` says why nothing could be read."""
    key = EntryKey(choice.site, choice.entry)
    link = entry_link(key) if choice.entry else site_link(choice.site) if choice.site else ""
    hours = choice.range.hours
    looks = {str(info.category): f"c-{info.category}" for info in INFOS if info.category}
    charts = [
        _chart("Capacity by state", _CAPACITY, times.starts, times.capacity, {}),
        _chart("Pilots by category", _PILOTS, times.starts, times.pilots, looks),
    ]
    return render(
        "time",
        place=choice.entry or choice.site,
        place_link=link,
        choices=_choices(choice),
        resource=choice.resource,
        step="1 day" if hours == 24 else "1 hour" if hours == 1 else f"{hours} hours",
        error=error,
        charts=charts,
        data=_data(times, charts),
    )


def _choices(choice: Choice) -> list[tuple[str, bool, str]]:
    """Return the other periods and resources: text, whether it is this one, and address."""
    found = [
        (chosen.name, last == choice.last, _address(choice._replace(last=last)))
        for last, chosen in RANGES.items()
    ]
    names: dict[Resource, str] = {"cpu": "CPU", "gpu": "GPUs"}
    found += [
        (names[resource], resource == choice.resource, _address(choice._replace(resource=resource)))
        for resource in RESOURCES
    ]
    return found


def _address(choice: Choice) -> str:
    return f"time?{urlencode({name: text for name, text in choice._asdict().items() if text})}"


def _chart(
    title: str, note: str, starts: Sequence[int], values: Values, looks: dict[str, str]
) -> _Chart:
    parts = [_Part(name, looks.get(name, f"s-{name}")) for name in values]

    def column(name: str) -> Column[int]:
        def cell(step: int) -> str:
            value = values[name][step]
            return UNKNOWN if value is None else number(value, 1)

        return Column(name.replace("_", " "), cell)

    steps = range(len(starts)) if values else range(0)
    began: Column[int] = Column("from (UTC)", lambda step: time_text(starts[step])[:16], name=True)
    return _Chart(title, note, parts, table("", [began, *map(column, values)], steps))


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
