"""From one round of answers, and what was seen before, to the facts that are accounted.

Decides what is too old to be used, what a failed source leaves unknown, and what cannot be trusted:
an entry with fewer pilots than before, while a collector is silent or has just been restarted.
No I/O and no clock here either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from gwmond.config.settings import Config
from gwmond.model.demand.order import AccountingQuota, Limits
from gwmond.model.demand.submitters import UsersNow
from gwmond.model.entries.waiting import PendingHistory
from gwmond.model.facts import (
    AD_LIFETIME_S,
    Berth,
    DemandGroup,
    EntryKey,
    EntryRequest,
    EntryTotals,
    JobCount,
    Pilot,
    Reported,
    Size,
    Stalled,
    StalledJobs,
)
from gwmond.model.freshest import freshest
from gwmond.model.monitor import EntryMonitor
from gwmond.model.names import OTHER_ENTRY
from gwmond.model.poll.snapshot import PilotGroup
from gwmond.model.sizes import is_below_one_unit
from gwmond.model.times import HOUR_S
from gwmond.model.units import RESOURCES
from gwmond.service.pool.contradictions import (
    ALL_JOBS,
    Contradiction,
    of_jobs,
    of_queue,
    of_requests,
)
from gwmond.service.pool.entry_monitors import monitored
from gwmond.service.pool.freshness import Fresh
from gwmond.service.pool.known_entries import (
    Memory,
    entry_capacities,
    factory_running,
    fillings,
    held_lately,
    histories,
    long_filling,
    ours,
    queued,
    remember,
    waiting,
    with_pledged,
)
from gwmond.sites import registering
from gwmond.sites.absorb import pending_by_group
from gwmond.sites.capacity import provisioned
from gwmond.sites.entry_totals import combine
from gwmond.sites.pilot_groups import pilot_groups
from gwmond.sites.site_time import Facts, Settings
from gwmond.sources.htcondor import order
from gwmond.sources.htcondor.factory import QueueCount
from gwmond.sources.htcondor.pilots import advertised
from gwmond.sources.htcondor.schedds import ScheddSeen
from gwmond.sources.round import DEMAND, REQUESTS, SLOTS, STARTDS, Round

YOUNG = "young_collector"


class PoolState(NamedTuple):
    """All facts of one moment, and the memory after it.

    ``facts``: what the evaluation works on, but for verdicts.  ``pilots`` are all that ads show;
    ``running`` those of them whose startd has registered, and that are not ``silent`` (see
    ``sites.contacts``; these are names); ``pilot_groups`` sums of those that have not ended.
    ``pilots_complete``: collectors that are trusted have shown every pilot; ``young_until``: when
    one that was just started will be trusted (epoch seconds).  ``requests`` and
    ``entry_monitors`` are what is shown, with what WMS collectors know better than the
    glideresource ads that are accounted.  ``memory_per_unit_mib``: MiB of a canonical unit.
    ``limits``: of accounting groups and schedds.  ``users``: None where no collector tells of any.
    """

    facts: Facts
    pilots: tuple[Pilot, ...]
    running: tuple[Pilot, ...]
    silent: frozenset[str]
    pilot_groups: Mapping[Berth, PilotGroup]
    pilots_complete: bool
    young_until: float | None
    silent_before: int | None
    requests: tuple[EntryRequest, ...]
    jobs: tuple[JobCount, ...]
    users: UsersNow | None
    reported: Reported
    memory: Memory
    entry_monitors: Mapping[EntryKey, EntryMonitor]
    memory_per_unit_mib: int
    limits: Limits
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def below_one_unit(self) -> frozenset[str]:
        """The entries whose pilots are a canonical unit only as each pilot is at least one."""
        sizes = {(p.entry.entry, p.size) for p in self.running}
        sizes |= {(key.entry, total.pilot_size) for key, total in (self.facts.totals or {}).items()}
        return frozenset(
            e for e, size in sizes if size and is_below_one_unit(size, self.memory_per_unit_mib)
        )


def site_settings(config: Config) -> Settings:
    """Return by which settings entries are judged."""
    return Settings(
        memory_per_unit_mib=config.canonical.memory_mib,
        info_max_age_s=int(config.site.factory_info_max_age),
        untaken_s=int(config.site.untaken_grace),
    )


def build_state(
    gathered: Round, memory: Memory, config: Config, now: float, now_mono: float
) -> PoolState:
    """Return the state of ``now`` (epoch seconds by the pool's clock)."""
    return _Building(gathered, memory, config, now, Fresh(gathered, config, now_mono)).state()


class _Building:
    """The parts of one state, each made of those before.

    ``_whole``: all collectors have answered; ``_clocks``: the latest contact of each with a pilot.
    """

    def __init__(
        self, gathered: Round, memory: Memory, config: Config, now: float, fresh: Fresh
    ) -> None:
        self._gathered, self._memory, self._config, self._now = gathered, memory, config, now
        self._fresh = fresh
        self._memory_per_unit_mib = config.canonical.memory_mib
        self._requests, self._totals = _requests(fresh)
        self._slots, self._whole = fresh.all(SLOTS)
        self._startds, _ = fresh.all(STARTDS)
        self._pilots = _pilots(self._slots, self._startds, self._reported_to_factories())
        registered = [pilot for pilot in self._pilots if not pilot.failed]
        self._clocks = [
            max(pilot.last_heard for pilot in answer.pilots)
            for answer in self._slots
            if answer.pilots
        ]
        contacts = memory.contacts
        self._watched = (
            contacts.after(registered, self._clocks, int(now), memory.ended)
            if self._slots
            else contacts.unseen()
        )
        lifetimes = {pilot.ad_lifetime_s for pilot in registered} or {AD_LIFETIME_S}
        self._two_updates_s = max(
            self._watched.contacts.two_updates(lifetime) for lifetime in lifetimes
        )
        self._young_until = self._until_trusted()
        self._complete = self._whole and self._young_until is None
        self._used = {
            resource: provisioned(self._watched.running, resource, self._memory_per_unit_mib)
            for resource in RESOURCES
        }
        self._seen = {pilot.entry for pilot in registered} | set(self._totals or ())
        self._entries = self._known_entries()
        self._doubtful = self._not_surely_seen()

    def state(self) -> PoolState:
        """Return the state."""
        found, fresh, config, now = self._gathered, self._fresh, self._config, self._now
        entries, watched = self._entries, self._watched
        memory, totals = self._memory, self._totals
        queue_counts = queued(fresh, totals or {})
        coming: Mapping[EntryKey, int] = {}
        if totals is not None:
            memory, totals, coming = self._not_at_work(memory, totals, queue_counts)
        past = histories(self._memory.waiting, totals, config, now)
        waits = waiting(queue_counts, past, totals, self._pilots, config, now)
        if totals is not None:
            full = {key for key, wait in waits.items() if wait.beyond > 0}
            totals = {key: total._replace(saturated=key in full) for key, total in totals.items()}
        trusted = [key for key in entries - {OTHER_ENTRY} if key not in self._doubtful]
        trusted = trusted if self._slots else []
        after, recent = remember(
            *(memory, entries, trusted, watched, self._used, totals or {}, config, now)
        )
        after = after._replace(
            last_seen={key: standing.last for key, standing in (found.entries or {}).items()},
            waiting=past,
        )
        after = after._replace(filling=fillings(self._memory.filling, waits, config, now))
        failed = [pilot for pilot in self._pilots if pilot.failed]
        unused = frozenset[str]().union(*(answer.unused for answer in self._startds))
        groups, demand_complete = _demand(fresh, found, config)
        monitors = monitored(fresh, self._requests, totals)
        limits = limits_of(fresh.all(order.QUOTAS)[0], found.chosen)
        contradictions = self._contradictions(monitors.requests)
        facts = Facts(
            entries=entries,
            pilots=watched.running if self._slots else None,
            doubtful=self._doubtful,
            late=watched.late,
            totals=totals,
            waiting=waits,
            long_filling=long_filling(after, watched.running, config, now),
            resting=watched.resting(now, int(config.site.untaken_grace)),
            taken=after.taken,
            capacities=entry_capacities(
                entries, self._used, after, recent, totals or {}, config, now
            ),
            groups=groups,
            demand_complete=demand_complete,
            templates=tuple(t for key, t in sorted(found.templates.items()) if key[0] in entries),
            verdicts={},
            asked=_asked(self._requests),
            coming=pending_by_group(coming, self._not_registered()),
            left_out={n: load.overload for n, load in limits.schedds.items() if load.overload},
            unseen=next((c.text for c in contradictions if c.of == ALL_JOBS), ""),
        )
        return PoolState(
            facts=facts,
            pilots=self._pilots,
            running=watched.running,
            silent=frozenset(pilot.name for pilot in watched.silent),
            pilot_groups=pilot_groups(
                *([*watched.running, *failed], unused, self._memory_per_unit_mib, now),
                _stalled(fresh, found),
                _starting(self._not_registered(), totals or {}),
            ),
            pilots_complete=self._complete,
            young_until=self._young_until,
            silent_before=_clock(self._clocks, now) - self._two_updates_s if self._clocks else None,
            requests=monitors.requests,
            jobs=_jobs(fresh, found),
            users=_users(fresh, groups, {*limits.groups, *found.accounting_groups}),
            reported=Reported(*(tuple(chain(*fresh.all(kind)[0])) for kind in Reported._fields)),
            memory=after,
            entry_monitors=monitors.entries,
            memory_per_unit_mib=self._memory_per_unit_mib,
            limits=limits,
            contradictions=contradictions,
        )

    def _not_at_work(
        self,
        before: Memory,
        totals: Mapping[EntryKey, EntryTotals],
        queue_counts: Sequence[QueueCount],
    ) -> tuple[Memory, Mapping[EntryKey, EntryTotals], Mapping[EntryKey, int]]:
        """Return memory and totals with pilots that do not register, are held, or not submitted.

        The last are those that are about to register.
        """
        now, site = int(self._now), self._config.site
        grace, asked_grace = int(site.register_grace), int(site.pending_grace)
        registered = Counter(pilot.entry for pilot in self._pilots if not pilot.failed)
        counts = factory_running(queue_counts, totals) if self._slots else {}
        histories = registering.watch(
            before.unregistered, counts, registered, now, grace, self._doubtful
        )
        missing = registering.unregistered(histories, totals, self._pilots)
        holds = held_lately(queue_counts, totals)
        asked = {
            key: before.unsubmitted.get(key, PendingHistory()).add(
                now, total.idle_request, asked_grace
            )
            for key, total in totals.items()
        }
        amended = {
            key: total._replace(
                unregistered=missing.get(key),
                held_lately=holds.get(key),
                unsubmitted=asked[key].least(now, asked_grace) > 0,
            )
            for key, total in totals.items()
        }
        after = before._replace(unregistered=histories, unsubmitted=asked)
        registered.update(ended.pilot.entry for ended in self._watched.ended)
        return after, amended, registering.coming(histories, counts, registered, now, grace)

    def _not_registered(self) -> dict[EntryKey, dict[str, int]]:
        """Return by how much the factory counts more pilots of each group than have registered."""
        counts = Counter((pilot.entry, pilot.group) for pilot in self._pilots if not pilot.failed)
        by_entry: dict[EntryKey, dict[str, int]] = {}
        for request in self._requests:
            missing = (request.monitor.status_running or 0) - counts[request.entry, request.group]
            by_entry.setdefault(request.entry, {})[request.group] = missing
        return by_entry

    def _contradictions(self, requests: Sequence[EntryRequest]) -> tuple[Contradiction, ...]:
        """Return which counts of the frontend and the factory cannot be true."""
        fresh = self._fresh
        queue = [count for answer in fresh.all("queue")[0] for count in answer]
        frontends = tuple(chain(*fresh.all("frontendmonitor")[0]))
        return (
            *of_requests(self._requests, self._watched.running),
            *of_queue(requests, queue),
            *of_jobs(_jobs(fresh, self._gathered), frontends),
        )

    def _reported_to_factories(self) -> tuple[Pilot, ...]:
        """Return pilots of our groups that reported to a factory's collector that they failed.

        A WMS collector that does not answer hides them, and nothing else: it is no proof of pilots.
        """
        groups = {group for total in (self._totals or {}).values() for group in total.groups}
        failed = merge_pilots(self._fresh.all(advertised.KIND)[0])
        return tuple(pilot for pilot in failed if not groups or pilot.group in groups)

    def _until_trusted(self) -> float | None:
        """Return when the last collector that was just started is trusted; None: all are."""
        within_s = min(self._config.site.collector_distrust, self._two_updates_s)
        started = [collector.started for collector in self._fresh.all("collector")[0]]
        young = [at for at in started if at is not None and self._now - at < within_s]
        return max((at + within_s for at in young), default=None)

    def _known_entries(self) -> frozenset[EntryKey]:
        """Return the entries that are shown: seen now, or lately, or pledged."""
        hour = int(self._now // HOUR_S)
        remembered = {
            key for (key, _), window in self._memory.peaks.items() if window.value(hour) is not None
        }
        if not self._complete or not self._fresh.all(REQUESTS)[1]:  # it may only be out of sight
            remembered |= set(self._memory.first_seen)
        if self._gathered.entries is not None:
            remembered &= self._gathered.entries.keys()
        return frozenset(with_pledged(self._seen | remembered, self._config))

    def _not_surely_seen(self) -> dict[EntryKey, str]:
        """Return entries whose pilots are not surely all seen, with a reason.

        A collector that was restarted learns of pilots as they report; a silent one hides all of
        its own.  An entry that shows as much as when last trusted is not doubted.
        """
        reason = YOUNG if self._whole else "collector"
        doubtful: dict[EntryKey, str] = {}
        if self._slots and not self._complete:
            doubtful = {key: reason for key in self._entries if self._shows_less(key)}
        if self._watched.doubtful:
            doubtful |= {pilot.entry: "collector" for pilot in self._watched.running}
        return doubtful

    def _shows_less(self, key: EntryKey) -> bool:
        """Return whether an entry has fewer pilots than when it was trusted last.

        An entry that has vanished from a young collector has, too (but not one named like its
        site, which is a pledge's and no factory's).
        """
        before = [self._memory.provisioned.get((key, resource)) for resource in RESOURCES]
        if before == [None, None]:
            return not self._whole
        fewer = any(
            self._used[resource].get(key, 0) < (units or 0)
            for resource, units in zip(RESOURCES, before, strict=True)
        )
        young = self._young_until is not None
        return fewer or (young and key not in self._seen and key.entry != key.site)


def limits_of(
    answers: Iterable[Mapping[str, AccountingQuota]], chosen: Iterable[ScheddSeen]
) -> Limits:
    """Return what limits jobs, as collectors and schedds advertise it."""
    groups = {name: quota for answer in answers for name, quota in answer.items()}
    return Limits(groups, {schedd.daemon.name: schedd.load for schedd in chosen})


def merge_pilots(answers: Iterable[tuple[Pilot, ...]]) -> tuple[Pilot, ...]:
    """Take pilots from several collectors together: each once, as heard of last."""
    merged = freshest(chain.from_iterable(answers), lambda pilot: (pilot.name, pilot.started))
    return tuple(merged[key] for key in sorted(merged))


def _pilots(
    slots: Sequence[Any], startds: Sequence[Any], reported: Sequence[Pilot] = ()
) -> tuple[Pilot, ...]:
    """Return each pilot once: by its slots, else by its startd's own ad.

    If its validation failed it has a new name in each of its ads: its factory's job identifies it.
    """
    if not slots:
        return ()
    shown = (*merge_pilots(answer.pilots for answer in slots), *reported)
    healthy = (pilot for pilot in shown if not pilot.failed)
    failed = (pilot for pilot in shown if pilot.failed)
    pilots = (*healthy, *freshest(failed, lambda x: x.factory_job or x.name).values())
    names = {pilot.name for pilot in pilots}
    others = merge_pilots(answer.pilots for answer in startds)
    return (*pilots, *(pilot for pilot in others if pilot.name not in names))


def _requests(
    fresh: Fresh,
) -> tuple[tuple[EntryRequest, ...], Mapping[EntryKey, EntryTotals] | None]:
    """Return each glideresource ad once, and the totals of entries; None when all are stale."""
    answers, whole = fresh.all(REQUESTS)
    every: Iterator[EntryRequest] = (x for answer in answers for x in answer.requests)
    merged = freshest(every, lambda x: (x.entry, x.factory, x.group))
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
        groups[request.group] = groups.get(request.group, 0) + (request.monitor.pending or 0)
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


def _demand(fresh: Fresh, gathered: Round, config: Config) -> tuple[tuple[DemandGroup, ...], bool]:
    """Return the demand of schedds that answered, and whether that is all there is."""
    groups: list[DemandGroup] = []
    complete = bool(gathered.chosen)
    for schedd in gathered.chosen:
        answer = fresh.usable(schedd.daemon.name, DEMAND)
        if answer is None:
            complete = False
            continue
        groups += answer.value.groups
        complete = complete and answer.value.complete
    names = {schedd.daemon.name.lower() for schedd in gathered.chosen}
    named = (name.lower() for name in config.pool.schedds if not set("*?[") & set(name))
    missing = [name for name in named if name not in names]
    discovered = all(fresh.all(kind)[1] for kind in ("schedds", "submitters"))
    return tuple(groups), complete and discovered and not missing


def _jobs(fresh: Fresh, gathered: Round) -> tuple[JobCount, ...]:
    counts: dict[tuple[str, str, str], int] = {}
    for answer in fresh.all("submitters")[0]:
        for count in answer.counts:
            counts[count.schedd, count.accounting_group, count.status] = count.jobs
    for schedd in gathered.chosen:
        if (answer := fresh.usable(schedd.daemon.name, DEMAND)) is not None:
            for count in answer.value.counts:
                counts[count.schedd, count.accounting_group, count.status] = count.jobs
    return tuple(JobCount(*key, jobs) for key, jobs in sorted(counts.items()))


def _starting(
    missing: Mapping[EntryKey, Mapping[str, int]], totals: Mapping[EntryKey, EntryTotals]
) -> dict[Berth, tuple[int, Size]]:
    """Return the pilots that are about to register, with the size that the entry's have.

    These are all that the factory counts and no collector shows, but at entries where pilots are
    known that never register.
    """
    return {
        Berth(key, group): (number, total.pilot_size)
        for key, groups in missing.items()
        if (total := totals.get(key)) is not None and total.pilot_size is not None
        if total.unregistered is None or not total.unregistered.pilots
        for group, number in groups.items()
        if number > 0
    }


def _stalled(fresh: Fresh, gathered: Round) -> StalledJobs:
    """Return the jobs that use no CPU, of schedds that have told."""
    answers = [fresh.usable(schedd.daemon.name, DEMAND) for schedd in gathered.chosen]
    told = [a.value.stalled for a in answers if a is not None and a.value.stalled is not None]
    pilots: dict[str, Stalled] = {}
    for jobs in chain(*told):
        before = pilots.get(jobs.startd)
        pilots[jobs.startd] = jobs if before is None else before.plus(jobs)
    return StalledJobs(pilots, whole=len(told) == len(answers))


def _users(fresh: Fresh, groups: Iterable[DemandGroup], known: Collection[str]) -> UsersNow | None:
    """Return the jobs of submitters; None if no collector tells of any.

    Accounting groups are those with idle jobs, and those that are ``known``.
    """
    answers, complete = fresh.all("submitters")
    names = {*(group.accounting_group for group in groups), *known}
    counts = tuple(count for answer in answers for count in answer.submitters)
    return UsersNow(counts, frozenset(map(str.lower, names)), complete) if answers else None
