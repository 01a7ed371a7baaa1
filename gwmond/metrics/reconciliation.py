"""Metrics of the last reconciliation: pilots' time, jobs' time, and the factory's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gwmond.metrics.family import POLLED, Family, Sample, known
from gwmond.model.factory.reconciliation import Cause, Reconciled
from gwmond.model.factory.totals import FactoryKind
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US

_DAY = (
    " Of 24 complete hours that ended an hour ago or more, computed once an hour; none for an "
    "entry without numbers of the factory." + POLLED
)


def _told(s: Snapshot) -> Iterator[Reconciled]:
    if s.reconciliation is not None:
        yield from (row for row in s.reconciliation.rows if row.factory_us is not None)


_FIGURES: tuple[tuple[str, str, Callable[[Reconciled], float | None]], ...] = (
    ("pilots", "Wall-clock time of pilots.", lambda row: row.pilots_us / SECOND_US),
    ("pilot_cores", "Core-time of pilots.", lambda row: row.pilot_core_us / SECOND_US),
    ("jobs", "Core-time of jobs, by their records.", lambda row: row.jobs.core_us / SECOND_US),
    (
        *("jobs_by_summaries", "Core-time of jobs that only statistics know, estimated."),
        lambda row: row.jobs.summarised_core_us / SECOND_US,
    ),
    (
        *("jobs_by_category", "Core-time of jobs, as the ledger divides both."),
        lambda row: row.posted_core_us / SECOND_US,
    ),
    (
        *("factory_pilots", "Wall-clock time of pilots, by the lines of completed_jobs."),
        lambda row: None if row.factory_us is None else row.factory_us / SECOND_US,
    ),
    (
        *(
            "factory_condor",
            "Wall-clock time of HTCondor in pilots, by the lines of completed_jobs.",
        ),
        lambda row: row.numbers.get(FactoryKind.SUMMARY_CONDOR_SECONDS),
    ),
    (
        *("factory_jobs", "Time of jobs, as the factory has it."),
        lambda row: row.numbers.get(FactoryKind.SUMMARY_JOB_SECONDS),
    ),
    (
        *(
            "registered_slots",
            "Time of registered slots, by the factory's ads, while they were watched.",
        ),
        lambda row: row.numbers.get(FactoryKind.CLIENT_SLOTS_TOTAL_SECONDS),
    ),
    (
        *("claimed_slots", "Time of claimed slots, by the factory's ads, while they were watched."),
        lambda row: row.numbers.get(FactoryKind.CLIENT_SLOTS_RUNNING_SECONDS),
    ),
)
"""What is compared: these are not parts of a whole, so each is a family."""


def _of_rows(value: Callable[[Reconciled], float | None]) -> Callable[[Snapshot], Iterator[Sample]]:
    return lambda s: known(((row.entry,), value(row)) for row in _told(s))


TOPIC = "The factory's own numbers"
FAMILIES = (
    *(
        Family(
            f"gwmond_reconciliation_{name}_seconds",
            f"{meaning} One of the compared figures. Unit: seconds." + _DAY,
            ("entry",),
            _of_rows(value),
        )
        for name, meaning, value in _FIGURES
    ),
    Family(
        "gwmond_reconciliation_difference_seconds",
        "The factory's time of pilots less gwmond's, by cause (docs/reconcile.md); not_recorded, "
        "unknown_pilot and different are not explained. Unit: wall-clock seconds of pilots." + _DAY,
        ("entry", "cause"),
        lambda s: (
            Sample((row.entry, cause.value), row.part(cause).us / SECOND_US)
            for row in _told(s)
            for cause in Cause
        ),
    ),
    Family(
        "gwmond_reconciliation_unexplained_ratio",
        "The share of pilots' time (the larger of the factory's and gwmond's) that differs without "
        "an explanation. Unit: ratio." + _DAY,
        ("entry",),
        _of_rows(lambda row: row.unexplained_ratio),
    ),
    Family(
        "gwmond_reconciliation_end_timestamp_seconds",
        "The end of the 24 hours that were reconciled. Unit: seconds since the epoch." + POLLED,
        (),
        lambda s: known(
            [((), s.reconciliation.period.until_us if s.reconciliation else None)], SECOND_US
        ),
    ),
)
