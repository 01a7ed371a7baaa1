"""What collectors show of pilots: when each began, its size, and when it was gone.

Units: times are microseconds since the epoch.

How a pilot's end is known:

- its ad is gone although it was renewed lately: it took leave (``shutdown``), after it was last
  seen and before now; the end is the last sight, or what an attempt on it shows later;
- its ad has expired: it was killed, or its host is gone (``vanished``); the end is the last
  contact, or what an attempt on it shows later, and that stretch is estimated.  An ad expires
  when it was not renewed for its lifetime (see ``ad_times``);
- a new startd has taken its name: the same, at the latest when that one began.

A pilot that only advertises that its validation failed follows other rules (see ``failed``).

A pilot that comes back goes on; not one that by a central log has ended, if it was heard of only
until then.  A startd that its master has started again is the same pilot: its factory's job tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from gwmond.model.factory_jobs import ZONES_US
from gwmond.model.facts import Cursor, EntryKey, Pilot
from gwmond.model.names import OTHER, OTHER_ENTRY, Names
from gwmond.model.pilot_facts import Step
from gwmond.model.pilot_sources import (
    AdFacts,
    Decisions,
    FailedAdFacts,
    PilotFacts,
    Restart,
    replace,
)
from gwmond.model.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots import failed
from gwmond.pilots.ad_times import UpdateGaps
from gwmond.pilots.missing_end import give_up, known_start, may_run_at
from gwmond.pilots.open_pilot import OpenPilot, resources
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.rules import Lookup, Rules, sane
from gwmond.pilots.sizes import Sizes

LATE_US = 300 * SECOND_US


class CollectorAds:
    """Applies what collectors show to the pilots in memory; ``sizes`` are those of all of them."""

    def __init__(
        self,
        cache: PilotCache,
        rules: Rules,
        next_id: int,
        cursors: Mapping[tuple[str, str], Cursor],
        names: Names | None = None,
    ) -> None:
        self._names = names
        self._cache = cache
        self._rules = rules
        self.sizes = Sizes(rules.q)
        self.next_id = next_id
        self.relabelled: list[tuple[OpenPilot, PilotIdentity]] = []
        self.late = False  # a pilot was shown for the first time long after it began
        self.gaps = UpdateGaps(cursors)

    def see(
        self,
        at_us: int,
        period_us: int,
        pilots: Iterable[Pilot],
        lookup: Lookup,
        *,
        complete: bool,
    ) -> None:
        """Take in all pilots that were shown at ``at_us``.

        ``complete``: collectors that are trusted have shown all there are, so that a pilot which
        is missing has ended.  ``period_us`` is the time between two polls.
        """
        shown = list(pilots)
        unknown = {key.name for key in shown if key.name not in self._cache.by_name}
        for rows in lookup.find_pilots(unknown).values() if unknown else ():
            self._cache.recall_pilots(rows)
        new = {key.factory_job for key in shown if key.name in unknown and key.factory_job}
        numbers = {job.rpartition("#")[2] for job in new - set(self._cache.by_job)}
        for rows in lookup.find_factory_numbers(numbers).values() if numbers else ():
            self._cache.recall_pilots(rows)
        failing = {key.factory_job for key in shown if key.failed and key.factory_job}
        jobs = {job for job in failing if job not in self._cache.by_job}
        for rows in lookup.find_factory_jobs(jobs).values() if jobs else ():
            self._cache.recall_pilots(rows)
        seen = {self._see_one(at_us, period_us, _sound(key)).id for key in shown}
        if complete:
            for pilot in list(self._cache.pilots.values()):
                if (
                    pilot.end_us is None
                    and pilot.identity.origin == "collector"
                    and pilot.id not in seen
                ):
                    if failed.is_failed(pilot):
                        failed.lost(pilot, at_us)
                    else:
                        self._end(pilot, at_us, period_us)

    def add(self, identity: PilotIdentity, facts: PilotFacts) -> OpenPilot:
        """Return a new pilot that no collector has shown: jobs have it, or files."""
        number, self.next_id = self.next_id, self.next_id + 1
        return self._cache.add_pilot(OpenPilot.new(number, self.kept_apart(identity), facts))

    def kept_apart(
        self, identity: PilotIdentity, before: PilotIdentity | None = None
    ) -> PilotIdentity:
        """Return an identity under names that are kept apart (``model.names``).

        A pilot that was accounted as one of many (``before``) stays so.  An entry of which files
        tell is its factory's own, so only the site is a name that anybody could choose.
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

    def _see_one(self, at_us: int, period_us: int, shown: Pilot) -> OpenPilot:
        if shown.failed:
            return self._see_failed(at_us, shown)
        heard_us = shown.last_heard * SECOND_US if sane(shown.last_heard * SECOND_US) else at_us
        pilot = self._find(shown)
        if pilot is None:
            pilot = self._new(at_us, shown)
        elif pilot.implied or pilot.no_output or (pilot.has_output and not pilot.pruned):
            self._adopt(pilot, shown, heard_us)
        self._replace_others(pilot, shown)
        if heard_us > pilot.contact_us and _watched(pilot, at_us, period_us):
            self.gaps.note(heard_us - pilot.contact_us)
        self._take(pilot, shown, heard_us)
        pilot.seen_us = at_us
        pilot.retire_us, pilot.die_us = _epoch(shown.retires), _epoch(shown.dies)
        return pilot

    def _new(self, at_us: int, shown: Pilot) -> OpenPilot:
        """Return a pilot that was not known before a collector showed it."""
        times = (shown.began * SECOND_US, shown.last_heard * SECOND_US)
        start_us = next((time_us for time_us in times if sane(time_us)), at_us)
        identity = _identity(shown, shown.started or start_us // SECOND_US)
        self.late = self.late or start_us < at_us - LATE_US
        return self._add(identity, PilotFacts(ads=AdFacts(heard_us=start_us, began_us=start_us)))

    def _add(self, identity: PilotIdentity, facts: PilotFacts) -> OpenPilot:
        number, self.next_id = self.next_id, self.next_id + 1
        return self._cache.add_pilot(OpenPilot.new(number, identity, facts))

    def _take(self, pilot: OpenPilot, shown: Pilot, heard_us: int) -> None:
        """Take in what the ad of a registered pilot says."""
        lifetime_us = shown.ad_lifetime_s * SECOND_US
        ads = pilot.facts.ads or AdFacts(heard_us=0)
        sizes = _sizes(pilot, ads.sizes, shown, heard_us)
        restart = _restart(pilot, ads.restarts, shown)
        same = sizes == ads.sizes and restart is None and lifetime_us == ads.lifetime_us
        same = same and shown.shown == ads.shown
        if same and pilot.hear(heard_us):
            if shown.size is None:
                self.sizes.assume(pilot)
            return
        after = replace(ads, sizes=sizes, lifetime_us=lifetime_us, shown=shown.shown)
        if heard_us > ads.heard_us:
            after = replace(
                after, heard_us=heard_us, end_source="", end_us=None, missing_since_us=None
            )
        if restart is not None:
            after = replace(after, restarts=(*ads.restarts, restart))
            pilot.touch(restart.lost_us)
        pilot.learn(replace(pilot.facts, ads=after))
        if shown.size is None:
            self.sizes.assume(pilot)
        elif not ads.sizes:
            self.sizes.note_pilot(pilot)

    def _see_failed(self, at_us: int, shown: Pilot) -> OpenPilot:
        """Take in a pilot that only advertises that its validation failed."""
        pilot = failed.find(self._cache, shown)
        if pilot is None:
            times = (shown.started * SECOND_US, shown.last_heard * SECOND_US)
            start_us = min((time_us for time_us in times if sane(time_us)), default=at_us)
            facts = PilotFacts(failed_ads=FailedAdFacts(first_us=start_us, heard_us=start_us))
            pilot = self._add(_identity(shown, start_us // SECOND_US), facts)
        failed.follow(pilot, shown, at_us, self.sizes)
        return pilot

    def _find(self, shown: Pilot) -> OpenPilot | None:
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
            began = shown.started and pilot.contact_us >= shown.began * SECOND_US - guard
            if pilot.implied and began:
                return pilot
        known = self._told_by_files(shown) if shown.factory_job else None
        if known is None and not shown.started:
            return next((pilot for pilot in same if pilot.end_us is None), None)
        return known

    def _told_by_files(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot of which only its factory's files have told so far."""
        here = self._cache.at_place(shown.entry.entry, shown.factory_job.rpartition("#")[2])
        if shown.entry == OTHER_ENTRY:
            here += self._cache.by_job.get(shown.factory_job, ())
        for pilot in here:
            near = pilot.start_us - ZONES_US <= shown.began * SECOND_US <= pilot.until_us
            if near and pilot.no_output:
                return pilot
            same_job = pilot.identity.factory_job == shown.factory_job
            if same_job and may_run_at(pilot, shown.began * SECOND_US):
                return pilot
        return None

    def _adopt(self, pilot: OpenPilot, shown: Pilot, heard_us: int) -> None:
        """A pilot that only jobs, or files, had is shown by a collector now.

        Which job of its factory it is has to be decided anew.
        """
        known = known_start(pilot) or not shown.started
        ads = AdFacts(heard_us=heard_us, began_us=None if known else shown.began * SECOND_US)
        decisions = Decisions(size=pilot.facts.decisions.size)
        pilot.learn(replace(pilot.facts, ads=ads, queue=None, summary=None, decisions=decisions))
        started = pilot.start_us // SECOND_US if known else shown.started
        self.relabelled.append((pilot, _identity(shown, started)))

    def _replace_others(self, pilot: OpenPilot, shown: Pilot) -> None:
        """End the pilots before this one that had its name."""
        for other in self._cache.by_name[shown.name]:
            before = other is not pilot and other.start_us < pilot.start_us
            if before and other.end_us is None and not other.implied:
                end_us = min(other.contact_us, pilot.start_us)
                _lose(other, "vanished", end_us, pilot.start_us)

    def _end(self, pilot: OpenPilot, at_us: int, period_us: int) -> None:
        lifetime_us = min(pilot.lifetime_us, self.gaps.longest_us())
        expired = pilot.contact_us + lifetime_us <= at_us
        if _watched(pilot, at_us, period_us) and not expired:
            _lose(pilot, "shutdown", max(pilot.contact_us, pilot.seen_us), at_us)
        else:
            _lose(pilot, "vanished", pilot.contact_us, at_us)


def _lose(
    pilot: OpenPilot, source: Literal["shutdown", "vanished"], end_us: int, missing_us: int
) -> None:
    """Take in that no ad of a pilot is there any more."""
    facts = pilot.facts
    if facts.ads is not None:
        ads = replace(facts.ads, end_source=source, end_us=end_us, missing_since_us=missing_us)
        pilot.learn(replace(facts, ads=ads))
    elif facts.failed_ads is not None:
        gone = replace(facts.failed_ads, end_us=end_us, missing_since_us=missing_us)
        pilot.learn(replace(facts, failed_ads=gone))
    else:
        give_up(pilot)


def _sizes(
    pilot: OpenPilot, sizes: tuple[Step, ...], shown: Pilot, heard_us: int
) -> tuple[Step, ...]:
    """Return the sizes that ads have shown, with this one."""
    if shown.size is None:
        return sizes
    size = resources(shown.size)
    if not sizes:
        return (Step(pilot.start_us, size),)
    if sizes[-1].size == size or heard_us <= pilot.contact_us:
        return sizes
    return (*sizes, Step(max(heard_us, sizes[-1].at_us + 1), size))


def _restart(pilot: OpenPilot, restarts: tuple[Restart, ...], shown: Pilot) -> Restart | None:
    """Return that a pilot's startd is not the one that it began with, if that is new."""
    at_us = shown.began * SECOND_US
    known = any(restart.at_us == at_us for restart in restarts)
    if shown.started > pilot.identity.started and sane(at_us) and not known:
        return Restart(min(pilot.contact_us, at_us), at_us)
    return None


def _watched(pilot: OpenPilot, at_us: int, period_us: int) -> bool:
    """Return whether one of the last polls has seen it."""
    return at_us - pilot.seen_us <= 3 * period_us


def _sound(shown: Pilot) -> Pilot:
    """Return a pilot whose start is 0 if its ad tells none that makes sense."""
    return shown if sane(shown.started * SECOND_US) else shown._replace(started=0)


def _epoch(seconds: int | None) -> int | None:
    """Return a time that an ad tells, None if it makes no sense."""
    return seconds * SECOND_US if seconds is not None and sane(seconds * SECOND_US) else None


def _identity(shown: Pilot, started: int) -> PilotIdentity:
    return PilotIdentity(
        name=shown.name,
        started=started,
        factory_job=shown.factory_job,
        factory=shown.factory,
        key=shown.entry,
        group=shown.group,
        node=shown.node or shown.name.rpartition("@")[2],
    )
