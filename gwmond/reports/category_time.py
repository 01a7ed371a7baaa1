"""Time by resource, measure and category: sums, and how they are written.

Units: amounts are micros (10^-6 of one core, chip or canonical unit for one second); what is
written is seconds (JSON, CSV) or hours (tables) of these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from gwmond.model.pilot_facts import MEASURES, Category, Measure
from gwmond.model.units import MICRO, RESOURCES, Resource

HOUR = 3600 * MICRO

Kind: TypeAlias = tuple[Resource, Measure]
Sums: TypeAlias = Mapping[tuple[Resource, Measure, Category], int]

KINDS: tuple[Kind, ...] = tuple((r, m) for r in RESOURCES for m in MEASURES)
CATEGORIES = tuple(Category)
OF_JOBS = (
    Category.GOODPUT,
    Category.MISCONFIGURATION_BADPUT,
    Category.PREEMPTION_BADPUT,
    Category.UNCLASSIFIED,
)
"""Categories of runs of jobs; ``unclassified`` is seldom a pilot's own as well."""
OF_PILOTS = (Category.PILOT_OVERHEAD, Category.DECISION_PROBLEM, Category.VALIDATION_FAILS)
BADPUT = (Category.MISCONFIGURATION_BADPUT, Category.PREEMPTION_BADPUT)

LETTERS: Mapping[Category | None, str] = {
    Category.GOODPUT: "G",
    Category.MISCONFIGURATION_BADPUT: "M",
    Category.PREEMPTION_BADPUT: "P",
    Category.UNCLASSIFIED: "U",
    Category.PILOT_OVERHEAD: "O",
    Category.DECISION_PROBLEM: "D",
    Category.VALIDATION_FAILS: "V",
    None: "?",
}
"""How a category is written where there is room for one letter; ``None`` is not settled."""

COLOURS: Mapping[Category | None, str] = {
    Category.GOODPUT: "green",
    Category.MISCONFIGURATION_BADPUT: "red",
    Category.PREEMPTION_BADPUT: "yellow",
    Category.UNCLASSIFIED: "bright_black",
    Category.PILOT_OVERHEAD: "cyan",
    Category.DECISION_PROBLEM: "blue",
    Category.VALIDATION_FAILS: "magenta",
    None: "white",
}


def words(category: str) -> str:
    """Return a category for people."""
    return category.replace("_", " ")


def of_kind(sums: Sums, kind: Kind) -> int:
    """Return all time of one resource and measure."""
    return sum(sums.get((*kind, category), 0) for category in CATEGORIES)


def part(sums: Sums, kind: Kind, categories: Collection[Category]) -> int:
    """Return the time of some categories."""
    return sum(sums.get((*kind, category), 0) for category in categories)


def ratio(some: int | None, number: int) -> float | None:
    """Return a share of something; of nothing there is no share."""
    return None if some is None or not number else some / number


def seconds(micros: int | None) -> float | None:
    """Return seconds, None where the amount is not known."""
    return None if micros is None else micros / MICRO


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


def hours(micros: int | None, digits: int = 1) -> str:
    """Return an amount in hours for a table; "?" where it is not known."""
    return "?" if micros is None else f"{micros / HOUR:,.{digits}f}"


def right(agreed: int, checked: int) -> str:
    """Return how many of the verdicts that were checked were right.

    >>> right(14, 15)
    '93% of 15'
    """
    return f"{percent(ratio(agreed, checked), 0)} of {checked}" if checked else "-"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share for a table; "-" where there is none."""
    return "-" if share is None else f"{100 * share:.{digits}f}%"
