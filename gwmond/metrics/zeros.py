"""Counters that exist from the first poll on: 0 until something is counted.

Prometheus's ``increase()`` ignores the first value of a series, so a series has to exist before its
first increment.  Every counter of an entry (or of a frontend group at an entry) exists as soon as
the entry (or group) is known.  The ledger has no rows of such zeros, and OpenMetrics no
``_created``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from gwmond.metrics.family import Sample
from gwmond.model.facts import EntryKey, EntryRequest
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.units import RESOURCES, Resource

Place: TypeAlias = tuple[str, str, str]
"""Site, entry and frontend group."""


def with_zeros(samples: Iterable[Sample], every: Iterable[tuple[str, ...]]) -> Iterator[Sample]:
    """Yield the samples, then a zero for all labels in ``every`` that have none."""
    counted = set()
    for sample in samples:
        counted.add(sample.labels)
        yield sample
    for labels in every:
        if labels not in counted:
            yield Sample(labels, 0.0)


def entries(s: Snapshot) -> Iterator[tuple[Resource, EntryKey]]:
    """Yield the entries whose time is accounted; for GPUs those that have any.

    None without a ledger: nothing is counted then.
    """
    if s.ledger.last_commit is not None:
        for (key, resource), row in s.evaluation.rows.items():
            if resource == "cpu" or row.capacity.units > 0:
                yield resource, key


def places(s: Snapshot) -> Mapping[Place, frozenset[Resource]]:
    """Return where pilots are, were counted, or are requested, and which resources they have.

    An entry where a group requests nothing has no pilots of that group.  CPUs are always among the
    resources.  Without a ledger there are no places.
    """
    if s.pilot_time is None:
        return {}
    cpu: frozenset[Resource] = frozenset({"cpu"})
    by_place: dict[Place, frozenset[Resource]] = {}
    for request in s.requests:
        if _may_have_pilots(request):
            by_place[*request.entry, request.group] = cpu
    for (key, group), pilots in s.pilots.items():
        have = {r for r in RESOURCES if r in pilots.units and pilots.units[r].total > 0}
        by_place[*key, group] = cpu | have
    for count in s.pilot_time.counted:
        by_place.setdefault((count.site, count.entry, count.group), cpu)
    series: Iterable[tuple[Resource, Place]] = (
        *((resource, (*key, group)) for resource, key, group in s.pilot_time.unsettled),
        *(
            (pilot_series.resource, (pilot_series.site, pilot_series.entry, pilot_series.group))
            for pilot_series in s.pilot_time.shown
        ),
    )
    for resource, place in series:
        by_place[place] = by_place.get(place, cpu) | {resource}
    return by_place


def _may_have_pilots(request: EntryRequest) -> bool:
    """Return whether pilots are requested or exist; true if that is not known."""
    now = request.monitor
    numbers = (now.asked_idle, now.status_wait, now.pending, now.status_running, now.status_held)
    return any(number != 0 for number in numbers)
