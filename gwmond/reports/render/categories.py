"""Time by resource, measure and category: what the categories are called, and sums of them.

Units: amounts are micros (10^-6 of one core, chip or canonical unit for one second); JSON and CSV
have seconds of these, tables hours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from gwmond.model.pilot_life import MEASURES, Category, Kind, Measure
from gwmond.model.units import MICRO, RESOURCES, Resource
from gwmond.reports.render.formats import ratio, seconds

T = TypeVar("T")
Sums: TypeAlias = Mapping[tuple[Resource, Measure, Category], int]

CPU: Kind = ("cpu", "canonical")
GPU: Kind = ("gpu", "canonical")
CORES: Kind = ("cpu", "resource")


class CategoryInfo(NamedTuple):
    """A category, or time that is not settled yet: how it is written and drawn, and what it means.

    Help, tables, pages, metrics and the table of docs/pilots.md are made of these records.

    - ``letter``: stands for it where there is room for no more; ``header``: that of its column.
    - ``colour``: of rich; ``light`` and ``dark``: of pages.
    - ``within``: the column of ``gwmond pilots`` in which it counts.
    - ``of_jobs``: runs of jobs have such time; ``unclassified`` is seldom a pilot's own as well.
    - ``ended``: what a pilot that ended did, if that is the category of its own time.
    - ``meaning``: what it is, in Markdown.
    - ``loss``: what happened in such time, if it is lost; ``to_do``: where to look then.
    """

    category: Category | None
    letter: str
    header: str
    colour: str
    light: str = ""
    dark: str = ""
    within: Literal["good", "badput", "own", "uncl.", "open"] = "open"
    of_jobs: bool = False
    ended: str = ""
    meaning: str = ""
    loss: str = ""
    to_do: str = ""

    @property
    def look(self) -> str:
        """Its name in drawings and style sheets."""
        return self.category.value if self.category else "open"


INFOS: tuple[CategoryInfo, ...] = (
    CategoryInfo(
        *(Category.GOODPUT, "G", "goodput", "green", "#009e73", "#1fb58a", "good"),
        of_jobs=True,
        meaning="runs of jobs that completed, whatever their exit code (the outcome says which)",
    ),
    CategoryInfo(
        *(Category.PILOT_OVERHEAD, "O", "overhead", "cyan", "#56b4e9", "#56b4e9", "own"),
        meaning="of a pilot that ran a job: all time without a job, and idle canonical units "
        "beside jobs",
        loss="pilots that ran jobs had none, or a remainder too small for jobs",
        to_do="see the idle timeouts after a job, and the shares that runs held",
    ),
    CategoryInfo(
        *(Category.DECISION_PROBLEM, "D", "decision problem", "blue", "#0072b2", "#2c72b8", "own"),
        ended="never ran a job",
        meaning="the whole life of a pilot that registered and never ran a job",
        loss="pilots never ran a job",
        to_do="see the idle timeouts before the first job, and what was asked for",
    ),
    CategoryInfo(
        *(Category.VALIDATION_FAILS, "V", "validation fails", "magenta", "#cc79a7", "#cc79a7"),
        within="own",
        ended="failed validation",
        meaning="the whole life of a pilot in which HTCondor never started, or never registered "
        "with a collector",
        loss="the validation of pilots failed",
        to_do="gwmond report --failures says where and why",
    ),
    CategoryInfo(
        *(Category.MISCONFIGURATION_BADPUT, "M", "misconfig.", "red", "#d55e00", "#e8702a"),
        within="badput",
        of_jobs=True,
        meaning="runs that failed at the beginning through no fault of the user: the starter, a "
        "refused activation; or an early failure (of a program, an image, a transfer) that a "
        "comparison blames on the pilot, its node, entry or site",
        loss="runs failed at the beginning, through no fault of the user",
        to_do="gwmond report --by entry,outcome says where and why",
    ),
    CategoryInfo(
        *(Category.PREEMPTION_BADPUT, "P", "preemption", "yellow", "#e69f00", "#e69f00", "badput"),
        of_jobs=True,
        meaning="runs cut off by the pilot's end: retirement, kill, lost contact, draining",
        loss="runs were cut off by the end of their pilot",
        to_do="see the runs that were lost",
    ),
    CategoryInfo(
        *(Category.UNCLASSIFIED, "U", "unclassified", "bright_black", "#999999", "#85898d"),
        within="uncl.",
        of_jobs=True,
        ended="it is not known what it ran",
        meaning="all other runs: removed, held, preempted by another job, an exit after which the "
        "schedd runs the job again, unknown; the outcome says which",
        loss="runs were removed, held, or ended in a way that is not known",
        to_do="gwmond report --by user,outcome says whose, and why",
    ),
    CategoryInfo(None, "?", "not settled", "white"),
)
"""In the order in which plots stack them: neighbours have colours that are easy to distinguish."""
INFO: Mapping[Category | None, CategoryInfo] = {info.category: info for info in INFOS}

CATEGORIES = tuple(Category)
OF_JOBS = tuple(category for category in CATEGORIES if INFO[category].of_jobs)


def within(column: str) -> tuple[Category, ...]:
    """Return the categories that count in a column of ``gwmond pilots``."""
    return tuple(category for category in CATEGORIES if INFO[category].within == column)


def of_kind(sums: Sums, kind: Kind, categories: Collection[Category] = CATEGORIES) -> int:
    """Return the time of one resource and measure, of some categories."""
    return sum(sums.get((*kind, category), 0) for category in categories)


def share(sums: Sums, kind: Kind, categories: Collection[Category]) -> float | None:
    """Return the share of some categories in all time of one resource and measure."""
    return ratio(of_kind(sums, kind, categories), of_kind(sums, kind))


def by_kind(value: Callable[[Kind], T], unit: str = "") -> dict[str, dict[str, T]]:
    """Return ``{cpu: {resource: ..., canonical: ...}, gpu: ...}``, with the unit in the names."""
    return {r: {f"{m}{unit}": value((r, m)) for m in MEASURES} for r in RESOURCES}


def categories_json(
    sums: Sums, categories: Collection[Category] = CATEGORIES
) -> dict[str, dict[str, dict[str, float]]]:
    """Return ``{cpu: {resource_seconds: {goodput: ...}, canonical_seconds: ...}, gpu: ...}``.

    A category that is not among ``categories`` is absent; all others are there, also with 0.
    """
    shown = [category for category in CATEGORIES if category in categories]
    return by_kind(
        lambda kind: {c.value: sums.get((*kind, c), 0) / MICRO for c in shown}, "_seconds"
    )


def shares_json(
    sums: Sums, categories: Collection[Category] = CATEGORIES
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return ``{cpu: {resource: {goodput: ...}, canonical: ...}, gpu: ...}``, shares of each."""
    shown = [category for category in CATEGORIES if category in categories]
    return by_kind(lambda kind: {c.value: share(sums, kind, (c,)) for c in shown})


def kinds_json(amounts: Mapping[Kind, int] | None) -> dict[str, dict[str, float | None]]:
    """Return ``{cpu: {resource_seconds: ..., canonical_seconds: ...}, gpu: ...}``, or nulls."""
    return by_kind(
        lambda kind: None if amounts is None else seconds(amounts.get(kind, 0)), "_seconds"
    )
