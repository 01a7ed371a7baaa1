"""Which groups of idle jobs could run on which empty pilots: found once for each pair, and kept.

A ledger keeps them through restarts.  Pairs are evaluated in children, many in each.  One pair that
costs too much, or crashes the library, ends its child: the verdicts before it are kept, others go
on, and what is not known is left out.  A job or a pilot's START with which that happens again is
set aside for an hour.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import groupby, islice
from typing import Any, NamedTuple, TypeAlias

from gwmond import __version__
from gwmond.model.facts import DemandGroup, Problem, Template, Verdict
from gwmond.model.problem_names import ProblemName
from gwmond.sources import child
from gwmond.sources.child import Board
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor import matching

ASIDE_S = 3600.0
Pair: TypeAlias = tuple[str, str]
"""The signatures of a group of jobs and of a template."""
_NOTHING: dict[str, Verdict] = {}
_VERDICTS = tuple(Verdict)
_NOT_EVALUATED = "-"
_DIGITS: Mapping[Verdict | None, str] = {
    None: _NOT_EVALUATED,
    **{verdict: str(number) for number, verdict in enumerate(_VERDICTS)},
}


class _Failure(NamedTuple):
    """Until when a pair is not tried again, and whose expression it failed in: 0 is the job's."""

    until: float
    side: int


class Matcher:
    """Remembers verdicts, and what is set aside; use it from one thread."""

    def __init__(self, gatherer: Gatherer, clock: Callable[[], float] = time.monotonic) -> None:
        self._gatherer, self._clock = gatherer, clock
        self.verdicts: dict[str, dict[str, Verdict]] = {}  # equal rows are one object
        self._groups: dict[str, DemandGroup] = {}
        self._templates: dict[str, Template] = {}
        self._failed: dict[Pair, _Failure] = {}
        self._aside: dict[str, float] = {}  # signatures of groups and of templates
        self._slow: set[str] = set()  # groups at which a deadline passed: they come last
        self._told: frozenset[str] = frozenset()
        self.evaluated = False  # any pair in the last match

    def match(self, groups: Sequence[DemandGroup], templates: Sequence[Template]) -> list[Problem]:
        """Evaluate the pairs that are new, and forget those that are gone.

        Return a problem for each job, and each START, that is set aside.
        """
        self._groups = {group.signature: group for group in groups}
        self._templates = {template.signature: template for template in templates}
        self.verdicts = {group: self.verdicts.get(group, _NOTHING) for group in self._groups}
        if any(not row.keys() <= self._templates.keys() for row in self._different()):
            self._share()
        now, there = self._clock(), self._groups.keys() | self._templates.keys()
        self._failed = {
            p: f for p, f in self._failed.items() if f.until > now and self._is_there(p)
        }
        self._aside = {signature: until for signature, until in self._aside.items() if until > now}
        self._slow &= there
        self.evaluated = any(self._left())
        if self.evaluated:
            self._gatherer.run("gwmond", "matching", matching.evaluate, how=self._evaluate)
            self._share()
        self._gatherer.aside = self._named()
        return self._problems(groups, templates)

    def _is_there(self, pair: Pair) -> bool:
        return pair[0] in self._groups and pair[1] in self._templates

    def _different(self) -> Iterable[dict[str, Verdict]]:
        """Return each row once."""
        return {id(row): row for row in self.verdicts.values()}.values()

    def _share(self) -> None:
        """Drop templates that are gone; rows that are equal then are one object."""
        alike: dict[tuple[tuple[str, Verdict], ...], dict[str, Verdict]] = {}
        instead = {}
        for row in self._different():
            kept = {name: row[name] for name in self._templates if name in row}
            instead[id(row)] = alike.setdefault(tuple(kept.items()), kept)
        self.verdicts = {group: instead[id(row)] for group, row in self.verdicts.items()}

    def _left(self) -> Iterator[Pair]:
        """Yield the pairs that are to be evaluated.

        Last come what a deadline passed at, jobs of accounting groups that have a job which is set
        aside, and of each what is suspected.
        """
        suspected = {side for pair in self._failed for side in pair}
        named = self._named()
        owners = {g.accounting_group for s, g in self._groups.items() if s in named} - {""}

        def rank(group: str) -> tuple[bool, bool]:
            return group in self._slow, self._groups[group].accounting_group in owners

        groups = (g for g in self._groups if len(self.verdicts[g]) < len(self._templates))
        for _, alike in groupby(sorted(groups, key=rank), rank):
            later = []
            for pair in (
                (g, t) for g in alike for t in self._templates if t not in self.verdicts[g]
            ):
                if pair in self._failed or not self._aside.keys().isdisjoint(pair):
                    continue
                if suspected.isdisjoint(pair):
                    yield pair
                else:
                    later.append(pair)
            yield from later

    def _evaluate(
        self, task: Callable[..., Any], *, deadline_s: float, memory_mib: int
    ) -> tuple[tuple[None, int], child.Usage]:
        """Evaluate pairs in one child after another, within one deadline.

        Raises QueryError: ``matching_late`` where some are left.
        """
        until, made = time.monotonic() + deadline_s, 0
        cpu_s = peak_mib = 0.0
        while chunk := list(islice(self._left(), matching.PAIRS_A_CHILD)):
            failure, number, used = self._one_child(
                task, chunk, until - time.monotonic(), memory_mib
            )
            made, cpu_s, peak_mib = made + number, cpu_s + used.cpu_s, max(peak_mib, used.peak_mib)
            late = failure == ProblemName.TIMEOUT or time.monotonic() >= until
            if late and (left := sum(1 for _ in self._left())):
                text = f"{left} of {len(self._groups) * len(self._templates)} pairs are left"
                raise child.QueryError(ProblemName.MATCHING_LATE, text)
        return (None, made), child.Usage(cpu_s, peak_mib)

    def _one_child(
        self, task: Callable[..., Any], chunk: list[Pair], left_s: float, memory_mib: int
    ) -> tuple[ProblemName | None, int, child.Usage]:
        """Evaluate pairs until one fails; keep all verdicts, and set the one that failed aside.

        Return how many verdicts there are.  Raises QueryError where that has nothing to do with a
        pair.
        """
        jobs, slots = (list(dict.fromkeys(pair[side] for pair in chunk)) for side in (0, 1))
        at_job, at_slot = ({name: i for i, name in enumerate(names)} for names in (jobs, slots))
        numbers = [(at_job[g], at_slot[t]) for g, t in chunk]
        texts, ads = [self._groups[g].ad for g in jobs], [self._templates[t] for t in slots]
        failure, detail, used = None, "", child.Usage(0.0, 0.0)
        with Board(len(chunk)) as board:
            asked = texts, ads, numbers, board
            try:
                _, used = child.run(task, *asked, deadline_s=left_s, memory_mib=memory_mib)
            except child.QueryError as error:  # kept itself, it would keep all that a poll holds
                failure, detail = error.problem, error.detail
            marks = board.marks[:]
        at, made = None, 0
        rows: defaultdict[str, dict[str, Verdict]] = defaultdict(dict)
        for number, ((group, template), mark) in enumerate(zip(chunk, marks, strict=True)):
            if 0 < mark < len(matching.VERDICTS):
                rows[group][template] = _VERDICTS[mark - 1]
                made += 1
            elif mark:
                at = number
        self.verdicts |= {group: self.verdicts[group] | row for group, row in rows.items()}
        if failure is None:
            return None, made, used
        if at is None and failure != ProblemName.TIMEOUT:
            raise child.QueryError(failure, detail)
        if failure == ProblemName.TIMEOUT:
            self._slow.update(pair[0] for pair in chunk[at or 0 : (at or 0) + 1])
        elif at is not None:
            self._set_aside(chunk[at], marks[at])
        return failure, made, used

    def _set_aside(self, pair: Pair, mark: int) -> None:
        """Set a pair aside, and a side of it that has failed with another one, too."""
        until = self._clock() + ASIDE_S
        side = int(mark in (matching.TEMPLATE, matching.BEGUN_START))
        self._failed[pair] = _Failure(until, side)
        if mark in (matching.JOB, matching.TEMPLATE):
            self._aside[pair[side]] = until
            return
        failures = self._failures()
        if max(failures[s] for s in pair) > 1:  # where both have: by the expression
            self._aside[max(pair, key=lambda s: (failures[s], s == pair[side]))] = until

    def _failures(self) -> Counter[str]:
        """Count the failed pairs of each job, and those of each START that may be its own.

        A START counts what failed in its own expression.  What failed in the job's is held against
        it only where the job could be matched with others: else the job is costly everywhere.
        """
        well = {group for group, row in self.verdicts.items() if row}
        failed = [(p, f) for p, f in self._failed.items() if self._aside.keys().isdisjoint(p)]
        return Counter(group for (group, _), _ in failed) + Counter(
            template for (group, template), f in failed if f.side or group in well
        )

    def _named(self) -> frozenset[str]:
        """Return what is set aside, and of each single pair that in whose expression it failed."""
        alone = (p[f.side] for p, f in self._failed.items() if self._aside.keys().isdisjoint(p))
        return frozenset({*self._aside, *alone})

    def _problems(
        self, groups: Iterable[DemandGroup], templates: Iterable[Template]
    ) -> list[Problem]:
        named, before = self._named(), self._told
        self._told = named
        problems = []
        for group in groups:
            if group.signature in named:
                name = group.accounting_group or "none"
                text = f"{group.sample or 'a job'} (jobs like it: {group.jobs}; group {name})"
                source, new = group.schedd, int(group.signature not in before)
                problems.append(Problem(source, ProblemName.COSTLY_JOB, text, new))
        for template in templates:
            if template.signature in named:
                name, new = template.group or "none", int(template.signature not in before)
                text = f"{'/'.join(template.entry)} (frontend group {name})"
                problems.append(Problem("entries", ProblemName.COSTLY_START, text, new))
        return problems


def dumped(verdicts: Mapping[str, Mapping[str, Verdict]]) -> str:
    """Return verdicts as text: for each different row a digit a template, packed."""
    rows = {id(row): row for row in verdicts.values()}
    templates = sorted({template for row in rows.values() for template in row})
    at = {row: number for number, row in enumerate(rows)}
    document = {
        "made": _made_by(),
        "templates": templates,
        "rows": ["".join(_DIGITS[row.get(t)] for t in templates) for row in rows.values()],
        "groups": {group: at[id(row)] for group, row in verdicts.items()},
    }
    return base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()


def loaded(text: str) -> dict[str, dict[str, Verdict]]:
    """Return verdicts that were dumped; none of another version's, whose rules may differ."""
    try:
        document = json.loads(zlib.decompress(base64.b64decode(text)))
        if document["made"] != _made_by():
            return {}
        templates = document["templates"]
        rows = [
            {
                t: _VERDICTS[int(d)]
                for t, d in zip(templates, row, strict=True)
                if d != _NOT_EVALUATED
            }
            for row in document["rows"]
        ]
        return {group: rows[number] for group, number in document["groups"].items()}
    except (binascii.Error, zlib.error, ValueError, LookupError, TypeError):
        return {}


def _made_by() -> str:
    """Return what decides of a pair beside its texts: gwmond's version and HTCondor's."""
    return f"{__version__} {metadata.version('htcondor')}"
