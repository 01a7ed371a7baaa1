"""Sums over what the partition of a pilot's time gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from gwmond.model.pilot_life import Category, Measure, RunKey
from gwmond.model.units import Resource
from gwmond.pilots.life.partition import Amounts, Increments, Partition, Row, Totals

Sums: TypeAlias = Counter[Row | tuple[RunKey, Resource, Measure]]
"""Amounts by hour, of all runs together, and by run, of all hours together."""


def residual(partition: Partition) -> Totals:
    """By how much a partition misses its total: empty, always."""
    missing = Counter(partition.total)
    missing.subtract(partition.unsettled)
    for row, micros in partition.settled.items():
        missing[row.resource, row.measure] -= micros
    return {kind: micros for kind, micros in missing.items() if micros}


def fold(amounts: Mapping[Row, int]) -> Amounts:
    """Amounts without their runs: what the hourly totals of the ledger hold."""
    folded: Counter[Row] = Counter()
    for row, micros in amounts.items():
        folded[row._replace(run_key=None)] += micros
    return {row: micros for row, micros in folded.items() if micros}


def by_category(amounts: Mapping[Row, int]) -> dict[tuple[Resource, Measure, Category], int]:
    """Amounts by category alone."""
    sums: Counter[tuple[Resource, Measure, Category]] = Counter()
    for row, micros in amounts.items():
        sums[row.resource, row.measure, row.category] += micros
    return dict(+sums)


def sums(amounts: Mapping[Row, int]) -> Sums:
    """Amounts as the ledger holds them."""
    found: Sums = Counter(fold(amounts))
    for row, micros in amounts.items():
        if row.run_key is not None:
            found[row.run_key, row.resource, row.measure] += micros
    return Counter({what: micros for what, micros in found.items() if micros})


def added(increments: Increments) -> Sums:
    """Increments in the same form."""
    found: Sums = Counter(by_hour(increments))
    for key, amounts in increments.runs.items():
        for (resource, measure), micros in amounts.items():
            found[key, resource, measure] = micros
    return found


def by_hour(increments: Increments) -> Amounts:
    """Increments without those of each run."""
    return {
        Row(hour, *account, None): micros
        for account, hours in increments.hourly.items()
        for hour, micros in hours.items()
    }
