"""What collectors show of pilots: when each began, its size, and when it was gone.

Units: times are microseconds since the epoch.

How a pilot's end is known:

- its ad is gone although it was renewed lately: it took leave (``shutdown``), after it was last
  seen and before now; the end is the last sight, or what an attempt on it shows later;
- its ad has expired: it was killed, or its host is gone (``vanished``); the end is the last
  contact, or what an attempt on it shows later, and that stretch is estimated.  An ad expires
  when it was not renewed for its lifetime (see ``update_gaps``);
- a new startd has taken its name: the same, at the latest when that one began.

A pilot that only advertises that its validation failed follows other rules (see ``failed``).

A pilot that comes back goes on; not one that by a central log has ended (``witnesses``), if it was
heard of only until then.  A startd that its master has started again is the same pilot:
its factory's job tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gwmond.model.factory_jobs import ZONES_US
from gwmond.model.facts import Cursor, EntryKey, Pilot
from gwmond.model.names import OTHER, OTHER_ENTRY, Names
from gwmond.model.pilot_facts import Assumption, Resources, Step, Validation
from gwmond.model.stored_pilots import End, PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots import failed
from gwmond.pilots.ends import reopen, set_end
from gwmond.pilots.open_attempt import OpenAttempt
from gwmond.pilots.open_pilot import SIZES, OpenPilot, Restart, resources
from gwmond.pilots.rules import FAR_US, Lookup, Rules, sane
from gwmond.pilots.shelf import Shelf
from gwmond.pilots.sizes import Sizes, keep_assumed
from gwmond.pilots.unended import is_given_up, known_start, may_run_at
from gwmond.pilots.update_gaps import UpdateGaps

LATE_US = 300 * SECOND_US


class Sightings:
    """Applies what collectors show to the pilots in memory; ``sizes`` are those of all of them."""

    def __init__(
        self,
        shelf: Shelf,
        rules: Rules,
        next_id: int,
        cursors: Mapping[tuple[str, str], Cursor],
        names: Names | None = None,
    ) -> None:
        self._names = names
        self._shelf = shelf
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
        unknown = {key.name for key in shown if key.name not in self._shelf.by_name}
        for rows in lookup.find_pilots(unknown).values() if unknown else ():
            self._shelf.recall_pilots(rows)
        new = {key.factory_job for key in shown if key.name in unknown and key.factory_job}
        numbers = {job.rpartition("#")[2] for job in new - set(self._shelf.by_job)}
        for rows in lookup.find_factory_numbers(numbers).values() if numbers else ():
            self._shelf.recall_pilots(rows)
        failing = {key.factory_job for key in shown if key.failed and key.factory_job}
        jobs = {job for job in failing if job not in self._shelf.by_job}
        for rows in lookup.find_factory_jobs(jobs).values() if jobs else ():
            self._shelf.recall_pilots(rows)
        seen = {self._see_one(at_us, period_us, _sound(key)).id for key in shown}
        if complete:
            for pilot in list(self._shelf.pilots.values()):
                if (
                    pilot.end_us is None
                    and pilot.identity.origin == "collector"
                    and pilot.id not in seen
                ):
                    if failed.is_failed(pilot):
                        failed.lost(pilot, at_us)
                    else:
                        self._end(pilot, at_us, period_us)

    def imply(self, started: int | None, first_us: int, identity: PilotIdentity) -> OpenPilot:
        """Return a new pilot that no collector has shown: of which jobs tell, or files.

        ``started``: when its startd was, if that is told (epoch seconds).
        """
        identity = self.kept_apart(identity)
        start_us = started * SECOND_US if started is not None else first_us
        pilot = OpenPilot(
            id=self._new_id(),
            identity=identity,
            start_us=min(start_us, first_us),
            contact_us=first_us,
        )
        return self._shelf.add_pilot(pilot)

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

    def _new_id(self) -> int:
        number, self.next_id = self.next_id, self.next_id + 1
        return number

    def _see_one(self, at_us: int, period_us: int, shown: Pilot) -> OpenPilot:
        if shown.failed:
            return self._see_failed(at_us, shown)
        pilot = self._find(shown)
        if pilot is None:
            told = (shown.began * SECOND_US, shown.last_heard * SECOND_US)
            start_us = next((number for number in told if sane(number)), at_us)
            pilot = self._shelf.add_pilot(
                OpenPilot(
                    id=self._new_id(),
                    identity=_identity(shown, shown.started or start_us // SECOND_US),
                    start_us=start_us,
                    contact_us=start_us,
                )
            )
            self.late = self.late or start_us < at_us - LATE_US
        elif pilot.implied or pilot.no_output or (pilot.has_output and not pilot.pruned):
            self._adopt(pilot, shown)
        self._replace_others(pilot, shown)
        _note_restart(pilot, shown)
        contact_us = shown.last_heard * SECOND_US if sane(shown.last_heard * SECOND_US) else at_us
        again = pilot.end_us is not None and contact_us > pilot.contact_us
        if again and reopen(pilot, contact_us):
            pilot.gone_us, pilot.closed = None, False
        if shown.size is None:
            self.sizes.assume(pilot)
        else:
            self._resize(pilot, resources(shown.size), contact_us)
        if contact_us > pilot.contact_us and _watched(pilot, at_us, period_us):
            self.gaps.note(contact_us - pilot.contact_us)
        pilot.contact_us = max(pilot.contact_us, contact_us)
        pilot.seen_us, pilot.lifetime_us = at_us, shown.ad_lifetime_s * SECOND_US
        pilot.retire_us, pilot.die_us = _epoch(shown.retires), _epoch(shown.dies)
        return pilot

    def _resize(self, pilot: OpenPilot, size: Resources, contact_us: int) -> None:
        """Set the size that is told, from the beginning on if none was told before."""
        pilot.told = None
        if Assumption.SIZE in pilot.assumed:
            pilot.know(*SIZES)
            pilot.touch(pilot.start_us)
            pilot.steps = ()
        if not pilot.steps:
            pilot.resize(size)
            self.sizes.note_pilot(pilot)
        elif pilot.steps[-1].size != size and contact_us > pilot.contact_us:
            changed_us = max(contact_us, pilot.steps[-1].at_us + 1)
            pilot.steps = (*pilot.steps, Step(changed_us, size))
            pilot.touch(changed_us)

    def _see_failed(self, at_us: int, shown: Pilot) -> OpenPilot:
        """Take in a pilot that only advertises that its validation failed."""
        pilot = failed.find(self._shelf, shown)
        if pilot is None:
            told = (shown.started * SECOND_US, shown.last_heard * SECOND_US)
            start_us = min((number for number in told if sane(number)), default=at_us)
            pilot = OpenPilot(
                id=self._new_id(),
                identity=_identity(shown, start_us // SECOND_US),
                start_us=start_us,
                contact_us=start_us,
                validation=Validation.FAILED,
            )
            self._shelf.add_pilot(pilot)
        failed.follow(pilot, shown, at_us, self.sizes)
        return pilot

    def _find(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot that an ad is of: the same startd, or the same job of the factory."""
        same = self._shelf.by_name.get(shown.name, [])
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
        told = self._told_by_files(shown) if shown.factory_job else None
        if told is None and not shown.started:
            return next((pilot for pilot in same if pilot.end_us is None), None)
        return told

    def _told_by_files(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot of which only its factory's files have told so far."""
        here = self._shelf.at_place(shown.entry.entry, shown.factory_job.rpartition("#")[2])
        if shown.entry == OTHER_ENTRY:
            here += self._shelf.by_job.get(shown.factory_job, ())
        for pilot in here:
            near = pilot.start_us - ZONES_US <= shown.began * SECOND_US <= pilot.until_us
            if near and pilot.no_output:
                return pilot
            same_job = pilot.identity.factory_job == shown.factory_job
            if same_job and may_run_at(pilot, shown.began * SECOND_US):
                return pilot
        return None

    def _adopt(self, pilot: OpenPilot, shown: Pilot) -> None:
        """A pilot of which only jobs, or files, told is shown by a collector now.

        When it began and ended its own output knows better.
        """
        known = known_start(pilot) or not shown.started
        start_us = pilot.start_us if known else shown.began * SECOND_US
        started = start_us // SECOND_US if known else shown.started
        pilot.touch(min(pilot.start_us, start_us))
        pilot.start_us, pilot.validation = start_us, Validation.PASSED
        kept = SIZES if pilot.has_output and shown.size is None else frozenset()
        pilot.steps = pilot.steps if kept else ()
        pilot.know(*(rule for rule in Assumption if rule not in kept))
        set_end(pilot, "queue", None)  # it is decided anew which job it is
        if reopen(pilot, pilot.start_us):
            pilot.gone_us = None
        self.relabelled.append((pilot, _identity(shown, started)))

    def _replace_others(self, pilot: OpenPilot, shown: Pilot) -> None:
        """End the pilots before this one that had its name."""
        for other in self._shelf.by_name[shown.name]:
            if other is not pilot and other.end_us is None and other.start_us < pilot.start_us:
                if other.implied:
                    continue
                self._close_at(other, min(other.contact_us, pilot.start_us), "vanished")
                other.gone_us = pilot.start_us

    def _end(self, pilot: OpenPilot, at_us: int, period_us: int) -> None:
        lifetime_us = min(pilot.lifetime_us, self.gaps.longest_us())
        expired = pilot.contact_us + lifetime_us <= at_us
        pilot.gone_us = at_us
        if _watched(pilot, at_us, period_us) and not expired:
            self._close_at(pilot, max(pilot.contact_us, pilot.seen_us), "shutdown")
        else:
            self._close_at(pilot, pilot.contact_us, "vanished")
        prolong(pilot)

    def _close_at(self, pilot: OpenPilot, end_us: int, how: End) -> None:
        pilot.touch(min(end_us, pilot.contact_us))
        set_end(pilot, how, end_us)
        keep_assumed(pilot)


def prolong(pilot: OpenPilot, by: OpenAttempt | None = None) -> None:
    """Let a pilot end when an attempt on it shows that it was still there, before it was gone.

    Only what a record tells counts: an attempt without an end lasts as long as its pilot.
    ``by``: only this one has changed.
    """
    if pilot.end_us is None or pilot.implied:
        return
    limit = pilot.gone_us if pilot.gone_us is not None else pilot.end_us + pilot.lifetime_us
    if given_up := is_given_up(pilot):
        limit = FAR_US
    if by is not None and not pilot.end_us < (by.merged.end_us or 0) <= limit:
        return
    ends = [
        attempt.merged.end_us
        for attempt in pilot.attempts.values()
        if attempt.merged.end_us is not None and attempt.merged.evidence == "measured"
    ]
    last = max((end for end in ends if end <= limit), default=pilot.end_us)
    if last > pilot.end_us:
        pilot.touch(pilot.end_us)
        if pilot.ended != "shutdown":
            first, _ = pilot.assumed.get(Assumption.END, (pilot.end_us, last))
            pilot.assume(Assumption.END, first, last)
        pilot.end_us, pilot.dirty = last, True
        pilot.contact_us = last if given_up else pilot.contact_us


def _note_restart(pilot: OpenPilot, shown: Pilot) -> None:
    """Note that a pilot's startd is not the one that it began with, nor the last one noted."""
    at_us = shown.began * SECOND_US
    known = any(restart.at_us == at_us for restart in pilot.restarts)
    if shown.started > pilot.identity.started and sane(at_us) and not known:
        restart = Restart(min(pilot.contact_us, at_us), at_us)
        pilot.restarts = (*pilot.restarts, restart)
        pilot.touch(restart.lost_us)


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
