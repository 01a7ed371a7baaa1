"""Metrics of pilots now: how many in which state, and how their units are used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from operator import attrgetter

from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.model.facts import EntryRequest
from gwmond.model.poll.snapshot import Snapshot

_PLACE = ("site", "entry", "group")
_WAITING = {
    "submitted": "monitor.status_wait",
    "pending": "monitor.pending",
    "held": "monitor.status_held",
}


def _pilots(s: Snapshot) -> Iterator[Sample]:
    for (key, group), pilots in s.pilots.items():
        for state in ("busy", "idle", "retiring", "failed"):
            yield Sample((state, *key, group), getattr(pilots, state))
    for state, field in _WAITING.items():
        yield from (Sample((state, *x.labels), x.value) for x in requested(field)(s))


def requested(field: str) -> Callable[[Snapshot], Iterator[Sample]]:
    """Return the samples of a field of requests, summed over the factories of an entry."""
    number_of: Callable[[EntryRequest], int | None] = attrgetter(field)

    def samples(s: Snapshot) -> Iterator[Sample]:
        sums: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        for request in s.requests:
            if (number := number_of(request)) is not None:
                sums[*request.entry, request.group] += number
        return (Sample(place, number) for place, number in sums.items())

    return samples


def _units(s: Snapshot) -> Iterator[Sample]:
    for (key, group), pilots in s.pilots.items():
        for resource, units in pilots.units.items():
            if resource == "cpu" or units.total > 0:
                for use in ("busy", "idle", "remainder"):
                    yield Sample((resource, use, *key, group), getattr(units, use))


TOPIC = "Pilots"
FAMILIES = (
    Family(
        "gwmond_pilots",
        "Pilots by state, each pilot once. Registered in the collector: busy (runs jobs), idle "
        "(runs none), retiring (takes no more jobs). failed: the validation failed, and the pilot "
        "says so in the collector until its end. Not there yet, by the factory's count: submitted "
        "(the site has not reported the pilot), pending (in the site's queue), held. "
        "Unit: pilots." + POLLED,
        ("state", *_PLACE),
        _pilots,
    ),
    Family(
        "gwmond_pilots_unused",
        "Registered pilots that have not run a job yet. Unit: pilots." + POLLED,
        _PLACE,
        lambda s: (
            Sample((*key, group), pilot_units.unused)
            for (key, group), pilot_units in s.pilots.items()
        ),
    ),
    Family(
        "gwmond_pilots_requested",
        "Idle pilots that the frontend group requests of the entry. Unit: pilots." + POLLED,
        _PLACE,
        requested("monitor.asked_idle"),
    ),
    Family(
        "gwmond_pilots_requested_max",
        "The most pilots that the frontend group wants to run at the entry. Unit: pilots." + POLLED,
        _PLACE,
        requested("monitor.asked_max"),
    ),
    Family(
        "gwmond_pilot_canonical_units",
        "Registered pilots' units by use: busy (what jobs take: each the pilot's units divided by "
        "how many such jobs fit), idle (a job of one unit would fit), remainder (neither). Unit: "
        "canonical units." + POLLED,
        ("resource", "use", *_PLACE),
        _units,
    ),
)
