"""Time by resource, measure and category: what the categories are called, and sums of them.

Units: amounts are micros (10^-6 of one core, chip or canonical unit for one second); JSON and CSV
have seconds of these, tables hours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from gwmond.model.pilot_facts import MEASURES, Category, Measure
from gwmond.model.units import MICRO, RESOURCES, Resource
from gwmond.reports.render.formats import seconds

Kind: TypeAlias = tuple[Resource, Measure]
Sums: TypeAlias = Mapping[tuple[Resource, Measure, Category], int]

KINDS: tuple[Kind, ...] = tuple((r, m) for r in RESOURCES for m in MEASURES)
CPU: Kind = ("cpu", "canonical")
GPU: Kind = ("gpu", "canonical")
CORES: Kind = ("cpu", "resource")


class Look(NamedTuple):
    """How a category, or time that is not settled yet, is written and drawn.

    ``letter`` stands for it where there is room for no more; ``header`` is that of its column;
    ``colour`` is one of rich, ``light`` and ``dark`` are those of pages.  ``of_jobs``: runs of jobs
    have such time.
    """

    category: Category | None
    letter: str
    header: str
    colour: str
    light: str = ""
    dark: str = ""
    of_jobs: bool = False


_C = Category
LOOKS: tuple[Look, ...] = (
    Look(_C.GOODPUT, "G", "goodput", "green", "#009e73", "#1fb58a", True),
    Look(_C.PILOT_OVERHEAD, "O", "overhead", "cyan", "#56b4e9", "#56b4e9"),
    Look(_C.DECISION_PROBLEM, "D", "decision problem", "blue", "#0072b2", "#2c72b8"),
    Look(_C.VALIDATION_FAILS, "V", "validation fails", "magenta", "#cc79a7", "#cc79a7"),
    Look(_C.MISCONFIGURATION_BADPUT, "M", "misconfig.", "red", "#d55e00", "#e8702a", True),
    Look(_C.PREEMPTION_BADPUT, "P", "preemption", "yellow", "#e69f00", "#e69f00", True),
    Look(_C.UNCLASSIFIED, "U", "unclassified", "bright_black", "#999999", "#85898d", True),
    Look(None, "?", "not settled", "white"),
)
"""In which order plots stack them: neighbours have colours that are easy to tell apart."""
LOOK: Mapping[Category | None, Look] = {look.category: look for look in LOOKS}
STACK = tuple(look.category for look in LOOKS if look.category)

CATEGORIES = tuple(Category)
OF_JOBS = tuple(category for category in CATEGORIES if LOOK[category].of_jobs)
"""Categories of runs of jobs; ``unclassified`` is seldom a pilot's own as well."""
OF_PILOTS = tuple(category for category in CATEGORIES if not LOOK[category].of_jobs)
BADPUT = (Category.MISCONFIGURATION_BADPUT, Category.PREEMPTION_BADPUT)


def of_kind(sums: Sums, kind: Kind, categories: Collection[Category] = CATEGORIES) -> int:
    """Return the time of one resource and measure, of some categories."""
    return sum(sums.get((*kind, category), 0) for category in categories)


def categories_json(
    sums: Sums, known: Collection[Category] = CATEGORIES
) -> dict[str, dict[str, dict[str, float]]]:
    """Return ``{cpu: {resource_seconds: {goodput: ...}, canonical_seconds: ...}, gpu: ...}``.

    A category that is not among the known is absent; all others are there, also with 0.
    """
    return {
        resource: {
            f"{measure}_seconds": {
                category.value: sums.get((resource, measure, category), 0) / MICRO
                for category in CATEGORIES
                if category in known
            }
            for measure in MEASURES
        }
        for resource in RESOURCES
    }


def kinds_json(amounts: Mapping[Kind, int | None]) -> dict[str, dict[str, Any]]:
    """Return ``{cpu: {resource_seconds: ..., canonical_seconds: ...}, gpu: ...}``."""
    return {
        resource: {
            f"{measure}_seconds": seconds(amounts.get((resource, measure), 0))
            for measure in MEASURES
        }
        for resource in RESOURCES
    }
