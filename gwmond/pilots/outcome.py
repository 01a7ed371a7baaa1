"""When an attempt's outcome can be said, and what it is.

Rules besides the table of ``model.outcomes``:

- Whether the pilot ended with the attempt is known once the pilot was heard of ``end_tolerance``
  after the attempt's end, or has ended.  As long as the table's line depends on it, it is open.
  What ran as a pilot's startd was started again ended with that startd.
- An attempt without a record of its end is given up ``outcome_wait`` after its claim was seen
  last, its pilot ended or the next run of its job began (``missing_wait`` if its schedd is silent).
  It ended then; one that no slot has shown, when its container failed by a central log.
- What a slot shows now is running, whatever is known of other runs of the job.
- What only the startd has told waits for the schedd's word, as long as that may come; and what
  nothing tells waits ``outcome_wait``.
- What stands for the jobs of a summary has the outcome that the summary gives (see summaries).
- An exit with an error soon after the program began is open until it is judged (early_failure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.attempts import AttemptFact, Source
from gwmond.model.endings import Ending
from gwmond.model.outcomes import AWAITING, SUMMARISED, classify, rule_of
from gwmond.model.pilot_facts import UNNUMBERED, AttemptKey, Category, Outcome
from gwmond.pilots.attempt_runs import claim_of
from gwmond.pilots.early_failure import Result, result_of
from gwmond.pilots.open_attempt import OpenAttempt
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.rules import Rules

if TYPE_CHECKING:
    from gwmond.pilots.run_matcher import RunMatcher

_STARTDS = frozenset({Source.STARTD_HISTORY, Source.CENTRAL_LOG, Source.LIVE_SLOT, Source.INFERRED})


def later_runs(of_job: Iterable[OpenAttempt]) -> dict[AttemptKey, int | None]:
    """Return, for each run of a job, when the next of them began; None if none did.

    Of runs that began at the same time the one with the higher number is later, and one without a
    number is later than all.
    """
    began = {attempt.key: (attempt.start_us, attempt.key.run or UNNUMBERED) for attempt in of_job}
    ordered = sorted(began, key=lambda key: began[key])
    starts = [began[key][0] for key in ordered]
    return dict(zip(ordered, [*starts[1:], None], strict=False))


class LaterRuns:
    """The same of many jobs, of which each is looked at once until it changes."""

    def __init__(self, jobs: Mapping[str, Iterable[OpenAttempt]]) -> None:
        self._jobs = jobs
        self._known: dict[str, dict[AttemptKey, int | None]] = {}

    def after(self, attempt: OpenAttempt) -> int | None:
        """Return when the next run of the same job began, None if there is none."""
        job = attempt.key.job
        if job not in self._known:
            self._known[job] = later_runs(self._jobs.get(job, ()))
        return self._known[job].get(attempt.key)

    def forget(self, jobs: Iterable[str]) -> None:
        """Say that the runs of these jobs have changed."""
        for job in jobs:
            self._known.pop(job, None)


class GivenUp(NamedTuple):
    """When a run without a record of its end ended, and when that is decided."""

    end_us: int
    decided_us: int


def given_up_at(
    attempt: OpenAttempt, later_us: int | None, rules: Rules, silent: Collection[str]
) -> GivenUp | None:
    """Return until when the record of a run is waited for; None: it may still go on."""
    pilot = attempt.pilot
    shown = Source.LIVE_SLOT in attempt.merged.sources and not attempt.gone
    ends = [later_us] if later_us is not None and not shown else []
    if attempt.gone and attempt.seen_us is not None:
        ends.append(attempt.seen_us)
    if pilot.end_us is not None:
        ends.append(pilot.end_us)
    if not ends:
        return None
    end_us = max(min([*ends, *_container_failures(attempt)]), attempt.start_us)
    schedd = attempt.key.job.partition("#")[0]
    wait_us = rules.missing_wait_us if schedd in silent else rules.outcome_wait_us
    return GivenUp(end_us, end_us + wait_us)


def given_up(
    attempt: OpenAttempt,
    later_us: int | None,
    now_us: int,
    written_us: int,
    rules: Rules,
    silent: Collection[str],
) -> AttemptFact | None:
    """Return the fact that an attempt is over of which no record tells, once it was waited for.

    ``now_us`` is up to when it was waited for, ``written_us`` when that is said.
    """
    if attempt.merged.ending.over:
        return None
    at = given_up_at(attempt, later_us, rules, silent)
    if at is None or now_us < at.decided_us:
        return None
    return AttemptFact(
        source=Source.INFERRED,
        job=attempt.key.job,
        run=attempt.key.number,
        written_us=written_us,
        pilot=attempt.pilot.label,
        start_us=attempt.merged.start_us,
        end_us=at.end_us,
        ending=Ending(over=True, superseded=True if later_us is not None else None),
        activated_us=next(
            (claim for claim in map(claim_of, attempt.facts) if claim is not None), None
        ),
    )


def _container_failures(attempt: OpenAttempt) -> list[int]:
    """Return when a central log says that its container failed, if no slot has shown it."""
    if Source.LIVE_SLOT in attempt.merged.sources:
        return []
    return [fact.written_us for fact in attempt.facts if fact.ending.container_failed]


def plain_outcome(
    attempt: OpenAttempt, later_us: int | None, now_us: int, known_us: int, rules: Rules
) -> Outcome | None:
    """Return the outcome by the table, None as long as it is open.

    ``known_us``: up to when the schedds that answer have told all.
    """
    ending = attempt.merged.ending
    if not ending.over:
        return None
    if attempt.summarised:
        category = Category.GOODPUT if ending.completed else Category.UNCLASSIFIED
        return Outcome(category, SUMMARISED, "estimated")
    end_us = attempt.end_us or attempt.start_us
    if set(attempt.merged.sources) <= _STARTDS and known_us < end_us:
        return None
    if later_us is not None and ending.superseded is None:
        ending = ending._replace(superseded=True)
    if ending.startd_ended is None:
        ended = _startd_ended(attempt, now_us, rules)
        if ended is None:
            yes, no = (classify(ending._replace(startd_ended=whether)) for whether in (True, False))
            return yes if yes == no else None
        ending = ending._replace(startd_ended=ended)
    weak = rule_of(ending).name in AWAITING and later_us is None
    if weak and now_us < end_us + rules.outcome_wait_us:
        return None
    return classify(ending)


def _startd_ended(attempt: OpenAttempt, now_us: int, rules: Rules) -> bool | None:
    """Return whether the pilot, or its startd, ended with the attempt, None if not known yet."""
    pilot, end_us = attempt.pilot, attempt.end_us
    lost = [restart.lost_us for restart in pilot.restarts if attempt.start_us < restart.at_us]
    if lost and (end_us is None or end_us + rules.end_tolerance_us >= lost[0]):
        return True
    if pilot.implied:
        return None if now_us < (end_us or now_us) + rules.outcome_wait_us else _last(attempt)
    if pilot.end_us is not None:
        return end_us is None or end_us + rules.end_tolerance_us >= pilot.end_us
    if end_us is not None and pilot.contact_us > end_us + rules.end_tolerance_us:
        return False
    return None


def _last(attempt: OpenAttempt) -> bool | None:
    """Return False if a later attempt shows that an implied pilot went on; else it is not known."""
    end_us = attempt.end_us
    pilot: OpenPilot = attempt.pilot
    later = any(
        end_us is not None and attempt.start_us > end_us for attempt in pilot.attempts.values()
    )
    return not later


def weighed(attempt: OpenAttempt, plain: Outcome | None) -> tuple[Outcome | None, str]:
    """Return the outcome, None while an early failure is not judged; and what the run says."""
    if plain is None or attempt.summarised:
        return plain, ""
    result = result_of(plain, attempt.merged.ending.early)
    if result is Result.FAILED_EARLY:
        judged = attempt.judged
        fits = judged is not None and (judged.label in {plain.label, "early_exit"})
        return (judged if fits else None), result.value
    return plain, result.value if result else ""


class DecisionTime(NamedTuple):
    """When it is decided: ``now_us`` for what waits, ``clock_us`` by the clock, which is said.

    ``known_us``: attempts that began before are known.
    """

    now_us: int
    clock_us: int
    known_us: int


def decide_runs(
    pilot: OpenPilot,
    at: DecisionTime,
    later: LaterRuns,
    matcher: RunMatcher,
    rules: Rules,
    silent: Collection[str],
) -> None:
    """Decide on what is open, and anew on what has changed."""
    over: defaultdict[str, list[AttemptFact]] = defaultdict(list)
    for attempt in pilot.attempts.values():
        if not _is_decided(attempt):
            fact = given_up(attempt, later.after(attempt), at.now_us, at.clock_us, rules, silent)
            if fact is not None:
                over[fact.job].append(fact)
    for job, facts in over.items():
        matcher.add(job, facts)
    later.forget(over)
    for attempt in list(pilot.attempts.values()):
        if _is_decided(attempt):
            continue
        later_us = later.after(attempt)
        plain = plain_outcome(attempt, later_us, at.now_us, at.known_us, rules)
        outcome, result = weighed(attempt, plain)
        if (outcome, result) != (attempt.outcome, attempt.result):
            attempt.dirty = True
            if outcome != attempt.outcome:
                pilot.touch(attempt.start_us)
            attempt.outcome, attempt.result = outcome, result


def _is_decided(attempt: OpenAttempt) -> bool:
    """Return whether nothing has changed that may change what was decided."""
    if attempt.outcome is None or not attempt.merged.ending.over:
        return False
    return attempt.pilot.from_us > (attempt.end_us or 0)
