"""A reconciliation as tables for people, and as records for JSON and CSV.

Tables have hours, records seconds; None (``-`` in tables) is what nobody told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from gwmond.model.factory_totals import FactoryKind, RunTime
from gwmond.model.reconciliation import UNEXPLAINED, Cause, Part, Reconciled
from gwmond.model.times import HOUR_US, SECOND_US

K = FactoryKind
_OF_FILES = ("queue", "summary")

MEANINGS = {
    Cause.OUTSIDE: "a line counts the pilot's whole life: the part of it outside the period",
    Cause.RUNNING: "pilots that ran on at the period's end: their lines are written later",
    Cause.LINE_LATER: "pilots that ended in the period, whose line was written after it",
    Cause.LINE_EARLIER: "pilots whose line was written before the period, though they lived in it",
    Cause.NO_LINE: "the queue told that the pilot ended, but it has no line: one that was killed "
    "hard, or was in the same round as one (GlideinWMS's writer fails for all of the entry)",
    Cause.NO_DURATION: "lines of -1, 0, or longer than 60 days: the output was cut off, empty or "
    "missing",
    Cause.ONLY_JOBS: "pilots that only records of jobs tell of",
    Cause.ESTIMATED: "the line differs from a life whose begin or end is estimated",
    Cause.REPEATED_LINES: "lines that were read twice, or whose pilots are no longer kept",
    Cause.NOT_TOLD: "NOT EXPLAINED: files that were read tell neither the pilot's end nor a line",
    Cause.UNKNOWN_PILOT: "NOT EXPLAINED: lines of pilots that gwmond does not know",
    Cause.DIFFERENT: "NOT EXPLAINED: the line differs from a life that was measured",
}


NO_LINES = (
    "No completed_jobs log was read for this period: the factory's server directory has them too "
    "(gwmond import /var/log/gwms-factory, or [factory] directories)"
)


class Table(NamedTuple):
    """A table; the first column is a name, the others are numbers; ``note`` stands below it."""

    title: str
    headers: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""


def record(row: Reconciled) -> dict[str, Any]:
    """Return an entry flat; keys have units, ``parts`` and ``fits`` are spread out."""
    numbers = row.numbers

    def told(kind: FactoryKind) -> int | None:
        """Return a number; a zero of files is not stored, but told if others of its source are."""
        source = kind.value.partition("_")[0]
        known = source in _OF_FILES and any(
            factory_kind.value.startswith(source) for factory_kind in numbers
        )
        return numbers.get(kind, 0 if known else None)

    def watched(kind: FactoryKind) -> int | None:
        """Return a value times the time in which ads told it; None if they did not."""
        time = numbers.get(K(f"{kind.value.removesuffix('_seconds')}_watched_seconds"))
        return numbers.get(kind, 0) if time else None

    residual, unexplained = row.residual_us, row.unexplained_us
    return {
        "entry": row.entry,
        "pilots_ended": row.ended,
        "pilot_seconds": row.pilots_us / SECOND_US,
        "pilot_core_seconds": row.pilot_core_us / SECOND_US,
        "job_core_seconds": row.jobs.core_us / SECOND_US,
        "job_core_seconds_not_settled": row.jobs.open_core_us / SECOND_US,
        "job_core_seconds_by_summaries": row.jobs.summarised_core_us / SECOND_US,
        "job_core_seconds_by_category": row.booked_core_us / SECOND_US,
        "job_core_seconds_shared": row.shared_core_us / SECOND_US,
        "factory_told": row.factory_us is not None,
        "factory_queue_started": told(K.QUEUE_STARTED),
        "factory_queue_ended": told(K.QUEUE_ENDED),
        "factory_queue_removed": told(K.QUEUE_REMOVED),
        "factory_queue_held": told(K.QUEUE_HELD),
        "factory_lines": told(K.SUMMARY_PILOTS),
        "factory_lines_without_duration": told(K.SUMMARY_NO_DURATION),
        "factory_pilot_seconds": None if row.factory_us is None else row.factory_us / SECOND_US,
        "factory_validation_seconds": told(K.SUMMARY_VALIDATION_SECONDS),
        "factory_condor_seconds": told(K.SUMMARY_CONDOR_SECONDS),
        "factory_jobs": told(K.SUMMARY_JOBS),
        "factory_job_seconds": told(K.SUMMARY_JOB_SECONDS),
        "factory_job_seconds_are": _kind_of_sum(row),
        **{f"factory_job_lines_{fit}": row.fits[fit] for fit in FITS},
        "registered_slot_seconds": watched(K.CLIENT_SLOTS_TOTAL_SECONDS),
        "claimed_slot_seconds": watched(K.CLIENT_SLOTS_RUNNING_SECONDS),
        "slots_watched_seconds": told(K.CLIENT_SLOTS_TOTAL_WATCHED_SECONDS),
        "residual_seconds": None if residual is None else residual / SECOND_US,
        "residual_ratio": row.residual_ratio,
        "unexplained_seconds": None if unexplained is None else unexplained / SECOND_US,
        "unexplained_ratio": row.unexplained_ratio,
        **{
            name: value
            for cause in Cause
            for part in (row.parts.get(cause),)
            for name, value in (
                (f"{cause.value}_pilots", 0 if part is None else part.pilots),
                (f"{cause.value}_seconds", 0.0 if part is None else part.us / SECOND_US),
            )
        },
    }


FITS = ("real", "divided", "both", "neither")


def _kind_of_sum(row: Reconciled) -> str | None:
    """Return what most lines that tell it have as their jobs' time; None: no line tells."""
    real, divided = row.fits["real"], row.fits["divided"]
    if not row.fits.total():
        return None
    if row.fits["neither"] > real + divided + row.fits["both"]:
        return "neither"
    if real and divided:
        return "mixed"
    return "real" if real else "divided" if divided else "either"


def tables(rows: Iterable[Reconciled]) -> list[Table]:
    """Return the tables: pilots, jobs, and why they differ."""
    every = list(rows)
    whole = [total(every)] if len(every) > 1 else []
    causes = [cause for cause in Cause if any(cause in row.parts for row in every)]
    found = [
        Table(
            "Pilots: hours, and what the factory says (residual: its hours less gwmond's)",
            PILOTS,
            [_pilots(reconciled) for reconciled in (*every, *whole)],
            _left_out(every),
        ),
        Table(
            "Jobs: core-hours, and what the factory says",
            JOBS,
            [_jobs(reconciled) for reconciled in (*every, *whole)],
        ),
    ]
    if causes:
        headers = ("entry", "residual h", *(cause.value.replace("_", " ") for cause in causes))
        found.append(
            Table(
                "Why the factory's hours of pilots differ (number of pilots)",
                (*headers, "unexplained h"),
                [_why(reconciled, causes) for reconciled in (*every, *whole) if reconciled.parts],
            )
        )
    return found


def _left_out(rows: list[Reconciled]) -> str:
    """Return that the residual of all is not of all entries; empty if it is, or there is none."""
    without = [row for row in rows if row.factory_us is None]
    if not without or len(without) == len(rows):
        return ""
    left = sum(row.pilots_us for row in without)
    return (
        f"all: {len(rows) - len(without)} of {len(rows)} entries have factory numbers, and what is "
        f"residual is of these; {hours(left)} of the hours are of the others."
    )


class _Total(Reconciled):
    """All entries; what differs is of those that the factory tells of."""

    told_us: int = 0

    @property
    def residual_us(self) -> int | None:
        """The sum of the entries' residuals."""
        return None if self.factory_us is None else self.factory_us - self.told_us

    @property
    def larger_us(self) -> int:
        """See ``gwmond.reports.reconcile.unexplained_ratio``."""
        return max(self.factory_us or 0, self.told_us)


def total(rows: Iterable[Reconciled]) -> Reconciled:
    """Return the sums of all entries, under the name ``all``."""
    found = _Total("all")
    numbers, parts = Counter[FactoryKind](), dict[Cause, Part]()
    for row in rows:
        found.ended += row.ended
        found.pilots_us += row.pilots_us
        found.pilot_core_us += row.pilot_core_us
        found.booked_core_us += row.booked_core_us
        found.doubtful_us += row.doubtful_us
        found.jobs = RunTime(*map(sum, zip(found.jobs, row.jobs, strict=True)))
        found.fits.update(row.fits)
        numbers.update(row.numbers)
        if row.factory_us is not None:
            found.factory_us = (found.factory_us or 0) + row.factory_us
            found.told_us += row.pilots_us
        for cause, part in row.parts.items():
            before = parts.get(cause, Part(0, 0))
            parts[cause] = Part(before.pilots + part.pilots, before.us + part.us)
    found.numbers, found.parts = dict(numbers), parts
    return found


PILOTS = (
    *("entry", "ended", "hours", "core h", "queue started", "queue ended", "lines", "no duration"),
    *("factory h", "HTCondor h", "residual h", "residual %", "unexplained h", "unexplained %"),
)
JOBS = (
    *("entry", "by records", "not settled", "by summaries", "by category", "shared"),
    *("factory's job h", "which are", "registered slot h", "claimed slot h"),
)


def _pilots(row: Reconciled) -> tuple[str, ...]:
    fields = record(row)
    numbers = ("factory_queue_started", "factory_queue_ended", "factory_lines")
    return (
        row.entry,
        f"{row.ended}",
        hours(row.pilots_us),
        hours(row.pilot_core_us),
        *(number(fields[name]) for name in (*numbers, "factory_lines_without_duration")),
        "no factory numbers" if row.factory_us is None else hours(row.factory_us),
        seconds(fields["factory_condor_seconds"]),
        *(hours(row.residual_us), percent(row.residual_ratio)),
        *(hours(row.unexplained_us), percent(row.unexplained_ratio)),
    )


def _jobs(row: Reconciled) -> tuple[str, ...]:
    fields = record(row)
    return (
        row.entry,
        hours(row.jobs.core_us),
        hours(row.jobs.open_core_us),
        hours(row.jobs.summarised_core_us or None),
        hours(row.booked_core_us),
        hours(row.shared_core_us),
        seconds(fields["factory_job_seconds"]),
        fields["factory_job_seconds_are"] or "-",
        *(seconds(fields["registered_slot_seconds"]), seconds(fields["claimed_slot_seconds"])),
    )


def _why(row: Reconciled, causes: list[Cause]) -> tuple[str, ...]:
    cells = []
    for cause in causes:
        part = row.parts.get(cause)
        cells.append("" if part is None else f"{hours(part.us)} ({part.pilots})")
    return row.entry, hours(row.residual_us), *cells, hours(row.unexplained_us)


def explanations(rows: Iterable[Reconciled]) -> list[str]:
    """Return what each cause that occurs means, those that explain nothing last."""
    every = list(rows)
    found = {cause for row in every for cause in row.parts}
    ordered = [cause for cause in Cause if cause in found - UNEXPLAINED]
    ordered += [cause for cause in Cause if cause in found & UNEXPLAINED]
    told = [f"{cause.value.replace('_', ' ')}: {MEANINGS[cause]}" for cause in ordered]
    kinds = {kind.value for row in every for kind in row.numbers}
    if every and not any(kind.startswith("summary") for kind in kinds):
        told.append(NO_LINES)
    return told


def hours(us: int | None) -> str:
    """Return microseconds as hours."""
    return "-" if us is None else f"{us / HOUR_US:z.2f}"


def seconds(value: int | None) -> str:
    """Return seconds as hours."""
    return "-" if value is None else f"{value / 3600:z.2f}"


def number(value: int | None) -> str:
    """Return a number, or that nobody told it."""
    return "-" if value is None else f"{value}"


def percent(share: float | None) -> str:
    """Return a share in percent."""
    return "-" if share is None else f"{100 * share:z.1f}"
