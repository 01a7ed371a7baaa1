from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.entries.evaluation import Capacity
from gwmond.model.facts import EntryKey, Limit, Size
from gwmond.model.units import Resource
from gwmond.sites.capacity import PeakWindow, capacities, limit, provisioned, share_pledge
from tests.build.facts import A2, BIG, GPU, A, B, pilot, request, totals

POOL = totals(request(A, max_pilots=100, running=10, total_running=30))


def known(
    *entries: EntryKey, resource: Resource = "cpu", unit_mib: int = 2000, **facts: Any
) -> dict[EntryKey, Capacity]:
    """The capacity of entries (A unless told) of which only these facts exist."""
    none: dict[str, Any] = {
        "used": {},
        "pledges": {},
        "site_pledges": {},
        "peaks": {},
        "totals": {},
    }
    some = entries or (A,)
    return capacities(some, resource, memory_per_unit_mib=unit_mib, **(none | facts))


@pytest.mark.parametrize(
    ("used", "pledge", "site_pledge", "peak", "expected"),
    [
        (80, Size(200, 400000), None, 160, Capacity(200, "pledge")),
        (80, None, Size(300, 600000), 160, Capacity(300, "pledge")),
        (80, Size(200, 400000), Size(300, 600000), 160, Capacity(200, "pledge")),
        (80, None, None, 160, Capacity(160, "peak")),
        (80, None, None, 0, Capacity(640, "limit")),
        (80, None, None, None, Capacity(640, "limit")),
        (250, Size(200, 400000), None, None, Capacity(250, "above_pledge")),
        (250, None, None, 160, Capacity(250, "peak")),
        (800, None, None, None, Capacity(800, "limit")),
        (80, Size(0, 0), None, 160, Capacity(80, "above_pledge")),
    ],
)
def test_the_first_evidence_that_exists_decides(
    used: int, pledge: Size | None, site_pledge: Size | None, peak: int | None, expected: Capacity
) -> None:
    """A pledge goes before a peak, a peak before a limit, and none below what is in use."""
    found = known(
        used={A: used},
        pledges={A: pledge} if pledge else {},
        site_pledges={"Alpha": site_pledge} if site_pledge else {},
        peaks={} if peak is None else {A: peak},
        totals=POOL,
    )
    assert found == {A: expected}


FRONTEND = Limit("GlideClientLimitTotalGlideinsPerEntry", "count=6, limit=6")
CURB = Limit("GlideClientCurbCurbTotalGlideinsPerGroup", "count=6, limit=6")
ENTRY = Limit(
    "GlideFactoryMonitorStatus_GlideFactoryLimitTotalGlideinsPerEntry", "count=6, limit=6"
)
WAITING = Limit("GlideFactoryMonitorStatus_GlideFactoryLimitIdleGlideinsPerEntry", "count=6")


@pytest.mark.parametrize("peak", [None, 48], ids=["first day", "a month later"])
@pytest.mark.parametrize(
    ("hit", "most", "expected"),
    [
        (FRONTEND, 20, Capacity(160, "limit")),
        (CURB, 20, Capacity(160, "limit")),
        (FRONTEND, None, Capacity(56, "limit")),
        (ENTRY, 6, Capacity(56, "limit")),
    ],
)
def test_what_runs_under_a_limit_is_no_capacity(
    peak: int | None, hit: Limit, most: int | None, expected: Capacity
) -> None:
    """6 pilots of 8 units run; with jobs that match the next limit above leaves a bottleneck."""

    def capacity(before: int | None, limits: tuple[Limit, ...]) -> Capacity:
        ad = request(A, max_pilots=most, running=6, total_running=6, limits=limits)
        peaks = {} if before is None else {A: before}
        return known(used={A: 48}, peaks=peaks, totals=totals(ad))[A]

    assert capacity(peak, (hit,)) == expected
    assert capacity(80, (hit,)) == Capacity(80, "peak")
    assert capacity(48, (WAITING,)) == Capacity(48, "peak")


def test_without_any_evidence_capacity_is_what_runs() -> None:
    """Where nothing tells, capacity is what is in use, and the evidence says none."""
    assert known(A, B, used={A: 8}) == {A: Capacity(8, "none"), B: Capacity(0, "none")}


@pytest.mark.parametrize(
    ("peaks", "expected"), [({A: 8}, Capacity(8, "peak")), ({}, Capacity(8, "limit"))]
)
def test_an_entry_under_a_limit_where_nothing_runs_has_room_for_a_pilot(
    peaks: dict[EntryKey, int], expected: Capacity
) -> None:
    """Nothing in use is zero units: any peak is more, and one pilot is added to them."""
    ad = request(A, max_pilots=None, running=0, total_running=0, limits=(FRONTEND,))
    assert known(peaks=peaks, totals=totals(ad)) == {A: expected}


@pytest.mark.parametrize(
    ("resource", "memory_per_unit_mib", "one"), [("cpu", 1000, 8), ("cpu", 2000, 4), ("gpu", 1, 2)]
)
def test_all_evidence_is_in_canonical_units_of_the_resource(
    resource: Resource, memory_per_unit_mib: int, one: int
) -> None:
    """A pilot of 8 cores, 8000 MiB and 2 GPUs: pledged, free by the limit, and next above it."""
    size = Size(8, 8000, 2)

    def capacity(
        limits: tuple[Limit, ...] = (), most: int | None = None, **pledged: Any
    ) -> Capacity:
        ad = request(A, max_pilots=most, running=1, total_running=1, limits=limits, pilot_size=size)
        facts = {"used": {A: one}, "totals": totals(ad), **pledged}
        return known(resource=resource, unit_mib=memory_per_unit_mib, **facts)[A]

    assert capacity(pledges={A: Size(24, 24000, 6)}) == Capacity(3 * one, "pledge")
    assert capacity(site_pledges={"Alpha": Size(24, 24000, 6)}) == Capacity(3 * one, "pledge")
    assert capacity(most=10) == Capacity(10 * one, "limit")
    assert capacity((FRONTEND,)) == Capacity(2 * one, "limit")
    assert capacity((FRONTEND,), most=10) == Capacity(10 * one, "limit")


@pytest.mark.parametrize(
    ("change", "cpu", "gpu"),
    [
        ({}, 640, 0),
        ({"pilot_size": GPU}, 640, 160),
        ({"total_running": 500}, 0, 0),
        ({"total_running": 5}, 800, 0),
        ({"max_pilots": None}, None, None),
        ({"total_running": None}, None, None),
        ({"running": None}, None, None),
        ({"pilot_size": None}, None, None),
    ],
)
def test_the_limit_leaves_out_other_frontends(
    change: dict[str, Any], cpu: int | None, gpu: int | None
) -> None:
    """Pilots of frontends that we do not see take from the limit; a part untold is no limit."""
    usual: dict[str, Any] = {"max_pilots": 100, "running": 10, "total_running": 30}
    ad = request(A, **usual | change)
    (found,) = totals(ad).values()
    assert limit(found, "cpu") == cpu
    assert limit(found, "gpu") == gpu
    assert limit(None, "cpu") is None


@pytest.mark.parametrize(
    ("pledge", "used", "peaks", "shares"),
    [
        (100, {A: 0, A2: 0}, {A: 30, A2: 10}, {A: 75, A2: 25}),
        (100, {A: 40, A2: 20}, {A: 30, A2: 10}, {A: 75, A2: 25}),
        (100, {A: 0, A2: 0}, {}, {A: 50, A2: 50}),
        (100, {A: 0, A2: 0}, {A: 1}, {A: 100, A2: 0}),
        (100, {A: 80, A2: 0}, {}, {A: 80, A2: 20}),
        (6, {A: 4, A2: 0}, {}, {A: 4, A2: 2}),
        (100, {A: 80, A2: 40}, {}, {A: 80, A2: 40}),
        (0, {A: 3, A2: 0}, {}, {A: 3, A2: 0}),
        (100, {}, {}, {}),
    ],
)
def test_a_site_shares_its_pledge_among_its_entries(
    pledge: int, used: dict[EntryKey, int], peaks: dict[EntryKey, int], shares: dict[EntryKey, int]
) -> None:
    """By peaks, else equally; what one entry uses above its part the others do not have."""
    assert share_pledge(pledge, used, peaks) == shares


def test_a_pledge_is_shared_the_same_in_any_order() -> None:
    """A unit that can not be halved goes to the same entry however entries are listed."""
    assert share_pledge(3, {A: 0, A2: 0}, {}) == share_pledge(3, {A2: 0, A: 0}, {}) == {A: 2, A2: 1}


@given(
    st.integers(0, 1000),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=6),
)
def test_a_pledge_is_neither_exceeded_nor_lost(pledge: int, entries: list[tuple[int, int]]) -> None:
    """Shares sum to the pledge, or to what is used, and none is below its use."""
    keys = [EntryKey("Alpha", str(i)) for i in range(len(entries))]
    used = {key: use for key, (use, _) in zip(keys, entries, strict=True)}
    peaks = {key: peak for key, (_, peak) in zip(keys, entries, strict=True)}
    shares = share_pledge(pledge, used, peaks)
    assert sum(shares.values()) == max(pledge, sum(used.values()))
    assert all(shares[key] >= used[key] for key in keys)


@pytest.mark.parametrize(
    ("entries", "facts", "site", "expected"),
    [
        ((A, A2, B), {"pledges": {A: Size(60, 120000)}, "peaks": {B: 7}}, 100, (60, 40)),
        ((A, A2), {"used": {A: 80}}, 100, (80, 20)),
        ((A, A2), {"pledges": {A: Size(60, 120000)}}, 50, (60, 0)),
    ],
)
def test_an_entry_with_a_pledge_of_its_own_leaves_the_rest_of_the_sites(
    entries: tuple[EntryKey, ...], facts: dict[str, Any], site: int, expected: tuple[int, int]
) -> None:
    """The site's pledge less the entry's is what the site's other entries share."""
    found = known(*entries, site_pledges={"Alpha": Size(site, 2000 * site)}, **facts)
    assert found.pop(B, Capacity(7, "peak")) == Capacity(7, "peak")
    shared = dict(zip((A, A2), expected, strict=True))
    assert found == {key: Capacity(units, "pledge") for key, units in shared.items()}


def test_pilots_below_one_unit_are_capacity_and_use() -> None:
    """1000 pilots of 1 core and 1900 MiB: by limit, use and pledge a unit each."""
    small = Size(1, 1900)
    (ad,) = totals(
        request(A, max_pilots=1000, running=0, total_running=0, pilot_size=small)
    ).values()
    assert limit(ad, "cpu") == 1000
    assert provisioned([pilot(size=small), pilot(size=small)], "cpu") == {A: 2}
    assert known(pledges={A: small}) == {A: Capacity(1, "pledge")}


def test_use_is_counted_by_entry_in_canonical_units() -> None:
    """Pilots count with their canonical size: memory can be what limits a pilot."""
    pilots = [pilot(A), pilot(A, size=Size(8, 4000)), pilot(B, size=GPU)]
    assert provisioned(pilots, "cpu") == {A: 10, B: 8}
    assert provisioned(pilots, "gpu") == {A: 0, B: 2}
    assert provisioned([pilot(size=BIG)], "cpu", 4000) == {A: 4}
    assert provisioned([pilot()._replace(size=None), pilot()], "cpu") == {A: 8}


def peak_window(rows: Iterable[tuple[int, int]]) -> PeakWindow:
    """A window of a day, with what was provisioned in these hours."""
    window = PeakWindow(hours=24)
    for hour, units in rows:
        window = window.add(hour, units)
    return window


def test_the_peak_leaves_with_its_hour() -> None:
    """A peak counts for the window's hours, and then the next highest since."""
    window = peak_window([(100, 50), (101, 80), (102, 60), (110, 70), (111, 10)])
    assert window.value(111) == 80
    assert window.value(124) == 80
    assert window.value(125) == 70
    assert window.value(134) == 10
    assert window.value(135) is None
    assert window.prune(125).buckets == ((110, 70), (111, 10))


def test_the_window_is_thirty_days_unless_told() -> None:
    """A peak counts for 720 hours by default."""
    assert PeakWindow().add(0, 5).value(719) == 5
    assert PeakWindow().add(0, 5).value(720) is None


def test_zero_is_no_peak() -> None:
    """An entry at which nothing ever ran has no peak, rather than one of zero."""
    assert PeakWindow().add(5, 0).value(5) is None
    assert PeakWindow().add(5, 1).value(5) == 1


hours = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=40)


@given(hours, st.integers(0, 80))
def test_suffix_maxima_are_enough(rows: list[tuple[int, int]], now: int) -> None:
    """The window gives the same as remembering every hour, in whatever order they come."""
    window = peak_window(rows)
    inside = [units for hour, units in rows if now - 24 < hour and units > 0]
    assert window.value(now) == (max(inside) if inside else None)
    assert window.prune(now).value(now) == window.value(now)
    assert peak_window(reversed(rows)) == window
    assert peak_window(window.buckets) == window
    kept = window.buckets
    assert list(kept) == sorted(kept)
    assert [u for _, u in kept] == sorted({u for _, u in kept}, reverse=True)
