"""Pilots whose output has no end: how long each is taken to run, and when it ended then.

Units: times are microseconds since the epoch.

An output without an end is that of a pilot which was killed hard, or which still runs: a factory
may let outputs stream.  It is open, and none of its time is settled, until a source has its end,
or until nothing has been heard of it for long enough:

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
that a record has on it; ``factory.amended`` knows when its factory's queue has it better.
"""

from __future__ import annotations

from gwmond.model.factory.jobs import AGE_US, GUARD_US, FactoryJob
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.pilot_facts import replace
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.open_pilot import OpenPilot


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
