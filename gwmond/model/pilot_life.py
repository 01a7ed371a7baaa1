"""One pilot and the runs on it: the input of the accounting of pilots' time.

Units: times are whole microseconds since the epoch (UTC), memory is MiB; cores, memory and GPUs
may be fractional.  An absent value is ``None`` and never zero.

Source of the terms: design page, sections 1 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.facts import Evidence, Size
from gwmond.model.units import RESOURCES, Resource

Measure: TypeAlias = Literal["resource", "canonical"]
MEASURES: tuple[Measure, ...] = ("resource", "canonical")
Kind: TypeAlias = tuple[Resource, Measure]
KINDS: tuple[Kind, ...] = tuple((r, m) for r in RESOURCES for m in MEASURES)

Interval: TypeAlias = tuple[int, int]
"""[start, end) in microseconds."""

End: TypeAlias = Literal[
    "", "shutdown", "ad_expired", "assumed", "central_log", "queue", "pilot_output"
]
"""Whose word the end of a pilot is."""


class Category(StrEnum):
    """Categories of a pilot's time: the report's six, and one for the rest."""

    VALIDATION_FAILS = "validation_fails"
    DECISION_PROBLEM = "decision_problem"
    PILOT_OVERHEAD = "pilot_overhead"
    GOODPUT = "goodput"
    MISCONFIGURATION_BADPUT = "misconfiguration_badput"
    PREEMPTION_BADPUT = "preemption_badput"
    UNCLASSIFIED = "unclassified"


BADPUT = frozenset({Category.MISCONFIGURATION_BADPUT, Category.PREEMPTION_BADPUT})
"""What is a pilot's doing, not its job's."""


class SizeStep(NamedTuple):
    """From ``at_us`` on the pilot has these resources, until its next step.

    ``least``: with one core it is at least this many canonical units: 1, or 0 in rows of an earlier
    release, whose amounts were computed so.
    """

    at_us: int
    size: Size
    least: int = 1


UNNUMBERED = 10**9
"""From here on: runs whose number is not known; it is their begin in epoch seconds.

0: the begin is not known either.
"""


class RunKey(NamedTuple):
    """One run of one job: GlobalJobId and a number, NumShadowStarts if that is known.

    Where a schedd reconnected to a job after a restart it counts another shadow start for the
    same run; the lowest number stands for the run (see same_run).
    """

    job: str
    number: int

    @property
    def shadow_start(self) -> int | None:
        """NumShadowStarts, which counts from 1; None if only slots or logs know of the run."""
        return self.number if 0 < self.number < UNNUMBERED else None


class Outcome(NamedTuple):
    """How a run ended: its category, a label of the bounded vocabulary in ``outcomes``."""

    category: Category
    label: str
    evidence: Evidence = "measured"


class Run(NamedTuple):
    """One run of a job on this pilot; ``outcome`` is None as long as it is not known.

    The interval may stick out of the pilot's life (clocks differ between hosts) and may be empty.
    Without an end it lasts as long as the pilot.  ``sends_us``: from then on it only sends its
    output, and its pilot has given its cores and memory back (docs/overlap.md); None: it holds them
    to its end.
    """

    key: RunKey
    start_us: int
    end_us: int | None
    size: Size
    outcome: Outcome | None = None
    sends_us: int | None = None

    @property
    def held_until_us(self) -> int | None:
        """Until when it held what it was given; None: as long as the pilot lasts."""
        if self.sends_us is None or self.end_us is None:
            return self.end_us if self.sends_us is None else self.sends_us
        return min(self.sends_us, self.end_us)


class Validation(StrEnum):
    """What is known of a pilot's validation; a pilot that registered in a collector has passed."""

    UNKNOWN = "unknown"
    PASSED = "passed"
    STARTED = "started"  # it has passed, but nothing would show jobs that ran
    FAILED = "failed"

    @property
    def shown(self) -> str:
        """How its validation ended, without further facts."""
        return Validation.PASSED.value if self is Validation.STARTED else self.value


class Assumption(StrEnum):
    """The rules for missing facts of a pilot (docs/estimates.md has the table).

    In order of precedence: time to which several rules apply is counted under the first of them.
    """

    NO_OUTPUT = "no_output"  # the pilot is known from the factory's queue or summary only
    LIFE = "life"  # the pilot is known from records of jobs only
    JOBS = "jobs"  # its jobs are known from a summary only
    BEGIN = "begin"  # when it began
    END = "end"  # when it ended
    VALIDATION = "validation"  # whether HTCondor started, or whether it ran jobs
    SIZE = "size"  # its cores or memory
    GPUS = "gpus"  # its number of GPUs


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return the union of intervals: sorted, disjoint, none empty.

    >>> union([(5, 7), (1, 3), (2, 4), (4, 5), (9, 9)])
    ((1, 7),)
    """
    covered: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if covered and start <= covered[-1][1]:
            covered[-1] = covered[-1][0], max(end, covered[-1][1])
        else:
            covered.append((start, end))
    return tuple(covered)


def beside(within: Interval, covered: Iterable[Interval]) -> Iterator[Interval]:
    """Yield the parts of an interval that others, which are sorted and disjoint, do not cover.

    >>> list(beside((1, 9), [(0, 2), (4, 5), (8, 12)]))
    [(2, 4), (5, 8)]
    """
    start, end = within
    for first, last in covered:
        if start < min(first, end):
            yield start, min(first, end)
        start = max(start, last)
    if start < end:
        yield start, end


class Estimates(NamedTuple):
    """When time is estimated: the pilot's own, by resource, and that of its runs.

    Its cores and memory decide which units are left idle beside runs, and so how many canonical
    units the runs get (``runs``).  The cores of a run are in its own records.
    """

    cpu: tuple[Interval, ...] = ()
    gpu: tuple[Interval, ...] = ()
    runs: tuple[Interval, ...] = ()


NO_ESTIMATES = Estimates()
BEARS: Mapping[Resource, frozenset[Assumption]] = {
    "cpu": frozenset(Assumption) - {Assumption.GPUS},
    "gpu": frozenset(Assumption) - {Assumption.SIZE},
}
"""Which rules bear on a pilot's own time of a resource."""


def divided(
    assumed: Mapping[Assumption, Interval], resource: Resource
) -> Iterator[tuple[Assumption, Interval]]:
    """Yield the times of a resource that rest on rules, each moment under one rule."""
    covered: tuple[Interval, ...] = ()
    for rule in Assumption:
        if rule in assumed and rule in BEARS[resource]:
            yield from ((rule, part) for part in beside(assumed[rule], covered))
            covered = union((*covered, assumed[rule]))


def estimates(assumed: Mapping[Assumption, Interval]) -> Estimates:
    """Return the times to which rules for missing facts apply."""
    if not assumed:
        return NO_ESTIMATES
    cpu, gpu = (
        union(within for rule, within in assumed.items() if rule in BEARS[resource])
        for resource in RESOURCES
    )
    return Estimates(cpu, gpu, union(assumed[rule] for rule in assumed if rule is Assumption.SIZE))


class PilotLife(NamedTuple):
    """All that follows from the facts of one pilot at one moment.

    - ``end_us`` is None while it runs; the life then ends, for now, at ``now_us``: when it was
      last heard of.
    - ``steps``: the first also holds for the time before it, back to ``start_us``.
    - ``known_until_us``: no source can report another run that began before it.  Later time
      is not settled.  None: all of the life is known.
    - ``estimated``: when its time is estimated, such as the time between the last contact and
      the end; ``assumed``: by which rules, of which fact.
    - ``ran_jobs`` says that there are runs which are not listed (see ``life.partition.advance``).
    """

    start_us: int
    end_us: int | None
    now_us: int
    steps: tuple[SizeStep, ...]
    runs: tuple[Run, ...] = ()
    validation: Validation = Validation.PASSED
    known_until_us: int | None = None
    estimated: Estimates = NO_ESTIMATES
    ran_jobs: bool = False
    end_source: End = ""
    validation_end_us: int | None = None
    failure: str = ""
    assumed: Mapping[Assumption, Interval] = {}

    @property
    def effective_end_us(self) -> int:
        """The end of the life as far as it is known; never before its start."""
        return max(self.start_us, self.now_us if self.end_us is None else self.end_us)

    @property
    def known_us(self) -> int:
        """How far the runs are known, within the life."""
        until = self.effective_end_us
        return until if self.known_until_us is None else min(self.known_until_us, until)
