"""Which pilots lines of central logs mean, by what they are called.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from gwmond.accounting.pilot_evidence import CentralEvent, short_node
from gwmond.book.open_pilot import OpenPilot
from gwmond.book.rules import FAR_US, SECOND_US, Lookup, Rules, sane
from gwmond.book.shelf import Shelf
from gwmond.facts import AD_LIFETIME_S


def recall(shelf: Shelf, events: Iterable[CentralEvent], lookup: Lookup, rules: Rules) -> None:
    """Take in the stored pilots that lines may mean, also those that have ended."""
    events = [of for of in events if sane(of.at_us)]
    jobs = {job for of in events if (job := of.name.factory_job)} - set(shelf.by_job)
    for rows in lookup.find_factory_jobs(jobs).values() if jobs else ():
        shelf.recall_pilots(rows)
    left = [of for of in events if of.name.factory_job not in shelf.by_job]
    # The host is called otherwise in logs than in ads, so that its name is of no use here.
    if startds := {of.name.startd for of in left} - {""}:
        shelf.recall_pilots(lookup.find_startds(startds))
    moments = {
        (short_node(of.name.node), of.at_us)
        for of in left
        if not of.name.startd and (of.name.site or of.name.resource) and of.name.node
    }
    if moments:
        guard_us = rules.start_guard_us
        shelf.recall_pilots(
            lookup.find_on_nodes(moments, guard_us, guard_us + AD_LIFETIME_S * SECOND_US)
        )


class Index:
    """The pilots in memory that lines may mean, by what they are called."""

    def __init__(self, events: Collection[CentralEvent], shelf: Shelf, rules: Rules) -> None:
        self._guard_us = rules.start_guard_us
        self._jobs = shelf.by_job
        self._startds: defaultdict[str, list[OpenPilot]] = defaultdict(list)
        self._nodes: defaultdict[tuple[str, str], list[OpenPilot]] = defaultdict(list)
        names = [event.name for event in events]
        startds = {name.startd for name in names} - {""}
        nodes = {short_node(name.node) for name in names if not name.startd} - {""}
        for pilot in shelf.pilots.values() if startds or nodes else ():
            of = pilot.identity
            if startds and (startd := of.name.partition("@")[0]) in startds:
                self._startds[startd].append(pilot)
            if nodes and (node := short_node(of.node)) in nodes:
                self._nodes[of.key.site.lower(), node].append(pilot)

    def find(self, event: CentralEvent) -> list[OpenPilot]:
        """Return the pilots that may be meant."""
        of = event.name
        if job := of.factory_job:
            found = self._jobs.get(job, [])
            if found or not of.startd:
                return [pilot for pilot in found if self._begun(pilot, event)][:1]
        if of.startd:
            found = [p for p in self._startds.get(of.startd, ()) if self._begun(p, event)]
            here = [
                pilot for pilot in found if short_node(pilot.identity.node) == short_node(of.node)
            ]
            # A pilot's master starts its startd again; then the last one is meant.
            by_start = sorted(here or found, key=lambda pilot: pilot.start_us)
            return by_start[-1:] if len({p.identity.name for p in by_start}) == 1 else by_start
        if not of.node:
            return []
        node = short_node(of.node)  # what is a site may be either, as slots are configured
        sites = {name.lower() for name in (of.site, of.resource) if name}
        return [
            pilot
            for site in sorted(sites)
            for pilot in self._nodes.get((site, node), ())
            if self._begun(pilot, event)
            and event.at_us <= _gone(pilot) + self._guard_us
            and of.entry in {"", pilot.identity.key.entry}
        ]

    def _begun(self, pilot: OpenPilot, event: CentralEvent) -> bool:
        return pilot.start_us - self._guard_us <= event.at_us


def _gone(pilot: OpenPilot) -> int:
    """Return up to when a pilot may have been there."""
    if pilot.gone_us is not None:
        return pilot.gone_us
    return FAR_US if pilot.end_us is None else pilot.end_us + pilot.lifetime_us
