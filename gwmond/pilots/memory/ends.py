"""Ends that no source has: of pilots whose output has none, or that only say that they failed.

Units: times are microseconds since the epoch.

**An output without an end** is that of a pilot which was killed hard, or which still runs: a
factory may let outputs stream.  It is open, and none of its time is settled, until a source has its
end, or until nothing has been heard of it for long enough:

===================== =========================================================================
its factory's queue   until the queue has its end, as long as the queue may (``AGE_US``)
tells that it runs
the queue, or a       until ``quiet`` after that, as the whole output may be on its way
summary, tells its end
nothing tells its end until ``quiet`` after its files were written last; where that is not known,
                      after gwmond was started.  After a start for ``linger`` at least: they may
                      have grown, and are read first
===================== =========================================================================

At the end of an import nothing more is read, so that what the factory says is not waited for, but
in a ledger that a daemon keeps.  When files were written says little there, as they may have been
copied: the last time in an output counts.

A pilot that is given up ended with the last time in its output, or with the last run
that a record has on it; ``queue_matching`` knows when its factory's queue has it better.

**Only advertised** that validation failed (see ``htcondor.advertised``): no startd is behind the
ads, so other rules hold than for pilots that registered:

- **Which pilot**: the factory's job tells, else the name; and the time: a pilot that was gone
  before the ad was sent is another, of a factory that counts anew.  If that pilot had registered,
  its HTCondor had run and ended badly: it has passed its validation, and goes on waiting.
- **Category**: its validation failed, so that all of its time is lost (``validation_fails``).
- **Beginning**: its first ad.  How long it validated before that its output alone has.
- **Size**: the ads' is a dummy; see ``sizes``.
- **End**: the ads announce it (``GLIDEIN_ToDie``) and live on after it.  Once that time has come
  the pilot ended then, whenever its ads were heard; what is after the last of them is estimated.
  One that has been silent for longer than two of its ads take was killed: it ended with its last.
  The same if its ads are gone before it was to end.
- Its **output** knows all of it better, before or after; its factory's queue, where it is known
  from that alone, its beginning and end.
"""

from __future__ import annotations

from gwmond.model.factory.jobs import AGE_US, GUARD_US, FactoryJob
from gwmond.model.facts import FAILED_SILENT_S, Pilot
from gwmond.model.pilot_life import Assumption, Validation
from gwmond.model.pilots.pilot_facts import FailedAdFacts, replace
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules, sane
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.memory.sizes import Sizes

_SILENT_US = FAILED_SILENT_S * SECOND_US


def is_failed(pilot: OpenPilot) -> bool:
    """Return whether such ads are all that a collector shows of a pilot."""
    return pilot.identity.origin == "collector" and pilot.validation is Validation.FAILED


def follow(pilot: OpenPilot, shown: Pilot, at_us: int, sizes: Sizes) -> None:
    """Take in what its ads say at ``at_us``."""
    pilot.last_polled_us = at_us
    if pilot.pruned or pilot.known_from_jobs_only:
        return
    ended = pilot.end_us is not None
    failed = _failed_ads(pilot, shown, at_us)
    pilot.learn(replace(pilot.facts, failed_ads=failed))
    if pilot.end_source == "pilot_output" or pilot.no_output:
        return
    pilot.die_us = failed.die_us
    if pilot.has_output:  # without an end: it goes on as long as this
        if ended and pilot.end_us is None:
            give_up(pilot)
    elif is_failed(pilot):
        _close(pilot, _announced(pilot, at_us))
        sizes.assume(pilot)
    elif pilot.end_us is not None and pilot.last_heard_us > pilot.end_us:
        goes_on = replace(failed, end_us=None, missing_since_us=None)
        ads = pilot.facts.ads
        if ads is not None:
            ads = replace(ads, end_source="", end_us=None, missing_since_us=None)
        pilot.learn(replace(pilot.facts, ads=ads, failed_ads=goes_on))


def _failed_ads(pilot: OpenPilot, shown: Pilot, at_us: int) -> FailedAdFacts:
    """Return what its ads have said, with this one."""
    last_heard_us = shown.last_heard * SECOND_US
    if not sane(last_heard_us):
        last_heard_us = at_us
    start_us = shown.started * SECOND_US
    first_us = start_us if sane(start_us) else last_heard_us
    before = pilot.facts.failed_ads or FailedAdFacts(first_us=first_us, last_heard_us=0)
    die_us = None if shown.dies is None else shown.dies * SECOND_US
    if die_us is not None and not sane(die_us):
        die_us = None
    if die_us is not None and die_us > pilot.start_us:
        last_heard_us = min(last_heard_us, die_us)
    return replace(
        before,
        first_us=min(before.first_us, first_us),
        last_heard_us=max(before.last_heard_us, last_heard_us),
        die_us=die_us,
        failure=before.failure or shown.failure,
        lifetime_us=shown.ad_lifetime_s * SECOND_US,
    )


def lost(pilot: OpenPilot, at_us: int) -> None:
    """Say that the collector shows none of its ads any more."""
    end_us = _announced(pilot, at_us)
    _close(pilot, pilot.last_heard_us if end_us is None else end_us, at_us)


def _announced(pilot: OpenPilot, at_us: int) -> int | None:
    """Return when it ended, by what it has announced; None if that is still to come."""
    if pilot.die_us is None or at_us < pilot.die_us:
        return None
    silent_us = min(pilot.last_polled_us, pilot.die_us) - pilot.last_heard_us
    return pilot.last_heard_us if silent_us > _SILENT_US else max(pilot.die_us, pilot.last_heard_us)


def _close(pilot: OpenPilot, end_us: int | None, missing_us: int | None = None) -> None:
    """Note by a pilot's ads that it ended then, or goes on."""
    failed = pilot.facts.failed_ads
    if failed is not None:
        missing_us = missing_us or (failed.missing_since_us if end_us is not None else None)
        after = replace(failed, end_us=end_us, missing_since_us=missing_us)
        pilot.learn(replace(pilot.facts, failed_ads=after))


def waits_until(
    pilot: OpenPilot,
    job: FactoryJob | None,
    written_us: int | None,
    told_us: int,
    rules: Rules,
    *,
    unread: bool,
) -> int:
    """Return until when a pilot whose end is not known is taken to run.

    - ``job``: what it is in its factory's queue, if that is known.
    - ``written_us``: when its output was written last, if that is known.
    - ``told_us``: when gwmond read it, which is as late as it can have been written.
    - ``unread``: its output was not read since then, as gwmond was started.
    """
    if job is not None and job.started_us is not None and job.runs:
        return max(written_us or 0, pilot.last_heard_us, job.started_us) + AGE_US
    if written_us is None:
        return told_us + rules.quiet_us
    until_us = min(max(written_us, pilot.last_heard_us), told_us) + rules.quiet_us
    return max(until_us, told_us + min(rules.linger_us, rules.quiet_us)) if unread else until_us


def read_until(pilot: OpenPilot, told_us: int, rules: Rules) -> int:
    """Return the same when all that there is was read."""
    return min(pilot.last_heard_us, told_us) + rules.quiet_us


def known_start(pilot: OpenPilot) -> bool:
    """Return whether its output has when a pilot began, and no collector has shown it."""
    return pilot.has_output and Assumption.BEGIN not in pilot.assumed


def may_run_at(pilot: OpenPilot, at_us: int) -> bool:
    """Return whether a pilot known from its output may have run HTCondor from then on."""
    if not pilot.has_output or pilot.start_us - GUARD_US > at_us:
        return False
    silent_us = GUARD_US if pilot.end_source == "assumed" else 0
    return pilot.end_us is None or at_us <= pilot.effective_end_us + silent_us


def is_given_up(pilot: OpenPilot) -> bool:
    """Return whether nothing but the last time in an output says when its pilot ended."""
    return pilot.has_output and pilot.end_source == "assumed"


def last_reported_us(pilot: OpenPilot) -> int:
    """Return the last time that is known of a pilot: of itself, or the end of a run on it."""
    ends = [run.merged.end_us or 0 for run in pilot.runs.values() if not run.summarised]
    return max(pilot.last_heard_us, pilot.start_us, *ends)


def give_up(pilot: OpenPilot) -> None:
    """End a pilot with the last thing that is known of it."""
    decisions = replace(pilot.facts.decisions, given_up_us=last_reported_us(pilot))
    pilot.learn(replace(pilot.facts, decisions=decisions))
