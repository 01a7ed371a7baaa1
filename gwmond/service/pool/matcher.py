"""Which groups of idle jobs could run on which empty pilots: found once for each pair, and kept.

Pairs are evaluated in children, many in each.  One pair that costs too much, or crashes the
library, ends its child: the verdicts before it are kept, others go on, and what is not known is
left out.  A job or a pilot's START with which that happens again is set aside for an hour.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from gwmond.model.facts import DemandGroup, Problem, Template, Verdict
from gwmond.model.problem_names import ProblemName
from gwmond.sources import child
from gwmond.sources.board import Board
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor import matching

ASIDE_S = 3600.0
Pair: TypeAlias = tuple[str, str]
"""The signatures of a group of jobs and of a template."""


class _Failure(NamedTuple):
    """Until when a pair is not tried again, and whose expression it failed in: 0 is the job's."""

    until: float
    side: int


class Matcher:
    """Remembers verdicts, and what is set aside; use it from one thread."""

    def __init__(self, gatherer: Gatherer, clock: Callable[[], float] = time.monotonic) -> None:
        self._gatherer, self._clock = gatherer, clock
        self.verdicts: dict[Pair, Verdict] = {}
        self._groups: dict[str, DemandGroup] = {}
        self._templates: dict[str, Template] = {}
        self._failed: dict[Pair, _Failure] = {}
        self._aside: dict[str, float] = {}  # signatures of groups and of templates
        self._slow: set[str] = set()  # groups at which a deadline passed: they come last
        self._told: frozenset[str] = frozenset()

    def match(self, groups: Sequence[DemandGroup], templates: Sequence[Template]) -> list[Problem]:
        """Evaluate the pairs that are new, and forget those that are gone.

        Return a problem for each job, and each START, that is set aside.
        """
        self._groups = {group.signature: group for group in groups}
        self._templates = {template.signature: template for template in templates}
        self.verdicts = {p: verdict for p, verdict in self.verdicts.items() if self._is_there(p)}
        now, there = self._clock(), self._groups.keys() | self._templates.keys()
        self._failed = {
            p: one for p, one in self._failed.items() if one.until > now and self._is_there(p)
        }
        self._aside = {one: until for one, until in self._aside.items() if until > now}
        self._slow &= there
        every = ((g, t) for g in self._groups for t in self._templates)
        if missing := self._left(every):
            self._gatherer.run(
                *("gwmond", "matching", matching.evaluate, missing), how=self._evaluate
            )
        self._gatherer.aside = self._named()
        return self._problems(groups, templates)

    def _is_there(self, pair: Pair) -> bool:
        return pair[0] in self._groups and pair[1] in self._templates

    def _left(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return those that are to be evaluated.

        Last come what a deadline passed at, jobs of accounting groups that have a job which is set
        aside, and of each what is suspected.
        """
        left = [
            pair
            for pair in pairs
            if pair not in self.verdicts
            and pair not in self._failed
            and self._aside.keys().isdisjoint(pair)
        ]
        suspected = {one for pair in self._failed for one in pair}
        named = self._named()
        owners = {g.accounting_group for s, g in self._groups.items() if s in named} - {""}

        def rank(pair: Pair) -> tuple[bool, bool, bool]:
            of = self._groups[pair[0]].accounting_group
            return pair[0] in self._slow, of in owners, not suspected.isdisjoint(pair)

        if suspected or owners or self._slow:
            left.sort(key=rank)
        return left

    def _evaluate(
        self, task: Callable[..., Any], pairs: list[Pair], *, deadline_s: float, memory_mib: int
    ) -> tuple[tuple[None, int], child.Usage]:
        """Evaluate pairs in one child after another, within one deadline.

        Raises QueryError: ``matching_late`` where some are left.
        """
        until, before = time.monotonic() + deadline_s, len(self.verdicts)
        cpu_s = peak_mib = 0.0
        while pairs:
            chunk = pairs[: matching.PAIRS_A_CHILD]
            failure, used = self._one_child(task, chunk, until - time.monotonic(), memory_mib)
            cpu_s, peak_mib = cpu_s + used.cpu_s, max(peak_mib, used.peak_mib)
            pairs = self._left(pairs)
            if pairs and (failure == ProblemName.TIMEOUT or time.monotonic() >= until):
                said = f"{len(pairs)} of {len(self._groups) * len(self._templates)} pairs are left"
                raise child.QueryError(ProblemName.MATCHING_LATE, said)
        return (None, len(self.verdicts) - before), child.Usage(cpu_s, peak_mib)

    def _one_child(
        self, task: Callable[..., Any], chunk: list[Pair], left_s: float, memory_mib: int
    ) -> tuple[ProblemName | None, child.Usage]:
        """Evaluate pairs until one fails; keep all verdicts, and set the one that failed aside.

        Raises QueryError where that has nothing to do with a pair.
        """
        jobs, slots = (list(dict.fromkeys(pair[side] for pair in chunk)) for side in (0, 1))
        at_job, at_slot = ({one: i for i, one in enumerate(ones)} for ones in (jobs, slots))
        numbers = [(at_job[g], at_slot[t]) for g, t in chunk]
        texts, ads = [self._groups[g].ad for g in jobs], [self._templates[t] for t in slots]
        failure, used = None, child.Usage(0.0, 0.0)
        with Board(len(chunk)) as board:
            asked = texts, ads, numbers, board
            try:
                _, used = child.run(task, *asked, deadline_s=left_s, memory_mib=memory_mib)
            except child.QueryError as error:
                failure = error
            marks = board.marks[:]
        at = None
        for number, (pair, mark) in enumerate(zip(chunk, marks, strict=True)):
            if 0 < mark < len(matching.VERDICTS):
                self.verdicts[pair] = list(Verdict)[mark - 1]
            elif mark:
                at = number
        if failure is None:
            return None, used
        if at is None and failure.problem != ProblemName.TIMEOUT:
            raise failure
        if failure.problem == ProblemName.TIMEOUT:
            self._slow.update(pair[0] for pair in chunk[at or 0 : (at or 0) + 1])
        elif at is not None:
            self._set_aside(chunk[at], marks[at])
        return failure.problem, used

    def _set_aside(self, pair: Pair, mark: int) -> None:
        """Set a pair aside, and a side of it that has failed with another one, too."""
        until = self._clock() + ASIDE_S
        side = int(mark in (matching.TEMPLATE, matching.BEGUN_START))
        self._failed[pair] = _Failure(until, side)
        if mark in (matching.JOB, matching.TEMPLATE):
            self._aside[pair[side]] = until
            return
        failures = Counter(
            one for p in self._failed if self._aside.keys().isdisjoint(p) for one in p
        )
        if (
            max(failures[one] for one in pair) > 1
        ):  # where both have failed again: by the expression
            self._aside[max(pair, key=lambda one: (failures[one], one == pair[side]))] = until

    def _named(self) -> frozenset[str]:
        """Return what is set aside, and of each single pair that in whose expression it failed."""
        alone = (p[one.side] for p, one in self._failed.items() if self._aside.keys().isdisjoint(p))
        return frozenset({*self._aside, *alone})

    def _problems(
        self, groups: Iterable[DemandGroup], templates: Iterable[Template]
    ) -> list[Problem]:
        named, told = self._named(), self._told
        self._told = named
        found = []
        for group in groups:
            if group.signature in named:
                of = group.accounting_group or "none"
                text = f"{group.sample or 'a job'} (jobs like it: {group.jobs}; group {of})"
                source, new = group.schedd, int(group.signature not in told)
                found.append(Problem(source, ProblemName.COSTLY_JOB, text, new))
        for template in templates:
            if template.signature in named:
                of, new = template.group or "none", int(template.signature not in told)
                text = f"{'/'.join(template.entry)} (frontend group {of})"
                found.append(Problem("entries", ProblemName.COSTLY_START, text, new))
        return found
