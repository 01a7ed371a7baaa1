"""Which facts of a job are about the same run of it.

Units: times are microseconds since the epoch.

Source of the rules: facts page on HTCondor (keys of an attempt); schedd.cpp.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from gwmond.accounting.pilot_facts import AttemptKey

if TYPE_CHECKING:
    from gwmond.accounting.attempts import AttemptFact

TOLERANCE_US = 60_000_000
"""Clocks of hosts may differ by this, and ends may be told this late."""

UNKNOWN_RUN = 0
"""NumShadowStarts counts from 1; a slot ad does not have it."""

UNKNOWN_LATER = 10**9
"""From here on: further runs of a job of which no number is told, in the order of their starts."""

SAME_START_US = 5_000_000
"""A slot tells the same start as long as a run lasts."""


def gather(
    facts: Iterable[AttemptFact], tolerance_us: int = TOLERANCE_US
) -> dict[AttemptKey, list[AttemptFact]]:
    """Sort facts by attempt.

    - Facts with the same job and run are of one attempt.
    - Runs of a job with the very same JobCurrentStartDate, and not on different pilots, are one:
      when a schedd reconnects after a restart it counts another shadow start and keeps the date
      (schedd.cpp:add_shadow_birthdate).  The lowest number stands for them.
    - A slot ad tells no run: it is of the run on the same pilot that began nearest to its
      JobStart, within the tolerance; if there is none, of a run of its own (``UNKNOWN_RUN``, or
      from ``UNKNOWN_LATER`` on if there are several, by their starts).
    """
    jobs: defaultdict[str, set[AttemptFact]] = defaultdict(set)
    for fact in facts:
        jobs[fact.job].add(fact)
    gathered: defaultdict[AttemptKey, list[AttemptFact]] = defaultdict(list)
    for job, told in jobs.items():
        runs = _runs(told)
        for run, of_run in runs.items():
            gathered[AttemptKey(job, run)] += of_run
        alone: list[AttemptFact] = []
        for fact in told:
            if fact.run is None:
                run = _nearest(fact, runs, tolerance_us)
                if run == UNKNOWN_RUN:
                    alone.append(fact)
                else:
                    gathered[AttemptKey(job, run)].append(fact)
        for index, some in enumerate(_by_start(alone)):
            run = UNKNOWN_LATER + index if index else UNKNOWN_RUN
            gathered[AttemptKey(job, run)] += some
    return dict(gathered)


def _by_start(facts: Collection[AttemptFact]) -> list[list[AttemptFact]]:
    """Return facts of which no run is told, those of each run together, by start."""
    groups: list[list[AttemptFact]] = []
    for fact in sorted(facts, key=lambda of: (of.start_us or 0, of.pilot or "", repr(of))):
        for group in groups:
            first = group[0]
            apart = None not in {fact.pilot, first.pilot} and fact.pilot != first.pilot
            late = None not in {fact.start_us, first.start_us} and (
                (fact.start_us or 0) - (first.start_us or 0) > SAME_START_US
            )
            if not apart and not late:
                group.append(fact)
                break
        else:
            groups.append([fact])
    return groups


def _runs(told: Collection[AttemptFact]) -> dict[int, list[AttemptFact]]:
    """Return the facts of one job's runs, the runs of one execution taken together."""
    runs: defaultdict[int, list[AttemptFact]] = defaultdict(list)
    for fact in told:
        if fact.run is not None:
            runs[fact.run].append(fact)
    joined: dict[int, list[AttemptFact]] = {}
    for run in sorted(runs):
        same = next((lower for lower in joined if _same_run(joined[lower], runs[run])), None)
        if same is None:
            joined[run] = runs[run]
        else:
            joined[same] = joined[same] + runs[run]
    return joined


def _same_run(some: Sequence[AttemptFact], others: Sequence[AttemptFact]) -> bool:
    def told(facts: Sequence[AttemptFact], name: str) -> set[object]:
        return {getattr(fact, name) for fact in facts} - {None}

    pilots, other_pilots = told(some, "pilot"), told(others, "pilot")
    apart = pilots and other_pilots and not pilots & other_pilots
    return not apart and bool(told(some, "start_us") & told(others, "start_us"))


def _nearest(fact: AttemptFact, runs: dict[int, list[AttemptFact]], tolerance_us: int) -> int:
    distances = [
        (abs(fact.start_us - known.start_us), run)
        for run, facts in runs.items()
        for known in facts
        if fact.start_us is not None and known.start_us is not None
        if fact.pilot is None or known.pilot is None or fact.pilot == known.pilot
    ]
    near = [found for found in distances if found[0] <= tolerance_us]
    return min(near)[1] if near else UNKNOWN_RUN
