"""How often a problem occurred, and how long it lasts: one rule for the daemon and for an import.

A problem that tells how many records it is of (lines, runs) counts so often.  Any other is about
what it names (a file, a directory), and counts once for it, however often it is come upon.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gwmond.model.facts import Problem

EXAMPLES = 20
"""So many of each kind are kept in the ledger when it begins."""

LASTS = 2
"""What comes now and then is over when none came for so many times ``[factory] every``."""


class Counting:
    """Counts problems of one import, or of one look at files."""

    def __init__(self) -> None:
        self._noted: set[tuple[str, str]] = set()

    def new(self, problem: Problem) -> int:
        """Return how many occurrences are new; 0 if it is about what it was told of before.

        >>> counting, link = Counting(), Problem("/x/a.out", "link_outside", "/etc/passwd")
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
    """Return how often a problem that is told once occurred: 0 if it only lasts."""
    return 1 if problem.records is None else problem.records


def begin(problems: Iterable[Problem], told: Collection[tuple[str, str]]) -> list[Problem]:
    """Return the problems that begin, ``EXAMPLES`` of each kind at each source.

    ``told``: source and word of those that last.

    >>> [of.detail for of in begin([Problem("s", "a", str(n)) for n in range(100)], ())][-1]
    '19'
    """
    found: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        some = found.setdefault((problem.source, problem.problem), [])
        if (problem.source, problem.problem) not in told and len(some) < EXAMPLES:
            some.append(problem)
    return [problem for some in found.values() for problem in some]


class Lasting:
    """Problems that do not come in each poll, and last in between: then told with 0 records.

    When each came last, and when it is over, is a number that only grows: a time, or that of a
    look at files.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[float, Problem]] = {}

    def note(self, problem: Problem, at: float) -> None:
        """Say that one came ``at`` a time or look, which is told and counted elsewhere."""
        self._last[problem.source, problem.problem] = at, problem._replace(records=0)

    def told(self, problems: Iterable[Problem], at: float, over: float) -> list[Problem]:
        """Return what is to be told: the problems that came ``at`` a time or look, and what lasts.

        What came at ``over`` or before, and not again, does not last any more.
        """
        new = list(problems)
        words = {(problem.source, problem.problem) for problem in new}
        self._last = {key: last for key, last in self._last.items() if last[0] > over}
        lasting = [problem for key, (_, problem) in self._last.items() if key not in words]
        for problem in new:
            self.note(problem, at)
        return new + lasting


class Looks:
    """Problems of files that are looked at now and then, all told of one ``source``.

    Each look counts what it finds, also what an earlier look has found.  What it found lasts until
    the next look is done, so that it is neither over nor counted again in between.  A look that
    failed says nothing of what was found before.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._counting = Counting()
        self._lasting = Lasting()
        self._look = self._over = 0

    def begin(self) -> None:
        """Say that a look begins; what was found before lasts until it ends."""
        self._look += 1
        self._counting = Counting()

    def end(self, failure: Problem | None = None) -> None:
        """Say that a look is done, or why it failed, which was told and counted by others."""
        if failure is None:
            self._over = self._look - 1
        else:
            self._lasting.note(failure._replace(source=self._source), self._look)

    def told(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return what is to be told: the problems that were found now, and those that last."""
        found = [
            Problem(self._source, problem.problem, f"{problem.source}: {problem.detail}", number)
            for problem in problems
            if (number := self._counting.new(problem))
        ]
        return self._lasting.told(found, self._look, self._over)
