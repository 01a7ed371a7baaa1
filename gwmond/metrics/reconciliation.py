"""Metrics of the last reconciliation: pilots' time, jobs' time, and the factory's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.model.factory_totals import FactoryKind
from gwmond.model.reconciliation import Cause, Reconciled
from gwmond.model.snapshot import Snapshot
from gwmond.model.times import SECOND_US

_DAY = (
    " Of 24 complete hours that ended an hour ago or more, computed once an hour; none for an "
    "entry without numbers of the factory." + POLLED
)


def _told(s: Snapshot) -> Iterator[Reconciled]:
    if s.reconciliation is not None:
        yield from (row for row in s.reconciliation.rows if row.factory_us is not None)


def _sum(kind: FactoryKind) -> Callable[[Reconciled], float | None]:
    return lambda row: row.numbers.get(kind)


FIGURES: dict[str, Callable[[Reconciled], float | None]] = {
    "pilots": lambda row: row.pilots_us / SECOND_US,
    "pilot_cores": lambda row: row.pilot_core_us / SECOND_US,
    "jobs": lambda row: row.jobs.core_us / SECOND_US,
    "jobs_by_summaries": lambda row: row.jobs.summarised_core_us / SECOND_US,
    "jobs_by_category": lambda row: row.posted_core_us / SECOND_US,
    "factory_pilots": lambda row: None if row.factory_us is None else row.factory_us / SECOND_US,
    "factory_condor": _sum(FactoryKind.SUMMARY_CONDOR_SECONDS),
    "factory_jobs": _sum(FactoryKind.SUMMARY_JOB_SECONDS),
    "registered_slots": _sum(FactoryKind.CLIENT_SLOTS_TOTAL_SECONDS),
    "claimed_slots": _sum(FactoryKind.CLIENT_SLOTS_RUNNING_SECONDS),
}


_MEANINGS = {
    "pilots": "Wall-clock time of pilots.",
    "pilot_cores": "Core-time of pilots.",
    "jobs": "Core-time of jobs, by their records.",
    "jobs_by_summaries": "Core-time of jobs that only statistics know, estimated.",
    "jobs_by_category": "Core-time of jobs, as the ledger divides both.",
    "factory_pilots": "Wall-clock time of pilots, by the lines of completed_jobs.",
    "factory_condor": "Wall-clock time of HTCondor in pilots, by the lines of completed_jobs.",
    "factory_jobs": "Time of jobs, as the factory has it.",
    "registered_slots": "Time of registered slots, by the factory's ads, while they were watched.",
    "claimed_slots": "Time of claimed slots, by the factory's ads, while they were watched.",
}


def _figure(name: str) -> Callable[[Snapshot], Iterator[Sample]]:
    def samples(s: Snapshot) -> Iterator[Sample]:
        for row in _told(s):
            if (value := FIGURES[name](row)) is not None:
                yield Sample((row.entry,), value)

    return samples


def _figures() -> Iterator[Family]:
    """Yield a family for each quantity that is compared, as they are not parts of a whole."""
    for name, meaning in _MEANINGS.items():
        yield Family(
            f"gwmond_reconciliation_{name}_seconds",
            f"{meaning} One of the compared figures. Unit: seconds." + _DAY,
            ("entry",),
            _figure(name),
        )


def _differences(s: Snapshot) -> Iterator[Sample]:
    for row in _told(s):
        for cause in Cause:
            part = row.parts.get(cause)
            yield Sample((row.entry, cause.value), 0.0 if part is None else part.us / SECOND_US)


def _ratios(s: Snapshot) -> Iterator[Sample]:
    for row in _told(s):
        if (ratio := row.unexplained_ratio) is not None:
            yield Sample((row.entry,), ratio)


def _until(s: Snapshot) -> Iterator[Sample]:
    if s.reconciliation is not None:
        yield Sample((), s.reconciliation.period.until_us / SECOND_US)


TOPIC = "The factory's own numbers"
FAMILIES = (
    *_figures(),
    Family(
        "gwmond_reconciliation_difference_seconds",
        "The factory's time of pilots less gwmond's, by cause (docs/reconcile.md); not_recorded, "
        "unknown_pilot and different are not explained. Unit: wall-clock seconds of pilots." + _DAY,
        ("entry", "cause"),
        _differences,
    ),
    Family(
        "gwmond_reconciliation_unexplained_ratio",
        "The share of pilots' time (the larger of the factory's and gwmond's) that differs without "
        "an explanation. Unit: ratio." + _DAY,
        ("entry",),
        _ratios,
    ),
    Family(
        "gwmond_reconciliation_end_timestamp_seconds",
        "The end of the 24 hours that were reconciled. Unit: seconds since the epoch." + POLLED,
        (),
        _until,
    ),
)
