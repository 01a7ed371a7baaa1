"""Sums over running pilots, for display."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping
from functools import lru_cache, reduce
from math import floor
from types import MappingProxyType

from gwmond.model.facts import FAILED_SILENT_S, Berth, Pilot, Size, Stalled, StalledJobs
from gwmond.model.pilots.pilot_facts import GPU_MODEL
from gwmond.model.poll.snapshot import GpuUse, Overhead, PilotGroup, PilotUnits
from gwmond.model.sizes import is_below_one_unit, units_of, units_of_pilot
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.need import need_at, own_need

_NOT_KNOWN = StalledJobs({}, whole=False)
_ROUNDING = 1e-9
"""Three thirds of a pilot are the whole pilot."""


def pilot_groups(
    pilots: Iterable[Pilot],
    unused: Container[str],
    memory_per_unit_mib: int,
    now: float,
    stalled: StalledJobs = _NOT_KNOWN,
    starting: Mapping[Berth, tuple[int, Size]] = MappingProxyType({}),
) -> dict[Berth, PilotGroup]:
    """Return the pilots of each entry and frontend group, in canonical units.

    ``unused`` has the names of those that have not run a job yet; ``now``: epoch seconds.
    ``starting``: how many pilots are about to register, and their size.

    Idle is what free slots offer to jobs of one unit, busy what running jobs take of the pilot (see
    ``need``) in whole units, never more than the rest; a pilot below one unit is either as a whole.
    A pilot whose validation failed has not registered: it is counted apart, until it has ended, and
    has no units.  Neither has one of unknown size.
    """
    groups: dict[Berth, list[Pilot]] = defaultdict(list, {berth: [] for berth in starting})
    for pilot in pilots:
        groups[Berth(pilot.entry, pilot.group)].append(pilot)
    return {
        berth: PilotGroup(
            busy=sum(1 for p in members if not p.failed and p.accepting and p.jobs),
            idle=sum(1 for p in members if not p.failed and p.accepting and not p.jobs),
            retiring=sum(1 for p in members if not p.failed and not p.accepting),
            unused=sum(1 for pilot in members if pilot.name in unused),
            units={
                resource: _add(
                    _units(p.size, p.free, p.jobs, resource, memory_per_unit_mib) for p in members
                )
                for resource in RESOURCES
            },
            failed=sum(1 for pilot in members if pilot.failed and not _has_ended(pilot, now)),
            overhead=_overhead(members, unused, memory_per_unit_mib)
            | _start(starting.get(berth), memory_per_unit_mib),
            stalled=_stalled(members, stalled),
            gpus=_gpus(members),
        )
        for berth, members in sorted(groups.items())
    }


def _stalled(pilots: Collection[Pilot], stalled: StalledJobs) -> Stalled | None:
    """Return the stalled jobs on some pilots; None where only schedds that were silent may tell."""
    found = [stalled.pilots[p.name] for p in pilots if p.name in stalled.pilots]
    if not found and not stalled.whole and any(p.jobs for p in pilots):
        return None
    return reduce(Stalled.plus, found, Stalled(""))


def _start(
    starting: tuple[int, Size] | None, memory_per_unit_mib: int
) -> dict[tuple[Resource, Overhead], int]:
    """Return the units of pilots that are about to register."""
    if starting is None:
        return {}
    pilots, size = starting
    units = {r: pilots * units_of_pilot(size, r, memory_per_unit_mib) for r in RESOURCES}
    return {(resource, "start"): number for resource, number in units.items() if number}


def _gpus(pilots: Iterable[Pilot]) -> dict[tuple[str, GpuUse], int]:
    gpus: Counter[tuple[str, GpuUse]] = Counter()
    for pilot in pilots:
        if pilot.size is not None and pilot.size.gpus and not pilot.failed:
            model = dict(pilot.shown).get(GPU_MODEL, "")
            busy = min(pilot.size.gpus, sum(job.gpus for job in pilot.jobs))
            gpus.update({(model, "busy"): busy, (model, "idle"): pilot.size.gpus - busy})
    return dict(gpus)


def _overhead(
    pilots: Iterable[Pilot], unused: Container[str], memory_per_unit_mib: int
) -> dict[tuple[Resource, Overhead], int]:
    """Return the units that are idle now by the rule of pilots' time (``life.segments``)."""
    units: Counter[tuple[Resource, Overhead]] = Counter()
    for pilot in pilots:
        if pilot.failed or pilot.size is None:
            continue
        why: Overhead = "beside_jobs" if pilot.jobs else "between_jobs"
        if not pilot.accepting:
            why = "draining" if pilot.draining else "retirement"
        elif pilot.name in unused and not pilot.jobs:
            why = "first_job"
        for resource in RESOURCES:
            units[resource, why] += _left(pilot.size, pilot.jobs, resource, memory_per_unit_mib)
    return dict(units)


@lru_cache(1 << 16)
def _left(size: Size, jobs: tuple[Size, ...], resource: Resource, memory_per_unit_mib: int) -> int:
    if not jobs:
        return units_of_pilot(size, resource, memory_per_unit_mib)
    taken = (sum(amounts) for amounts in zip(*jobs, strict=True))
    left = Size(*(max(0, all_ - part) for all_, part in zip(size, taken, strict=True)))
    return units_of(left, resource, memory_per_unit_mib)


def _has_ended(failed: Pilot, now: float) -> bool:
    """Return whether a pilot whose validation failed is gone; its ads stay (``memory.failed``)."""
    announced = failed.dies is not None and failed.dies <= now
    return announced or failed.last_heard + FAILED_SILENT_S < now


@lru_cache(1 << 16)  # many pilots are alike, and most do not change from one poll to the next
def _units(
    size: Size | None,
    free: tuple[Size, ...],
    jobs: tuple[Size, ...],
    resource: Resource,
    memory_per_unit_mib: int,
) -> PilotUnits:
    """Return the units of a pilot of which so much is free, and which runs such jobs."""
    if size is None:
        return PilotUnits(0, 0, 0)
    total = units_of_pilot(size, resource, memory_per_unit_mib)
    if resource == "cpu" and is_below_one_unit(size, memory_per_unit_mib):  # no part is a unit
        busy = total if jobs else 0
        return PilotUnits(total, busy, total - busy if free else 0)
    idle = min(total, sum(units_of(slot, resource, memory_per_unit_mib) for slot in free))
    taken = sum(
        (need_at(job, size, memory_per_unit_mib) or own_need(job, memory_per_unit_mib)).units(
            resource
        )
        for job in jobs
    )
    return PilotUnits(total, min(total - idle, floor(taken + _ROUNDING)), idle)


def _add(units: Iterable[PilotUnits]) -> PilotUnits:
    total = busy = idle = 0
    for unit in units:
        total, busy, idle = total + unit.total, busy + unit.busy, idle + unit.idle
    return PilotUnits(total, busy, idle)
