"""Which pilots lines of central logs mean, by what they are called.

Units: times are microseconds since the epoch.

1. The factory's job, else the startd's name, where the line tells it.
2. Without a startd's name: site and host, among the pilots that were there then.
3. Where that leads to nothing, and nothing more is waited for (``last``): site and host, among the
   pilots of which only files tell, and no startd's name.  Their output was cut off, or is of a
   failed validation.  The first number of a startd's name is the process that their output tells
   (``glidein_PID_RANDOM``, condor_startup.sh): another one is not meant; one that tells none may
   be, if there is none with this.  Where the pilot's site is not known, process or entry and the
   host tell.  First those that were there then by what is known; then those whose end nothing
   tells, up to ``AGE_US`` after they began.

What an earlier line has told of a pilot's end is not gone by in 3, so that the order of lines makes
no difference.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from gwmond.model.factory_jobs import AGE_US
from gwmond.model.facts import AD_LIFETIME_S
from gwmond.model.own_names import is_own
from gwmond.model.pilot_evidence import CentralEvent, PilotName, short_node
from gwmond.model.times import SECOND_US
from gwmond.pilots.missing_end import last_reported_us
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.rules import FAR_US, Lookup, Rules, sane

_PID = re.compile(r"glidein_([0-9]{1,10})(?:_|$)", re.A)


def recall(
    cache: PilotCache,
    events: Iterable[CentralEvent],
    lookup: Lookup,
    rules: Rules,
    last: Collection[CentralEvent] = (),
) -> None:
    """Take in the stored pilots that lines may mean, also those that have ended.

    ``last``: those of the lines that wait for nothing more.
    """
    events = [event for event in events if sane(event.at_us)]
    jobs = {job for event in events if (job := event.name.factory_job)} - set(cache.by_job)
    for rows in lookup.find_factory_jobs(jobs).values() if jobs else ():
        cache.recall_pilots(rows)
    left = [event for event in events if event.name.factory_job not in cache.by_job]
    # The host is called otherwise in logs than in ads, so that its name is of no use here.
    if startds := {pilot_name.name.startd for pilot_name in left} - {""}:
        cache.recall_pilots(lookup.find_startds(startds))
    placed = [
        pilot_name
        for pilot_name in left
        if (pilot_name.name.site or pilot_name.name.resource) and pilot_name.name.node
    ]
    guard_us = rules.start_guard_us
    if moments := {_moment(pilot_name) for pilot_name in placed if not pilot_name.name.startd}:
        cache.recall_pilots(
            lookup.find_on_nodes(moments, guard_us, guard_us + AD_LIFETIME_S * SECOND_US)
        )
    if last and (
        here := [pilot_name for pilot_name in left if pilot_name.name.node and pilot_name in last]
    ):
        known = {_startd(pilot) for pilot in cache.pilots.values()}
        if moments := {
            _moment(pilot_name) for pilot_name in here if pilot_name.name.startd not in known
        }:
            cache.recall_pilots(lookup.find_nameless(moments, guard_us, AGE_US))


class Index:
    """The pilots in memory that lines may mean, by what they are called."""

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
            if startds and (startd := _startd(pilot)) in startds:
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
        here = [pilot for pilot in self._at(event) if is_own(pilot.identity.name)]
        here += [
            pilot
            for pilot in self._at(event, {""})
            if is_own(pilot.identity.name)
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
            and (pilot.waits or pilot.ended in {"assumed", "logged"})
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
    if pilot.ended in {"reported", "queue"}:
        return pilot.until_us
    if pilot.has_output:  # whether its end is waited for still makes no difference
        return last_reported_us(pilot) + pilot.lifetime_us
    if pilot.end_us is None:
        return FAR_US
    return pilot.gone_us if pilot.gone_us is not None else pilot.end_us + pilot.lifetime_us


def _moment(event: CentralEvent) -> tuple[str, int]:
    """Return where and when a line was written."""
    return short_node(event.name.node), event.at_us


def _startd(pilot: OpenPilot) -> str:
    """Return a pilot's name as central logs have it."""
    return pilot.identity.name.partition("@")[0]


def _pid(name: PilotName) -> int | None:
    """Return the process that a line's startd's name tells.

    >>> _pid(PilotName(startd="glidein_12_345")), _pid(PilotName(startd="other_1"))
    (12, None)
    """
    found = _PID.match(name.startd)
    return int(found[1]) if found is not None else None


def _told_pid(pilot: OpenPilot) -> int | None:
    """Return the process that a pilot's output tells."""
    return pilot.facts.output.pid if pilot.facts.output is not None else None
