"""Sums over what the partition of a pilot's time gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gwmond.model.pilot_facts import Category, Measure
from gwmond.model.units import Resource
from gwmond.pilots.pilot_time import Amounts, Partition, Row, Totals


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
