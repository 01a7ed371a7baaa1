"""Which facts of a job are about the same run of it.

Units: times are microseconds since the epoch.

A history numbers the runs of a job (NumShadowStarts); a slot, and a log, do not.  So runs are
distinguished , and ordered, by when they began.

Source of the rules: facts page on HTCondor (keys of a run); schedd.cpp.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gwmond.model.pilot_life import UNNUMBERED, RunKey
from gwmond.model.times import SECOND_US

if TYPE_CHECKING:
    from gwmond.model.runs.run_facts import RunFact

TOLERANCE_US = 60_000_000
"""Clocks of hosts may differ by this, and ends may be reported this late."""

SAME_START_US = 5_000_000
"""A log may be so far from other sources about when a run began."""

CLOCK_US = 10_000_000
"""By so much the clock of a slot may be off without being seen (see ``htcondor.claims``)."""

_STARTD, _SLOT, _INFERRED = "startd_history", "live_slot", "inferred"  # of ``run_facts.Source``
_TRANSFERS = "transfers"

Group: TypeAlias = list["RunFact"]
"""Facts without a number that are of one run."""


def gather(facts: Iterable[RunFact]) -> dict[RunKey, list[RunFact]]:
    """Sort facts by run.

    - Facts with the same job and number (NumShadowStarts) are of one run.
    - Runs of a job with the very same JobCurrentStartDate, and not on different pilots, are one:
      when a schedd reconnects after a restart it counts another shadow start and keeps the date
      (schedd.cpp:add_shadow_birthdate).  The lowest number stands for them.
    - What slots show with the same JobStart on the same pilot is one activation of a claim, and
      an activation is of one run: of the one on the same pilot that began next to it, and was not
      over when the activation began (see ``_Runs``).  A slot may show it long after the run was
      over: a starter stays, Preempting, while nobody takes what it has to say.
    - A fact of a log without a number is of the run on the same pilot that began nearest to it,
      within the tolerance.
    - A record of transfers has a number and no begin.  As long as that is all that is known of the
      number, it is of what began last before it on the same pilot.
    - What is left is of runs of their own.  The second in which such a run began stands for its
      number (``UNNUMBERED`` and later; 0 if it is not known when it began).
    """
    jobs: defaultdict[str, set[RunFact]] = defaultdict(set)
    for fact in facts:
        jobs[fact.job].add(fact)
    gathered: defaultdict[RunKey, list[RunFact]] = defaultdict(list)
    for job, job_facts in jobs.items():
        numbered = _runs(job_facts)
        for number, of_run in numbered.items():
            gathered[RunKey(job, number)] += of_run
        groups = _by_start([fact for fact in job_facts if fact.shadow_start is None])
        numbers = _Runs(numbered).of(groups) if numbered and groups else {}
        numbers |= _by_transfers(numbered, groups, numbers)
        for index, group in enumerate(groups):
            number = numbers.get(index, 0)
            if not number and (start_us := _start(group)) is not None:
                number = max(UNNUMBERED, start_us // SECOND_US)
                while RunKey(job, number) in gathered:
                    number += 1
            gathered[RunKey(job, number)] += group
    return dict(gathered)


def _by_transfers(
    numbered: Mapping[int, Sequence[RunFact]], groups: Sequence[Group], taken: Collection[int]
) -> dict[int, int]:
    """Return the numbers, of which only transfers are known, of groups that have none, by index."""
    numbers: dict[int, int] = {}
    for number, facts in sorted(numbered.items()):
        if any(fact.source != _TRANSFERS for fact in facts):
            continue
        pilot, first_us = facts[0].pilot, min(fact.written_us for fact in facts)
        begun = [
            (start_us, index)
            for index, group in enumerate(groups)
            if index not in taken and index not in numbers and group[0].pilot == pilot
            if (start_us := _start(group)) is not None and start_us <= first_us + CLOCK_US
        ]
        if begun:
            numbers[max(begun)[1]] = number
    return numbers


def claim_of(fact: RunFact) -> int | None:
    """Return when a claim was activated, by its startd's clock; None if a fact is of no slot.

    It is the same as long as a run lasts.
    """
    if fact.activated_us is not None:
        return fact.activated_us
    return fact.start_us if fact.source == _SLOT else None


def _start(group: Group) -> int | None:
    return min((fact.start_us for fact in group if fact.start_us is not None), default=None)


def _by_start(facts: Collection[RunFact]) -> list[Group]:
    """Return facts without a number, those of each run together, by start.

    A fact without a start is of the latest run on its pilot.
    """
    if len(facts) < 2:
        return [list(facts)] if facts else []
    claims: defaultdict[tuple[str | None, int], Group] = defaultdict(list)
    items: list[Group] = []
    for fact in sorted(facts, key=lambda fact: (fact.start_us or 0, repr(fact))):
        if (claim := claim_of(fact)) is None:
            items.append([fact])
            continue
        same = claims[fact.pilot, claim]
        if not same:
            items.append(same)
        same.append(fact)
    items.sort(key=_order)
    groups: list[Group] = []
    near: list[Group] = []  # those that a fact may be of that begins no earlier
    for item in items:
        first = item[0]
        timeless = first.start_us is None
        near = [group for group in near if timeless or not _is_late(first, group[0])]
        same_run = [group for group in (groups if timeless else near) if _may_be_one(item, group)]
        if same_run:
            same_run[-1].extend(item)
        else:
            groups.append(item)
            near.append(item)
    return groups


def _order(item: Group) -> tuple[object, ...]:
    first = item[0]
    untold = first.start_us is None
    return untold, first.start_us or 0, claim_of(first) is None, first.pilot or "", repr(first)


def _is_late(fact: RunFact, first: RunFact) -> bool:
    if fact.start_us is None or first.start_us is None:
        return False
    return fact.start_us - first.start_us > SAME_START_US


def _may_be_one(item: Group, group: Group) -> bool:
    """Return whether facts that began at about the same time may be of one run."""
    if None not in {item[0].pilot, group[0].pilot} and item[0].pilot != group[0].pilot:
        return False
    return claim_of(item[0]) is None or all(claim_of(fact) is None for fact in group)


def _runs(job_facts: Collection[RunFact]) -> dict[int, list[RunFact]]:
    """Return the facts of one job's runs, the runs of one execution taken together.

    Runs are one if they began at the very same time, and no two pilots are named for them.
    """
    runs: defaultdict[int, list[RunFact]] = defaultdict(list)
    for fact in job_facts:
        if fact.shadow_start is not None:
            runs[fact.shadow_start].append(fact)
    joined: dict[int, list[RunFact]] = {}
    pilots: dict[int, set[str]] = {}
    by_start: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for number in sorted(runs):
        facts = runs[number]
        of_run = {fact.pilot for fact in facts if fact.pilot is not None}
        starts = {fact.start_us for fact in facts if fact.start_us is not None}
        lower = sorted({other for start_us in starts for other in by_start[start_us]})
        same = next((other for other in lower if not _apart(pilots[other], of_run)), number)
        joined.setdefault(same, []).extend(facts)
        pilots.setdefault(same, set()).update(of_run)
        for start_us in starts:
            by_start[start_us][same] = None
    return joined


def _apart(pilots: set[str], others: set[str]) -> bool:
    return bool(pilots and others and not pilots & others)


class _Runs:
    """The numbered runs of a job: when each began on each pilot, and what shows that it was over.

    An activation of a claim is of a run that

    - began less than the tolerance after it, which is how far clocks may differ, or before it; and
    - of which no record says that it was over before the claim was activated, or that it was over
      while the claim goes on to be shown.

    Where nothing says that a run was over it must have begun within the tolerance, unless a clock
    is wrong (``_by_other_clocks``).
    """

    def __init__(self, runs: dict[int, list[RunFact]]) -> None:
        self._facts = runs
        self._runs: defaultdict[str | None, dict[int, int]] = defaultdict(dict)
        for number, facts in runs.items():
            for fact in facts:
                if fact.start_us is not None:
                    began = self._runs[fact.pilot]
                    began[fact.start_us] = min(number, began.get(fact.start_us, number))
        self._sorted = {pilot: sorted(began) for pilot, began in self._runs.items()}
        about = (fact.about_job for facts in runs.values() for fact in facts)
        left = any(job is not None and job.left_us is not None for job in about)
        self._whole = left and set(runs) == set(range(1, len(runs) + 1))

    def of(self, groups: Sequence[Group]) -> dict[int, int]:
        """Return the runs that groups are of, by the number of the group.

        Two activations are never of one run: the nearest is.
        """
        near = sorted(
            (distance_us, number, index)
            for index, group in enumerate(groups)
            for distance_us, number in self._near(group)
        )
        numbers: dict[int, int] = {}
        taken: set[int] = set()
        for _, number, index in near:
            claimed = any(claim_of(group) is not None for group in groups[index])
            if index in numbers or (claimed and number in taken):
                continue
            numbers[index] = number
            if claimed:
                taken.add(number)
        for index, group in enumerate(groups):
            if index not in numbers and any(claim_of(fact) is not None for fact in group):
                number = next((run for run in self._by_other_clocks(group) if run not in taken), 0)
                if number:
                    numbers[index] = number
                    taken.add(number)
        return numbers

    def _by_other_clocks(self, group: Group) -> Iterator[int]:
        """Yield the runs that an activation may be of by clocks which differ by more, in order.

        If it was shown after a run had begun by the access point's clock, or is before the job's
        first run, it began before that clock says.  Once a job has left there are no more runs.
        """
        start_us = _start(group) or 0
        last_us = max(fact.written_us for fact in group)
        pilot = next((fact.pilot for fact in group if fact.pilot is not None), None)
        for where in (pilot, None):
            for began_us in self._sorted.get(where, []):
                number = self._runs[where][began_us]
                ahead = began_us > start_us and (number == 1 or last_us >= began_us)
                if ahead or self._whole:
                    yield number

    def _near(self, group: Group) -> Iterator[tuple[int, int]]:
        """Yield the runs that facts may be of, on their pilot, and how far apart they began."""
        start_us = _start(group)
        if start_us is None:
            return
        pilot = next((fact.pilot for fact in group if fact.pilot is not None), None)
        for where in self._sorted if pilot is None else (pilot, None):
            began = self._sorted.get(where, [])
            at = bisect_left(began, start_us)
            for near in began[max(0, at - 1) : at + 1]:
                number = self._runs[where][near]
                if self._may_be(group, start_us, near, number):
                    yield abs(near - start_us), number

    def _may_be(self, group: Group, start_us: int, began_us: int, number: int) -> bool:
        near = abs(began_us - start_us) <= TOLERANCE_US
        claim = next((us for us in map(claim_of, group) if us is not None), None)
        if claim is None:
            return near
        over = [
            fact for fact in self._facts[number] if fact.ending.over and fact.source != _INFERRED
        ]
        over = [fact for fact in over if fact.end_us is not None]
        # A starter may stay long after its shadow is gone: what its startd says is about the slot.
        over = [fact for fact in over if fact.source == _STARTD] or over
        if any(self._is_after(group, start_us, claim, fact) for fact in over):
            return False
        return near or (began_us < start_us and bool(over))

    def _is_after(self, group: Group, start_us: int, claim_us: int, record: RunFact) -> bool:
        """Return whether a claim was activated after the run of a record was over."""
        end_us = record.end_us or 0
        if record.source == _STARTD:  # by the same clock
            return claim_us > end_us
        ending = record.ending
        if ending.held is not None or ending.completed or ending.removed:
            return start_us > end_us + CLOCK_US  # the job does not run again at once
        if start_us > end_us:
            return True
        last_heard_us = max((fact.written_us for fact in group if fact.source == _SLOT), default=0)
        return start_us > end_us - CLOCK_US and last_heard_us > end_us + TOLERANCE_US
