"""From one round of answers, and what was seen before, to the facts that are accounted.

Decides what is too old to be used, what a failed source leaves unknown, and what cannot be trusted:
an entry with fewer pilots than before, while a collector is silent or has just been restarted.
No I/O and no clock here either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gwmond.config.settings import Config
from gwmond.model.evaluation import Capacity
from gwmond.model.facts import (
    AD_LIFETIME_S,
    Berth,
    DemandGroup,
    EntryKey,
    EntryRequest,
    EntryTotals,
    FrontendJobs,
    JobCount,
    Pilot,
    Template,
)
from gwmond.model.monitor import EntryMonitor
from gwmond.model.names import OTHER_ENTRY
from gwmond.model.sizes import is_below_one_unit
from gwmond.model.snapshot import PilotGroup
from gwmond.model.times import HOUR_S
from gwmond.model.units import RESOURCES, Resource
from gwmond.model.waiting import Waiting
from gwmond.service.entry_monitors import monitored
from gwmond.service.freshness import Fresh
from gwmond.service.known_entries import (
    Memory,
    entry_capacities,
    fillings,
    histories,
    long_filling,
    ours,
    remember,
    waiting,
    with_pledged,
)
from gwmond.sites.capacity import provisioned
from gwmond.sites.contacts import PilotsShown
from gwmond.sites.entry_totals import combine
from gwmond.sites.pilot_groups import pilot_groups
from gwmond.sites.site_time import Facts
from gwmond.sources.gather import merge_pilots
from gwmond.sources.htcondor import advertised
from gwmond.sources.round import DEMAND, REQUESTS, SLOTS, STARTDS, Round

YOUNG = "young_collector"


class PoolState(NamedTuple):
    """All facts of one moment, except verdicts, and the memory after it.

    ``pilots`` are all that ads tell of; ``running`` those of them whose startd has registered, and
    that are not silent (see ``sites.contacts``); ``pilot_groups`` sums of those that have not
    ended.
    ``pilots_complete``: collectors that are trusted have shown every pilot; ``young_until``: when
    one that was just started will be trusted (epoch seconds).  ``requests`` and
    ``entry_monitors`` are what is shown, with what WMS collectors know better than the
    glideresource ads that are accounted.  ``q``: MiB of a canonical unit.
    """

    pilots: tuple[Pilot, ...]
    running: tuple[Pilot, ...]
    pilot_groups: Mapping[Berth, PilotGroup]
    pilots_known: bool
    pilots_complete: bool
    young_until: float | None
    silent_before: int | None
    doubtful: Mapping[EntryKey, str]
    requests: tuple[EntryRequest, ...]
    totals: Mapping[EntryKey, EntryTotals] | None
    waiting: Mapping[EntryKey, Waiting]
    long_filling: frozenset[EntryKey]
    resting: tuple[Pilot, ...] | None
    capacities: Mapping[tuple[EntryKey, Resource], Capacity]
    groups: tuple[DemandGroup, ...]
    demand_complete: bool
    templates: tuple[Template, ...]
    asked: Mapping[EntryKey, Mapping[str, int]]
    jobs: tuple[JobCount, ...]
    frontends: tuple[FrontendJobs, ...]
    entries: frozenset[EntryKey]
    memory: Memory
    entry_monitors: Mapping[EntryKey, EntryMonitor]
    q: int

    @property
    def below_one_unit(self) -> frozenset[str]:
        """The entries whose pilots are a canonical unit only as each pilot is at least one."""
        sizes = {(p.entry.entry, p.size) for p in self.running}
        sizes |= {(key.entry, total.pilot_size) for key, total in (self.totals or {}).items()}
        return frozenset(e for e, size in sizes if size and is_below_one_unit(size, self.q))

    def facts(self, verdicts: Mapping[tuple[str, str], Any]) -> Facts:
        """Return what the evaluation works on."""
        return Facts(
            entries=self.entries,
            pilots=self.running if self.pilots_known else None,
            doubtful=self.doubtful,
            totals=self.totals,
            waiting=self.waiting,
            long_filling=self.long_filling,
            resting=self.resting,
            taken=self.memory.taken,
            capacities=self.capacities,
            groups=self.groups,
            demand_complete=self.demand_complete,
            templates=self.templates,
            verdicts=verdicts,
            asked=self.asked,
        )


def build_state(
    found: Round, memory: Memory, config: Config, now: float, now_mono: float
) -> PoolState:
    """Return the state of ``now`` (epoch seconds by the pool's clock)."""
    fresh = Fresh(found, config, now_mono)
    q = config.canonical.memory_mib
    requests, totals = _requests(fresh)
    shown = _shown(fresh, memory, totals, config, now)
    running = shown.watched.running
    used = {resource: provisioned(running, resource, q) for resource in RESOURCES}
    entries = _entries(found, fresh, memory, shown, totals, config, now)
    doubtful = _doubtful(shown, used, totals, memory, entries)
    trusted = [key for key in entries - {OTHER_ENTRY} if key not in doubtful] if shown.any else []
    after, recent = remember(memory, entries, trusted, shown.watched, used, config, now)
    after = after._replace(
        last_seen={key: standing.last for key, standing in (found.entries or {}).items()},
        waiting=histories(memory.waiting, totals, config, now),
    )
    waits = waiting(fresh, after.waiting, totals, shown.pilots, config, now)
    after = after._replace(filling=fillings(memory.filling, waits, config, now))
    groups, complete = _demand(fresh, found, config)
    monitors = monitored(fresh, requests, totals)
    return PoolState(
        pilots=shown.pilots,
        running=running,
        pilot_groups=pilot_groups([*running, *shown.failed], shown.unused, q, now),
        pilots_known=shown.any,
        pilots_complete=shown.complete,
        young_until=shown.young_until,
        silent_before=shown.silent_before(now),
        doubtful=doubtful,
        requests=monitors.requests,
        totals=totals,
        waiting=waits,
        long_filling=long_filling(after, running, config, now),
        resting=shown.watched.resting(now, int(config.site.untaken_grace)),
        capacities=entry_capacities(entries, used, after, recent, totals or {}, config, now),
        groups=groups,
        demand_complete=complete,
        templates=tuple(t for key, t in sorted(found.templates.items()) if key[0] in entries),
        asked=_asked(requests),
        jobs=_jobs(fresh, found),
        frontends=tuple(f for answer in fresh.all("frontendmonitor")[0] for f in answer),
        entries=entries,
        memory=after,
        entry_monitors=monitors.entries,
        q=q,
    )


class _Shown(NamedTuple):
    """What collectors show of pilots, and how far that is trusted.

    ``any``: a collector has answered; ``whole``: all have; ``failed``: pilots whose validation
    failed; ``unused``: startds that ran no job; ``clocks``: the latest contact of each collector.
    """

    any: bool
    whole: bool
    pilots: tuple[Pilot, ...]
    failed: tuple[Pilot, ...]
    unused: frozenset[str]
    watched: PilotsShown
    clocks: tuple[int, ...]
    two_updates_s: int
    young_until: float | None

    @property
    def young(self) -> bool:
        """Whether a collector was started so lately that it may not know all pilots yet."""
        return self.young_until is not None

    @property
    def complete(self) -> bool:
        """Whether every pilot is shown."""
        return self.whole and not self.young

    def silent_before(self, now: float) -> int | None:
        """Return when a pilot that is silent was heard of last at most (epoch seconds)."""
        return _clock(self.clocks, now) - self.two_updates_s if self.clocks else None


def _shown(
    fresh: Fresh,
    memory: Memory,
    totals: Mapping[EntryKey, EntryTotals] | None,
    config: Config,
    now: float,
) -> _Shown:
    slots, whole = fresh.all(SLOTS)
    startds, _ = fresh.all(STARTDS)
    pilots = _pilots(slots, startds, _reported_to_factories(fresh, totals))
    registered = [pilot for pilot in pilots if not pilot.failed]
    clocks = [max(p.last_heard for p in answer.pilots) for answer in slots if answer.pilots]
    contacts = memory.contacts
    watched = contacts.after(registered, clocks, int(now)) if slots else contacts.unseen()
    lifetimes = {pilot.ad_lifetime_s for pilot in registered} or {AD_LIFETIME_S}
    two_updates_s = max(watched.contacts.two_updates(lifetime, int(now)) for lifetime in lifetimes)
    return _Shown(
        any=bool(slots),
        whole=whole,
        pilots=pilots,
        failed=tuple(pilot for pilot in pilots if pilot.failed),
        unused=frozenset[str]().union(*(answer.unused for answer in startds)),
        watched=watched,
        clocks=tuple(clocks),
        two_updates_s=two_updates_s,
        young_until=_young_until(fresh, min(config.site.collector_distrust, two_updates_s), now),
    )


def _entries(
    found: Round,
    fresh: Fresh,
    memory: Memory,
    shown: _Shown,
    totals: Mapping[EntryKey, EntryTotals] | None,
    config: Config,
    now: float,
) -> frozenset[EntryKey]:
    """Return the entries that are shown: seen now, or lately, or pledged."""
    hour = int(now // HOUR_S)
    remembered = {
        key for (key, _), window in memory.peaks.items() if window.value(hour) is not None
    }
    if not shown.complete or not fresh.all(REQUESTS)[1]:  # it may only be out of sight
        remembered |= set(memory.first_seen)
    if found.entries is not None:
        remembered &= found.entries.keys()
    return frozenset(with_pledged(_seen(shown, totals) | remembered, config))


def _seen(shown: _Shown, totals: Mapping[EntryKey, EntryTotals] | None) -> set[EntryKey]:
    """Return entries that have a pilot or a glideresource ad now."""
    return {pilot.entry for pilot in shown.pilots if not pilot.failed} | set(totals or ())


def _reported_to_factories(
    fresh: Fresh, totals: Mapping[EntryKey, EntryTotals] | None
) -> tuple[Pilot, ...]:
    """Return pilots of our groups that reported to a factory's collector that validation failed.

    A WMS collector that does not answer hides them, and nothing else: it is no proof of pilots.
    """
    groups = {group for total in (totals or {}).values() for group in total.groups}
    failed = merge_pilots(fresh.all(advertised.KIND)[0])
    return tuple(pilot for pilot in failed if not groups or pilot.group in groups)


def _pilots(
    slots: Sequence[Any], startds: Sequence[Any], reported: Sequence[Pilot] = ()
) -> tuple[Pilot, ...]:
    """Return each pilot once: by its slots, else by its startd's own ad.

    One whose validation failed has a new name in each of its ads: its factory's job tells it.
    """
    if not slots:
        return ()
    failed: dict[str, Pilot] = {}
    found = []
    for pilot in (*merge_pilots(answer.pilots for answer in slots), *reported):
        if not pilot.failed:
            found.append(pilot)
            continue
        name = pilot.factory_job or pilot.name
        if name not in failed or failed[name].last_heard < pilot.last_heard:
            failed[name] = pilot
    pilots = (*found, *failed.values())
    known = {pilot.name for pilot in pilots}
    others = merge_pilots(answer.pilots for answer in startds)
    return (*pilots, *(pilot for pilot in others if pilot.name not in known))


def _requests(
    fresh: Fresh,
) -> tuple[tuple[EntryRequest, ...], Mapping[EntryKey, EntryTotals] | None]:
    """Return each glideresource ad once, and the totals of entries; None when all are stale."""
    answers, whole = fresh.all(REQUESTS)
    merged: dict[tuple[EntryKey, str, str], EntryRequest] = {}
    for answer in answers:
        for request in answer.requests:
            client_key = request.entry, request.factory, request.group
            if client_key not in merged or merged[client_key].last_heard < request.last_heard:
                merged[client_key] = request
    requests = tuple(merged[key] for key in sorted(merged))
    if not answers:
        return (), None
    totals = combine(requests)
    if not whole:  # a group's ad may be missing from an entry: who waits is not known
        totals = {key: total._replace(pending=None) for key, total in totals.items()}
    totals = _with_factory_limits(totals, fresh)
    for answer in fresh.all("factoryclient")[0]:
        ages: dict[str, list[Any]] = {}
        for client in ours(answer, totals):
            ages.setdefault(client.entry, []).append(client)
        for key, total in totals.items():
            if clients := ages.get(key.entry):
                ages_s = [c.monitor.client_info_age for c in clients]
                info = [age for age in ages_s if age is not None]
                limits = {*total.limits, *(limit for c in clients for limit in c.limits)}
                totals[key] = total._replace(
                    info_age_s=min(info, default=total.info_age_s),
                    limits=tuple(sorted(limits)),
                )
    return requests, totals


def _asked(requests: Iterable[EntryRequest]) -> dict[EntryKey, dict[str, int]]:
    """Return how many pilots wait at each entry for each frontend group, as their ads count."""
    asked: dict[EntryKey, dict[str, int]] = {}
    for request in requests:
        groups = asked.setdefault(request.entry, {})
        groups[request.group] = groups.get(request.group, 0) + (request.pending or 0)
    return asked


def _with_factory_limits(
    totals: Mapping[EntryKey, EntryTotals], fresh: Fresh
) -> dict[EntryKey, EntryTotals]:
    """Return the totals with the limits of glidefactory ads, where glideresource ads have none."""
    limits: dict[str, int] = {}
    for answer in fresh.all("factory")[0]:
        for entry in answer:
            if (most := entry.numbers.max_pilots) is not None:
                limits[entry.entry] = limits.get(entry.entry, 0) + most
    return {
        key: total
        if total.max_pilots is not None
        else total._replace(max_pilots=limits.get(key.entry))
        for key, total in totals.items()
    }


def _clock(clocks: Sequence[int], now: float) -> int:
    """Return the time by the collectors' clock: ours, unless it is not about the same.

    ``clocks``: the latest contact that each collector had with any pilot.
    """
    newest = min(clocks)
    return int(now) if 0 <= now - newest < AD_LIFETIME_S else newest


def _young_until(fresh: Fresh, within_s: float, now: float) -> float | None:
    """Return when the last collector that was started within some time is older; None: all are."""
    started = [
        collector.started
        for collector in fresh.all("collector")[0]
        if collector.started is not None
    ]
    return max((at + within_s for at in started if now - at < within_s), default=None)


def _doubtful(
    shown: _Shown,
    used: Mapping[Resource, Mapping[EntryKey, int]],
    totals: Mapping[EntryKey, EntryTotals] | None,
    memory: Memory,
    entries: Iterable[EntryKey],
) -> dict[EntryKey, str]:
    """Return entries whose pilots are not surely all seen, with a reason.

    A collector that was restarted learns of pilots as they report; one that is silent hides its
    own.  An entry that shows as much as when last trusted is not doubted; one that has vanished
    from a young collector is (one that is named like its site is no factory's, but a pledge's).
    """
    doubtful: dict[EntryKey, str] = {}
    if shown.any and not shown.complete:
        doubtful = _fewer(shown, used, totals, memory, entries)
    if shown.watched.doubtful:
        doubtful |= {pilot.entry: "collector" for pilot in shown.watched.running}
    return doubtful


def _fewer(
    shown: _Shown,
    used: Mapping[Resource, Mapping[EntryKey, int]],
    totals: Mapping[EntryKey, EntryTotals] | None,
    memory: Memory,
    entries: Iterable[EntryKey],
) -> dict[EntryKey, str]:
    """Return entries with fewer pilots than when they were trusted last."""
    seen = _seen(shown, totals)
    reason = YOUNG if shown.whole else "collector"
    doubtful = {}
    for key in entries:
        before = [memory.provisioned.get((key, resource)) for resource in RESOURCES]
        if before == [None, None]:
            if not shown.whole:
                doubtful[key] = reason
            continue
        fewer = any(
            used[resource].get(key, 0) < (units or 0)
            for resource, units in zip(RESOURCES, before, strict=True)
        )
        if fewer or (shown.young and key not in seen and key.entry != key.site):
            doubtful[key] = reason
    return doubtful


def _demand(fresh: Fresh, found: Round, config: Config) -> tuple[tuple[DemandGroup, ...], bool]:
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
    names = {schedd.daemon.name.lower() for schedd in found.chosen}
    wanted = (name.lower() for name in config.pool.schedds if not set("*?[") & set(name))
    missing = [name for name in wanted if name not in names]
    discovered = all(fresh.all(kind)[1] for kind in ("schedds", "submitters"))
    return tuple(groups), complete and discovered and not missing


def _jobs(fresh: Fresh, found: Round) -> tuple[JobCount, ...]:
    counts: dict[tuple[str, str, str], int] = {}
    for answer in fresh.all("submitters")[0]:
        for count in answer.counts:
            counts[count.schedd, count.accounting_group, count.status] = count.jobs
    for schedd in found.chosen:
        if (answer := fresh.usable(schedd.daemon.name, DEMAND)) is not None:
            for count in answer.value.counts:
                counts[count.schedd, count.accounting_group, count.status] = count.jobs
    return tuple(JobCount(*key, jobs) for key, jobs in sorted(counts.items()))
