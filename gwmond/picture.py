"""From one round of answers, and what was seen before, to the facts that are accounted.

Decides what is too old to be used, what a failed source leaves unknown, and what cannot be trusted:
an entry with fewer pilots than before, while a collector is silent or has just been restarted.
No I/O and no clock here either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gwmond.accounting.capacity import Capacity, PeakWindow, capacities, in_use
from gwmond.accounting.entries import EntryTotals, combine
from gwmond.accounting.pending import PendingHistory, Waiting, measured
from gwmond.accounting.site_time import Facts
from gwmond.config import Config, Pledge
from gwmond.facts import DemandGroup, EntryKey, EntryRequest, JobCount, Pilot, Size, Template
from gwmond.sources.frontend import FrontendJobs
from gwmond.sources.gather import DEMAND, REQUESTS, SLOTS, STARTDS, Answer, Round, merge_pilots
from gwmond.units import RESOURCES, Resource

HOUR_S = 3600


class Memory(NamedTuple):
    """What is remembered of entries between polls; the ledger keeps it between lives."""

    first_seen: Mapping[EntryKey, float]
    in_use: Mapping[tuple[EntryKey, Resource], int]
    peaks: Mapping[tuple[EntryKey, Resource], PeakWindow]
    waiting: Mapping[EntryKey, PendingHistory]


EMPTY = Memory({}, {}, {}, {})


class Picture(NamedTuple):
    """All facts of one moment, except verdicts, and the memory after it.

    ``unused`` names pilots which have not run a job yet.
    """

    pilots: tuple[Pilot, ...]
    pilots_known: bool
    unused: frozenset[str]
    doubtful: Mapping[EntryKey, str]
    requests: tuple[EntryRequest, ...]
    totals: Mapping[EntryKey, EntryTotals] | None
    waiting: Mapping[EntryKey, Waiting]
    capacities: Mapping[tuple[EntryKey, Resource], Capacity]
    groups: tuple[DemandGroup, ...]
    demand_complete: bool
    templates: tuple[Template, ...]
    jobs: tuple[JobCount, ...]
    frontends: tuple[FrontendJobs, ...]
    entries: frozenset[EntryKey]
    memory: Memory

    def facts(self, verdicts: Mapping[tuple[str, str], Any]) -> Facts:
        """Return what the evaluation works on."""
        return Facts(
            entries=self.entries,
            pilots=self.pilots if self.pilots_known else None,
            doubtful=self.doubtful,
            totals=self.totals,
            waiting=self.waiting,
            capacities=self.capacities,
            groups=self.groups,
            demand_complete=self.demand_complete,
            templates=self.templates,
            verdicts=verdicts,
        )


class _Fresh:
    """Answers of a round that are young enough, by kind."""

    def __init__(self, found: Round, config: Config, now_mono: float) -> None:
        self._round = found
        self._now = now_mono
        self._limit = 2 * config.poll.interval
        self._busy = config.poll.busy_factor
        self._skipped = {(s.source, s.kind) for s in found.statuses if s.skipped}

    def usable(self, source: str, kind: str) -> Answer | None:
        """Return an answer unless it is older than two polls (of that source)."""
        answer = self._round.answers.get((source, kind))
        factor = self._busy if (source, kind) in self._skipped else 1
        if answer is None or self._now - answer.at_s > self._limit * factor:
            return None
        return answer

    def all(self, kind: str) -> tuple[list[Any], bool]:
        """Return the values of all usable answers, and whether no source of the kind is stale."""
        sources = sorted({s.source for s in self._round.statuses if s.kind == kind})
        found = [self.usable(source, kind) for source in sources]
        values = [answer.value for answer in found if answer is not None]
        return values, bool(sources) and len(values) == len(sources)


def take(found: Round, memory: Memory, config: Config, now: float, now_mono: float) -> Picture:
    """Make the picture of ``now`` (epoch seconds by the pool's clock)."""
    fresh = _Fresh(found, config, now_mono)
    q = config.canonical.memory_mib
    slots, slots_whole = fresh.all(SLOTS)
    startds, _ = fresh.all(STARTDS)
    pilots = _pilots(slots, startds)
    requests, totals = _requests(fresh)
    used = {resource: in_use(pilots, resource, q) for resource in RESOURCES}
    seen = {p.entry for p in pilots} | set(totals or ())
    hour = int(now // HOUR_S)
    window_hours = max(1, round(config.site.peak_window / HOUR_S))
    remembered = {
        key for (key, _), window in memory.peaks.items() if window.value(hour) is not None
    }
    entries = frozenset(_with_pledged(seen | remembered, config))
    doubtful = _doubtful(fresh, slots_whole, used, memory, entries, config, now)
    trusted = [key for key in entries if key not in doubtful] if slots else []
    peaks = dict(memory.peaks)
    last_use = dict(memory.in_use)
    for key in trusted:
        for resource in RESOURCES:
            units = used[resource].get(key, 0)
            window = peaks.get((key, resource), PeakWindow(window_hours))
            peaks[key, resource] = window.add(hour, units).prune(hour)
            last_use[key, resource] = units
    after = Memory(
        first_seen={key: memory.first_seen.get(key, now) for key in entries},
        in_use={at: units for at, units in last_use.items() if at[0] in entries},
        peaks={at: w for at, w in peaks.items() if at[0] in entries and w.buckets},
        waiting=_histories(memory.waiting, totals, config, now),
    )
    groups, complete = _demand(fresh, found, config)
    return Picture(
        pilots=pilots,
        pilots_known=bool(slots),
        unused=frozenset().union(*(answer.unused for answer in startds)),
        doubtful=doubtful,
        requests=requests,
        totals=totals,
        waiting=_waiting(fresh, after.waiting, totals, pilots, config, now),
        capacities=_capacities(entries, used, after, totals or {}, config, now),
        groups=groups,
        demand_complete=complete,
        templates=tuple(t for key, t in sorted(found.templates.items()) if key in entries),
        jobs=_jobs(fresh, found),
        frontends=tuple(f for answer in fresh.all("frontendmonitor")[0] for f in answer),
        entries=entries,
        memory=after,
    )


def _pilots(slots: Sequence[Any], startds: Sequence[Any]) -> tuple[Pilot, ...]:
    """Return each pilot once: by its slots, else by its startd's own ad."""
    if not slots:
        return ()
    pilots = merge_pilots(answer.pilots for answer in slots)
    known = {pilot.name for pilot in pilots}
    others = merge_pilots(answer.pilots for answer in startds)
    return (*pilots, *(pilot for pilot in others if pilot.name not in known))


def _requests(
    fresh: _Fresh,
) -> tuple[tuple[EntryRequest, ...], Mapping[EntryKey, EntryTotals] | None]:
    """Return each glideresource ad once, and the totals of entries; None when all are stale."""
    answers, _ = fresh.all(REQUESTS)
    merged: dict[tuple[EntryKey, str, str], EntryRequest] = {}
    for answer in answers:
        for request in answer.requests:
            of = request.entry, request.factory, request.group
            if of not in merged or merged[of].last_heard < request.last_heard:
                merged[of] = request
    requests = tuple(merged[of] for of in sorted(merged))
    if not answers:
        return (), None
    totals = combine(requests)
    for answer in fresh.all("factoryclient")[0]:
        ages: dict[str, list[Any]] = {}
        for client in answer:
            ages.setdefault(client.entry, []).append(client)
        for key, total in totals.items():
            if clients := ages.get(key.entry):
                info = [c.info_age_s for c in clients if c.info_age_s is not None]
                limits = {*total.limits, *(limit for c in clients for limit in c.limits)}
                totals[key] = total._replace(
                    info_age_s=min(info, default=total.info_age_s),
                    limits=tuple(sorted(limits)),
                )
    return requests, totals


def _with_pledged(entries: set[EntryKey], config: Config) -> set[EntryKey]:
    """Return the entries, and one for each pledged site of which nothing is seen."""
    known = {key.site for key in entries}
    pledged = {p.site for p in config.site.pledge if p.site}
    return entries | {EntryKey(site, site) for site in pledged - known}


def _doubtful(
    fresh: _Fresh,
    whole: bool,
    used: Mapping[Resource, Mapping[EntryKey, int]],
    memory: Memory,
    entries: Iterable[EntryKey],
    config: Config,
    now: float,
) -> dict[EntryKey, str]:
    """Return entries whose pilots are not surely all seen, with a reason.

    A collector that was restarted learns of pilots as they report; one that is silent hides its
    own.  An entry that shows as much as when last trusted is not doubted.
    """
    infos = [info for info in fresh.all("collector")[0] if info.started is not None]
    young = any(now - info.started < config.site.collector_distrust for info in infos)
    if whole and not young:
        return {}
    reason = "young_collector" if whole else "collector"
    doubtful = {}
    for key in entries:
        before = [memory.in_use.get((key, resource)) for resource in RESOURCES]
        if before == [None, None]:
            if not whole:
                doubtful[key] = reason
            continue
        fewer = any(
            used[resource].get(key, 0) < (units or 0)
            for resource, units in zip(RESOURCES, before, strict=True)
        )
        if fewer:
            doubtful[key] = reason
    return doubtful


def _histories(
    before: Mapping[EntryKey, PendingHistory],
    totals: Mapping[EntryKey, EntryTotals] | None,
    config: Config,
    now: float,
) -> dict[EntryKey, PendingHistory]:
    if totals is None:
        return dict(before)
    grace = int(config.site.pending_grace)
    return {
        key: before.get(key, PendingHistory()).add(int(now), total.pending, grace)
        for key, total in totals.items()
        if total.pending is not None
    }


def _waiting(
    fresh: _Fresh,
    histories: Mapping[EntryKey, PendingHistory],
    totals: Mapping[EntryKey, EntryTotals] | None,
    pilots: Sequence[Pilot],
    config: Config,
    now: float,
) -> dict[EntryKey, Waiting]:
    """Return the waiting pilots of entries whose queue is known: measured ages where they are."""
    queue: dict[str, list[int]] = {}
    queues, queues_whole = fresh.all("queue")
    for answer in queues if queues_whole else ():
        for count in answer.counts:
            if count.status == "pending":
                of = queue.setdefault(count.entry, [0, 0])
                of[0] += count.pilots
                of[1] += count.waiting_long
    started: dict[EntryKey, list[int]] = {}
    for pilot in pilots:
        started.setdefault(pilot.entry, []).append(pilot.started)
    grace = int(config.site.pending_grace)
    waiting = {}
    for key, total in (totals or {}).items():
        if key.entry in queue:
            waiting[key] = measured(*queue[key.entry])
        elif total.pending is not None and key in histories:
            waiting[key] = histories[key].estimate(
                int(now), total.pending, started.get(key, ()), grace
            )
    return waiting


def _capacities(
    entries: frozenset[EntryKey],
    used: Mapping[Resource, Mapping[EntryKey, int]],
    memory: Memory,
    totals: Mapping[EntryKey, EntryTotals],
    config: Config,
    now: float,
) -> dict[tuple[EntryKey, Resource], Capacity]:
    q, hour = config.canonical.memory_mib, int(now // HOUR_S)
    own = {p.entry: _size(p, q) for p in config.site.pledge if p.entry}
    pledges = {key: own[key.entry] for key in entries if key.entry in own}
    site_pledges = {p.site: _size(p, q) for p in config.site.pledge if p.site}
    result: dict[tuple[EntryKey, Resource], Capacity] = {}
    for resource in RESOURCES:
        peaks = {
            key: peak
            for key in entries
            if (window := memory.peaks.get((key, resource))) is not None
            and (peak := window.value(hour)) is not None
            and (
                now - memory.first_seen[key] >= config.site.peak_after
                or key not in totals
                or totals[key].max_pilots is None
            )
        }
        found = capacities(
            entries,
            resource,
            used=used[resource],
            pledges=pledges,
            site_pledges=site_pledges,
            peaks=peaks,
            totals=totals,
            q=q,
        )
        result |= {(key, resource): capacity for key, capacity in found.items()}
    return result


def _size(pledge: Pledge, q: int) -> Size:
    memory = pledge.cores * q if pledge.memory_mib is None else pledge.memory_mib
    return Size(pledge.cores, memory, pledge.gpus)


def _demand(fresh: _Fresh, found: Round, config: Config) -> tuple[tuple[DemandGroup, ...], bool]:
    """Return the demand of schedds that answered, and whether that is all there is."""
    groups: list[DemandGroup] = []
    complete = bool(found.chosen)
    for schedd in found.chosen:
        answer = fresh.usable(schedd.daemon.name, DEMAND)
        if answer is None:
            complete = False
            continue
        groups += answer.value.groups
        complete = complete and answer.value.complete
    names = {schedd.daemon.name for schedd in found.chosen}
    missing = [n for n in config.pool.schedds if not set("*?[") & set(n) and n not in names]
    discovered = all(fresh.all(kind)[1] for kind in ("schedds", "submitters"))
    return tuple(groups), complete and discovered and not missing


def _jobs(fresh: _Fresh, found: Round) -> tuple[JobCount, ...]:
    counts: dict[tuple[str, str, str], int] = {}
    for answer in fresh.all("submitters")[0]:
        for count in answer.counts:
            counts[count.schedd, count.accounting_group, count.status] = count.jobs
    for schedd in found.chosen:
        if (answer := fresh.usable(schedd.daemon.name, DEMAND)) is not None:
            for count in answer.value.counts:
                counts[count.schedd, count.accounting_group, count.status] = count.jobs
    return tuple(JobCount(*key, jobs) for key, jobs in sorted(counts.items()))
