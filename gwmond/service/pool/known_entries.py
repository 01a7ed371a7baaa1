"""What is remembered and known of entries besides their pilots: waiting pilots, capacities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from gwmond.config.settings import Config, Pledge
from gwmond.model.cursor_kinds import KEPT_NAMES, KEPT_VERDICTS
from gwmond.model.entries.evaluation import Capacity, Evaluation, Taken
from gwmond.model.entries.waiting import PendingHistory, Waiting
from gwmond.model.facts import Berth, EntryKey, EntryTotals, Held, Hold, Pilot, Size
from gwmond.model.names import Standing
from gwmond.model.poll.batch import Asked, EntryState, LedgerState
from gwmond.model.states import State
from gwmond.model.times import HOUR_S
from gwmond.model.units import RESOURCES, Resource
from gwmond.service.pool.freshness import Fresh
from gwmond.sites.capacity import PeakWindow, capacities, limit, throttled
from gwmond.sites.contacts import Contacts, PilotsShown
from gwmond.sites.held import held
from gwmond.sites.pending import Filling, filling, measured
from gwmond.sites.registering import NotRegistered
from gwmond.sources.htcondor.factory import QueueCount


class Recalled(NamedTuple):
    """What a ledger knows of names and of matches, as of ``now`` (epoch seconds).

    ``words``: see ``Names.dump``; ``verdicts``: see ``matcher.dumped``.
    """

    entries: Mapping[EntryKey, Standing]
    groups: Mapping[Berth, Standing]
    now: float
    words: str
    verdicts: str


class Memory(NamedTuple):
    """What is remembered of entries between polls; the ledger keeps it between lives.

    ``last_seen`` has the entries that are kept apart (epoch seconds); ``recalled`` is what a ledger
    that was just opened knows of them.  ``stuck``: bottlenecks of the last poll; ``throttled``:
    when anything but the site last kept pilots away (epoch seconds).  ``asked``: what ran under a
    limit or the like (``capacity.throttled``) within ``site.peak_after``.  ``unregistered``: see
    ``sites.registering``.  ``unsubmitted``: how many pilots were requested while none waited.
    ``ended``: of which pilots the ledger knows that they ended lately, and when (epoch seconds).
    """

    first_seen: Mapping[EntryKey, float]
    provisioned: Mapping[tuple[EntryKey, Resource], int]
    peaks: Mapping[tuple[EntryKey, Resource], PeakWindow]
    waiting: Mapping[EntryKey, PendingHistory]
    filling: Mapping[EntryKey, Filling] = MappingProxyType({})
    contacts: Contacts = Contacts()
    taken: Taken = MappingProxyType({})
    last_seen: Mapping[EntryKey, float] = MappingProxyType({})
    recalled: Recalled | None = None
    stuck: frozenset[EntryKey] = frozenset()
    throttled: Mapping[EntryKey, float] = MappingProxyType({})
    asked: Mapping[tuple[EntryKey, Resource], PeakWindow] = MappingProxyType({})
    unregistered: Mapping[EntryKey, NotRegistered] = MappingProxyType({})
    unsubmitted: Mapping[EntryKey, PendingHistory] = MappingProxyType({})
    ended: Mapping[str, int] = MappingProxyType({})


EMPTY = Memory({}, {}, {}, {})
_ASKED: Mapping[Resource, Asked] = {"cpu": "cpu_asked", "gpu": "gpu_asked"}


def window_hours(config: Config) -> tuple[int, int]:
    """Return for how many hours peaks are remembered, and what ran under a limit."""
    of = config.site.peak_window, config.site.peak_after
    peaks, asked = (max(1, round(seconds / HOUR_S)) for seconds in of)
    return peaks, asked


def windows(memory: Memory) -> dict[tuple[EntryKey, Resource | Asked], PeakWindow]:
    """Return the windows that the ledger keeps, as it names them."""
    ran: dict[tuple[EntryKey, Resource | Asked], PeakWindow] = {}
    ran.update(memory.peaks.items())
    ran.update(((key, _ASKED[of]), window) for (key, of), window in memory.asked.items())
    return ran


def recall(memory: Memory, state: LedgerState, hours: tuple[int, int]) -> Memory:
    """Return the memory, with the ledger's below what was seen since; see ``window_hours``."""
    ran = windows(memory)
    for key, stored in state.peaks.items():
        for peak in stored:
            at = key, peak.resource
            window = ran.get(at, PeakWindow(hours[peak.resource not in RESOURCES]))
            ran[at] = window.add(peak.hour, peak.units)
    every = [(key, resource) for key in {key for key, _ in ran} for resource in RESOURCES]
    provisioned = {(k, r): n for k, s in state.entries.items() for r, n in s.provisioned.items()}
    first_seen = {k: s.first_seen for k, s in state.entries.items()}
    earlier = {k: min(t, memory.first_seen.get(k, t)) for k, t in first_seen.items()}
    return memory._replace(
        first_seen={**memory.first_seen, **earlier},
        provisioned={**provisioned, **memory.provisioned},
        peaks={at: ran[at] for at in every if at in ran},
        asked={(k, r): asked for k, r in every if (asked := ran.get((k, _ASKED[r])))},
        recalled=_recalled(state),
        ended=state.ended,
    )


def _recalled(state: LedgerState) -> Recalled | None:
    """Return what a ledger knows; names without an entry's row were seen until now."""
    if state.tick is None:
        return None
    now = state.tick.wall
    entries = {
        key: Standing(
            entry_state.first_seen, max(entry_state.first_seen, entry_state.last_accounted or 0.0)
        )
        for key, entry_state in state.entries.items()
    }
    since: dict[Berth, float] = {}
    for series, total in state.totals.pilots.items():
        berth = Berth(EntryKey(series.site, series.entry), series.group)
        since[berth] = min(total.created, since.get(berth, total.created))
    groups = {}
    for berth, created in since.items():
        entry = entries.setdefault(berth.entry, Standing(created, now))
        groups[berth] = Standing(min(created, entry.last), entry.last)
    words, verdicts = (
        cursor.state if (cursor := state.cursors.get((kind, kind))) is not None else ""
        for kind in (KEPT_NAMES, KEPT_VERDICTS)
    )
    return Recalled(entries, groups, now, words, verdicts)


def entry_states(memory: Memory, now: float) -> dict[EntryKey, EntryState]:
    """Return what a ledger is to remember of entries."""
    return {
        key: EntryState(
            first_seen,
            memory.last_seen.get(key, now),
            {
                r: units
                for r in RESOURCES
                if (units := memory.provisioned.get((key, r))) is not None
            },
        )
        for key, first_seen in memory.first_seen.items()
    }


def with_pledged(entries: set[EntryKey], config: Config) -> set[EntryKey]:
    """Return the entries, and one for each pledged site of which nothing is seen."""
    sites = {key.site for key in entries}
    pledged = {p.site for p in config.site.pledge if p.site}
    return entries | {EntryKey(site, site) for site in pledged - sites}


class _OfClient(Protocol):
    @property
    def client(self) -> str: ...


C = TypeVar("C", bound=_OfClient)


def ours(counts: Sequence[C], totals: Mapping[EntryKey, EntryTotals]) -> list[C]:
    """Return what the factory advertises for our frontends' groups, for it serves others as well.

    Where it names none of ours, its names are other than the frontend's: all of it is taken.
    """
    groups = {group for total in totals.values() for group in total.groups}
    return [count for count in counts if count.client in groups] or list(counts)


Units: TypeAlias = Mapping[tuple[EntryKey, Resource], int]


def remember(
    before: Memory,
    entries: frozenset[EntryKey],
    trusted: Iterable[EntryKey],
    watched: PilotsShown,
    used: Mapping[Resource, Mapping[EntryKey, int]],
    totals: Mapping[EntryKey, EntryTotals],
    config: Config,
    now: float,
) -> tuple[Memory, Units]:
    """Return the memory after a poll, and the most that ran lately but for what is not decided.

    Peaks and use change only for entries that are ``trusted``: all their pilots are surely seen.
    What ran while an entry was throttled is no peak: so none is stored.
    """
    limited = {key for key, total in totals.items() if throttled(total)}
    hit = {**before.throttled, **dict.fromkeys(limited | before.stuck, now)}
    hours, few = window_hours(config)
    peaks, provisioned, asked = dict(before.peaks), dict(before.provisioned), dict(before.asked)
    recent: dict[tuple[EntryKey, Resource], int] = {}
    hour, ran_hour = int(now // HOUR_S), int(watched.decided_at(now) // HOUR_S)
    for resource in RESOURCES:
        decided, later = watched.most(used[resource], resource, config.canonical.memory_mib)
        for key in trusted:
            at = key, resource
            window = peaks.get(at, PeakWindow())._replace(hours=hours)
            provisioned[at] = used[resource].get(key, 0)
            free = hit.get(key, -inf) < watched.decided_at(now)
            recent[at] = later.get(key, 0) if free else 0
            peaks[at] = window.add(ran_hour, decided.get(key, 0) if free else 0).prune(hour)
            ran = provisioned[at] if key in limited else 0
            asked[at] = asked.get(at, PeakWindow(few)).add(hour, ran).prune(hour)
    memory = before._replace(
        first_seen={key: before.first_seen.get(key, now) for key in entries},
        provisioned={at: units for at, units in provisioned.items() if at[0] in entries},
        peaks={at: window for at, window in peaks.items() if at[0] in entries and window.buckets},
        asked={at: window for at, window in asked.items() if at[0] in entries and window.buckets},
        contacts=watched.contacts,
        throttled={key: at for key, at in hit.items() if key in entries},
    )
    return memory, recent


def evaluated(memory: Memory, evaluation: Evaluation) -> Memory:
    """Return the memory after an evaluation."""
    states = ((key, row.state) for (key, _), row in evaluation.rows.items())
    stuck = frozenset(key for key, state in states if state is State.PROVISIONING_BOTTLENECK)
    return memory._replace(taken=evaluation.taken, stuck=stuck)


def histories(
    before: Mapping[EntryKey, PendingHistory],
    totals: Mapping[EntryKey, EntryTotals] | None,
    config: Config,
    now: float,
) -> dict[EntryKey, PendingHistory]:
    """Return how many pilots have waited at each entry, with what is seen now."""
    if totals is None:
        return dict(before)
    grace = int(config.site.pending_grace)
    return {
        key: before.get(key, PendingHistory()).add(int(now), total.pending, grace)
        for key, total in totals.items()
        if total.pending is not None
    }


def waiting(
    queue_counts: Iterable[QueueCount],
    past: Mapping[EntryKey, PendingHistory],
    totals: Mapping[EntryKey, EntryTotals] | None,
    pilots: Sequence[Pilot],
    config: Config,
    now: float,
) -> dict[EntryKey, Waiting]:
    """Return the waiting pilots of entries whose queue is known: measured ages where they are."""
    queue: dict[str, list[int]] = {}
    for count in queue_counts:
        waiting_there = queue.setdefault(count.entry, [0, 0])  # none waits where only others are
        if count.status == "pending":
            waiting_there[0] += count.pilots
            waiting_there[1] += count.waiting_long
    started = starts(pilots)
    grace = int(config.site.pending_grace)
    waits = {}
    for key, total in (totals or {}).items():
        if key.entry in queue:
            waits[key] = measured(*queue[key.entry])
        elif total.pending is not None and key in past:
            waits[key] = past[key].estimate(int(now), total.pending, started.get(key, ()), grace)
    return waits


def queued(fresh: Fresh, totals: Mapping[EntryKey, EntryTotals]) -> list[QueueCount]:
    """Return our pilots in the factories' queues; nothing where one of these is silent."""
    queues, whole = fresh.all("queue")
    return ours([count for answer in queues for count in answer], totals) if whole else []


def factory_running(
    queue_counts: Iterable[QueueCount], totals: Mapping[EntryKey, EntryTotals]
) -> dict[EntryKey, int]:
    """Return how many of our pilots run by the factory's count: by its queue, else by its ads."""
    in_queue: Counter[str] = Counter()
    for count in queue_counts:
        in_queue[count.entry] += count.pilots if count.status == "running" else 0
    counts = {key: in_queue.get(key.entry, total.running) for key, total in totals.items()}
    return {key: number for key, number in counts.items() if number is not None}


def held_lately(
    queue_counts: Iterable[QueueCount], totals: Iterable[EntryKey]
) -> dict[EntryKey, Held]:
    """Return why pilots are held, of entries where any is, by the factories' queues."""
    of_entry: dict[str, list[QueueCount]] = {}
    for count in queue_counts:
        of_entry.setdefault(count.entry, []).append(count)
    by_entry = {}
    for key in totals:
        counts = of_entry.get(key.entry, ())
        holds = (Hold(c.hold, c.hold_code, c.pilots) for c in counts if c.status in _HELD)
        running = sum(c.pilots for c in counts if c.status == "running")
        waiting = sum(c.pilots for c in counts if c.status in {"submitted", "pending"})
        if why := held(holds, running, waiting):
            by_entry[key] = why
    return by_entry


_HELD = {"held", "removed"}


def starts(pilots: Iterable[Pilot]) -> Mapping[EntryKey, Sequence[int]]:
    """Return when the pilots of each entry started."""
    times: dict[EntryKey, list[int]] = {}
    for pilot in pilots:
        times.setdefault(pilot.entry, []).append(pilot.started)
    return times


def fillings(
    before: Mapping[EntryKey, Filling],
    waits: Mapping[EntryKey, Waiting],
    config: Config,
    now: float,
) -> dict[EntryKey, Filling]:
    """Return since when entries fill."""
    grace = int(config.site.pending_grace)
    times = {
        key: filling(before.get(key), waits.get(key), int(now), grace) for key in {*before, *waits}
    }
    return {key: since for key, since in times.items() if since is not None}


def long_filling(
    memory: Memory, pilots: Iterable[Pilot], config: Config, now: float
) -> frozenset[EntryKey]:
    """Return the entries that have been filling for longer than the grace, while pilots started."""
    started, grace = starts(pilots), int(config.site.pending_grace)
    return frozenset(
        key
        for key, since in memory.filling.items()
        if since.is_long(started.get(key, ()), int(now), grace)
    )


def entry_capacities(
    entries: frozenset[EntryKey],
    used: Mapping[Resource, Mapping[EntryKey, int]],
    memory: Memory,
    recent: Units,
    totals: Mapping[EntryKey, EntryTotals],
    config: Config,
    now: float,
) -> dict[tuple[EntryKey, Resource], Capacity]:
    """Return what each entry could run: a peak counts once the entry was watched for long.

    What ran under a limit was asked for; so a peak that is not above it is none, though the limit
    is not hit at this moment.
    ``recent``: the most that ran lately, which is not in the memory's peaks yet.
    """
    memory_per_unit_mib, hour = config.canonical.memory_mib, int(now // HOUR_S)
    own = {p.entry: _size(p, memory_per_unit_mib) for p in config.site.pledge if p.entry}
    pledges = {key: own[key.entry] for key in entries if key.entry in own}
    site_pledges = {p.site: _size(p, memory_per_unit_mib) for p in config.site.pledge if p.site}
    result: dict[tuple[EntryKey, Resource], Capacity] = {}
    for resource in RESOURCES:
        peaks = {
            key: peak
            for key in entries
            for at in [(key, resource)]
            if (peak := max(recent.get(at, 0), _most(memory.peaks, at, hour))) > 0
            and (
                limit(totals.get(key), resource, memory_per_unit_mib) is None
                or (
                    now - memory.first_seen[key] >= config.site.peak_after
                    and peak > _most(memory.asked, at, hour)
                )
            )
        }
        of_resource = capacities(
            entries,
            resource,
            used=used[resource],
            pledges=pledges,
            site_pledges=site_pledges,
            peaks=peaks,
            totals=totals,
            memory_per_unit_mib=memory_per_unit_mib,
        )
        result |= {(key, resource): capacity for key, capacity in of_resource.items()}
    return result


def _most(
    windows: Mapping[tuple[EntryKey, Resource], PeakWindow],
    at: tuple[EntryKey, Resource],
    hour: int,
) -> int:
    return (windows.get(at, PeakWindow()).value(hour)) or 0


def _size(pledge: Pledge, memory_per_unit_mib: int) -> Size:
    memory = pledge.cores * memory_per_unit_mib if pledge.memory_mib is None else pledge.memory_mib
    return Size(pledge.cores, memory, pledge.gpus)
