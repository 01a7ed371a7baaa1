"""The model's frontends: count the jobs that match each entry, and ask for pilots.

As GlideinWMS does, they count cores only (no memory, no GPUs), and take the free cores of pilots
that retire for available.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from tests.recordings import scenario
from tests.recordings.kinds import Kind
from tests.recordings.world import GROUPS, Entry

if TYPE_CHECKING:
    from tests.recordings.simulation import Pilot, Simulation

ATTENUATION = 3


@dataclass(slots=True)
class Request:
    """What a group counts at an entry, and how many waiting pilots it wants there."""

    matching: int = 0
    proportional: float = 0.0
    unique: int = 0
    effective: int = 0
    slots_idle: int = 0
    slots_running: int = 0
    idle: int = 0
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    curbs: dict[str, tuple[int, int]] = field(default_factory=dict)


class Frontends:
    """All groups of all frontends; ``requests`` are the last ones, ``jobs_idle`` by frontend."""

    def __init__(self, entries: tuple[Entry, ...], kinds: tuple[Kind, ...]) -> None:
        self._entries, self._kinds = entries, kinds
        self._entries_of = [[e for e in entries if kind.runs_at(e)] for kind in kinds]
        self.requests = {(e, g): Request() for e in entries for g in e.groups}
        self.jobs_idle: dict[str, int] = {}

    def ask(self, pool: Simulation) -> None:
        """Count, and decide what to ask for."""
        self.requests = {at: Request() for at in self.requests}
        wanted = self._count(pool)
        running = {g: sum(p.group == g for p in pool.all_pilots()) for g in GROUPS}
        for (entry, group), request in self.requests.items():
            pilots = [p for p in pool.pilots[entry] if p.group == group]
            self._decide(pool, entry, group, request, pilots, wanted[entry, group], running[group])

    def _count(self, pool: Simulation) -> dict[tuple[Entry, str], float]:
        """Count jobs; return the cores that they ask of each entry, in proportion."""
        cores: defaultdict[tuple[Entry, str], float] = defaultdict(float)
        sums: defaultdict[str, int] = defaultdict(int)
        for kind, idle, entries in zip(self._kinds, pool.idle, self._entries_of, strict=True):
            jobs = int(idle)
            sums[kind.group.partition(".")[0]] += jobs
            if jobs == 0:
                continue
            hour = pool.hour
            seen = [
                e
                for e in entries
                if (e, kind.group) in self.requests
                and not scenario.any_holds(scenario.DOWN, e, hour)
                and not scenario.any_holds(scenario.MISCONFIGURED, e, hour)
            ]
            for entry in seen:
                request = self.requests[entry, kind.group]
                request.matching += jobs
                request.proportional += jobs / len(seen)
                request.unique += jobs if len(seen) == 1 else 0
                cores[entry, kind.group] += jobs * kind.cores / len(seen)
        self.jobs_idle = dict(sums)
        return cores

    def _decide(
        self,
        pool: Simulation,
        entry: Entry,
        group: str,
        request: Request,
        pilots: list[Pilot],
        cores: float,
        in_group: int,
    ) -> None:
        free = sum(p.cores for p in pilots)
        request.slots_idle = sum(p.cores > 0 for p in pilots)
        request.slots_running = sum(len(p.jobs) for p in pilots)
        missing = max(0.0, cores - free)
        request.effective = ceil(request.proportional * missing / cores) if missing else 0
        if missing <= 0 or scenario.any_holds(scenario.DOWN, entry, pool.hour):
            return
        most = 2 + entry.max_pilots // 10
        request.idle = min(most, ceil(missing / entry.cores / ATTENUATION))
        queue = pool.queues[entry, group]
        count = len(pilots) + len(queue.waiting) + len(queue.held)
        limit = scenario.PER_ENTRY.get(group, {}).get(entry.site)
        if limit is not None and count >= limit:
            request.limits["TotalGlideinsPerEntry"] = count, limit
        total = scenario.PER_GROUP.get(group)
        if total is not None and in_group >= total:
            request.limits["TotalGlideinsPerGroup"] = in_group, total
        if request.limits:
            request.idle = 0
        curb = scenario.CURB.get(group)
        if curb is not None and count > curb:
            request.curbs["TotalGlideinsPerEntry"] = count, curb
            request.idle = ceil(request.idle / 2)
