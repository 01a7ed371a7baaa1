"""When a run's outcome is known, and what it is.

Rules besides the table of ``model.runs.outcomes``:

- Whether the pilot ended with the run is known once the pilot was heard of ``end_tolerance``
  after the run's end, or has ended.  As long as the table's line depends on it, it is open.
  What ran as a pilot's startd was started again ended with that startd.
- A run without a record of its end is given up ``outcome_wait`` after its claim was seen
  last, its pilot ended or the next run of its job began (``missing_wait`` if its schedd is silent).
  It ended then; one that no slot has shown, when its container failed by a central log.
- What a slot shows now is running, whatever is known of other runs of the job.
- What only the startd has reported waits for the schedd's record, as long as that may come; and
  what is not known waits ``outcome_wait``.
- What stands for the jobs of a summary has the outcome that the summary gives (see summaries).
- An exit with an error soon after the program began is open until it is judged
  (``early.comparison``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.condor_codes import Meaning
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.outcomes import (
    AWAITING,
    EARLY_EXIT,
    NOT_COMPARED,
    SUMMARISED,
    classify,
    rule_of,
)
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.pilots.early.comparison import Result, result_of
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.life.same_run import claim_of
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun

_STARTDS = frozenset(
    {
        *(Source.STARTD_HISTORY, Source.CENTRAL_LOG, Source.LIVE_SLOT),
        *(Source.INFERRED, Source.TRANSFERS),
    }
)


class GivenUp(NamedTuple):
    """When a run without a record of its end ended, and when that is decided."""

    end_us: int
    decided_us: int


def given_up_at(
    run: OpenRun, later_us: int | None, rules: Rules, silent: Collection[str]
) -> GivenUp | None:
    """Return until when the record of a run is waited for; None: it may still go on."""
    pilot = run.pilot
    ends, unseen = [], Source.LIVE_SLOT not in run.merged.sources
    if later_us is not None and (run.gone or unseen):
        ends.append(later_us)
    if run.gone and run.last_shown_us is not None:
        ends.append(run.last_shown_us)
    if pilot.end_us is not None:
        ends.append(pilot.end_us)
    if not ends:
        return None
    if unseen:
        ends += [fact.written_us for fact in run.facts if fact.ending.container_failed]
    end_us = max(min(ends), run.start_us)
    schedd = run.key.job.partition("#")[0]
    wait_us = rules.missing_wait_us if schedd in silent else rules.outcome_wait_us
    return GivenUp(end_us, end_us + wait_us)


def given_up(
    run: OpenRun,
    later_us: int | None,
    now_us: int,
    written_us: int,
    rules: Rules,
    silent: Collection[str],
) -> RunFact | None:
    """Return the fact that a run is over that no record has, once it was waited for.

    ``now_us`` is up to when it was waited for, ``written_us`` when that was decided.
    """
    if run.merged.ending.over:
        return None
    at = given_up_at(run, later_us, rules, silent)
    if at is None or now_us < at.decided_us:
        return None
    return RunFact(
        source=Source.INFERRED,
        job=run.key.job,
        shadow_start=run.key.shadow_start,
        written_us=written_us,
        pilot=run.pilot.label,
        start_us=run.merged.start_us,
        end_us=at.end_us,
        ending=Ending(over=True, superseded=True if later_us is not None else None),
        activated_us=next((claim for claim in map(claim_of, run.facts) if claim is not None), None),
    )


def plain_outcome(
    run: OpenRun, later_us: int | None, now_us: int, known_us: int, rules: Rules
) -> Outcome | None:
    """Return the outcome by the table, None as long as it is open.

    ``known_us``: up to when the schedds that answer have reported all.
    """
    ending = run.merged.ending
    if not ending.over:
        return None
    if run.summarised:
        category = Category.GOODPUT if ending.completed else Category.UNCLASSIFIED
        return Outcome(category, SUMMARISED, "estimated")
    end_us = run.end_us or run.start_us
    if set(run.merged.sources) <= _STARTDS and known_us < end_us:
        return None
    if later_us is not None and ending.superseded is None:
        ending = ending._replace(superseded=True)
    if ending.startd_ended is None:
        ended = _startd_ended(run, now_us, rules)
        if ended is None:
            yes, no = (classify(ending._replace(startd_ended=whether)) for whether in (True, False))
            return yes if yes == no else None
        ending = ending._replace(startd_ended=ended)
    weak = rule_of(ending).name in AWAITING and later_us is None
    if weak and now_us < end_us + rules.outcome_wait_us:
        return None
    return classify(ending)


def _startd_ended(run: OpenRun, now_us: int, rules: Rules) -> bool | None:
    """Return whether the pilot, or its startd, ended with the run, None if not known yet."""
    pilot, end_us = run.pilot, run.end_us
    lost = [restart.lost_us for restart in pilot.restarts if run.start_us < restart.at_us]
    if lost and (end_us is None or end_us + rules.end_tolerance_us >= lost[0]):
        return True
    if pilot.known_from_jobs_only:
        return None if now_us < (end_us or now_us) + rules.outcome_wait_us else _last(run, rules)
    if pilot.end_us is not None:
        return end_us is None or end_us + rules.end_tolerance_us >= _there_until(pilot)
    if end_us is not None and pilot.last_heard_us > end_us + rules.end_tolerance_us:
        return False
    return None


def _there_until(pilot: OpenPilot) -> int:
    """Return until when a pilot that ended was surely there.

    An ad that is shown for a while after its last update, and then expires, does not show that.
    """
    end_us, ads = pilot.effective_end_us, pilot.facts.ads
    if pilot.end_source == "ad_expired" and ads is not None and ads.end_us == end_us:
        return min(end_us, pilot.last_heard_us)
    return end_us


def _last(run: OpenRun, rules: Rules) -> bool:
    """Return False if another run, a later one or a longer one, shows that the pilot went on.

    How long a pilot was there is shown by a program that ended itself, and by a contact until it
    was lost; all else may be what the pilot's end left.
    """
    end_us = run.end_us
    if end_us is None:
        return True
    pilot: OpenPilot = run.pilot
    tolerated_us = end_us + rules.end_tolerance_us
    for other in pilot.runs.values():
        if other.start_us > end_us:
            return False
        if (other.end_us or 0) > tolerated_us:
            ending = other.merged.ending
            in_contact = ending.reason is Meaning.LOST and ending.disconnected is True
            if ending.completed or ending.exited or in_contact:
                return False
    return True


def weighed(run: OpenRun, plain: Outcome | None) -> tuple[Outcome | None, str]:
    """Return the outcome, None while an early failure is not judged; and what the run says."""
    if plain is None or run.summarised:
        return plain, ""
    result = result_of(plain, run.merged.ending.early)
    if result is Result.FAILED_EARLY:
        judged = run.judged
        fits = judged is not None and judged.label in {plain.label, EARLY_EXIT, NOT_COMPARED}
        return (judged if fits else None), result.value
    return plain, result.value if result else ""
