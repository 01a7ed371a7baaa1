"""Assign: which pilot each fact is of.  Here pilots begin, and change their names.

Units: times are microseconds since the epoch.

============================ ===================================================================
an ad                        the same startd (name and start), else the same job of the factory,
                             else a pilot of that name which only records of jobs have, else one
                             of that job of which only files tell
an ad that validation failed the same job of the factory, else the startd's name
a job's record               the same startd, else one of its name that was there then
a pilot's output             the startd's name, else the job at its entry, by whose and when
a job of the factory         see ``QueueMatching``
a line of a central log      see ``LogLines``
============================ ===================================================================

What nothing fits is a new pilot.  A pilot has a new name at once; the time that was posted under
the former name is moved when the pilot is posted next.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from gwmond.model.factory_jobs import (
    AGE_US,
    GUARD_US,
    ZONES_US,
    FactoryJob,
    QueueRecord,
    place_name,
)
from gwmond.model.facts import EntryKey, Pilot
from gwmond.model.names import OTHER, OTHER_ENTRY, Names
from gwmond.model.pilot_evidence import CentralEvent, PilotName, PilotOutput, short_node
from gwmond.model.pilot_facts import Assumption
from gwmond.model.pilot_keys import PilotKeys
from gwmond.model.pilot_sources import PilotFacts, replace
from gwmond.model.records import JobRecord
from gwmond.model.run_facts import RunFact
from gwmond.model.stored_pilots import End, PilotIdentity
from gwmond.model.synthetic_names import is_synthetic, same_user, synthetic_name
from gwmond.model.times import SECOND_US
from gwmond.pilots.failed import is_failed
from gwmond.pilots.life import ends_of, start_of
from gwmond.pilots.missing_end import is_given_up, known_start, last_reported_us, may_run_at
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.rules import FAR_US, Rules, sane

KNOWN_ENDS = frozenset({"pilot_output", "shutdown"})
_Submission: TypeAlias = tuple[object, ...]
_LATER_S = 30
_SAME_US = 60 * SECOND_US
"""No pilot's output has its beginning in two ways that differ more."""


class PilotAssignment:
    """Finds the pilots in memory that facts are of; makes pilots and gives them names."""

    def __init__(
        self, cache: PilotCache, rules: Rules, next_id: int, names: Names | None = None
    ) -> None:
        """``names`` says which names of places are kept apart; None: all."""
        self._cache, self._rules, self._next_id, self._names = cache, rules, next_id, names

    def add(self, identity: PilotIdentity, facts: PilotFacts) -> OpenPilot:
        """Return a new pilot; an identity that an ad tells is kept apart already."""
        number, self._next_id = self._next_id, self._next_id + 1
        named = identity if identity.origin == "collector" else self.kept_apart(identity)
        return self._cache.add_pilot(OpenPilot.new(number, named, facts))

    def rename(self, pilot: OpenPilot, named: PilotIdentity) -> None:
        """Let a pilot be another one than it was taken for; one that was set aside stays so."""
        identity = self.kept_apart(named, pilot.identity)
        if identity == pilot.identity or self._cache.is_aside(pilot):
            return
        self._cache.unindex(pilot)
        pilot.identity, pilot.dirty = identity, True
        self._cache.index(pilot)
        pilot.derive()
        pilot.mark_changed(pilot.start_us)  # to be counted again

    def kept_apart(
        self, identity: PilotIdentity, before: PilotIdentity | None = None
    ) -> PilotIdentity:
        """Return an identity under names that are kept apart (``model.names``).

        A pilot that was accounted as one of many (``before``) stays so.  An entry that is known
        from files is its factory's own, so only the site is a name that anybody could choose.
        """
        if before is not None and before.key == OTHER_ENTRY:
            return identity._replace(key=before.key, group=before.group)
        files = identity.origin == "files"
        if self._names is None or (files and identity.key.site == OTHER):
            return identity
        key, group = self._names.admit(identity.key, identity.group)
        if key == OTHER_ENTRY and files:
            return identity._replace(key=EntryKey(OTHER, identity.key.entry))
        return identity._replace(key=key, group=group)

    def pilot_of_ad(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot that an ad is of: the same startd, or the same job of the factory."""
        same = self._cache.by_name.get(shown.name, [])
        for pilot in same:
            if pilot.identity.started == shown.started:
                return pilot
        for pilot in same:
            if shown.factory_job and pilot.identity.factory_job == shown.factory_job:
                return pilot
        guard = self._rules.start_guard_us
        for pilot in same:
            began = shown.started and pilot.last_heard_us >= shown.began * SECOND_US - guard
            if pilot.known_from_jobs_only and began:
                return pilot
        known = self._known_from_files(shown) if shown.factory_job else None
        if known is None and not shown.started:
            return next((pilot for pilot in same if pilot.end_us is None), None)
        return known

    def _known_from_files(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot known only from its factory's files so far."""
        here = self._cache.at_place(shown.entry.entry, shown.factory_job.rpartition("#")[2])
        if shown.entry == OTHER_ENTRY:
            here += self._cache.by_job.get(shown.factory_job, ())
        for pilot in here:
            near = pilot.start_us - ZONES_US <= shown.began * SECOND_US <= pilot.effective_end_us
            if near and pilot.no_output:
                return pilot
            same_job = pilot.identity.factory_job == shown.factory_job
            if same_job and may_run_at(pilot, shown.began * SECOND_US):
                return pilot
        return None

    def pilot_of_failed_ad(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot that only advertises that its validation failed, if it is known."""
        cache = self._cache
        if shown.factory_job:
            here = cache.at_place(shown.entry.entry, shown.factory_job.rpartition("#")[2])
            queued = [pilot for pilot in here if pilot.no_output]
            found = cache.by_job.get(shown.factory_job) or queued
        else:
            found = [pilot for pilot in cache.by_name.get(shown.name, ()) if is_failed(pilot)]
        first_us = min(shown.started, shown.last_heard) * SECOND_US
        same = [pilot for pilot in found if first_us <= pilot.effective_end_us + pilot.lifetime_us]
        return max(same, key=lambda pilot: pilot.start_us, default=None)

    def pilot_of_record(self, record: JobRecord) -> OpenPilot | None:
        """Return the pilot on which a job ran: the same startd, else one that was there then."""
        same = self._cache.by_name.get(record.startd, [])
        if record.started is not None:
            for pilot in same:
                if pilot.identity.started == record.started:
                    return pilot
        time_us, guard = first_time_us(record.fact), self._rules.start_guard_us
        fitting = [
            pilot
            for pilot in same
            if pilot.start_us - guard <= time_us
            and time_us <= (FAR_US if is_given_up(pilot) else pilot.end_us or FAR_US) + guard
            and self._may_be_started(pilot, record.started)
        ]
        return max(fitting, key=lambda pilot: pilot.start_us, default=None)

    def _may_be_started(self, pilot: OpenPilot, started: int | None) -> bool:
        """Return whether a pilot's startd may have been started then, though it first was not.

        A pilot's master starts its startd again; a claim's number has the time when the startd was
        ready, and its ad when its process began; when a pilot known from jobs only began may not be
        known.
        """
        if started is None or pilot.identity.factory_job:
            return True
        if 0 <= started - pilot.identity.started <= _LATER_S:
            return True
        return (
            pilot.known_from_jobs_only
            and pilot.start_us >= started * SECOND_US - self._rules.start_guard_us
        )

    def pilot_of_output(self, output: PilotOutput) -> OpenPilot | None:
        """Return the pilot whose output this is: by its startd's name, else by its job."""
        for pilot in self._cache.by_name.get(startd_of(output), ()):
            later = output.start_us is None or pilot.start_us >= output.start_us
            if later and _may_be_output_of(pilot, output):
                return pilot
        here = self._cache.at_place(output.name.entry, number_of(output))
        near = [pilot for pilot in here if _may_be_output_of(pilot, output)]
        return min(near, key=lambda pilot: (*_apart(pilot, output), pilot.id), default=None)


def first_time_us(fact: RunFact) -> int:
    """Return when a run began, else when it ended, else when that was written."""
    for time_us in (fact.start_us, fact.end_us):
        if time_us is not None:
            return time_us
    return fact.written_us


# --- Outputs of pilots ---------------------------------------------------------------------------


def startd_of(output: PilotOutput) -> str:
    """Return the startd's name, else one of the pilot's own that it alone has at its entry."""
    pilot_name = output.name
    if pilot_name.startd:
        return (
            pilot_name.startd
            if "@" in pilot_name.startd or not pilot_name.node
            else f"{pilot_name.startd}@{pilot_name.node}"
        )
    return synthetic_name(
        number_of(output),
        "" if pilot_name.schedd else pilot_name.user,
        pilot_name.instance,
        pilot_name.entry,
    )


def number_of(output: PilotOutput) -> str:
    """Return ``cluster.proc`` of a pilot's job in its factory."""
    return f"{output.name.cluster}.{output.name.proc}"


def place_of_output(output: PilotOutput) -> str:
    """Return where facts of the factory's queue and summary are of an output's pilot."""
    return place_name(output.name.entry, number_of(output))


def _may_be_output_of(pilot: OpenPilot, output: PilotOutput) -> bool:
    """Return whether no other schedd is known for a pilot, and its time is about the output's."""
    job, known = output.name.factory_job, pilot.identity.factory_job
    if job and known and known != job and not known.startswith("#"):
        return False
    if job != known and not same_user(pilot.identity.name, output.name.user):
        return False
    times = output.times
    if not times:
        return True
    begins = known_start(pilot) and output.start_us is not None
    if begins and abs(pilot.start_us - (output.start_us or 0)) > _SAME_US:
        return False  # what it runs as starts again, and its output is written anew
    return (
        pilot.start_us - ZONES_US <= max(times) and min(times) <= pilot.effective_end_us + ZONES_US
    )


def _apart(pilot: OpenPilot, output: PilotOutput) -> tuple[int, int]:
    """Return how far a pilot's life and its output are apart, and their beginnings."""
    first_us, last_us = min(output.times, default=0), max(output.times, default=0)
    start_us = output.start_us if output.start_us is not None else first_us
    apart_us = max(0, first_us - pilot.effective_end_us, pilot.start_us - last_us)
    return apart_us, abs(start_us - pilot.start_us)


# --- Jobs of a factory's queue and summary -------------------------------------------------------


class QueueMatching:
    """Which pilots that are known are which jobs of their factory, by the index of the job.

    A pilot may be a job if it began while that was there, by clocks that differ by ``GUARD_US``.
    Of the executions of one job, which follow each other and may be as near, it is the likeliest:
    where its beginning and end differ least.  Another execution through most of which it lived is
    no pilot: a job runs once at a time.

    - ``told``: which a source of its own has; ``made``: of which only its factory does.
    - ``alone``: jobs of which no pilot is known, ``made`` apart; the others are not certain.
    - ``covered``: executions of which no pilot is known, as one of the same job lived then.
    - ``stale``: pilots that were made of a job which by now is none, or another's.  Of one that
      began before the first event that is kept it is not known.
    """

    def __init__(
        self,
        place: QueueRecord,
        jobs: Sequence[FactoryJob],
        pilots: Sequence[OpenPilot],
        made: Sequence[OpenPilot],
    ) -> None:
        fitting = [[pilot for pilot in pilots if _fits(pilot, job)] for job in jobs]
        taken = {pilot.id: _choose(pilot, jobs, fitting) for pilot in pilots}
        claims = Counter(pilot.id for some in fitting for pilot in some)
        self.told: dict[int, OpenPilot] = {}
        self.alone: set[int] = set()
        self.covered: set[int] = set()
        for index, (job, some) in enumerate(zip(jobs, fitting, strict=True)):
            if job.mixed:
                continue
            if len(some) == 1 and claims[some[0].id] == 1:
                self.told[index] = some[0]
            elif not some and any(
                _covers(pilot, job) and _submission(job) in taken[pilot.id] for pilot in pilots
            ):
                self.covered.add(index)
            elif not some and not any(
                _fits(pilot, job, ZONES_US) and _submission(job) not in taken[pilot.id]
                for pilot in pilots
            ):
                self.alone.add(index)
        one = {pilot.id for job in jobs for pilot in _of_job(made, job)}
        of_jobs = [pilot for pilot in made if pilot.id in one or _is_of(place, pilot)]
        alone = {index: jobs[index] for index in self.alone if jobs[index].life is not None}
        self.made = _made_of(of_jobs, alone, place.cut_us)
        self.stale = [
            job for job in of_jobs if job not in self.made.values() and job.start_us >= place.cut_us
        ]


def _choose(
    pilot: OpenPilot, jobs: Sequence[FactoryJob], fitting: Sequence[list[OpenPilot]]
) -> set[_Submission]:
    """Let a pilot be one execution of each job only; return the jobs, by their submissions."""
    same: defaultdict[_Submission, list[int]] = defaultdict(list)
    for index, some in enumerate(fitting):
        if pilot in some and (submission := _submission(jobs[index])):
            same[submission].append(index)
    for indices in same.values():
        best = min(indices, key=lambda index: (_differs(pilot, jobs[index]), -index))
        for index in indices:
            if index != best:
                fitting[index].remove(pilot)
    return set(same)


def _fits(pilot: OpenPilot, job: FactoryJob, guard_us: int = GUARD_US) -> bool:
    """Return whether a pilot may be a job: by when it began, and by whose it is."""
    return same_user(pilot.identity.name, job.user) and job.fits(_first_us(pilot), guard_us)


def _of_job(pilots: Sequence[OpenPilot], job: FactoryJob) -> list[OpenPilot]:
    """Return which pilots that are known from their factory only may be this job.

    One that was made of a line alone may have begun long before it was thought to have.
    """
    first, last = job.start_within_us()
    ends = {*job.written_us, job.ended_us}
    return [
        pilot
        for pilot in pilots
        if first <= pilot.start_us <= last or pilot.end_us in ends
        if same_user(pilot.identity.name, job.user)
    ]


def _is_of(place: QueueRecord, pilot: OpenPilot) -> bool:
    """Return whether a pilot was made of what is reported at a place: some of that was its end."""
    ends = [(event.at_us, event.name.user) for event in place.events]
    ends += [(line.written_us or 0, line.name.user) for line in place.lines]
    return any(at == pilot.end_us and same_user(pilot.identity.name, user) for at, user in ends)


def _made_of(
    pilots: Sequence[OpenPilot], jobs: dict[int, FactoryJob], cut_us: int
) -> dict[int, OpenPilot]:
    """Return which pilot known from its factory only is which job: the nearest are the same.

    What began since ``cut_us`` is none that began before.
    """
    pairs = [
        (abs((job.life or (0, 0))[0] - pilot.start_us), index, pilot.id, pilot)
        for index, job in jobs.items()
        for pilot in _of_job(pilots, job)
        if pilot.start_us >= cut_us or (job.life or (0, 0))[0] < cut_us
    ]
    found: dict[int, OpenPilot] = {}
    for _, index, _, pilot in sorted(pairs, key=lambda pair: pair[:3]):
        if index not in found and pilot not in found.values():
            found[index] = pilot
    return found


def _covers(pilot: OpenPilot, job: FactoryJob) -> bool:
    """Return whether a pilot lived through more than half of an execution.

    Clocks differ, so that it may seem to have lived in a part of one that was another's.
    """
    if job.life is None or Assumption.BEGIN in pilot.assumed:
        return False
    start_us, end_us = job.life
    both_us = min(_last_us(pilot), end_us) - max(pilot.start_us, start_us)
    return 2 * both_us > end_us - start_us


def _submission(job: FactoryJob) -> _Submission:
    """Return what executions of one job have in common; empty for a summary alone."""
    return () if job.first_us is None else (job.instance, job.user, job.first_us)


def _differs(pilot: OpenPilot, job: FactoryJob) -> int:
    """Return by how much an execution differs from what is known of a pilot."""
    first_us = _first_us(pilot)
    early_us = (job.started_us if job.started_us is not None else first_us) - first_us
    differs_us = max(0, early_us) if Assumption.BEGIN in pilot.assumed else abs(early_us)
    if job.ended_us is None:
        return differs_us
    late_us = _last_us(pilot) - job.ended_us
    source, _ = _end_without_queue(pilot)
    return differs_us + (abs(late_us) if source in KNOWN_ENDS else max(0, late_us))


def _first_us(pilot: OpenPilot) -> int:
    """Return the first that is known of a pilot, whatever its job says of its beginning."""
    first_us = start_of(pilot.known).first_us
    return pilot.start_us if first_us is None else first_us


def _end_without_queue(pilot: OpenPilot) -> tuple[End, int]:
    """Return the best source of a pilot's end beside the queue, and what it says."""
    known = pilot.known
    ends = ends_of(known._replace(facts=replace(known.facts, queue=None)))
    return next(iter(ends.items()), ("", 0))


def _last_us(pilot: OpenPilot) -> int:
    """Return the last that is known of a pilot, whatever its job says of its end."""
    _, end_us = _end_without_queue(pilot)
    return (
        max(end_us, pilot.last_heard_us) if pilot.end_source == "queue" else pilot.effective_end_us
    )


# --- Lines of central logs ----------------------------------------------------------------------

_PID = re.compile(r"glidein_([0-9]{1,10})(?:_|$)", re.A)


def line_keys(
    cache: PilotCache,
    events: Iterable[CentralEvent],
    rules: Rules,
    last: Collection[CentralEvent] = (),
) -> PilotKeys:
    """Return the keys of stored pilots that lines may mean, also of those that have ended.

    ``last``: those of the lines that wait for nothing more.
    """
    keys = PilotKeys(guard_us=rules.start_guard_us)
    left = [event for event in events if sane(event.at_us)]
    keys.factory_jobs = {job for event in left if (job := event.name.factory_job)}
    keys.factory_jobs -= cache.by_job.keys()
    left = [event for event in left if event.name.factory_job not in cache.by_job]
    # The host is called otherwise in logs than in ads, so that its name is of no use here.
    keys.bare_startds = {event.name.startd for event in left} - {""}
    placed = [event for event in left if event.name.node and not event.name.startd]
    keys.on_nodes = {_moment(event) for event in placed if event.name.site or event.name.resource}
    known = {_bare_startd(pilot) for pilot in cache.pilots.values()} if last else set()
    keys.nameless = {
        _moment(event)
        for event in left
        if event in last and event.name.node and event.name.startd not in known
    }
    return keys


class LogLines:
    """The pilots in memory that lines of central logs may mean, by what they are called.

    1. The factory's job, else the startd's name, where the line has it.
    2. Without a startd's name: site and host, among the pilots that were there then.
    3. Where that leads to nothing, and nothing more is waited for (``last``): site and host, among
       the pilots known from files only, without a startd's name.  Their output was cut off, or is
       of a failed validation.  The first number of a startd's name is the process in their
       output (``glidein_PID_RANDOM``, condor_startup.sh): another one is not meant; one without
       may be, if there is none with this.  Where the pilot's site is not known, process
       or entry and the host decide.  First those that were there then by what is known; then those
       whose end is not known, up to ``AGE_US`` after they began.

    What an earlier line has reported of a pilot's end is not gone by in 3, so that the order of
    lines makes no difference.
    """

    def __init__(self, events: Collection[CentralEvent], cache: PilotCache, rules: Rules) -> None:
        self._guard_us = rules.start_guard_us
        self._jobs = cache.by_job
        self._startds: defaultdict[str, list[OpenPilot]] = defaultdict(list)
        self._nodes: defaultdict[tuple[str, str], list[OpenPilot]] = defaultdict(list)
        names = [event.name for event in events]
        startds = {name.startd for name in names} - {""}
        nodes = {short_node(name.node) for name in names} - {""}
        for pilot in cache.pilots.values() if startds or nodes else ():
            key = pilot.identity
            if startds and (startd := _bare_startd(pilot)) in startds:
                self._startds[startd].append(pilot)
            if nodes and (node := short_node(key.node)) in nodes:
                self._nodes[key.key.site.lower(), node].append(pilot)
                if key.key.site == key.key.entry:  # it may be that its site is not known
                    self._nodes["", node].append(pilot)

    def find(self, event: CentralEvent, *, last: bool) -> list[OpenPilot]:
        """Return the pilots that may be meant; ``last``: nothing more is waited for."""
        pilot_name = event.name
        if job := pilot_name.factory_job:
            found = self._jobs.get(job, [])
            if found or not pilot_name.startd:
                return [pilot for pilot in found if self._begun(pilot, event)][:1]
        found = self._of_startd(event) if pilot_name.startd else self._there(event, self._at(event))
        return found or (self._nameless(event) if last else [])

    def _of_startd(self, event: CentralEvent) -> list[OpenPilot]:
        """Return the pilots of a startd's name."""
        pilot_name = event.name
        found = [p for p in self._startds.get(pilot_name.startd, ()) if self._begun(p, event)]
        here = [
            pilot
            for pilot in found
            if short_node(pilot.identity.node) == short_node(pilot_name.node)
        ]
        # A pilot's master starts its startd again; then the last one is meant.
        by_start = sorted(here or found, key=lambda pilot: pilot.start_us)
        return by_start[-1:] if len({p.identity.name for p in by_start}) == 1 else by_start

    def _nameless(self, event: CentralEvent) -> list[OpenPilot]:
        """Return the pilots without a startd's name that may have been there then."""
        pid, entry = _pid(event.name), event.name.entry
        here = [pilot for pilot in self._at(event) if is_synthetic(pilot.identity.name)]
        here += [
            pilot
            for pilot in self._at(event, {""})
            if is_synthetic(pilot.identity.name)
            and pilot not in here
            and (entry or (pid is not None and _told_pid(pilot) == pid))
        ]
        if pid is not None:
            same = [pilot for pilot in here if _told_pid(pilot) == pid]
            here = same or [pilot for pilot in here if _told_pid(pilot) is None]
        return self._there(event, here) or [
            pilot
            for pilot in here
            if pilot.has_output
            and (pilot.end_unknown or pilot.end_source in {"assumed", "central_log"})
            and event.at_us <= pilot.start_us + AGE_US
        ]

    def _at(self, event: CentralEvent, sites: Collection[str] = ()) -> list[OpenPilot]:
        """Return the pilots of its site, or of other ``sites``, and host that had begun by then."""
        pilot_name = event.name
        if not pilot_name.node:
            return []
        node = short_node(pilot_name.node)  # what is a site may be either, as slots are configured
        sites = sites or {name.lower() for name in (pilot_name.site, pilot_name.resource) if name}
        return [
            pilot
            for site in sorted(sites)
            for pilot in self._nodes.get((site, node), ())
            if self._begun(pilot, event) and pilot_name.entry in {"", pilot.identity.key.entry}
        ]

    def _there(self, event: CentralEvent, pilots: Iterable[OpenPilot]) -> list[OpenPilot]:
        """Return those that, by what is known of their ends, may not have been gone by then."""
        return [pilot for pilot in pilots if event.at_us <= _gone(pilot) + self._guard_us]

    def _begun(self, pilot: OpenPilot, event: CentralEvent) -> bool:
        return pilot.start_us - self._guard_us <= event.at_us


def _gone(pilot: OpenPilot) -> int:
    """Return up to when a pilot may have been there."""
    if pilot.end_source in {"pilot_output", "queue"}:
        return pilot.effective_end_us
    if pilot.has_output:  # whether its end is waited for still makes no difference
        return last_reported_us(pilot) + pilot.lifetime_us
    if pilot.end_us is None:
        return FAR_US
    return (
        pilot.missing_since_us
        if pilot.missing_since_us is not None
        else pilot.end_us + pilot.lifetime_us
    )


def _moment(event: CentralEvent) -> tuple[str, int]:
    """Return where and when a line was written."""
    return short_node(event.name.node), event.at_us


def _bare_startd(pilot: OpenPilot) -> str:
    """Return a pilot's name as central logs have it."""
    return pilot.identity.name.partition("@")[0]


def _pid(name: PilotName) -> int | None:
    """Return the process in the startd's name of a line.

    >>> _pid(PilotName(startd="glidein_12_345")), _pid(PilotName(startd="other_1"))
    (12, None)
    """
    found = _PID.match(name.startd)
    return int(found[1]) if found is not None else None


def _told_pid(pilot: OpenPilot) -> int | None:
    """Return the process in a pilot's output."""
    return pilot.facts.output.pid if pilot.facts.output is not None else None
