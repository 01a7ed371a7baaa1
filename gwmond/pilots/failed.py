"""Pilots that only advertise that their validation failed (see ``sources.advertised``).

Units: times are microseconds since the epoch.

No startd is behind their ads, so other rules hold than for pilots that registered:

- **Which pilot**: the factory's job tells, else the name; and the time: a pilot that was gone
  before the ad was sent is another, of a factory that counts anew.  If that pilot had registered,
  its HTCondor had run and ended badly: it has passed its validation, and goes on waiting.
- **Category**: its validation failed, so that all of its time is lost (``validation_fails``).
- **Beginning**: its first ad.  How long it validated before that its output alone tells.
- **Size**: the ads' is a dummy; see ``sizes``.
- **End**: the ads announce it (``GLIDEIN_ToDie``) and live on after it.  Once that time has come
  the pilot ended then, whenever its ads were heard; what is after the last of them is estimated.
  One that has been silent for longer than two of its ads take was killed: it ended with its last.
  The same if its ads are gone before it was to end.
- Its **output** knows all of it better, before or after; its factory's queue, where that alone has
  told of it, its beginning and end.
"""

from __future__ import annotations

from gwmond.model.facts import FAILED_SILENT_S, Pilot
from gwmond.model.pilot_facts import Assumption, Validation
from gwmond.model.times import SECOND_US
from gwmond.pilots.ends import reopen, set_end
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.rules import sane
from gwmond.pilots.shelf import Shelf
from gwmond.pilots.sizes import Sizes, keep_assumed

_SILENT_US = FAILED_SILENT_S * SECOND_US


def is_failed(pilot: OpenPilot) -> bool:
    """Return whether such ads are all that a collector shows of a pilot."""
    return pilot.identity.origin == "collector" and pilot.validation is Validation.FAILED


def find(shelf: Shelf, shown: Pilot) -> OpenPilot | None:
    """Return the pilot that such an ad is of, if it is known."""
    if shown.factory_job:
        here = shelf.at_place(shown.entry.entry, shown.factory_job.rpartition("#")[2])
        queued = [pilot for pilot in here if pilot.no_output]
        found = shelf.by_job.get(shown.factory_job) or queued
    else:
        found = [pilot for pilot in shelf.by_name.get(shown.name, ()) if is_failed(pilot)]
    first_us = min(shown.started, shown.last_heard) * SECOND_US
    same = [pilot for pilot in found if first_us <= pilot.until_us + pilot.lifetime_us]
    return max(same, key=lambda pilot: pilot.start_us, default=None)


def follow(pilot: OpenPilot, shown: Pilot, at_us: int, sizes: Sizes) -> None:
    """Take in what its ads tell at ``at_us``, unless files have told it better."""
    heard_us = shown.last_heard * SECOND_US
    if not sane(heard_us):
        heard_us = at_us
    pilot.seen_us = at_us
    if pilot.pruned or pilot.implied:
        return
    if pilot.validation is Validation.UNKNOWN and not pilot.attempts and not pilot.ran_jobs:
        pilot.validation = Validation.FAILED
        pilot.know(Assumption.VALIDATION)
        pilot.touch(pilot.start_us)
    if shown.failure and not pilot.failure and pilot.validation is Validation.FAILED:
        pilot.failure, pilot.dirty = shown.failure, True
    if pilot.ended == "reported" or pilot.no_output:
        return
    start_us = shown.started * SECOND_US
    if is_failed(pilot) and sane(start_us) and start_us < pilot.start_us:
        pilot.touch(start_us)
        pilot.start_us = start_us
    before = pilot.until_us
    die_us = None if shown.dies is None else shown.dies * SECOND_US
    pilot.die_us = die_us if die_us is not None and sane(die_us) else None
    if pilot.die_us is not None and pilot.die_us > pilot.start_us:
        heard_us = min(heard_us, pilot.die_us)
    pilot.contact_us = max(pilot.contact_us, heard_us)
    pilot.lifetime_us = shown.ad_lifetime_s * SECOND_US
    if pilot.has_output:  # without an end: it goes on as long as this
        ended = pilot.end_us is not None and pilot.contact_us > pilot.end_us
        if ended and reopen(pilot, pilot.contact_us):
            pilot.touch(before)
            set_end(pilot, "assumed", pilot.contact_us)
    elif is_failed(pilot):
        _close(pilot, _announced(pilot, at_us))
        sizes.assume(pilot)
    elif pilot.end_us is not None and pilot.contact_us > pilot.end_us:
        _close(pilot, None)
    keep_assumed(pilot)


def lost(pilot: OpenPilot, at_us: int) -> None:
    """Say that the collector shows none of its ads any more."""
    end_us = _announced(pilot, at_us)
    _close(pilot, pilot.contact_us if end_us is None else end_us)
    pilot.gone_us = at_us
    keep_assumed(pilot)


def _announced(pilot: OpenPilot, at_us: int) -> int | None:
    """Return when it ended, by what it has announced; None if that is still to come."""
    if pilot.die_us is None or at_us < pilot.die_us:
        return None
    silent_us = min(pilot.seen_us, pilot.die_us) - pilot.contact_us
    return pilot.contact_us if silent_us > _SILENT_US else max(pilot.die_us, pilot.contact_us)


def _close(pilot: OpenPilot, end_us: int | None) -> None:
    """Let a pilot end then, or go on."""
    if end_us == pilot.end_us:
        return
    pilot.touch(min(pilot.until_us, pilot.contact_us))
    pilot.closed = False
    if reopen(pilot, pilot.contact_us):
        pilot.gone_us = None
    if end_us is not None:
        set_end(pilot, "assumed" if end_us > pilot.contact_us else "vanished", end_us)
