"""The totals of an entry from all its glideresource ads.

Units: pilots are counted, jobs are counted, ages are seconds.

There is one ad for each frontend group at each factory's entry (facts page on GlideinWMS, section
3).  How they are combined:

- numbers of the *group* (pending, running, held, requested, jobs, slots) are added;
- numbers of the *entry* (``whole``) are the factory's, and every group's ad
  carries the same: they are taken once from each factory, from the ad heard last, and added over
  factories.  Several frontends do not double a capacity;
- ``jobs_matching`` counts a job once for each factory's entry: for one group the largest is taken,
  and groups are added.  (Proportional and unique counts are divided among entries, and add up.)

Absent is not zero: if one live ad lacks its part, the sum is absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from gwmond.model.facts import EntryKey, EntryRequest, EntryTotals
from gwmond.model.units import known_sum

T = TypeVar("T")


def combine(requests: Iterable[EntryRequest]) -> dict[EntryKey, EntryTotals]:
    """Return the totals of each entry that has an ad."""
    by_entry: defaultdict[EntryKey, list[EntryRequest]] = defaultdict(list)
    for request in requests:
        by_entry[request.entry].append(request)
    return {key: _combine(ads) for key, ads in sorted(by_entry.items())}


def _combine(ads: list[EntryRequest]) -> EntryTotals:
    """Combine the ads (at least one) of one entry.

    The entry is down if every ad says so: the downtime of one frontend, or at one of several
    factories, leaves the entry open.  Its information is as old as the youngest, so that "too
    old" holds for all of the entry.
    """
    ads = sorted(ads, key=lambda ad: (-ad.last_heard, ad.factory, ad.group))
    factories = sorted({ad.factory for ad in ads})

    def added(value: Callable[[EntryRequest], int | None]) -> int | None:
        return known_sum(value(ad) for ad in ads)

    def once(value: Callable[[EntryRequest], int | None]) -> int | None:
        return known_sum(
            _freshest((ad for ad in ads if ad.factory == name), value) for name in factories
        )

    running = added(lambda ad: ad.monitor.status_running)
    total_running = once(lambda ad: ad.whole.total.status_running)
    others = None
    if running is not None and total_running is not None:
        others = max(total_running - running, 0)
    return EntryTotals(
        groups=tuple(sorted({ad.group for ad in ads})),
        down=all(ad.down for ad in ads),
        pending=added(lambda ad: ad.monitor.pending),
        held=added(lambda ad: ad.monitor.status_held),
        submitted_wait=added(lambda ad: ad.monitor.status_wait),
        requested_idle=added(lambda ad: ad.monitor.asked_idle),
        total_pending=once(lambda ad: ad.whole.total.pending),
        total_running=total_running,
        others_running=others,
        max_pilots=once(lambda ad: ad.whole.max_pilots),
        limits=tuple(sorted({limit for ad in ads for limit in ad.limits})),
        info_age_s=min(
            (age for ad in ads if (age := ad.monitor.client_info_age) is not None), default=None
        ),
        jobs_matching=_matching(ads),
        jobs_proportional=added(lambda ad: ad.jobs_proportional),
        jobs_unique=added(lambda ad: ad.jobs_unique),
        jobs_effective=added(lambda ad: ad.jobs_effective),
        slots_idle=added(lambda ad: ad.slots_idle),
        pilot_size=_freshest(ads, lambda ad: ad.pilot_size),
        running=running,
    )


def _freshest(ads: Iterable[EntryRequest], value: Callable[[EntryRequest], T | None]) -> T | None:
    """Return the first value there is; the ads come freshest first."""
    return next((first for ad in ads if (first := value(ad)) is not None), None)


def _matching(ads: Iterable[EntryRequest]) -> int | None:
    by_group: dict[str, int | None] = {}
    for ad in ads:
        seen = by_group.setdefault(ad.group, ad.jobs_matching)
        if seen is not None and ad.jobs_matching is not None:
            by_group[ad.group] = max(seen, ad.jobs_matching)
        else:
            by_group[ad.group] = None
    return known_sum(by_group.values())
