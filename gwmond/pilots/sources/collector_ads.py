"""What collectors show of pilots: when each began, its size, and when it was gone.

Units: times are microseconds since the epoch.

How a pilot's end is known:

- its ad is gone although it was renewed lately: it shut down cleanly (``shutdown``), after it was
  last seen and before now; the end is the last sight, or what a run on it shows later;
- its ad has expired: it was killed, or its host is gone (``ad_expired``); the end is the last
  contact, or what a run on it shows later, and that stretch is estimated.  Its ad was seen when
  it was stale (see ``update_gaps``), or polls are so far apart that it has expired since;
- its ad is gone since nobody looked for a while: the same, but it was there at the last sight, if
  its ad was not stale then;
- a new startd has taken its name: the same, at the latest when that one began.

A pilot that only advertises that its validation failed follows other rules (see ``ends``).

A pilot that comes back goes on; not one that by a central log has ended, if it was heard of only
until then.  A startd that its master has started again is the same pilot: its factory's job tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from gwmond.model.facts import Cursor, Pilot
from gwmond.model.pilot_life import SizeStep
from gwmond.model.pilots.pilot_facts import (
    AdFacts,
    Decisions,
    FailedAdFacts,
    PilotFacts,
    Restart,
    replace,
)
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.pilots.update_gaps import is_timed, watched_gap
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules, sane
from gwmond.pilots.memory import ends
from gwmond.pilots.memory.ad_times import StoredGaps
from gwmond.pilots.memory.assign import PilotAssignment
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.ends import give_up, known_start
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.memory.sizes import Sizes

LATE_US = 300 * SECOND_US


class CollectorAds:
    """Applies what collectors show to the pilots in memory; ``sizes`` are those of all of them."""

    def __init__(
        self,
        cache: PilotCache,
        assignment: PilotAssignment,
        rules: Rules,
        cursors: Mapping[tuple[str, str], Cursor],
    ) -> None:
        self._cache, self._assignment, self._rules = cache, assignment, rules
        self.sizes = Sizes(rules.memory_per_unit_mib)
        self.late = False  # a pilot was shown for the first time long after it began
        self.gaps = StoredGaps(cursors)

    def keys(self, pilots: Iterable[Pilot]) -> PilotKeys:
        """Return the keys of pilots that are shown and may be stored."""
        cache, keys = self._cache, PilotKeys()
        for shown in pilots:
            in_memory = shown.name in cache.by_name
            if not in_memory:
                keys.startds.add(shown.name)
            if (job := shown.factory_job) and job not in cache.by_job:
                if not in_memory:
                    keys.factory_numbers.add(job.rpartition("#")[2])
                if shown.failed:
                    keys.factory_jobs.add(job)
        return keys

    def see(self, at_us: int, period_us: int, pilots: Iterable[Pilot], *, complete: bool) -> None:
        """Take in all pilots that were shown at ``at_us``.

        ``complete``: collectors that are trusted have shown all there are, so that a pilot which
        is missing has ended.  ``period_us`` is the time between two polls.
        """
        ids = {
            (self._seen_again(at_us, shown) or self._see_one(at_us, period_us, _sound(shown))).id
            for shown in pilots
        }
        if complete:
            self._cache.looks.pilots_us = at_us
            for pilot in list(self._cache.pilots.values()):
                if (
                    pilot.end_us is None
                    and pilot.identity.origin == "collector"
                    and pilot.id not in ids
                ):
                    if ends.is_failed(pilot):
                        ends.lost(pilot, at_us)
                    else:
                        self._end(pilot, at_us, period_us)

    def _seen_again(self, at_us: int, shown: Pilot) -> OpenPilot | None:
        """Return the pilot of which an earlier poll has taken this very ad in, and all goes on."""
        same = self._cache.by_name.get(shown.name, ())
        if len(same) != 1 or shown.failed:
            return None
        (pilot,) = same
        ads, identity = pilot.facts.ads, pilot.identity
        if ads is None or pilot.end_us is not None or identity.origin != "collector":
            return None
        if (
            shown.last_heard * SECOND_US == ads.last_heard_us
            and shown.started == identity.started
            and ads.sizes
            and shown.size == ads.sizes[-1].size
            and shown.ad_lifetime_s * SECOND_US == ads.lifetime_us
            and shown.shown == ads.shown
            and (shown.virtual_slots, shown.senders) == (ads.virtual_slots, ads.senders)
            and pilot.retire_us == (shown.retires and shown.retires * SECOND_US)
            and pilot.die_us == (shown.dies and shown.dies * SECOND_US)
        ):
            pilot.last_polled_us = at_us
            return pilot
        return None

    def _see_one(self, at_us: int, period_us: int, shown: Pilot) -> OpenPilot:
        if shown.failed:
            return self._see_failed(at_us, shown)
        last_heard_us = (
            shown.last_heard * SECOND_US if sane(shown.last_heard * SECOND_US) else at_us
        )
        pilot = self._assignment.pilot_of_ad(shown)
        if pilot is None:
            pilot = self._new(at_us, shown)
        elif (
            pilot.known_from_jobs_only or pilot.no_output or (pilot.has_output and not pilot.pruned)
        ):
            self._adopt(pilot, shown, last_heard_us)
        self._replace_others(pilot, shown)
        before_us, seen_us = pilot.last_heard_us, pilot.last_polled_us
        if last_heard_us > before_us and seen_us:
            gap_us = watched_gap(before_us, seen_us, last_heard_us, period_us)
            if not shown.senders:
                timed = is_timed(shown.began * SECOND_US, before_us, gap_us)
                self.gaps.note(gap_us, timed=timed)
        self._take(pilot, shown, last_heard_us)
        pilot.last_polled_us = at_us
        pilot.retire_us, pilot.die_us = _epoch(shown.retires), _epoch(shown.dies)
        return pilot

    def _new(self, at_us: int, shown: Pilot) -> OpenPilot:
        """Return a pilot that was not known before a collector showed it."""
        times = (shown.began * SECOND_US, shown.last_heard * SECOND_US)
        start_us = next((time_us for time_us in times if sane(time_us)), at_us)
        identity = _identity(shown, shown.started or start_us // SECOND_US)
        self.late = self.late or start_us < at_us - LATE_US
        ads = AdFacts(last_heard_us=start_us, began_us=start_us)
        return self._assignment.add(identity, PilotFacts(ads=ads))

    def _take(self, pilot: OpenPilot, shown: Pilot, last_heard_us: int) -> None:
        """Take in what the ad of a registered pilot says."""
        lifetime_us = shown.ad_lifetime_s * SECOND_US
        ads = pilot.facts.ads or AdFacts(last_heard_us=0)
        sizes = _sizes(pilot, ads.sizes, shown, last_heard_us)
        restart = _restart(pilot, ads.restarts, shown)
        same = sizes == ads.sizes and restart is None and lifetime_us == ads.lifetime_us
        # An ad of a startd alone, without slots, does not say which of them are virtual.
        virtual = shown.virtual_slots or ads.virtual_slots
        senders, texts = shown.senders or ads.senders, shown.shown or ads.shown
        same = same and (texts, virtual) == (ads.shown, ads.virtual_slots)
        same = same and senders == ads.senders
        if same and pilot.hear(last_heard_us):
            if shown.size is None:
                self.sizes.assume(pilot)
            return
        after = replace(
            ads,
            sizes=sizes,
            lifetime_us=lifetime_us,
            shown=texts,
            virtual_slots=virtual,
            senders=senders,
        )
        if last_heard_us > ads.last_heard_us:
            after = replace(
                after,
                last_heard_us=last_heard_us,
                end_source="",
                end_us=None,
                missing_since_us=None,
            )
        if restart is not None:
            after = replace(after, restarts=(*ads.restarts, restart))
            pilot.mark_changed(restart.lost_us)
        pilot.learn(replace(pilot.facts, ads=after))
        if shown.size is None:
            self.sizes.assume(pilot)
        elif not ads.sizes:
            self.sizes.note_pilot(pilot)

    def _see_failed(self, at_us: int, shown: Pilot) -> OpenPilot:
        """Take in a pilot that only advertises that its validation failed."""
        pilot = self._assignment.pilot_of_failed_ad(shown)
        if pilot is None:
            times = (shown.started * SECOND_US, shown.last_heard * SECOND_US)
            start_us = min((time_us for time_us in times if sane(time_us)), default=at_us)
            facts = PilotFacts(failed_ads=FailedAdFacts(first_us=start_us, last_heard_us=start_us))
            pilot = self._assignment.add(_identity(shown, start_us // SECOND_US), facts)
        ends.follow(pilot, shown, at_us, self.sizes)
        return pilot

    def _adopt(self, pilot: OpenPilot, shown: Pilot, last_heard_us: int) -> None:
        """A pilot that only jobs, or files, had is shown by a collector now.

        Which job of its factory it is has to be decided anew.
        """
        start_known = known_start(pilot) or not shown.started
        ads = AdFacts(
            last_heard_us=last_heard_us, began_us=None if start_known else shown.began * SECOND_US
        )
        decisions = Decisions(size=pilot.facts.decisions.size)
        pilot.learn(replace(pilot.facts, ads=ads, queue=None, summary=None, decisions=decisions))
        started = pilot.start_us // SECOND_US if start_known else shown.started
        self._assignment.rename(pilot, _identity(shown, started))

    def _replace_others(self, pilot: OpenPilot, shown: Pilot) -> None:
        """End the pilots before this one that had its name."""
        for other in self._cache.by_name[shown.name]:
            before = other is not pilot and other.start_us < pilot.start_us
            if before and other.end_us is None and not other.known_from_jobs_only:
                end_us = min(other.last_heard_us, pilot.start_us)
                _lose(other, "ad_expired", end_us, pilot.start_us)

    def _end(self, pilot: OpenPilot, at_us: int, period_us: int) -> None:
        heard_us, seen_us = pilot.last_heard_us, pilot.last_polled_us
        watched = at_us - seen_us <= 3 * period_us  # by one of the last polls
        expired = watched and heard_us + pilot.lifetime_us < at_us  # no leave is needed for that
        stale = expired or seen_us - heard_us >= self.gaps.two_updates_us(pilot.lifetime_us, at_us)
        if stale or not watched:
            _lose(pilot, "ad_expired", heard_us if stale else max(heard_us, seen_us), at_us)
        else:
            _lose(pilot, "shutdown", max(heard_us, seen_us), at_us)


def _lose(
    pilot: OpenPilot, source: Literal["shutdown", "ad_expired"], end_us: int, missing_us: int
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
    pilot: OpenPilot, sizes: tuple[SizeStep, ...], shown: Pilot, last_heard_us: int
) -> tuple[SizeStep, ...]:
    """Return the sizes that ads have shown, with this one."""
    size = shown.size
    if size is None:
        return sizes
    if not sizes:
        return (SizeStep(pilot.start_us, size),)
    if sizes[-1].size == size or last_heard_us <= pilot.last_heard_us:
        return sizes
    return (*sizes, SizeStep(max(last_heard_us, sizes[-1].at_us + 1), size))


def _restart(pilot: OpenPilot, restarts: tuple[Restart, ...], shown: Pilot) -> Restart | None:
    """Return that a pilot's startd is another than it began with, if that is new."""
    at_us = shown.began * SECOND_US
    if shown.started <= pilot.identity.started or not sane(at_us):
        return None
    stored = any(restart.at_us == at_us for restart in restarts)
    return None if stored else Restart(min(pilot.last_heard_us, at_us), at_us)


def _sound(shown: Pilot) -> Pilot:
    """Return a pilot whose start is 0 if its ad has none that makes sense."""
    return shown if sane(shown.started * SECOND_US) else shown._replace(started=0)


def _epoch(seconds: int | None) -> int | None:
    """Return a time of an ad, None if it makes no sense."""
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
