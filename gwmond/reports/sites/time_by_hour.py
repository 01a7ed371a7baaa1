"""Time of capacity by state and of pilots by category, in equal steps, for a place.

Units: a value is the average number of canonical units in a step (canonical seconds of the step,
divided by its length); None where nothing was accounted in a step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from gwmond.ledger.reading import hourly
from gwmond.ledger.reading.hourly import Labels
from gwmond.ledger.rows.counters import Kind
from gwmond.model.entries.evaluation import PROVISIONED
from gwmond.model.facts import ANYWHERE, Place
from gwmond.model.pilots.stored_pilots import PilotSeries
from gwmond.model.states import State
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.model.totals import Hour, SiteKey
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource
from gwmond.reports.ledger.ledger_reading import ledger_for_page
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.periods import both
from gwmond.reports.stored.unsettled import unsettled

Values: TypeAlias = Mapping[str, Sequence[float | None]]
STATES = (PROVISIONED, *(state.value for state in State))
"""The uses of capacity, in the order in which they are stacked."""
NOT_SETTLED = "not_settled"
MOST_OPEN = 5000
"""Of more pilots that are not closed a page would wait for what is not settled."""
_PARTS = tuple(info.category.value if info.category else NOT_SETTLED for info in INFOS)


class Range(NamedTuple):
    """A choice of a period: its name, and in how many steps of how many hours it is divided."""

    name: str
    steps: int
    hours: int

    def first(self, now_s: float) -> Hour:
        """Return the first hour; the last step holds the last whole hour."""
        return int(now_s // 3600) - self.steps * self.hours

    def period(self, now_us: int) -> Period:
        """Return the period up to now, in microseconds; now is in it."""
        return Period(now_us - self.steps * self.hours * HOUR_US, now_us + 1)


RANGES = {
    "24h": Range("24 hours", 24, 1),
    "7d": Range("7 days", 28, 6),
    "30d": Range("30 days", 30, 24),
}


class Times(NamedTuple):
    """Averages by step: of capacity by state, of pilots by category; those that have any.

    What pilots had that is ``not_settled`` is beside the categories, if no more than ``MOST_OPEN``
    are not closed.  ``starts`` are epoch seconds.
    """

    starts: tuple[int, ...] = ()
    capacity: Values = MappingProxyType({})
    pilots: Values = MappingProxyType({})

    @property
    def as_json(self) -> dict[str, Any]:
        """The steps with when they begin, and the averages in their order."""
        return {
            "steps": [both("start", start * SECOND_US) for start in self.starts],
            "capacity": {name: list(values) for name, values in self.capacity.items()},
            "pilots": {name: list(values) for name, values in self.pilots.items()},
        }


def read(
    url: str,
    chosen: Range,
    now_s: float,
    resource: Resource,
    place: Place = ANYWHERE,
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> Times:
    """Read the time of a place; the memory is that of units of pilots that were not posted yet.

    Capacity is not divided by groups.  Raises Unreadable.
    """
    first = chosen.first(now_s)
    within = first, first + chosen.steps * chosen.hours - 1
    here = {"resource": resource, "site": place.site, "entry": place.entry}
    states = hourly.picked(SiteKey._fields, ("state",), **here)
    of_pilots = {**here, "measure": "canonical", "group": place.group}
    categories = hourly.picked(PilotSeries._fields, ("category",), **of_pilots)
    with ledger_for_page(url) as ledger:
        capacity = {} if place.group else hourly.spent(ledger, Kind.SITE, states, *within)
        pilots = hourly.spent(ledger, Kind.PILOT, categories, *within)
        period = Period(first * HOUR_US, (within[1] + 1) * HOUR_US)
        later: Counter[Hour] = Counter()
        pilots_now = (
            ()
            if ledger.number_open() > MOST_OPEN
            else unsettled(ledger, place, period, HOUR_US, memory_per_unit_mib)
        )
        for _, since, amounts in pilots_now:
            later[since // HOUR_US] += amounts.get((resource, "canonical"), 0)
    return Times(
        tuple(3600 * (first + step * chosen.hours) for step in range(chosen.steps)),
        _averages(capacity, STATES, chosen, first),
        _averages({**pilots, (NOT_SETTLED,): +later}, _PARTS, chosen, first),
    )


def _averages(
    series: Mapping[Labels, Mapping[Hour, int]], names: Iterable[str], chosen: Range, first: Hour
) -> Values:
    sums = {name: [0] * chosen.steps for (name,) in series}
    accounted = [False] * chosen.steps
    for (name,), hours in series.items():
        for hour, micros in hours.items():
            step = (hour - first) // chosen.hours
            sums[name][step] += micros
            accounted[step] = True
    length_us = chosen.hours * HOUR_US
    return {
        name: [
            micros / length_us if counted else None
            for micros, counted in zip(sums[name], accounted, strict=True)
        ]
        for name in names
        if any(sums.get(name, ()))
    }
