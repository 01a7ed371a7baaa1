"""The capacity of an entry: how many canonical units it could run for us, and the evidence.

Units: whole canonical units; hours are hours since the epoch.

Source of the rules: design page, section 4.  The capacity of an entry is the first that exists of

1. ``pledge``: the configured pledge of the entry or its site (with one core, at least one unit, as
   a pilot);
2. ``peak``: the most units seen running at once in a trailing window (a peak of zero only means
   that nothing was tried, and does not count);
3. ``limit``: the pilots that the factory would run there, less those of other frontends, times
   the pilots' size.

While an entry is throttled (``throttled``: a limit or curb is hit, for instance), what runs says
what was asked for, not what the site has: it raises no peak, and a peak that is not above what runs
does not count (for a while not even afterwards: ``known_entries``).  Then the factory's limit is
next; where as much runs already, one pilot more is the least that the room for us can be.  What
runs at a bottleneck raises no peak either, whatever its reason: something else than the site keeps
pilots away.

Invariant: the capacity is never below what is provisioned now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gwmond.model.entries.evaluation import Capacity
from gwmond.model.facts import EntryKey, EntryTotals, Pilot, Size
from gwmond.model.shares import apportion
from gwmond.model.sizes import units_of_pilot
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource

DEFAULT_WINDOW_HOURS = 30 * 24


class PeakWindow(NamedTuple):
    """The most units provisioned in each hour of a trailing window; only suffix maxima stay.

    ``buckets`` are (hour, units).  Invariant: hours rise and units fall strictly, since an hour is
    of no use once a later one had as many.  Memory is therefore small, and at most one bucket an
    hour.  Adding is commutative, so that what a ledger kept can be added in any order.
    """

    hours: int = DEFAULT_WINDOW_HOURS
    buckets: tuple[tuple[int, int], ...] = ()

    def add(self, hour: int, units: int) -> PeakWindow:
        """Return the window after ``units`` were provisioned during ``hour``."""
        if units <= 0 or any(h >= hour and u >= units for h, u in self.buckets):
            return self
        before = [(h, u) for h, u in self.buckets if h < hour and u > units]
        after = [(h, u) for h, u in self.buckets if h > hour]
        return self._replace(buckets=(*before, (hour, units), *after))

    def prune(self, now_hour: int) -> PeakWindow:
        """Return the window without the hours that have left it."""
        return self._replace(buckets=tuple(b for b in self.buckets if b[0] > now_hour - self.hours))

    def value(self, now_hour: int) -> int | None:
        """Return the peak of the ``hours`` hours that end with ``now_hour``; None if none ran."""
        return next((units for hour, units in self.buckets if hour > now_hour - self.hours), None)


def provisioned(
    pilots: Iterable[Pilot], resource: Resource, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> dict[EntryKey, int]:
    """Return the canonical units of the running pilots of each entry that has any.

    A pilot without a known size counts as zero: only what can be seen is provisioned.
    """
    used: defaultdict[EntryKey, int] = defaultdict(int)
    for pilot in pilots:
        used[pilot.entry] += (
            0 if pilot.size is None else units_of_pilot(pilot.size, resource, memory_per_unit_mib)
        )
    return dict(used)


def limit(
    totals: EntryTotals | None, resource: Resource, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> int | None:
    """Return the units that the factory's limit leaves to us; None if a part is not known."""
    if (
        totals is None
        or totals.max_pilots is None
        or totals.others_running is None
        or totals.pilot_size is None
    ):
        return None
    pilots = max(totals.max_pilots - totals.others_running, 0)
    return pilots * units_of_pilot(totals.pilot_size, resource, memory_per_unit_mib)


def throttled(totals: EntryTotals | None) -> bool:
    """Return whether anything but the site keeps an entry from more pilots that take jobs.

    That is a limit or curb that is hit (not the factory's limit of waiting pilots: these wait for
    the site; and none while pilots have waited there for long: the site has no room for those
    either), pilots that come to nothing, or a request that is not answered.
    """
    if totals is None:
        return False
    names = (limit.name.lower() for limit in totals.limits)
    hit = any("factorylimitidle" not in name for name in names)
    return (hit and not totals.saturated) or totals.barren or totals.unsubmitted


def beyond(
    totals: EntryTotals, used: int, resource: Resource, memory_per_unit_mib: int
) -> int | None:
    """Return the units that the next limit above leaves to a throttled entry; None: not known."""
    if totals.pilot_size is None:
        return None
    more = used + units_of_pilot(totals.pilot_size, resource, memory_per_unit_mib)
    most = limit(totals, resource, memory_per_unit_mib)
    return more if most is None or most <= used else most


def share_pledge(
    pledge: int, used: Mapping[EntryKey, int], peaks: Mapping[EntryKey, int]
) -> dict[EntryKey, int]:
    """Divide a site's pledge among its entries, the keys of ``used``.

    Each entry's part is in proportion to its peak, equal where no entry has one.  What an entry
    uses above its part comes off the room of the others, for the pledge is the site's.

    Invariants: none gets less than it uses; the sum is the pledge, or what is used if that is
    more; without an entry above its part each gets exactly its part.
    """
    keys = sorted(used)
    parts = apportion(pledge, [peaks.get(key, 0) for key in keys])
    room = [max(part - used[key], 0) for key, part in zip(keys, parts, strict=True)]
    spare = max(pledge - sum(used.values()), 0)
    return {key: used[key] + more for key, more in zip(keys, apportion(spare, room), strict=True)}


def capacities(
    entries: Iterable[EntryKey],
    resource: Resource,
    *,
    used: Mapping[EntryKey, int],
    pledges: Mapping[EntryKey, Size],
    site_pledges: Mapping[str, Size],
    peaks: Mapping[EntryKey, int],
    totals: Mapping[EntryKey, EntryTotals],
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
) -> dict[EntryKey, Capacity]:
    """Return the capacity of each entry.

    An entry's own pledge goes before its site's; what it pledges is taken off the site's pledge,
    and the rest is divided among the site's other entries.
    """
    entries = sorted(set(entries))
    hit = {key for key in entries if throttled(totals.get(key))}
    peaks = {key: peak for key, peak in peaks.items() if key not in hit or peak > used.get(key, 0)}
    pledged = {
        key: units_of_pilot(pledges[key], resource, memory_per_unit_mib)
        for key in entries
        if key in pledges
    }
    above = {key for key, units in pledged.items() if units < used.get(key, 0)}
    for site, size in site_pledges.items():
        own = [key for key in entries if key.site == site]
        others = {key: used.get(key, 0) for key in own if key not in pledges}
        promised = sum(pledged[key] for key in own if key in pledges)
        rest = max(units_of_pilot(size, resource, memory_per_unit_mib) - promised, 0)
        pledged |= share_pledge(rest, others, peaks)
        above |= set(others) if sum(others.values()) > rest else set()
    return {
        key: _first(
            used.get(key, 0),
            pledged.get(key),
            peaks.get(key),
            beyond(totals[key], used.get(key, 0), resource, memory_per_unit_mib)
            if key in hit
            else limit(totals.get(key), resource, memory_per_unit_mib),
            above=key in above,
        )
        for key in entries
    }


def _first(
    used: int, pledge: int | None, peak: int | None, most: int | None, *, above: bool
) -> Capacity:
    if pledge is not None:
        return Capacity(max(pledge, used), "above_pledge" if above and used else "pledge")
    if peak:
        return Capacity(max(peak, used), "peak")
    if most is not None:
        return Capacity(max(most, used), "limit")
    return Capacity(used, "none")
