"""Which facts of a job are about the same run of it.

Units: times are microseconds since the epoch.

Source of the rules: facts page on HTCondor (keys of an attempt); schedd.cpp.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable
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
        starts: _Starts | None = None
        for fact in told:
            if fact.run is None:
                starts = starts or _Starts(runs)
                run = starts.nearest(fact, tolerance_us)
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
    near: list[list[AttemptFact]] = []  # those that a fact may be of that begins no earlier
    for fact in sorted(facts, key=lambda of: (of.start_us or 0, of.pilot or "", repr(of))):
        near = [group for group in near if not _is_late(fact, group[0])]
        for group in near:
            if None in {fact.pilot, group[0].pilot} or fact.pilot == group[0].pilot:
                group.append(fact)
                break
        else:
            groups.append([fact])
            near.append(groups[-1])
    return groups


def _is_late(fact: AttemptFact, first: AttemptFact) -> bool:
    if fact.start_us is None or first.start_us is None:
        return False
    return fact.start_us - first.start_us > SAME_START_US


def _runs(told: Collection[AttemptFact]) -> dict[int, list[AttemptFact]]:
    """Return the facts of one job's runs, the runs of one execution taken together.

    Runs are one if they began at the very same time, and no two pilots are told of them.
    """
    runs: defaultdict[int, list[AttemptFact]] = defaultdict(list)
    for fact in told:
        if fact.run is not None:
            runs[fact.run].append(fact)
    joined: dict[int, list[AttemptFact]] = {}
    pilots: dict[int, set[str]] = {}
    by_start: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for run in sorted(runs):
        facts = runs[run]
        of_run = {fact.pilot for fact in facts if fact.pilot is not None}
        starts = {fact.start_us for fact in facts if fact.start_us is not None}
        lower = sorted({of for start_us in starts for of in by_start[start_us]})
        same = next((of for of in lower if not _apart(pilots[of], of_run)), run)
        joined.setdefault(same, []).extend(facts)
        pilots.setdefault(same, set()).update(of_run)
        for start_us in starts:
            by_start[start_us][same] = None
    return joined


def _apart(some: set[str], others: set[str]) -> bool:
    return bool(some and others and not some & others)


class _Starts:
    """When the runs of a job began on each pilot; of runs that began together the lowest."""

    def __init__(self, runs: dict[int, list[AttemptFact]]) -> None:
        self._runs: defaultdict[str | None, dict[int, int]] = defaultdict(dict)
        for run, facts in runs.items():
            for of in facts:
                if of.start_us is not None:
                    began = self._runs[of.pilot]
                    began[of.start_us] = min(run, began.get(of.start_us, run))
        self._sorted = {pilot: sorted(began) for pilot, began in self._runs.items()}

    def nearest(self, fact: AttemptFact, tolerance_us: int) -> int:
        """Return the run that began nearest to a fact, and maybe on its pilot."""
        start_us = fact.start_us
        if start_us is None:
            return UNKNOWN_RUN
        found: list[tuple[int, int]] = []
        for pilot in self._sorted if fact.pilot is None else (fact.pilot, None):
            began = self._sorted.get(pilot, [])
            at = bisect_left(began, start_us)
            for near in began[max(0, at - 1) : at + 1]:
                if abs(near - start_us) <= tolerance_us:
                    found.append((abs(near - start_us), self._runs[pilot][near]))
        return min(found)[1] if found else UNKNOWN_RUN
