"""Which pilots lines of central logs are about.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from gwmond.model.factory.jobs import AGE_US
from gwmond.model.pilots.file_facts import CentralEvent, PilotName, is_synthetic, short_node
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.pilots.life.derive import BETTER_THAN_LOG
from gwmond.pilots.life.rules import FAR_US, Rules, sane
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.ends import last_reported_us
from gwmond.pilots.memory.open_pilot import OpenPilot

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
    startds = {_bare_startd(pilot) for pilot in cache.pilots.values()} if last else set()
    keys.nameless = {
        _moment(event)
        for event in left
        if event in last and event.name.node and event.name.startd not in startds
    }
    return keys


class LogLines:
    """The pilots in memory that lines of central logs may mean, by what they are called.

    1. The factory's job, else the startd's name, where the line has it.
    2. Without a startd's name: site and host, among the pilots that were there then.
    3. Where that leads to nothing, and nothing more is waited for (``last``): site and host, among
       the pilots known from files only, without a startd's name.  Their output was cut off, or is
       of a failed validation.  The first number of a startd's name is the process in their
       output (``glidein_PID_RANDOM``, condor_startup.sh): a pilot with another is not meant; a
       pilot without may be, if none has this.  Where the pilot's site is not known, process
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
            meant = self._jobs.get(job, [])
            if meant or not pilot_name.startd:
                return [pilot for pilot in meant if self._begun(pilot, event)][:1]
        meant = self._of_startd(event) if pilot_name.startd else self._there(event, self._at(event))
        return meant or (self._nameless(event) if last else [])

    def _of_startd(self, event: CentralEvent) -> list[OpenPilot]:
        """Return the pilots of a startd's name."""
        pilot_name = event.name
        begun = [p for p in self._startds.get(pilot_name.startd, ()) if self._begun(p, event)]
        here = [
            pilot
            for pilot in begun
            if short_node(pilot.identity.node) == short_node(pilot_name.node)
        ]
        # A pilot's master starts its startd again; then the last one is meant.
        by_start = sorted(here or begun, key=lambda pilot: pilot.start_us)
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
    if pilot.end_source in BETTER_THAN_LOG:
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
    match = _PID.match(name.startd)
    return int(match[1]) if match is not None else None


def _told_pid(pilot: OpenPilot) -> int | None:
    """Return the process in a pilot's output."""
    return pilot.facts.output.pid if pilot.facts.output is not None else None
