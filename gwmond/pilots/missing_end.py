"""Pilots whose output tells no end: how long each is taken to run, and when it ended then.

Units: times are microseconds since the epoch.

An output without an end is that of a pilot which was killed hard, or which still runs: a factory
may let outputs stream.  It is open, and none of its time is settled, until something tells its end,
or until nothing has been heard of it for long enough:

===================== =========================================================================
its factory's queue   until the queue tells its end, as long as the queue may (``AGE_US``)
tells that it runs
the queue, or a       until ``quiet`` after that, as the whole output may be on its way
summary, tells its end
nothing tells its end until ``quiet`` after its files were written last; where that is not known,
                      after gwmond was started.  After a start for ``linger`` at least: they may
                      have grown, and are read first
===================== =========================================================================

At the end of an import nothing more is read, so that what the factory says is not waited for, but
in a ledger that a daemon keeps.  When files were written tells little there, as they may have been
copied: the last thing that an output tells counts.

A pilot that is given up ended with the last thing that its output tells of, or with the last run
that a record tells of on it; ``factory_pilots`` knows when its factory's queue tells better.
"""

from __future__ import annotations

from gwmond.model.factory_jobs import AGE_US, GUARD_US, FactoryJob
from gwmond.model.pilot_facts import Assumption
from gwmond.model.pilot_sources import replace
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.rules import Rules


def waits_until(
    pilot: OpenPilot,
    job: FactoryJob | None,
    written_us: int | None,
    told_us: int,
    rules: Rules,
    *,
    unread: bool,
) -> int:
    """Return until when a pilot is taken to run of which nothing tells the end.

    - ``job``: what it is in its factory's queue, if that is known.
    - ``written_us``: when its output was written last, if that is known.
    - ``told_us``: when gwmond was told of it, which is as late as it can have been written.
    - ``unread``: its output was not read since then, as gwmond was started.
    """
    if job is not None and job.started_us is not None and job.runs:
        return max(written_us or 0, pilot.contact_us, job.started_us) + AGE_US
    if written_us is None:
        return told_us + rules.quiet_us
    until_us = min(max(written_us, pilot.contact_us), told_us) + rules.quiet_us
    return max(until_us, told_us + min(rules.linger_us, rules.quiet_us)) if unread else until_us


def read_until(pilot: OpenPilot, told_us: int, rules: Rules) -> int:
    """Return the same when all that there is was read."""
    return min(pilot.contact_us, told_us) + rules.quiet_us


def known_start(pilot: OpenPilot) -> bool:
    """Return whether its output tells when a pilot began, and no collector has shown it."""
    return pilot.has_output and Assumption.BEGIN not in pilot.assumed


def may_run_at(pilot: OpenPilot, at_us: int) -> bool:
    """Return whether a pilot of which its output told may have run HTCondor from then on."""
    if not pilot.has_output or pilot.start_us - GUARD_US > at_us:
        return False
    silent_us = GUARD_US if pilot.ended == "assumed" else 0
    return pilot.end_us is None or at_us <= pilot.until_us + silent_us


def is_given_up(pilot: OpenPilot) -> bool:
    """Return whether nothing but what an output tells last says when its pilot ended."""
    return pilot.has_output and pilot.ended == "assumed"


def last_reported_us(pilot: OpenPilot) -> int:
    """Return the last time that is known of a pilot: of itself, or the end of a run on it."""
    ends = [
        attempt.merged.end_us or 0 for attempt in pilot.attempts.values() if not attempt.summarised
    ]
    return max(pilot.contact_us, pilot.start_us, *ends)


def give_up(pilot: OpenPilot) -> None:
    """Let a pilot have ended with the last thing that is known of it."""
    decisions = replace(pilot.facts.decisions, given_up_us=last_reported_us(pilot))
    pilot.learn(replace(pilot.facts, decisions=decisions))
