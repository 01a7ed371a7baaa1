"""Which runs of jobs are over and not settled yet: what is waited for, and how long at most.

Units: times are microseconds since the epoch.

The waits are those of ``outcome`` and ``verdicts``: each is found by asking their rules what they
say once all waiting is over, and what they wait for until then.  A wait may end sooner (a record
comes, the next run of the job begins), and not later while collectors and schedds answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gwmond.model.runs.waits import Wait, Why
from gwmond.pilots.early.comparison import Result, result_of
from gwmond.pilots.life.rules import FAR_US, Rules
from gwmond.pilots.memory.ad_times import is_silent
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun
from gwmond.pilots.runs.later_runs import goes_on
from gwmond.pilots.runs.outcome import given_up_at, plain_outcome
from gwmond.pilots.runs.verdicts import evidence_until


def waits(
    pilots: Iterable[OpenPilot],
    rules: Rules,
    silent_before_us: int,
    silent: Collection[str],
    later_us: int,
) -> tuple[Wait, ...]:
    """Return what runs of pilots wait for, in the order of ``Why``; those that go on are left out.

    ``silent``: schedds that do not answer.  ``later_us``: by so much later is decided what is due.
    """
    by_why: dict[Why, list[int | None]] = {}
    for pilot in pilots:
        lost = _is_silent(pilot, silent_before_us)
        for run in pilot.runs.values():
            if run.outcome is not None or (not lost and goes_on(run)):
                continue
            if (wait := _wait(run, rules, silent, lost=lost)) is not None:
                why, until_us = wait
                by_why.setdefault(why, []).append(until_us)
    made = []
    for why in Why:
        if times := by_why.get(why):
            ends = [at + later_us for at in times if at is not None]
            made.append(Wait(why, len(times), max(ends) if len(ends) == len(times) else None))
    return tuple(made)


def _wait(
    run: OpenRun, rules: Rules, silent: Collection[str], *, lost: bool
) -> tuple[Why, int | None] | None:
    pilot, ending = run.pilot, run.merged.ending
    if not ending.over:
        until_us = _given_up_us(run, rules, silent, lost=lost)
        return None if until_us is None else (Why.RECORD, until_us)
    end_us = run.end_us or run.start_us
    plain = plain_outcome(run, None, FAR_US, FAR_US, rules)
    if plain is None:
        last_us = max(end_us + rules.end_tolerance_us, _last_heard_us(pilot))
        return Why.PILOT, last_us + pilot.lifetime_us  # heard of again, or expired
    if result_of(plain, ending.early) is Result.FAILED_EARLY:
        return Why.EARLY, evidence_until(end_us, rules)
    if plain_outcome(run, None, end_us, FAR_US, rules) is None:
        return Why.RECORD, end_us + rules.outcome_wait_us
    return Why.SCHEDD, None


def _given_up_us(run: OpenRun, rules: Rules, silent: Collection[str], *, lost: bool) -> int | None:
    """Return until when the record of a run is waited for; None: it may go on.

    ``lost``: its pilot is silent.
    """
    at = given_up_at(run, None, rules, silent)
    if at is not None:
        return at.decided_us
    if not lost:
        return None
    pilot = run.pilot
    wait_us = max(pilot.lifetime_us, rules.outcome_wait_us)
    return _last_heard_us(pilot) + wait_us  # it ends as its ad expires


def _is_silent(pilot: OpenPilot, silent_before_us: int) -> bool:
    return is_silent(pilot.identity, pilot.end_us, _last_heard_us(pilot), silent_before_us)


def _last_heard_us(pilot: OpenPilot) -> int:
    return max(pilot.last_heard_us, pilot.stored_last_heard_us)
