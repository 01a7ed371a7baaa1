"""Metrics of pilots now: how many in which state, and how their units are used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.snapshot import Snapshot


def _pilots(s: Snapshot) -> Iterator[Sample]:
    for (key, group), of in s.pilots.items():
        yield Sample(("registered", key.site, key.entry, group), of.registered)
        yield Sample(("retiring", key.site, key.entry, group), of.retiring)
        yield Sample(("unused", key.site, key.entry, group), of.unused)
        yield Sample(("failed", key.site, key.entry, group), of.failed)
    sums: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for request in s.requests:
        for state, count in (
            ("pending", request.pending),
            ("running", request.running),
            ("held", request.held),
            ("submitted", request.submitted_wait),
            ("requested", request.requested_idle),
            ("requested_max", request.requested_max),
        ):
            if count is not None:
                sums[state, request.entry.site, request.entry.entry, request.group] += count
    yield from (Sample(labels, count) for labels, count in sums.items())


def _units(s: Snapshot) -> Iterator[Sample]:
    for (key, group), of in s.pilots.items():
        for resource, units in of.units.items():
            if resource == "gpu" and units.total == 0:
                continue
            for use, value in (
                ("total", units.total),
                ("busy", units.busy),
                ("idle", units.idle),
                ("remainder", units.remainder),
            ):
                yield Sample((resource, use, key.site, key.entry, group), value)


FAMILIES = (
    Family(
        "gwmond_pilots",
        "gauge",
        "",
        "Pilots by state: registered (in the collector; retiring of them take no more jobs, unused "
        "of them have not run a job yet); failed (their validation did, and they say so in the "
        "collector until they end); "
        "submitted (not yet known to the site), pending (in its queue), running and held by the "
        "factory's count; requested (idle pilots that the frontend asks for), requested_max. "
        "Unit: pilots." + POLLED,
        ("state", "site", "entry", "group"),
        _pilots,
    ),
    Family(
        "gwmond_pilot_canonical_units",
        "gauge",
        "",
        "Registered pilots' units: total, busy (filled by jobs), idle (a job of one unit would "
        "fit), remainder (neither). Unit: canonical units." + POLLED,
        ("resource", "use", "site", "entry", "group"),
        _units,
    ),
)
