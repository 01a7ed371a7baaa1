"""The faults of a site: what failed there, at which nodes, since when, and whether it goes on.

A fault is one cause (a test of the validation, an outcome of runs, a server of transfers) in the
stretch of time in which it was densest: of all stretches the one whose share of failures differs
most from that of the rest, by the likelihood ratio of two rates against one (Kulldorff's scan
statistic for Bernoulli trials).  It is of single nodes where the other ones had the same work and
seldom failed, else of the place.

Units: times are microseconds since the epoch, amounts are canonical micros of CPUs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, combinations
from math import exp, inf, log
from typing import Literal, NamedTuple, TypeAlias

from gwmond.ledger.reading.begun_at import Elsewhere
from gwmond.reports.failures.outages import Outage

Kind: TypeAlias = Literal["validation", "run", "transfer"]
LEAST = 4
"""Fewer failures are no fault."""
LEAST_SHARE = 0.05
"""Nor are failures of a smaller part of what began."""
_AFTERWARDS = 5
"""So many must have been well since a fault is gone."""
_CAUSES = 20
_BINS = 200
_GAIN = 10.0
"""A logarithm: how much likelier a beginning or an end must be than none, as many were tried."""
_BAD = 0.5
"""A node is bad if its share is so much of that of the worst one."""
_GOOD = 0.25
"""The fault is of bad nodes if the other ones together have at most so much of that share."""
_CHANCE = 0.01
"""And if they would have so few failures seldom, were they as bad."""


class FaultCause(NamedTuple):
    """What failed: a class and test, an outcome, or a way, protocol and host."""

    kind: Kind
    name: str


class BegunMark(NamedTuple):
    """A pilot or a run that began; what it ``failed``, empty: nothing so far.

    ``micros``: None: not settled yet.  ``user`` and ``job_group`` are of runs only; ``over``: it
    has ended.
    """

    at_us: int
    entry: str
    node: str
    group: str
    failed: str
    micros: int | None = 0
    user: str = ""
    job_group: str = ""
    over: bool = True


class Fault(NamedTuple):
    """A fault of a site.

    - ``nodes``: of each bad node how many failed, and began; empty: it is of the whole place.
    - ``entries``: the entries at which it was seen.
    - ``since_us``, ``last_us``: when the first and the last began that failed in the stretch.
    - ``before``, ``after``: how many were well there before and after it, in the period.
    - ``failed``, ``begun``: in the stretch, at these nodes.
    - ``users``, ``job_groups``, ``groups``: of those that failed.
    - ``micros``: of those that are settled; ``unsettled``: how many are not.
    - ``elsewhere``: the same jobs, or pilots of the same groups, in that time.
    - ``outages``: in and around it, of the server that failed, whoever asked.
    """

    cause: FaultCause
    entries: tuple[str, ...]
    nodes: tuple[tuple[str, int, int], ...]
    since_us: int
    last_us: int
    before: int
    after: int
    failed: int
    begun: int
    users: int
    job_groups: frozenset[str]
    groups: frozenset[str]
    micros: int
    unsettled: int
    elsewhere: Elsewhere = Elsewhere(0, 0, 0)
    outages: tuple[Outage, ...] = ()

    @property
    def gone(self) -> bool:
        """Whether enough has been well since its last failure."""
        return self.after >= _AFTERWARDS

    @property
    def is_elsewhere(self) -> bool:
        """Whether the same fails elsewhere nearly as often, so that it is not the site's."""
        there = self.elsewhere
        return there.failed >= LEAST and there.failed * self.begun * 2 >= self.failed * there.begun


def faults(kind: Kind, marks: Iterable[BegunMark]) -> list[Fault]:
    """Return the faults of one kind, the most failures first; of very many causes the largest.

    Runs are compared with runs of the same groups of jobs: others may not have used what failed.
    Of runs that go on only the user is known; that their output was not sent says nothing.
    """
    every = sorted(marks)
    of_cause: defaultdict[str, list[BegunMark]] = defaultdict(list)
    for mark in every:
        if mark.failed:
            of_cause[mark.failed].append(mark)
    found = []
    largest = sorted(of_cause.items(), key=lambda cause: (-len(cause[1]), cause[0]))[:_CAUSES]
    for name, failed in largest:
        if len(failed) < LEAST:
            break
        jobs, users = {mark.job_group for mark in failed}, {mark.user for mark in failed}
        at_end = name.startswith("output")
        same = [
            mark
            for mark in every
            if mark.failed in ("", name)
            and (mark.job_group in jobs if mark.over else mark.user in users and not at_end)
        ]
        if (fault := _fault(FaultCause(kind, name), same)) is not None:
            found.append(fault)
    return sorted(found, key=lambda fault: (-fault.failed, fault.cause))


def _fault(cause: FaultCause, marks: list[BegunMark]) -> Fault | None:
    first, last = _stretch([bool(mark.failed) for mark in marks])
    bad = _bad_nodes(marks[first : last + 1])
    if bad:
        marks = [mark for mark in marks if mark.node in bad]
        first, last = _stretch([bool(mark.failed) for mark in marks])
    within = marks[first : last + 1]
    failed = [mark for mark in within if mark.failed]
    if len(failed) < LEAST or len(failed) < LEAST_SHARE * len(within):
        return None
    return Fault(
        cause,
        tuple(sorted({mark.entry for mark in failed})),
        tuple(_by_node(within)) if bad else (),
        failed[0].at_us,
        failed[-1].at_us,
        sum(not mark.failed for mark in marks[:first]),
        sum(not mark.failed for mark in marks[last + 1 :]),
        len(failed),
        len(within),
        len({mark.user for mark in failed} - {""}),
        frozenset(mark.job_group for mark in failed),
        frozenset(mark.group for mark in failed),
        sum(mark.micros or 0 for mark in failed),
        sum(mark.micros is None for mark in failed),
    )


def _by_node(marks: Iterable[BegunMark]) -> list[tuple[str, int, int]]:
    """Return how many failed and began at each node where any failed, the most failures first."""
    begun, failed = Counter[str](), Counter[str]()
    for mark in marks:
        begun[mark.node] += 1
        failed[mark.node] += bool(mark.failed)
    nodes = [(node, number, begun[node]) for node, number in failed.items() if number]
    return sorted(nodes, key=lambda line: (-line[1], line[0]))


def _bad_nodes(marks: Sequence[BegunMark]) -> frozenset[str]:
    """Return the nodes whose fault it is; none: it is the whole place's, or it is not known."""
    nodes = _by_node(marks)
    worst = max((failed / begun for _, failed, begun in nodes if failed >= LEAST), default=0.0)
    bad = {node for node, failed, begun in nodes if failed / begun >= _BAD * worst}
    if not worst or "" in bad:
        return frozenset()
    there = [bool(mark.failed) for mark in marks if mark.node in bad]
    others = [bool(mark.failed) for mark in marks if mark.node not in bad]
    rate = (sum(there) + 1) / (len(there) + 2)  # by Laplace's rule: it is never 0 or 1
    few = sum(others) <= _GOOD * worst * len(others)
    return frozenset(bad if few and _at_most(sum(others), len(others), rate) < _CHANCE else ())


def _at_most(failed: int, begun: int, rate: float) -> float:
    """Return how likely no more failed by chance at this rate, at most (Hoeffding's bound).

    https://en.wikipedia.org/wiki/Hoeffding%27s_inequality, "General case of bounded variables".
    """
    share = failed / begun if begun else rate
    if share >= rate:
        return 1.0
    odds = (share * log(share / rate) if share else 0.0) + (1 - share) * log(
        (1 - share) / (1 - rate)
    )
    return exp(-begun * odds)


def _stretch(failed: Sequence[bool]) -> tuple[int, int]:
    """Return where the densest stretch of failures begins and ends; there is at least one.

    It is all from the first failure to the last, unless two rates fit far better than one.
    Stretches begin and end at bins of equal numbers, and then at the best failures near these.
    """
    sums = [0, *accumulate(failed)]

    def likelihood(first: int, end: int) -> float:
        """Return how well two rates fit; not at all if it is the rest where more failed."""
        number, begun = sums[end] - sums[first], end - first
        others, rest = sums[-1] - number, len(failed) - begun
        if number * rest <= others * begun:
            return -inf
        return _likelihood(number, begun) + _likelihood(others, rest)

    bins = min(_BINS, len(failed))
    edges = [len(failed) * n // bins for n in range(bins + 1)]
    least = _likelihood(sums[-1], len(failed)) + _GAIN
    first, end = max(combinations(edges, 2), key=lambda of: likelihood(*of))
    if likelihood(first, end) <= least:
        return failed.index(True), len(failed) - 1 - failed[::-1].index(True)
    near = len(failed) // bins + 1
    begins = range(max(0, first - near), min(end, first + near + 1))
    first = max(
        (at for at in begins if failed[at]), key=lambda at: likelihood(at, end), default=first
    )
    ends = range(max(first + 1, end - near), min(len(failed), end + near) + 1)
    end = max(
        (at for at in ends if failed[at - 1]), key=lambda at: likelihood(first, at), default=end
    )
    return first, end - 1


def _likelihood(failed: int, begun: int) -> float:
    """Return the logarithm of the likelihood of so many failures, at the rate that fits best."""
    good = begun - failed
    return sum(n * log(n / begun) for n in (failed, good) if n)
