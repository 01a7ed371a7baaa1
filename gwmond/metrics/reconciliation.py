"""Metrics of the last reconciliation: pilots' time, jobs' time, and the factory's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gwmond.ledger.factory_model import FactoryKind
from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.reconcile import Cause, Reconciled
from gwmond.snapshot import Snapshot

_US = 1_000_000
_DAY = (
    " Of 24 complete hours that ended an hour ago or more, computed once an hour; none for an "
    "entry of which the factory tells nothing." + POLLED
)


def _told(s: Snapshot) -> Iterator[Reconciled]:
    if s.reconciliation is not None:
        yield from (row for row in s.reconciliation.rows if row.factory_us is not None)


def _sum(kind: FactoryKind) -> Callable[[Reconciled], float | None]:
    return lambda row: row.numbers.get(kind)


FIGURES: dict[str, Callable[[Reconciled], float | None]] = {
    "pilots": lambda row: row.pilots_us / _US,
    "pilot_cores": lambda row: row.pilot_core_us / _US,
    "jobs": lambda row: row.jobs.core_us / _US,
    "jobs_by_summaries": lambda row: row.jobs.summarised_core_us / _US,
    "jobs_by_category": lambda row: row.booked_core_us / _US,
    "factory_pilots": lambda row: None if row.factory_us is None else row.factory_us / _US,
    "factory_condor": _sum(FactoryKind.SUMMARY_CONDOR_SECONDS),
    "factory_jobs": _sum(FactoryKind.SUMMARY_JOB_SECONDS),
    "registered_slots": _sum(FactoryKind.CLIENT_SLOTS_TOTAL_SECONDS),
    "claimed_slots": _sum(FactoryKind.CLIENT_SLOTS_RUNNING_SECONDS),
}


def _figures(s: Snapshot) -> Iterator[Sample]:
    for row in _told(s):
        for name, of in FIGURES.items():
            if (value := of(row)) is not None:
                yield Sample((row.entry, name), value)


def _differences(s: Snapshot) -> Iterator[Sample]:
    for row in _told(s):
        for cause in Cause:
            part = row.parts.get(cause)
            yield Sample((row.entry, cause.value), 0.0 if part is None else part.us / _US)


def _ratios(s: Snapshot) -> Iterator[Sample]:
    for row in _told(s):
        if (ratio := row.unexplained_ratio) is not None:
            yield Sample((row.entry,), ratio)


def _until(s: Snapshot) -> Iterator[Sample]:
    if s.reconciliation is not None:
        yield Sample((), s.reconciliation.period.until_us / _US)


FAMILIES = (
    Family(
        "gwmond_reconciliation_seconds",
        "gauge",
        "seconds",
        "What is compared: pilots (wall-clock), pilot_cores, jobs (core-time, by their records), "
        "jobs_by_summaries (core-time of which only statistics tell, estimated), jobs_by_category "
        "(core-time, as the ledger divides both), factory_pilots and factory_condor (wall-clock, "
        "of the lines of completed_jobs), factory_jobs (as the factory tells it), "
        "registered_slots, claimed_slots (of ads, while they were watched). Unit: seconds." + _DAY,
        ("entry", "figure"),
        _figures,
    ),
    Family(
        "gwmond_reconciliation_difference_seconds",
        "gauge",
        "seconds",
        "What the factory's time of pilots exceeds gwmond's by, by cause (docs/reconcile.md); "
        "not_told, unknown_pilot and different are not explained. Unit: wall-clock seconds of "
        "pilots." + _DAY,
        ("entry", "cause"),
        _differences,
    ),
    Family(
        "gwmond_reconciliation_unexplained_ratio",
        "gauge",
        "ratio",
        "The share of pilots' time (the larger of the factory's and gwmond's) that differs without "
        "an explanation. Unit: ratio." + _DAY,
        ("entry",),
        _ratios,
    ),
    Family(
        "gwmond_reconciliation_end_timestamp_seconds",
        "gauge",
        "seconds",
        "When the 24 hours end that were reconciled. Unit: seconds since the epoch." + POLLED,
        (),
        _until,
    ),
)
