"""Pilots' time, jobs' time and the factory's numbers, and the causes of their differences.

Units: times and lengths are whole microseconds; of pilots they are wall-clock time, of jobs
core-time (``_core_us``) or wall-clock time (``_wall_us``).

The factory's pilot time of a period is the sum of the durations of the lines of completed_jobs
that it wrote in the period; gwmond's is the part of all pilots' lives within the period.  These
differ by construction, and more where the factory lost lines.  The residual, factory less gwmond,
is divided among causes, pilot by pilot (``reports.reconcile.reconcile_document.MEANINGS``).

The last three causes explain nothing: they are the ``unexplained`` part.  Invariant: for every
entry the parts sum to the residual, exactly.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from gwmond.model.factory.totals import FactoryKind, RunTime
from gwmond.model.times import SECOND_US, Period

FIT_US = SECOND_US
"""A line's time fits a sum of runs within this and a hundredth: GlideinWMS cuts to seconds."""


class Cause(StrEnum):
    """Why the factory's pilot time differs from gwmond's."""

    OUTSIDE = "outside"
    RUNNING = "running"
    LINE_LATER = "line_later"
    LINE_EARLIER = "line_earlier"
    NO_LINE = "no_line"
    NO_DURATION = "no_duration"
    ONLY_JOBS = "only_jobs"
    ESTIMATED = "estimated"
    REPEATED_LINES = "repeated_lines"
    NOT_RECORDED = "not_recorded"
    UNKNOWN_PILOT = "unknown_pilot"
    DIFFERENT = "different"


UNEXPLAINED = frozenset({Cause.NOT_RECORDED, Cause.UNKNOWN_PILOT, Cause.DIFFERENT})


class CausePart(NamedTuple):
    """A part of a residual: how many pilots (or lines), and how much time."""

    pilots: int
    us: int


@dataclass(slots=True)
class Reconciled:
    """One entry.

    - ``pilots_us``, ``pilot_core_us``: pilots' lives within the period; ``ended``: how many ended.
    - ``jobs``: by records of runs, and by summaries where there are none; ``posted_core_us``: what
      the ledger's categories give to both.
    - ``numbers``: the factory's sums of the period; missing ones are absent.
    - ``factory_us``: its pilot time, None if it has none in the period.
    - ``parts``: of the residual; ``doubtful_us``: absolute time that is not explained.
    - ``fits``: of lines with jobs' time, how many are ``real`` sums, ``divided`` by the
      pilot's cores, either (``both``), or ``neither``.
    """

    entry: str
    ended: int = 0
    pilots_us: int = 0
    pilot_core_us: int = 0
    jobs: RunTime = field(default_factory=RunTime)
    posted_core_us: int = 0
    numbers: dict[FactoryKind, int] = field(default_factory=dict)
    factory_us: int | None = None
    parts: dict[Cause, CausePart] = field(default_factory=dict)
    doubtful_us: int = 0
    fits: Counter[str] = field(default_factory=Counter)

    @property
    def residual_us(self) -> int | None:
        """The factory's pilot time less gwmond's."""
        return None if self.factory_us is None else self.factory_us - self.pilots_us

    @property
    def larger_us(self) -> int:
        """The larger of both pilot times; all shares are of it."""
        return max(self.factory_us or 0, self.pilots_us)

    @property
    def residual_ratio(self) -> float | None:
        """The residual, as a share of the larger of both pilot times."""
        return self._share(self.residual_us)

    @property
    def unexplained_us(self) -> int | None:
        """The part of the residual that no cause explains, net."""
        if self.factory_us is None:
            return None
        return sum(part.us for cause, part in self.parts.items() if cause in UNEXPLAINED)

    @property
    def unexplained_ratio(self) -> float | None:
        """Time that is not explained, whatever its sign, of the larger of both pilot times."""
        return self._share(self.doubtful_us)

    def _share(self, us: int | None) -> float | None:
        if self.factory_us is None or us is None:
            return None
        return us / self.larger_us if self.larger_us else 0.0

    @property
    def shared_core_us(self) -> int:
        """What runs get in categories beyond their own cores.

        The canonical rule gives runs the rest of a pilot that no job could use; runs that overlap
        on more cores than there are get less, and so do those that stick out of their pilot.
        """
        run_time = self.jobs
        return (
            self.posted_core_us
            - (run_time.core_us - run_time.open_core_us)
            - run_time.summarised_core_us
        )

    def part(self, cause: Cause) -> CausePart:
        """Return the part of a cause; nothing where it does not occur."""
        return self.parts.get(cause, CausePart(0, 0))

    def add(self, cause: Cause, us: int) -> None:
        """Add a pilot or line to a part."""
        before = self.part(cause)
        self.parts[cause] = CausePart(before.pilots + 1, before.us + us)
        if cause in UNEXPLAINED:
            self.doubtful_us += abs(us)


class Reconciliation(NamedTuple):
    """Entries, by name; pilots that ended before ``pruned_us`` are no longer known."""

    period: Period
    rows: list[Reconciled]
    pruned_us: int

    @property
    def partial(self) -> bool:
        """Whether retention has taken some of the period's pilots out."""
        return self.pruned_us > self.period.since_us
