"""When each alert should fire in a simulated pool, by what happened there and not by gwmond.

``Cause.large``: so much that the alert has to fire; what is less may fire it.  Times are hours from
the beginning of the play, units canonical ones.  The amounts are those of the alerts' thresholds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gwmond.model.entries.evaluation import SCALE, Evaluation
from gwmond.model.states import State
from tests.alerts.played import Firing
from tests.alerts.rules import thresholds
from tests.simulator.parts import How
from tests.simulator.play import POLL_S
from tests.simulator.pool import Pool
from tests.simulator.story import Event, What
from tests.simulator.truth import Judged, spent
from tests.simulator.world import BEGINS, ENTRIES

_A_POLL_H = POLL_S / 3600
_SITE = {entry.name: entry.site for entry in ENTRIES}
LATER_H = {
    "GwmondMisconfigurationBadput": 8.0,  # verdicts come hours later
    "GwmondTransferFailures": 8.0,
    "GwmondValidationFailures": 7.0,
    "GwmondDecisionProblem": 7.0,
    "GwmondPreemptionHigh": 7.0,
}
"""So long after its cause an alert may fire; else 3 hours: its windows."""


class Cause(NamedTuple):
    """What an alert tells of, at an entry or a site (empty: the pool)."""

    place: str
    begins_h: float
    ends_h: float
    large: bool


class Past:
    """What happened in a play: units of sites by poll, runs and pilots.

    ``spare`` are the units of which empty pilots could start, ``lost`` those for which these would
    get jobs.  ``capacity`` is what both are shares of, as docs/sites.md defines it: it is not what
    the simulated site has cores for.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = tuple(events)
        self.lost: defaultdict[str, list[float]] = defaultdict(list)
        self.spare: defaultdict[str, list[float]] = defaultdict(list)
        self.capacity: defaultdict[str, list[float]] = defaultdict(list)
        self.failed: list[tuple[str, What, How, float]] = []
        self.time: list[tuple[str, float, float, str]] = []
        """Of pilots: entry, when it was decided, unit hours, category."""
        self.polls = 0

    def note(self, found: Iterable[Judged], evaluation: Evaluation) -> None:
        """Take in what was true at a poll."""
        lost, spare, capacity = Counter[str](), Counter[str](), Counter[str]()
        for one in found:
            lost[one.entry.site] += one.true  # type: ignore[assignment]
            spare[one.entry.site] += one.spare  # type: ignore[assignment]
        for (key, resource), row in evaluation.rows.items():
            known = (units for state, _, units in row.uses if state != State.UNKNOWN)
            capacity[key.site] += sum(known) / SCALE if resource == "cpu" else 0  # type: ignore[assignment]
        for site in set(_SITE.values()):
            self.lost[site].append(lost[site])
            self.spare[site].append(spare[site])
            self.capacity[site].append(capacity[site])
        self.polls += 1

    def end(self, pool: Pool) -> None:
        """Take in what runs and pilots were."""
        for pilot in (*pool.ended, *pool.all_pilots()):
            entry = pilot.entry
            for run in pilot.past:
                as_planned = run.how is run.plan.how
                if as_planned and run.plan.cause is not None and run.how is not None:
                    at_h = (run.end - BEGINS) / 3600
                    self.failed.append((entry.site, run.plan.cause, run.how, at_h))
            self.time += [
                (entry.name, (one.at - BEGINS) / 3600, one.units_s / 3600, one.category)
                for one in spent(pilot)
            ]


def causes(past: Past) -> dict[str, list[Cause]]:
    """Return the causes of each alert that can have one in the simulated pool."""
    of = {
        alert: list(found)
        for alert, found in {
            "GwmondSiteStarved": _starved(past),
            "GwmondPoolStarved": _pool_starved(past),
            "GwmondSiteNoDemand": _no_demand(past),
            "GwmondEntryNotSubmitting": _factory(past, What.STUCK, What.HELD),
            "GwmondEntryPilotsHeld": _factory(past, What.HELD),
            "GwmondMisconfigurationBadput": _failing(past, What.BLACK_HOLE, What.STORAGE),
            "GwmondTransferFailures": _failing(past, What.STORAGE),
            "GwmondValidationFailures": _of_time(
                past, "validation_fails", "validation_ratio", by_entry=True
            ),
            "GwmondDecisionProblem": _of_time(past, "decision_problem", "decision_problem_ratio"),
            "GwmondPreemptionHigh": _of_time(past, "preemption_badput", "preemption_ratio"),
        }.items()
    }
    of["GwmondValidationFailures"] += [
        Cause(entry, event.begins_h, event.ends_h, large=False)
        for event in past.events
        for entry, site in _SITE.items()
        if event.what is What.VALIDATION and event.where == site
    ]
    return of


def _spans(values: Sequence[bool]) -> Iterator[tuple[float, float]]:
    """Yield from when to when something was so, of one value a poll."""
    since = None
    for number, value in enumerate([*values, False]):
        if value and since is None:
            since = number
        if not value and since is not None:
            yield (since + 1) * _A_POLL_H, number * _A_POLL_H
            since = None


def _lasting(
    place: str, large: Sequence[bool], small: Sequence[bool], least_h: float
) -> Iterator[Cause]:
    """Yield causes that are large for so long, and those that are only small."""
    for begin, end in _spans(large):
        yield Cause(place, begin, end, large=end - begin >= least_h)
    for begin, end in _spans(small):
        yield Cause(place, begin, end, large=False)


def _over(values: Sequence[float], hours: float) -> list[float]:
    """Return the sums of the last hours, in unit hours."""
    width = round(hours / _A_POLL_H)
    return [sum(values[max(0, i + 1 - width) : i + 1]) * _A_POLL_H for i in range(len(values))]


def _much(
    units: Sequence[float], of: Sequence[float], share: float, least: float = 0
) -> list[bool]:
    """Return whether more than a share was so, over two hours (and ``least``) and half an hour."""
    windows = zip(*(_over(values, h) for h in (2, 0.5) for values in (units, of)), strict=True)
    return [a >= least and a > share * b and c > share * d for a, b, c, d in windows]


def _starved(past: Past) -> Iterator[Cause]:
    least, share = thresholds()["starved_hours"], thresholds()["site_starved_ratio"]
    for site, lost in past.lost.items():
        large, small = (
            _much(lost, past.capacity[site], part * share, part * least) for part in (1, 0.5)
        )
        yield from _lasting(site, large, small, 1)


def _pool_starved(past: Past) -> Iterator[Cause]:
    lost, capacity = (
        [sum(units) for units in zip(*of.values(), strict=True)]
        for of in (past.lost, past.capacity)
    )
    share, most = (thresholds()[n] for n in ("pool_starved_ratio", "pool_starved_one_site_ratio"))
    worst = [max(of) for of in zip(*(_over(x, 2) for x in past.lost.values()), strict=True)]
    common = [a <= most * b for a, b in zip(worst, _over(lost, 2), strict=True)]
    large, small = (
        [a and b for a, b in zip(_much(lost, capacity, part * share), common, strict=True)]
        for part in (1, 0.5)
    )
    yield from _lasting("", large, small, 1.5)


def _no_demand(past: Past) -> Iterator[Cause]:
    share = thresholds()["no_demand_ratio"]
    for site, spare in past.spare.items():
        idle = [a - b for a, b in zip(spare, past.lost[site], strict=True)]
        large, small = (_much(idle, past.capacity[site], part * share) for part in (1, 0.75))
        yield from _lasting(site, large, small, 6.5)


def _factory(past: Past, *whats: What) -> Iterator[Cause]:
    """Yield what the factory does not do: large where the site lost time for an hour and a half."""
    for event in past.events:
        if event.what in whats:
            polls = past.lost[_SITE[event.where]][
                round(event.begins_h / _A_POLL_H) : round(event.ends_h / _A_POLL_H)
            ]
            large = event.what is whats[0] and sum(x > 0 for x in polls) * _A_POLL_H >= 1.5
            yield Cause(event.where, event.begins_h, event.ends_h, large)


def _failing(past: Past, *whats: What) -> Iterator[Cause]:
    """Yield where runs fail, from the first of them on: large if enough do within an hour."""
    enough = thresholds()["misconfigured_runs"]
    for event in past.events:
        if event.what not in whats:
            continue
        node, _, site = event.where.rpartition(".")
        site = site.capitalize() if node else site
        times = sorted(
            at
            for where, cause, _, at in past.failed
            if where == site and cause is event.what and event.begins_h < at < event.ends_h + 1
        )
        if times:
            large = any(sum(at <= x < at + 1 for x in times) >= enough for at in times)
            yield Cause(site, times[0], max(times[-1], event.ends_h), large)


def _of_time(past: Past, what: str, ratio: str, *, by_entry: bool = False) -> Iterator[Cause]:
    """Yield where much of the time of pilots was of a category, as it is decided."""
    share, least = thresholds()[ratio], thresholds()["minimum_hours"]
    at: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for entry, at_h, lived, kind in past.time:
        at[entry if by_entry else _SITE[entry]].append((at_h, lived, kind))
    times = [(number + 1) * _A_POLL_H for number in range(past.polls)]
    for place, found in at.items():
        found.sort()

        def much(
            hours: float, part: float, least: float, found: list[tuple[float, float, str]] = found
        ) -> list[bool]:
            result = []
            for time in times:
                first, last = (bisect_right(found, (at_h,)) for at_h in (time - hours, time))
                lately = [(n, kind) for _, n, kind in found[first:last]]
                every = sum(n for n, _ in lately)
                ours = sum(n for n, kind in lately if kind == what)
                enough = (ours if by_entry else every) >= least
                result.append(enough and ours > part * share * every)
            return result

        large = [a and b for a, b in zip(much(6, 1, least), much(1, 1, 0), strict=True)]
        yield from _lasting(place, large, much(6, 0.5, 0), 0.5)


class Score(NamedTuple):
    """How an alert did: firings, right ones, large causes, those found, hours until then."""

    fired: int
    right: int
    large: int
    found: int
    waits_h: tuple[float, ...]

    def plus(self, other: Score) -> Score:
        """Return both together."""
        return Score(
            self.fired + other.fired,
            self.right + other.right,
            self.large + other.large,
            self.found + other.found,
            (*self.waits_h, *other.waits_h),
        )


def scores(
    firings: Iterable[Firing], causes: Mapping[str, Sequence[Cause]], names: Iterable[str]
) -> dict[str, Score]:
    """Return how each alert did; one that has no cause in the simulated pool must not fire."""
    fired: defaultdict[str, list[Firing]] = defaultdict(list)
    for one in firings:
        fired[one.alert].append(one)
    return {name: _score(fired[name], causes.get(name, ()), LATER_H.get(name, 3)) for name in names}


def is_right(firing: Firing, causes: Iterable[Cause], later_h: float) -> bool:
    """Return whether an alert tells of any of these."""
    return any(
        cause.place == firing.place
        and cause.begins_h <= firing.ends_h
        and firing.begins_h <= cause.ends_h + later_h
        for cause in causes
    )


def _score(firings: Sequence[Firing], causes: Sequence[Cause], later_h: float) -> Score:
    waits: list[float] = []
    large = [cause for cause in causes if cause.large]
    found: Callable[[Cause], list[float]] = lambda cause: [  # noqa: E731
        max(0.0, one.begins_h - cause.begins_h)
        for one in firings
        if is_right(one, [cause], later_h)
    ]
    waits = [min(times) for cause in large if (times := found(cause))]
    right = sum(is_right(one, causes, later_h) for one in firings)
    return Score(len(firings), right, len(large), len(waits), tuple(waits))
