"""A report over a period: where pilots' time went, by whatever it is grouped by.

Units: times are microseconds since the epoch, amounts are micros.

Two ways to count, which are never mixed within the hours of one report:

- where hourly totals have what it is grouped by (site, category, day ...): all time that was
  **spent in the period**, so the period is made wider until it has whole hours;
- else (user, factory, node, failure): the whole lives of those that **ended in the same period**:
  runs of jobs where users are distinguished, otherwise pilots.  Each is counted in exactly one
  period, so that reports of adjacent periods sum up.

Numbers of pilots and runs are of those that ended in the period, always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gwmond.model.facts import Place
from gwmond.model.pilot_life import Category, Kind, Measure
from gwmond.model.times import DAY_US, HOUR_US, Period
from gwmond.model.units import Resource
from gwmond.reports.failures.failures import MOST, Failures
from gwmond.reports.render.categories import CATEGORIES, CPU, GPU, OF_JOBS, of_kind
from gwmond.reports.render.formats import ratio
from gwmond.reports.report import groupings
from gwmond.reports.report.groupings import NOT_KNOWN, STEPS, Basis
from gwmond.reports.report.report_suspects import Suspected
from gwmond.reports.stored.parts import LifePart
from gwmond.reports.stored.pilot_sums import PilotSums

if TYPE_CHECKING:
    from gwmond.model.runs.waits import Wait

Key: TypeAlias = tuple[str | int, ...]
"""Values of what is grouped by; an hour or a day is the time (microseconds) at which it begins."""

SITE_STATES = ("provisioning_bottleneck", "insufficient_demand")


class Scope(NamedTuple):
    """What is reported: ``period`` has whole hours."""

    period: Period
    by: tuple[str, ...]
    place: Place = Place()

    @property
    def basis(self) -> Basis:
        return groupings.basis(self.by)

    @property
    def known(self) -> Collection[Category]:
        """Categories that are shown; a pilot's own time is no user's."""
        return OF_JOBS if self.basis == "runs_ended" else CATEGORIES

    @property
    def counts_pilots(self) -> bool:
        """Whether pilots can be counted: in one group each, or of all together (by part)."""
        return groupings.known(self.by, groupings.PARTS)

    @property
    def of_pilots(self) -> bool:
        """Whether each pilot is in one group."""
        return groupings.known(self.by, groupings.PILOTS)

    @property
    def of_sites(self) -> bool:
        """Whether the time of sites can be shown by group."""
        return groupings.known(self.by, groupings.SITES) and not self.place.group

    @property
    def of_verdicts(self) -> bool:
        """Whether verdicts that were checked can be shown by group."""
        return groupings.known(self.by, groupings.VERDICTS)

    @property
    def step_us(self) -> int:
        """How long a step of the series is."""
        length = self.period.length_us
        return HOUR_US if length <= 4 * DAY_US else DAY_US if length <= 366 * DAY_US else 7 * DAY_US


@dataclass(slots=True)
class Group:
    """Sums of one group; what is None is not known.

    - ``own``: how much of it is pilots' own time; None where only runs are counted.
    - ``estimated``: how much of it rests on an estimate; ``unsettled``: what is not settled yet.
    - ``ended``: the pilots that ended in the period; ``runs``: how many, ``open_runs``: of these,
      not settled.
    - ``site_time``: canonical micros of its sites by resource and state.
    - ``verdicts``: how many pilots that registered in the period have checked, by state and whether
      they agreed.
    """

    sums: Counter[tuple[Resource, Measure, Category]] = field(default_factory=Counter)
    own: Counter[Kind] | None = field(default_factory=Counter)
    estimated: Counter[Kind] | None = field(default_factory=Counter)
    unsettled: Counter[Kind] | None = None
    ended: PilotSums | None = None
    runs: int | None = None
    open_runs: int | None = None
    site_time: Counter[tuple[Resource, str]] | None = None
    verdicts: Counter[tuple[str, bool]] | None = None

    def total(self, kind: Kind) -> int:
        """All settled time."""
        return of_kind(self.sums, kind)

    def share(self, kind: Kind, category: Category) -> float | None:
        """A category's share in all settled time."""
        return ratio(self.sums[*kind, category], self.total(kind))

    def efficiency(self, kind: Kind) -> float | None:
        """Goodput / all settled time."""
        return self.share(kind, Category.GOODPUT)

    def utilization(self, kind: Kind) -> float | None:
        """Time of jobs, whatever became of them / all settled time."""
        total = self.total(kind)
        return None if self.own is None else ratio(total - self.own[kind], total)

    def estimated_share(self, kind: Kind) -> float | None:
        """How much of the settled time rests on an estimate."""
        return None if self.estimated is None else ratio(self.estimated[kind], self.total(kind))

    @property
    def verdicts_right(self) -> tuple[int, int]:
        """How many verdicts were right, and how many were checked."""
        checked = self.verdicts or Counter()
        return sum(n for (_, agreed), n in checked.items() if agreed), checked.total()

    def settled_share(self, kind: Kind) -> float | None:
        """Settled time / settled and unsettled time."""
        if self.unsettled is None:
            return None
        return ratio(self.total(kind), self.total(kind) + self.unsettled[kind])


class Report(NamedTuple):
    """The groups, and all of them together; ``series`` are steps of time, by their beginning.

    ``counted`` says whether pilots and runs were counted, ``failures`` are there if asked for,
    of which ``most`` lines by entry and node are shown (0: all; in JSON and CSV always all);
    ``suspects`` are asked for with them; ``waits``: what runs wait for that are not settled.
    """

    scope: Scope
    groups: Mapping[Key, Group]
    total: Group
    series: Mapping[int, Group]
    counted: bool
    failures: Failures | None = None
    most: int = MOST
    suspects: tuple[Suspected, ...] = ()
    waits: tuple[Wait, ...] = ()

    @property
    def ordered(self) -> list[tuple[Key, Group]]:
        """The groups: by time, by category, or the largest first; what did not fail is last.

        What is not known to have failed comes before.  Parts of pilots' lives are in their order.
        """
        by = self.scope.by
        failure = by.index("failure") if "failure" in by else None
        of_first: Counter[str | int] = Counter()
        for (first, *_), group in self.groups.items():
            of_first[first] += group.total(CPU) + group.total(GPU)

        def order(pair: tuple[Key, Group]) -> tuple[object, ...]:
            key, group = pair
            cpu, gpu = group.total(CPU), group.total(GPU)
            if by[0] in STEPS:
                return (key[0], -cpu, -gpu, key)
            if by[-1] == "part":
                whole = () if len(by) < 2 or by[0] in STEPS else (-of_first[key[0]],)
                return (*whole, *key[:-1], list(LifePart).index(LifePart(str(key[-1]))))
            if by[0] == "category":
                return (CATEGORIES.index(Category(str(key[0]))), -cpu, -gpu, key)
            last = 0 if failure is None else {NOT_KNOWN: 1, "": 2}.get(str(key[failure]), 0)
            return (last, -cpu, -gpu, key) if len(by) < 2 or by[1] not in STEPS else (last, *key)

        return sorted(self.groups.items(), key=order)

    @property
    def kinds(self) -> list[Kind]:
        """What there is time of: CPUs always; of GPUs both measures are the same."""
        kinds: list[Kind] = [CPU, ("cpu", "resource")]
        gpu = self.total.total(GPU)
        site = self.total.site_time
        waiting = site["gpu", SITE_STATES[0]] if site else 0
        return [*kinds, GPU] if gpu or waiting else kinds
