"""How often a problem occurred, and how long it lasts: one rule for the daemon and for an import.

A problem that tells how many records it is of (lines, runs) counts so often.  Any other is about
what it names (a file, a directory), and counts once for it, however often it is come upon.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gwmond.facts import Problem

EXAMPLES = 20
"""So many of each kind are kept in the ledger when it begins."""

LOOKS_HELD = 2
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
    for of in problems:
        some = found.setdefault((of.source, of.problem), [])
        if (of.source, of.problem) not in told and len(some) < EXAMPLES:
            some.append(of)
    return [of for some in found.values() for of in some]


class Held:
    """Problems that come when files are looked at or lines arrive, and not in every poll.

    Each lasts for some ``seconds`` after it was told last: until then it is told with 0 records.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[tuple[str, str], tuple[float, Problem]] = {}

    def told(self, problems: Iterable[Problem], now: float) -> list[Problem]:
        """Return what is to be told ``now`` (seconds of any clock): what is new, and what lasts."""
        new = list(problems)
        for of in new:
            self._until[of.source, of.problem] = now + self._seconds, of._replace(records=0)
        words = {(of.source, of.problem) for of in new}
        self._until = {key: of for key, of in self._until.items() if key in words or now < of[0]}
        return new + [of for key, (_, of) in self._until.items() if key not in words]


class Looks:
    """Problems of files that are looked at now and then, all told of one ``source``.

    Each look counts what it finds, also what an earlier look has found.  What it found lasts until
    the next look is done: in between it is told with 0 records, so that it is neither over nor
    counted again.  A look that failed says nothing of what was found before.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._counting = Counting()
        self._before: dict[str, Problem] = {}
        self._found: dict[str, Problem] = {}

    def begin(self) -> None:
        """Say that a look begins; what was found before lasts until it ends."""
        self._before |= self._found
        self._found = {}
        self._counting = Counting()

    def end(self, failure: Problem | None = None) -> None:
        """Say that a look is done, or why it failed, which was told and counted by others."""
        if failure is None:
            self._before = {}
        else:
            self._found[failure.problem] = failure._replace(source=self._source, records=0)

    def told(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return what is to be told: the problems that were found now, and those that last."""
        now: list[Problem] = []
        for of in problems:
            number = self._counting.new(of)
            here = Problem(self._source, of.problem, f"{of.source}: {of.detail}", number)
            self._found.setdefault(of.problem, here._replace(records=0))
            now += [here] if number else []
        words = {of.problem for of in now}
        lasting = (self._before | self._found).values()
        return now + [of for of in lasting if of.problem not in words]
