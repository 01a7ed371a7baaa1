"""Source: slot ads of a collector, taken together to pilots.

Attributes as in HTCondor's manual, "Machine ClassAd Attributes".  A partitionable slot's Cpus,
Memory and GPUs are what remains; TotalSlotCpus and so on its size; ChildCpus and so on list its
dynamic slots, whose own ads (several for each pilot) are therefore not asked for.  The pilot's own
attributes (GLIDEIN_*, GLIDECLIENT_*) are those of GlideinWMS unless configured.

Ads by which a pilot only reports that its validation failed are not slots (see ``advertised``).

Virtual slots: of GLIDEIN_Resource_Slots (``ioslot,2,200,static``) GlideinWMS makes slots of the
types 3 and above (2 is its monitor's), and adds one core to NUM_CPUS for each piece of the resource
(creation/web_base/condor_startup.sh, EXTRA_SLOTS_NUM).  Their cores are not there; their memory is
taken from the pilot's own, and their GPUs are real.  So they are no free slots (but for GPUs), a
job on one has no cores, and the pilot has the cores of its other slots with the memory of all.

Pilots that take the next job while the last one's output is sent (etc/condor/overlap.conf) have a
slot that is larger than they are: RealCpus and RealMemory are there, and of their dynamic slots
ChildBusyCpus and ChildBusyMemory, 0 where a job only sends.  While no core is free such a slot is
"Owner" (IsOwner), which does not mean that it refuses.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import EntryKey, Pilot, Problem, Size
from gwmond.model.problem_names import ProblemName
from gwmond.sources.htcondor import ads, pilot_ads
from gwmond.sources.htcondor.access import CollectorSource, Query
from gwmond.sources.htcondor.pilot_ads import UNKNOWN_SITE
from gwmond.sources.htcondor.pilots import advertised

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import classad2

    from gwmond.config.settings import Attributes

LEAST_MEMORY_MIB = 16
"""No pilot has less; what says so is a dummy."""

NO_RESOURCE = ("IsDataSlot", "IS_MONITOR_VM", "Offline", "Absent")
"""What says of a slot that it is not for jobs."""
_FIRST_VIRTUAL_TYPE = 3
_RUNS = ("Claimed", "Preempting")
_CLOSED = ("Drained", "Owner", "Delete", "Shutdown")
_REMAINING_STEP_S = 600

VERSION = ("GLIDECLIENT_Signature", "GLIDECLIENT_Group_Signature")
"""Of the configuration of frontend and group with which a pilot began, START included
(glidein_startup.sh: the signatures of their description files)."""
_NAMES = (
    *("SlotType", "State", "Activity", "Cpus", "Memory", "GPUs", "Draining"),
    *("TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs"),
    *("ChildCpus", "ChildMemory", "ChildGPUs", "ChildState", "ChildActivity"),
    *("SlotTypeID", "MachineResources", *VERSION),
    *("RealCpus", "RealMemory", "ChildBusyCpus", "ChildBusyMemory"),
    *("MyAddress", *advertised.NAMES, *NO_RESOURCE),
)

KIND, EVERY = "slots", 'SlotType =!= "Dynamic"'


def query(attributes: Attributes, part: tuple[int, int] = (0, 1)) -> Query:
    """Return the query for all slots, with only the attributes that are used.

    ``part``: only for those of part k of n, as (k, n).
    """
    names = (*pilot_ads.NAMES, *_NAMES, *pilot_ads.configured(attributes))
    return Query(KIND, "Startd", EVERY + pilot_ads.in_part(part), names)


class Slots(NamedTuple):
    """Pilots, what kinds of slots they have, and what was wrong."""

    pilots: tuple[Pilot, ...]
    kinds: tuple[SampleSlot, ...]
    problems: tuple[Problem, ...]

    @property
    def samples(self) -> tuple[SampleSlot, ...]:
        """Which slots can stand for an empty pilot, one for each frontend group of an entry.

        Their START expressions differ.  It is of the configuration with which the group's newest
        pilot there began, and of the most frequent size.
        """
        alike: defaultdict[tuple[EntryKey, str], list[SampleSlot]] = defaultdict(list)
        for kind in self.kinds:
            alike[kind.entry, kind.group].append(kind)
        chosen = []
        for kinds in alike.values():
            newest = max(kinds, key=lambda kind: (kind.started, kind.version))
            same = [kind for kind in kinds if kind.version == newest.version]
            sample = max(same, key=lambda kind: (kind.pilots, kind.size))
            chosen.append(sample._replace(started=newest.started))
        return tuple(chosen)


class SampleSlot(NamedTuple):
    """A healthy slot whose full ad can serve as a template of its entry and frontend group.

    ``version``: of the group's configuration (see ``VERSION``), with which the newest pilot there
    began at ``started`` (epoch seconds).  ``pilots``: how many have a slot of this size.
    """

    entry: EntryKey
    slot: str
    size: Size
    group: str = ""
    version: str = ""
    started: int = 0
    pilots: int = 1


def joined(parts: Sequence[Slots]) -> Slots:
    """Return the slots of all parts."""
    return Slots(
        tuple(pilot for part in parts for pilot in part.pilots),
        _counted(kind for part in parts for kind in part.kinds),
        tuple(problem for part in parts for problem in part.problems),
    )


def _counted(samples: Iterable[SampleSlot]) -> tuple[SampleSlot, ...]:
    """Return one of each kind, and how many there are."""
    kinds: dict[tuple[object, ...], SampleSlot] = {}
    for one in samples:
        key = one.entry, one.group, one.version, one.size
        if (same := kinds.get(key)) is None:
            kinds[key] = one
        else:
            names, times = (same.slot, one.slot), (same.started, one.started)
            kinds[key] = same._replace(
                slot=min(names), started=max(times), pilots=same.pilots + one.pilots
            )
    return tuple(kinds.values())


class _Slot(NamedTuple):
    name: str
    type: str
    state: str
    size: Size
    free: Size
    children: tuple[Size, ...]
    ad: classad2.ClassAd
    virtual: bool = False
    senders: float = 0.0


def decode(
    slot_ads: Sequence[classad2.ClassAd], attributes: Attributes, source: str, now: float
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
    for ad in ads.fresh(slot_ads, now):
        if is_no_resource(ad):
            continue
        if ads.text(ad, "SlotType") == "Dynamic":
            continue  # the lists of its partitionable slot have all of it
        if advertised.is_failure(ad):
            failed.append(ad)
            continue
        slot = _slot(ad)
        if isinstance(slot, str):
            name = ads.text(ad, "Name")
            problems.append(Problem(source, slot, name or "ad without a name"))
            if name is not None:
                sizeless.setdefault(startd_of(name), ad)
            continue
        startds[startd_of(slot.name)].append(slot)
    pilots = [*advertised.pilots(failed, attributes)]
    pilots += [
        _pilot(name, [_sizeless(ad)], attributes, now)._replace(size=None, free=())
        for name, ad in sizeless.items()
        if name not in startds
    ]
    problems += [
        Problem(source, ProblemName.NO_SITE, p.name) for p in pilots if p.entry.site == UNKNOWN_SITE
    ]
    samples: list[SampleSlot] = []
    for name, slots in startds.items():
        pilot = _pilot(name, slots, attributes, now)
        if pilot.entry.site == UNKNOWN_SITE:
            problems.append(Problem(source, ProblemName.NO_SITE, name))
        pilots.append(pilot)
        if pilot.accepting and pilot.size is not None:
            # a job runs on one slot, not on two
            sample = max(slots, key=lambda slot: (not slot.virtual, slot.size))
            version = " ".join(ads.text(sample.ad, name) or "" for name in VERSION).strip()
            place = pilot.entry, sample.name, sample.size, pilot.group
            samples.append(SampleSlot(*place, version, pilot.started))
    return Slots(tuple(pilots), _counted(samples), tuple(problems))


def is_no_resource(ad: classad2.ClassAd) -> bool:
    """Return whether a slot is not for jobs."""
    return any(ads.truth(ad, name) for name in NO_RESOURCE)


def _slot(ad: classad2.ClassAd) -> _Slot | ProblemName:
    """Decode one slot, or say which problem it has."""
    name = ads.text(ad, "Name")
    if name is None:
        return ProblemName.NO_NAME
    kind = ads.text(ad, "SlotType") or "Static"
    free = pilot_ads.size_of(ad, ("Cpus", "Memory", "GPUs"))
    if free is None:
        return ProblemName.BAD_SIZE
    size = free
    if kind == "Partitionable" and ads.number(ad, "TotalSlotCpus") is not None:
        whole = pilot_ads.size_of(ad, ("TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs"))
        if whole is None:
            return ProblemName.BAD_SIZE
        size = whole
    state = ads.text(ad, "State") or ""
    if kind == "Partitionable" and (real := _real(ad, size)) is not None:
        children = _children(ad, size, free, ("ChildBusyCpus", "ChildBusyMemory"))
        left = Size(
            max(0.0, min(free.cores, real.cores - sum(child.cores for child in children))),
            max(0.0, min(free.memory_mib, real.memory_mib - sum(c.memory_mib for c in children))),
            free.gpus,
        )
        children = tuple(child for child in children if any(child))
        senders = size.cores - real.cores
        return _Slot(name, kind, state, real, left, children, ad, senders=senders)
    children = _children(ad, size, free) if kind == "Partitionable" else ()
    slot = _Slot(name, kind, state, size, free, children, ad)
    return _without_cores(slot) if _is_virtual(ad) else slot


def _real(ad: classad2.ClassAd, size: Size) -> Size | None:
    """Return what is there of a slot with room for jobs that only send; None: it has none."""
    cores, memory_mib = ads.number(ad, "RealCpus"), ads.number(ad, "RealMemory")
    if cores is None or memory_mib is None or not 0 < cores < size.cores:
        return None
    return size._replace(cores=cores, memory_mib=min(max(memory_mib, 0.0), size.memory_mib))


def _is_virtual(ad: classad2.ClassAd) -> bool:
    """Return whether a slot is one of GLIDEIN_Resource_Slots, whose cores are not there."""
    special = pilot_ads.special_resources(ad) or bool(ads.number(ad, "TotalSlotGPUs"))
    return special and (ads.integer(ad, "SlotTypeID") or 0) >= _FIRST_VIRTUAL_TYPE


def _without_cores(slot: _Slot) -> _Slot:
    return slot._replace(
        size=slot.size.without_cores,
        children=tuple(child.without_cores for child in slot.children),
        virtual=True,
    )


def _children(
    ad: classad2.ClassAd,
    size: Size,
    free: Size,
    names: tuple[str, str] = ("ChildCpus", "ChildMemory"),
) -> tuple[Size, ...]:
    """Return the sizes of the dynamic slots that are claimed, by the lists of these names.

    A startd that publishes no lists of them (ADVERTISE_PSLOT_ROLLUP_INFORMATION = False) leaves
    what is not free, as if it were one.
    """
    cores, memory = ads.numbers(ad, names[0]), ads.numbers(ad, names[1])
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
        if state in (None, *_RUNS) and pilot_ads.is_plausible(c, m, g or 0)
    )


def _idle_claims(slot: _Slot) -> int:
    """Return on how many claims of a slot no job runs."""
    children = slot.type == "Partitionable"
    names = ("ChildState", "ChildActivity") if children else ("State", "Activity")
    values = [ads.evaluate(slot.ad, name) for name in names]
    lists = [value if isinstance(value, list) else [value] for value in values]
    return sum(pair == ("Claimed", "Idle") for pair in zip(*lists, strict=False))


def _pilot(name: str, slots: list[_Slot], attributes: Attributes, now: float) -> Pilot:
    free: list[Size] = []
    jobs: list[Size] = []
    closed = {slot.name for slot in slots if _closed(slot)}
    every = len(closed) == len(slots)
    for slot in slots:
        # A pilot that refuses still shows what is free.
        offers = (every or slot.name not in closed) and (not slot.virtual or slot.size.gpus > 0)
        if slot.type == "Partitionable":
            free += [slot.free] if offers else []
            jobs += slot.children
        elif slot.state in _RUNS:
            jobs.append(slot.size)
        elif offers:
            free.append(slot.size)
    pilot = pilot_ads.pilot_of(slots[0].ad, attributes)
    remaining = None if pilot.dies is None else max(0, int(pilot.dies - now) // _REMAINING_STEP_S)
    refusing = every or (pilot.retires is not None and pilot.retires <= now)
    return pilot._replace(
        name=name,
        size=_whole([s.size for s in slots]),
        free=ads.shared(tuple(size for size in free if size.cores > 0 or size.gpus > 0)),
        jobs=ads.shared(tuple(jobs)),
        accepting=not refusing,
        remaining_s=None if remaining is None else remaining * _REMAINING_STEP_S,
        last_heard=max(int(ads.number(s.ad, "LastHeardFrom") or 0) for s in slots),
        idle_claims=sum(map(_idle_claims, slots)),
        virtual_slots=tuple(sorted(s.name.partition("@")[0] for s in slots if s.virtual)),
        senders=sum(slot.senders for slot in slots),
        draining=all(_drains(slot) for slot in slots),
    )


def _closed(slot: _Slot) -> bool:
    """Return whether a slot takes no more jobs."""
    if _drains(slot) or ads.truth(slot.ad, "GLIDEIN_Failed"):
        return True
    return slot.state in _CLOSED and not (slot.senders and slot.state == "Owner")


def _drains(slot: _Slot) -> bool:
    return slot.state == "Drained" or ads.truth(slot.ad, "Draining") is True


def _whole(sizes: Sequence[Size]) -> Size | None:
    """Return the sum, or None if no pilot is so small."""
    cores, memory = sum(s.cores for s in sizes), sum(s.memory_mib for s in sizes)
    if memory < LEAST_MEMORY_MIB or cores <= 0:
        return None
    return Size(cores, memory, sum(s.gpus for s in sizes))


def startd_of(slot: str) -> str:
    """Return the name of a slot's startd."""
    return slot.partition("@")[2] or slot


def _sizeless(ad: classad2.ClassAd) -> _Slot:
    """Return a slot whose size makes no sense; it has nothing to offer."""
    name, state = ads.text(ad, "Name") or "", ads.text(ad, "State") or ""
    return _Slot(name, "Partitionable", state, Size(0, 0), Size(0, 0), (), ad)


SOURCES = (
    CollectorSource(
        KIND,
        lambda t: query(t.attributes, t.part),
        lambda answer, t: decode(answer, t.attributes, t.name, t.now),
        large=True,
        joined=joined,
    ),
)
