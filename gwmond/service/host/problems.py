"""How often a problem occurred, and how long it lasts: one rule for the daemon and for an import.

A problem with a number of records (lines, runs) counts that often.  Any other problem is about what
it names (a file, a directory), and counts once for it, however often it is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName

Kind: TypeAlias = tuple[str, ProblemName]
"""A source and a problem that it has."""

EXAMPLES = 20
"""So many of each kind are kept in the ledger when it begins."""

LASTS = 2
"""A problem that comes now and then is over after so many times ``[factory] every`` without it."""


class Counting:
    """Counts problems of one import, or of one scan of files."""

    def __init__(self) -> None:
        self._noted: set[Kind] = set()

    def new(self, problem: Problem) -> int:
        """Return how many occurrences are new; 0 if this was asked before of the same.

        >>> link = Problem("/x/a.out", ProblemName.LINK_OUTSIDE, "/etc/passwd")
        >>> counting = Counting()
        >>> counting.new(link), counting.new(link), counting.new(link._replace(records=3))
        (1, 0, 3)
        """
        if problem.records is not None:
            return problem.records
        named = problem.source, problem.problem
        if named in self._noted:
            return 0
        self._noted.add(named)
        return 1


def occurrences(problem: Problem) -> int:
    """Return how often a problem that is reported once occurred: 0 if it only lasts."""
    return 1 if problem.records is None else problem.records


def begin(problems: Iterable[Problem], lasting: Collection[Kind]) -> list[Problem]:
    """Return the problems that begin, ``EXAMPLES`` of each kind at each source.

    ``lasting``: the kinds that last.

    >>> problems = [Problem("s", ProblemName.TOO_LONG, str(number)) for number in range(100)]
    >>> begin(problems, ())[-1].detail
    '19'
    """
    by_kind: dict[Kind, list[Problem]] = {}
    for problem in problems:
        examples = by_kind.setdefault((problem.source, problem.problem), [])
        if (problem.source, problem.problem) not in lasting and len(examples) < EXAMPLES:
            examples.append(problem)
    return [problem for examples in by_kind.values() for problem in examples]


class Lasting:
    """Problems that do not come in each poll; in between they last, with 0 records.

    Times are any number that only grows: seconds, or the number of a scan of files.
    """

    def __init__(self) -> None:
        self._last: dict[Kind, tuple[float, Problem]] = {}

    def note(self, problem: Problem, at: float) -> None:
        """Note a problem that came ``at`` a time or scan, and is reported and counted elsewhere."""
        self._last[problem.source, problem.problem] = at, problem._replace(records=0)

    def problems(self, problems: Iterable[Problem], at: float, over: float) -> list[Problem]:
        """Return the problems that came ``at`` a time or scan, and those that last.

        A problem that came at ``over`` or before, and not again, does not last any more.
        """
        new = list(problems)
        words = {(problem.source, problem.problem) for problem in new}
        self._last = {key: last for key, last in self._last.items() if last[0] > over}
        lasting = [problem for key, (_, problem) in self._last.items() if key not in words]
        for problem in new:
            self.note(problem, at)
        return new + lasting


class Scans:
    """Problems of files that are scanned now and then, all of one ``source``.

    Each scan counts what it finds, also what an earlier scan has found.  What it found lasts until
    the next scan is done, so that it is neither over nor counted again in between.  A scan that
    failed says nothing of what was found before.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._counting = Counting()
        self._lasting = Lasting()
        self._scan = self._over = 0

    def begin(self) -> None:
        """Begin a scan; what was found before lasts until it ends."""
        self._scan += 1
        self._counting = Counting()

    def end(self, failure: Problem | None = None) -> None:
        """End a scan, or note why it failed, which others report and count."""
        if failure is None:
            self._over = self._scan - 1
        else:
            self._lasting.note(failure._replace(source=self._source), self._scan)

    def problems(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems that were found now, and those that last."""
        counted = [
            Problem(self._source, problem.problem, f"{problem.source}: {problem.detail}", number)
            for problem in problems
            if (number := self._counting.new(problem))
        ]
        return self._lasting.problems(counted, self._scan, self._over)
