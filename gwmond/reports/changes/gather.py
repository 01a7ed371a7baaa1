"""What is lost by hour and place, what was changed, and what both have to do with each other.

Units: positions are hours since the first whole hour of the period, times microseconds since the
epoch; runs and pilots are counted, time of CPUs is canonical hours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from gwmond.ledger.reading import hourly
from gwmond.ledger.reading.hourly import Labels
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.counters import Kind
from gwmond.model.entries.changes import Value, ValueKey
from gwmond.model.facts import ANYWHERE, Place
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import PilotSeries
from gwmond.model.states import State
from gwmond.model.times import HOUR_US, Period
from gwmond.model.totals import SiteKey
from gwmond.reports.changes.since import Effect, HourlyShare, Stretch, effect, stretch, told

Of: TypeAlias = Literal["runs", "pilots", "time", "capacity"]
"""Of what a loss is a share: of runs or pilots that ended, of pilots' time, of capacity."""

LOSSES: Mapping[str, Of] = {
    Category.VALIDATION_FAILS: "pilots",
    Category.DECISION_PROBLEM: "pilots",
    Category.PILOT_OVERHEAD: "time",
    Category.MISCONFIGURATION_BADPUT: "runs",
    Category.PREEMPTION_BADPUT: "runs",
    Category.UNCLASSIFIED: "runs",
    State.PROVISIONING_BOTTLENECK: "capacity",
}
"""Each loss, and of what it is a share.

Runs and pilots are counted where that can be: the time of one that fails is hours long, so that
hours are no independent trials.
"""
_OF_DEMAND = {
    *(Category.DECISION_PROBLEM, Category.PILOT_OVERHEAD),
    State.PROVISIONING_BOTTLENECK,
}
"""What follows the demand, and is told of a site only where it rose more than at other sites."""
_BLOCK = {"runs": 3, "pilots": 3, "time": 6, "capacity": 6}
_MOST_BLOCKS = 56
SHORTEST_H = 48
"""In a shorter period there are too few blocks."""
_AROUND_H = 24
"""An effect compares so many hours before and after, or fewer where there are fewer."""
_EARLIER_H, _LATER_H = 12, 3
"""A change so long before a loss begins, or after as far as that is known, is named with it."""
_AT_ONCE_US = HOUR_US
_MOST_OF = 0.5

_Amounts: TypeAlias = dict[Place, list[float]]


class ValueChange(NamedTuple):
    """A value that was changed at places at about the same time; ``effect``: on goodput."""

    time_us: int
    name: str
    before: str
    after: str
    places: tuple[Place, ...]
    effect: Effect | None = None

    def touches(self, place: Place) -> bool:
        """Return whether it was made at a place, or at a part of it, or of all that it is in."""
        return any(of.covers(*place) or place.covers(*of) for of in self.places)


class Loss(NamedTuple):
    """A loss that is larger in a stretch than in the rest of the period, at a place.

    ``hours``: canonical hours of CPUs that were lost more than at the rest's share.  ``mostly``:
    where most of what was lost more was lost, and which part of it.
    """

    place: Place
    name: str
    since: Stretch
    hours: float
    mostly: tuple[Place, float] | None
    effect: Effect | None
    changes: tuple[ValueChange, ...]


class Found(NamedTuple):
    """What was found in whole hours of a period.

    ``looked``: at how many series; ``too_little``: in so many more is too little to say anything.
    """

    period: Period
    losses: tuple[Loss, ...]
    changes: tuple[ValueChange, ...]
    looked: int = 0
    too_little: int = 0

    @property
    def too_short(self) -> bool:
        """Whether the period is too short to tell since when something is lost."""
        return self.period.length_us < SHORTEST_H * HOUR_US

    def time_us(self, hour: int) -> int:
        """When an hour begins."""
        return self.period.since_us + hour * HOUR_US


def found_in(
    reader: LedgerReader, period: Period, place: Place, go_on: Callable[[], object] = tuple
) -> Found:
    """Return what began and what was changed in a period at a place, the largest loss first.

    Entries are looked at one by one where a site is chosen.  ``go_on`` is called again and again,
    and may raise what ends this.
    """
    first, stop = -(-period.since_us // HOUR_US), period.until_us // HOUR_US
    whole = Period(first * HOUR_US, stop * HOUR_US)
    values = [row for row in reader.values(whole.since_us) if row.time_us < period.until_us]
    changes = [one for one in _changes(values, whole.since_us) if one.touches(place)]
    changes.sort(key=lambda change: change.time_us)
    found = Found(whole, (), tuple(changes))
    if found.too_short:
        return found
    known = _Known(reader, first, stop - 1)
    asked = [
        (of, name)
        for of in known.places(place)
        for name in LOSSES
        if not (of.group and LOSSES[name] == "capacity")
    ]
    looked = []
    for of, name in asked:
        go_on()
        if (since := stretch(known.series(name, known.within(of)), known.block(name))) is not None:
            looked.append((of, name, since))
    chosen = told([since.chance for *_, since in looked])
    stretches = [one for one, is_told in zip(looked, chosen, strict=True) if is_told]
    for number, change in enumerate(changes):
        go_on()
        changes[number] = change._replace(effect=_did(known, change))
    losses = [_loss(known, changes, stretches, *one) for one in stretches]
    losses = [loss for loss in losses if is_of_place(loss.place, loss.name, loss.effect)]
    losses = [loss for loss in losses if not _is_of_another(loss, losses)]
    losses.sort(key=lambda loss: -loss.hours)
    return Found(whole, tuple(losses), tuple(changes), len(looked), len(asked) - len(looked))


class _Known:
    """Hourly amounts by place, of each loss and of what it is a share."""

    def __init__(self, reader: LedgerReader, first: int, last: int) -> None:
        self.hours, self.first = last - first + 1, first
        self._lost: defaultdict[str, _Amounts] = defaultdict(dict)
        self.whole: defaultdict[Of, _Amounts] = defaultdict(dict)
        self._within: dict[Place, list[Place]] = {}
        labels = "category", "site", "entry", "group"
        for of, counts in hourly.ended(reader, labels, first, last).items():
            self._add("runs" if of == "runs" else "pilots", counts, 1)
        pilots = hourly.picked(PilotSeries._fields, labels, resource="cpu", measure="canonical")
        self._add("time", hourly.spent(reader, Kind.PILOT, pilots, first, last), HOUR_US)
        sites = hourly.picked(SiteKey._fields, ("state", "site", "entry"), resource="cpu")
        self._add("capacity", hourly.spent(reader, Kind.SITE, sites, first, last), HOUR_US)

    def _add(self, of: Of, found: Mapping[Labels, Mapping[int, int]], unit: int) -> None:
        for (name, *where), hours in found.items():
            place = Place(*where)
            totals = self.whole[of].setdefault(place, [0.0] * self.hours)
            mine = self._lost[f"{of} {name}"].setdefault(place, [0.0] * self.hours)
            for hour, amount in hours.items():
                totals[hour - self.first] += amount / unit
                mine[hour - self.first] += amount / unit

    def places(self, within: Place) -> list[Place]:
        """Return the places that are looked at: sites and groups, and the entries of one site."""
        units = self.within(within)
        found = {within._replace(site=unit.site) for unit in units}
        found |= {within._replace(group=unit.group) for unit in units if unit.group}
        if within.site:
            found |= {within._replace(entry=unit.entry) for unit in units}
        return sorted(found)

    def within(self, place: Place) -> list[Place]:
        """Return the entries and groups of a place; of entries alone, as capacity is, too."""
        if place not in self._within:
            all_ = {unit for amounts in self.whole.values() for unit in amounts}
            units = self.within(ANYWHERE) if place != ANYWHERE else sorted(all_)
            self._within[place] = [unit for unit in units if place.covers(*unit)]
        return self._within[place]

    def block(self, name: str) -> int:
        """Of how many hours a block is."""
        return max(_BLOCK[LOSSES[name]], -(-self.hours // _MOST_BLOCKS))

    def series(self, name: str, units: Iterable[Place], of: Of | None = None) -> HourlyShare:
        """Return a loss of some units together; ``of``: as a share of another measure."""
        of, units = of or LOSSES[name], list(units)
        lost, whole = (
            [amounts[unit] for unit in units if unit in amounts] or [[0.0] * self.hours]
            for amounts in (self._lost[f"{of} {name}"], self.whole[of])
        )
        return HourlyShare(*(list(map(sum, zip(*rows, strict=True))) for rows in (lost, whole)))


def _loss(
    known: _Known,
    changes: Iterable[ValueChange],
    stretches: Iterable[tuple[Place, str, Stretch]],
    place: Place,
    name: str,
    since: Stretch,
) -> Loss:
    of: Of = "capacity" if LOSSES[name] == "capacity" else "time"
    near = [
        change
        for change in changes
        if change.touches(place)
        and since.first - _EARLIER_H
        <= (change.time_us // HOUR_US) - known.first
        <= since.first + _LATER_H
    ]
    others = {
        site: known.series(name, known.within(Place(site=site, group=place.group)))
        for site in sorted({unit.site for unit in known.within(ANYWHERE)} - {place.site})
    }
    for at, what, stretched in stretches:  # these have begun to lose, too
        if what == name and at != place and stretched.overlaps(since):
            others.pop(at.site, None)
    before = slice(max(0, since.first - _AROUND_H), since.first)
    after = slice(since.first, min(since.end, since.first + _AROUND_H))
    rise = None
    if place.site:
        mine = known.series(name, known.within(place))
        rise = effect(mine, list(others.values()), before, after, known.block(name))
    more = _more(known.series(name, known.within(place), of), since)
    return Loss(place, name, since, more, _mostly(known, place, name, since), rise, tuple(near))


def is_of_place(place: Place, name: str, rise: Effect | None) -> bool:
    """Return whether a loss is that of its place, and not of the demand everywhere."""
    return name not in _OF_DEMAND or not place.site or (rise is not None and rise.low > 0)


def _more(series: HourlyShare, since: Stretch) -> float:
    """Return how much more was lost in a stretch than at the share of the rest."""
    inside = slice(since.first, since.end)
    lost, whole = sum(series.lost[inside]), sum(series.whole[inside])
    rest = sum(series.whole) - whole
    return lost - ((sum(series.lost) - lost) / rest * whole if rest else 0.0)


def _mostly(known: _Known, place: Place, name: str, since: Stretch) -> tuple[Place, float] | None:
    units = [unit for unit in known.within(place) if unit in known.whole[LOSSES[name]]]
    parts = Counter({unit: _more(known.series(name, [unit]), since) for unit in units})
    rises = sum(part for part in parts.values() if part > 0)
    if len(parts) < 2 or rises <= 0:
        return None
    unit, part = parts.most_common(1)[0]
    return (unit, part / rises) if part >= _MOST_OF * rises else None


def _is_of_another(loss: Loss, losses: Iterable[Loss]) -> bool:
    """Return whether a group's loss is that of a site, which is told."""
    return any(
        loss.mostly is not None
        and not loss.place.site
        and other.name == loss.name
        and other.place.site == loss.mostly[0].site
        and other.since.overlaps(loss.since)
        for other in losses
    )


def _changes(values: Iterable[Value], since_us: int) -> Iterator[ValueChange]:
    """Yield what was changed since; alike changes of many entries within an hour are one."""
    before: dict[ValueKey, str] = {}
    open_: dict[tuple[str, str, str], ValueChange] = {}
    for row in values:
        old = before.get(row.key)
        before[row.key] = row.value
        if old is None or row.time_us < since_us:
            continue
        what = row.key.name, old, row.value
        place = Place(row.key.site, row.key.entry, row.key.group)
        known = open_.get(what)
        if known is not None and row.time_us - known.time_us <= _AT_ONCE_US:
            open_[what] = known._replace(places=(*known.places, place))
            continue
        if known is not None:
            yield known
        open_[what] = ValueChange(row.time_us, *what, (place,))
    yield from open_.values()


def _did(known: _Known, change: ValueChange) -> Effect | None:
    """Return what a change did to goodput, against sites where nothing was changed."""
    at = change.time_us // HOUR_US - known.first
    before, after = slice(max(0, at - _AROUND_H), at), slice(at + 1, at + 1 + _AROUND_H)

    def goodput(units: Iterable[Place]) -> HourlyShare:
        return known.series(Category.GOODPUT, units, "time")

    changed = {unit for place in change.places for unit in known.within(place)}
    sites = {unit.site for unit in known.within(ANYWHERE)}
    touched = {unit.site for unit in changed}
    aside = touched if len(touched) <= len(sites) / 2 else set[str]()
    others = (
        goodput(unit for unit in known.within(Place(site)) if unit not in changed)
        for site in sorted(sites - aside)
    )
    return effect(goodput(sorted(changed)), list(others), before, after, _BLOCK["time"])
