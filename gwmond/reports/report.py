"""A report over a period: where pilots' time went, by whatever it is grouped by.

Units: times are microseconds since the epoch, amounts are micros.

Two ways to count, which are never mixed within the hours of one report:

- by site, entry, group, category, outcome, hour and day: all time that was **spent in the
  period**, from hourly totals, so the period is made wider until it has whole hours;
- where it says whose (``user``, ``factory``, ``node``, ``failure``): the whole lives of those that
  **ended in the same period**: runs of jobs where users are told apart, otherwise pilots.  Each is
  counted in exactly one period, so that reports of adjacent periods sum up.

Numbers of pilots and runs are of those that ended in the period, always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from gwmond.model.pilot_facts import Category
from gwmond.model.times import HOUR_US, Period
from gwmond.model.units import Resource
from gwmond.reports.category_time import (
    CATEGORIES,
    OF_JOBS,
    Kind,
    of_kind,
    ratio,
)
from gwmond.reports.failures import MOST, Failures
from gwmond.reports.figures import Figures
from gwmond.reports.report_suspects import Suspected

if TYPE_CHECKING:
    from gwmond.model.waits import Wait

By: TypeAlias = Literal[
    "site",
    "entry",
    "group",
    "user",
    "factory",
    "node",
    "failure",
    "category",
    "outcome",
    "hour",
    "day",
]
BYS: tuple[By, ...] = get_args(By)
Basis: TypeAlias = Literal["time_spent", "pilots_ended", "runs_ended"]
Key: TypeAlias = tuple[str | int, ...]
"""Values of what is grouped by; an hour or a day is the time (microseconds) at which it begins."""

DAY_US = 24 * HOUR_US
STEPS: Mapping[str, int] = {"hour": HOUR_US, "day": DAY_US}
NOT_KNOWN = "?"
"""The ``failure`` of a pilot of which nothing tells whether its validation failed."""

SITE_STATES = ("provisioning_bottleneck", "insufficient_demand")
_OF_RUNS = frozenset({"user", "category", "outcome"})
_OF_VERDICTS = frozenset({"site", "entry", "group", "hour", "day"})
_OF_SITES = frozenset({"site", "entry", "hour", "day"})


class Scope(NamedTuple):
    """What is reported: ``period`` has whole hours; None of a place: all."""

    period: Period
    by: tuple[By, ...]
    site: str | None = None
    entry: str | None = None
    group: str | None = None

    @property
    def basis(self) -> Basis:
        """What counts."""
        if "user" in self.by:
            return "runs_ended"
        if {"factory", "node", "failure"} & set(self.by):
            return "runs_ended" if _OF_RUNS & set(self.by) else "pilots_ended"
        return "time_spent"

    @property
    def known(self) -> Collection[Category]:
        """Categories that can be told; a pilot's own time is no user's."""
        return OF_JOBS if self.basis == "runs_ended" else CATEGORIES

    @property
    def of_pilots(self) -> bool:
        """Whether each pilot is in one group."""
        return not _OF_RUNS & set(self.by)

    @property
    def of_sites(self) -> bool:
        """Whether the time of sites can be told by group."""
        return set(self.by) <= _OF_SITES and self.group is None

    @property
    def of_verdicts(self) -> bool:
        """Whether verdicts that were checked can be told by group."""
        return set(self.by) <= _OF_VERDICTS

    @property
    def step_us(self) -> int:
        """How long a step of the series is."""
        length = self.period.length_us
        return HOUR_US if length <= 4 * DAY_US else DAY_US if length <= 366 * DAY_US else 7 * DAY_US

    def covers(self, site: str, entry: str, group: str | None) -> bool:
        """Return whether a place is reported."""
        wanted = (self.site, site), (self.entry, entry), (self.group, group)
        return all(one is None or one == other for one, other in wanted)


@dataclass(slots=True)
class Group:
    """Sums of one group; what is None is not known.

    - ``own``: how much of it is pilots' own time; None where only runs are counted.
    - ``estimated``: how much of it rests on an estimate; ``unsettled``: what is not settled yet.
    - ``pilots``, ``runs``: how many ended in the period; ``open_runs``: of these, not settled.
    - ``site_time``: canonical micros of its sites by resource and state.
    - ``verdicts``: how many pilots that registered in the period have checked, by state and whether
      they agreed.
    """

    sums: Counter[tuple[Resource, Literal["resource", "canonical"], Category]] = field(
        default_factory=Counter
    )
    own: Counter[Kind] | None = field(default_factory=Counter)
    estimated: Counter[Kind] | None = field(default_factory=Counter)
    unsettled: Counter[Kind] | None = None
    pilots: int | None = None
    runs: int | None = None
    open_runs: int | None = None
    figures: Figures | None = None
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

        What is not known to have failed comes before.
        """
        by = self.scope.by
        failure = by.index("failure") if "failure" in by else None

        def order(pair: tuple[Key, Group]) -> tuple[object, ...]:
            key, group = pair
            cpu, gpu = group.total(("cpu", "canonical")), group.total(("gpu", "canonical"))
            if by[0] in STEPS:
                return (key[0], -cpu, -gpu, key)
            if by[0] == "category":
                return (CATEGORIES.index(Category(str(key[0]))), -cpu, -gpu, key)
            last = 0 if failure is None else {NOT_KNOWN: 1, "": 2}.get(str(key[failure]), 0)
            return (last, -cpu, -gpu, key) if len(by) < 2 or by[1] not in STEPS else (last, *key)

        return sorted(self.groups.items(), key=order)

    @property
    def kinds(self) -> list[Kind]:
        """What there is time of: CPUs always; of GPUs both measures are the same."""
        found: list[Kind] = [("cpu", "canonical"), ("cpu", "resource")]
        gpu = self.total.total(("gpu", "canonical"))
        site = self.total.site_time
        waiting = site["gpu", SITE_STATES[0]] if site else 0
        return [*found, ("gpu", "canonical")] if gpu or waiting else found


def parse_by(text: str) -> tuple[By, ...]:
    """Return what to group by: one or two names, comma separated; else ``ValueError``."""
    names = [name.strip() for name in text.split(",")]
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names) or set(names) == set(STEPS):
        raise ValueError(f'--by "{text}": give one or two different ones of {", ".join(BYS)}')
    for name in names:
        if name not in BYS:
            raise ValueError(f'--by: there is no "{name}", only {", ".join(BYS)}')
    return tuple(by for name in names for by in BYS if by == name)
