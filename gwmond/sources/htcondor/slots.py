"""Source: slot ads of a collector, taken together to pilots.

Attributes as in HTCondor's manual, "Machine ClassAd Attributes".  A partitionable slot's Cpus,
Memory and GPUs are what remains; TotalSlotCpus and so on its size; ChildCpus and so on list its
dynamic slots, whose own ads (several for each pilot) are therefore not asked for.  The pilot's own
attributes (GLIDEIN_*, GLIDECLIENT_*) are those of GlideinWMS unless configured.

Ads by which a pilot only tells that its validation failed are not slots (see ``advertised``).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import AD_LIFETIME_S, EntryKey, Pilot, Problem, Size
from gwmond.model.units import MAX_CORES, MAX_MEMORY_MIB
from gwmond.sources.htcondor import ads, advertised
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.origin import (
    UNKNOWN_SITE,
    entry_of,
    factory_job,
    group_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import classad2

    from gwmond.config.settings import Attributes

LEAST_MEMORY_MIB = 16
"""No pilot has less; what says so is a dummy."""

_NO_RESOURCE = ("IsDataSlot", "IS_MONITOR_VM", "Offline", "Absent")
_RUNS = ("Claimed", "Preempting")
_CLOSED = ("Drained", "Owner", "Delete", "Shutdown")
_PLAUSIBLE_SKEW_S = 600
_REMAINING_STEP_S = 600
_DELAY_S = 10
"""An ad may be on its way for so long, and clocks that agree as well do no harm."""

_BASE = (
    *("Name", "Machine", "MyAddress", "DaemonStartTime", "LastHeardFrom", "ClassAdLifetime"),
    *("MyCurrentTime", "SlotType", "State", "Activity", "Cpus", "Memory", "GPUs", "Draining"),
    *("TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs"),
    *("ChildCpus", "ChildMemory", "ChildGPUs", "ChildState"),
    *("GLIDEIN_Schedd", "GLIDEIN_ClusterId", "GLIDEIN_ProcId", *advertised.NAMES),
)


def query(attributes: Attributes) -> Query:
    """Return the query for all slots, with only the attributes that are used."""
    names = [*attributes.site, *attributes.entry, *attributes.frontend, *attributes.group]
    names += [*attributes.factory, *attributes.retire, *attributes.die]
    return Query(
        "slots", "Startd", 'SlotType =!= "Dynamic"', (*_BASE, *_NO_RESOURCE, *dict.fromkeys(names))
    )


class Slots(NamedTuple):
    """Pilots, which slots can stand for an empty pilot, and what was wrong.

    There is one sample for each frontend group of an entry: their START expressions differ.
    """

    pilots: tuple[Pilot, ...]
    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...]


class Sample(NamedTuple):
    """A healthy slot whose full ad can serve as a template of its entry and frontend group."""

    entry: EntryKey
    slot: str
    size: Size
    group: str = ""


class _Slot(NamedTuple):
    name: str
    type: str
    state: str
    size: Size
    free: Size
    children: tuple[Size, ...]
    ad: classad2.ClassAd


def decode(
    found: Sequence[classad2.ClassAd], attributes: Attributes, source: str, now: float
) -> Slots:
    """Turn slot ads into pilots.

    Dropped: data slots, monitor slots, ads older than their lifetime (against the newest ad, so
    that a clock that is off does no harm), and, counted as problems, slots without a name.  Where
    a slot's size makes no sense, which is a problem too, its startd's is what the others have; if
    there is no other, it is not known.
    The samples do not depend on the order of the ads, so that a replay asks for those recorded.
    """
    problems: list[Problem] = []
    startds: dict[str, list[_Slot]] = defaultdict(list)
    sizeless: dict[str, classad2.ClassAd] = {}
    failed: list[classad2.ClassAd] = []
    for ad in fresh(found, now):
        if any(ads.truth(ad, name) for name in _NO_RESOURCE):
            continue
        if ads.text(ad, "SlotType") == "Dynamic":
            continue  # the lists of its partitionable slot tell all of it
        if advertised.is_failure(ad):
            failed.append(ad)
            continue
        slot = _slot(ad)
        if isinstance(slot, str):
            name = ads.text(ad, "Name")
            problems.append(Problem(source, slot, name or "ad without a name"))
            if name is not None:
                sizeless.setdefault(_startd(name), ad)
            continue
        startds[_startd(slot.name)].append(slot)
    pilots = [*advertised.pilots(failed, attributes)]
    pilots += [
        _pilot(name, [_sizeless(ad)], attributes, now)._replace(size=None, free=())
        for name, ad in sizeless.items()
        if name not in startds
    ]
    problems += [Problem(source, "no_site", p.name) for p in pilots if p.entry.site == UNKNOWN_SITE]
    samples: dict[tuple[EntryKey, str], dict[Size, str]] = defaultdict(dict)
    tally: dict[tuple[EntryKey, str, Size], int] = defaultdict(int)
    for name, slots in startds.items():
        pilot = _pilot(name, slots, attributes, now)
        if pilot.entry.site == UNKNOWN_SITE:
            problems.append(Problem(source, "no_site", name))
        pilots.append(pilot)
        if pilot.accepting and pilot.size is not None:
            sample = max(slots, key=lambda slot: slot.size)  # a job runs on one slot, not on two
            tally[pilot.entry, pilot.group, sample.size] += 1
            names = samples[pilot.entry, pilot.group]
            names[sample.size] = min(sample.name, names.get(sample.size, sample.name))
    chosen = []
    for (entry, group), sizes in samples.items():
        size = max(sizes, key=lambda s: (tally[entry, group, s], s))
        chosen.append(Sample(entry, sizes[size], size, group))
    return Slots(tuple(pilots), tuple(chosen), tuple(problems))


def fresh(found: Iterable[classad2.ClassAd], now: float) -> list[classad2.ClassAd]:
    """Drop ads that are older than their lifetime, by the collector's own clock.

    That clock is the newest LastHeardFrom; ours is used when the two plausibly agree.
    """
    aged = [(ads.number(ad, "LastHeardFrom"), ad) for ad in found]
    newest = max((heard for heard, _ in aged if heard is not None), default=now)
    reference = now if 0 <= now - newest < _PLAUSIBLE_SKEW_S else newest
    return [
        ad
        for heard, ad in aged
        if heard is None
        or heard + (ads.number(ad, "ClassAdLifetime") or AD_LIFETIME_S) >= reference
    ]


def clock_of(ad: classad2.ClassAd) -> int:
    """Return what to add to a time of a startd's clock to have the collector's, in seconds.

    MyCurrentTime is when the startd sent the ad, by its clock, LastHeardFrom when that came.
    """
    sent, heard = ads.integer(ad, "MyCurrentTime"), ads.integer(ad, "LastHeardFrom")
    ahead = 0 if not sent or not heard else heard - sent
    return ahead if abs(ahead) > _DELAY_S else 0


def _slot(ad: classad2.ClassAd) -> _Slot | str:
    """Decode one slot, or say which problem it has."""
    name = ads.text(ad, "Name")
    if name is None:
        return "no_name"
    kind = ads.text(ad, "SlotType") or "Static"
    free = size_of(ad, ("Cpus", "Memory", "GPUs"))
    if free is None:
        return "bad_size"
    size = free
    if kind == "Partitionable" and ads.number(ad, "TotalSlotCpus") is not None:
        whole = size_of(ad, ("TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs"))
        if whole is None:
            return "bad_size"
        size = whole
    children = _children(ad, size, free) if kind == "Partitionable" else ()
    return _Slot(name, kind, ads.text(ad, "State") or "", size, free, children, ad)


def _children(ad: classad2.ClassAd, size: Size, free: Size) -> tuple[Size, ...]:
    """Return the sizes of the dynamic slots that are claimed.

    A startd that publishes no lists of them (ADVERTISE_PSLOT_ROLLUP_INFORMATION = False) leaves
    what is not free, as if it were one.
    """
    cores, memory = ads.numbers(ad, "ChildCpus"), ads.numbers(ad, "ChildMemory")
    if cores is None or memory is None or len(cores) != len(memory):
        used = Size(
            max(0.0, size.cores - free.cores),
            max(0.0, size.memory_mib - free.memory_mib),
            max(0, size.gpus - free.gpus),
        )
        return (used,) if used.cores > 0 else ()
    gpus = ads.numbers(ad, "ChildGPUs") or []
    states = ads.evaluate(ad, "ChildState")
    claimed = states if isinstance(states, list) else []
    columns = itertools.zip_longest(cores, memory, gpus, claimed)
    return tuple(
        Size(c, m, int(g or 0))
        for c, m, g, state in itertools.islice(columns, len(cores))
        if state in (None, *_RUNS) and _plausible(c, m, g or 0)
    )


def size_of(ad: classad2.ClassAd, names: tuple[str, str, str]) -> Size | None:
    """Return cores, memory and GPUs by these names; None when absent or absurd."""
    cores, memory = ads.number(ad, names[0]), ads.number(ad, names[1])
    gpus = ads.integer(ad, names[2]) or 0
    if cores is None or memory is None or not _plausible(cores, memory, gpus):
        return None
    return Size(cores, memory, gpus)


def _plausible(cores: float, memory: float, gpus: float) -> bool:
    return 0 <= cores <= MAX_CORES and 0 <= memory <= MAX_MEMORY_MIB and 0 <= gpus <= MAX_CORES


def _pilot(name: str, slots: list[_Slot], attributes: Attributes, now: float) -> Pilot:
    free: list[Size] = []
    jobs: list[Size] = []
    closed = {slot.name for slot in slots if _closed(slot)}
    every = len(closed) == len(slots)
    for slot in slots:
        offers = every or slot.name not in closed  # a pilot that refuses still shows what is free
        if slot.type == "Partitionable":
            free += [slot.free] if offers else []
            jobs += slot.children
        elif slot.state in _RUNS:
            jobs.append(slot.size)
        elif offers:
            free.append(slot.size)
    ad = slots[0].ad
    retire = ads.first_number(ad, attributes.retire)
    die = ads.first_number(ad, attributes.die)
    remaining = None if die is None else max(0, int(die - now) // _REMAINING_STEP_S)
    refusing = every or (retire is not None and retire <= now)
    return Pilot(
        name=name,
        started=ads.integer(ad, "DaemonStartTime") or 0,
        clock_s=clock_of(ad),
        entry=entry_of(ad, attributes),
        group=group_of(ad, attributes),
        factory=ads.label(ad, attributes.factory) or "",
        size=_whole([s.size for s in slots]),
        free=tuple(size for size in free if size.cores > 0 or size.gpus > 0),
        jobs=tuple(jobs),
        accepting=not refusing,
        remaining_s=None if remaining is None else remaining * _REMAINING_STEP_S,
        last_heard=max(int(ads.number(s.ad, "LastHeardFrom") or 0) for s in slots),
        node=ads.label(ad, ("Machine",)) or "",
        factory_job=factory_job(ad),
        retires=None if retire is None else int(retire),
        dies=None if die is None else int(die),
        ad_lifetime_s=ads.count(ad, "ClassAdLifetime") or AD_LIFETIME_S,
    )


def _closed(slot: _Slot) -> bool:
    """Return whether a slot takes no more jobs."""
    refuses = ads.truth(slot.ad, "Draining") or ads.truth(slot.ad, "GLIDEIN_Failed")
    return slot.state in _CLOSED or bool(refuses)


def _whole(sizes: Sequence[Size]) -> Size | None:
    """Return the sum, or None if no pilot is so small."""
    cores, memory = sum(s.cores for s in sizes), sum(s.memory_mib for s in sizes)
    if memory < LEAST_MEMORY_MIB or cores <= 0:
        return None
    return Size(cores, memory, sum(s.gpus for s in sizes))


def _startd(slot: str) -> str:
    """Return the name of a slot's startd."""
    return slot.partition("@")[2] or slot


def _sizeless(ad: classad2.ClassAd) -> _Slot:
    """Return a slot whose size makes no sense; it has nothing to offer."""
    name, state = ads.text(ad, "Name") or "", ads.text(ad, "State") or ""
    return _Slot(name, "Partitionable", state, Size(0, 0), Size(0, 0), (), ad)
