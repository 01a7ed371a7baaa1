"""A reconciliation as a document: tables for people, records for JSON and CSV.

Tables have hours, records seconds; None (``?`` in tables) is what nobody reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gwmond.model.factory.reconciliation import (
    UNEXPLAINED,
    Cause,
    CausePart,
    Reconciled,
    Reconciliation,
)
from gwmond.model.factory.totals import FactoryKind, RunTime
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.reconcile.reconcile import unexplained_ratio
from gwmond.reports.render import fields
from gwmond.reports.render.document import Document, Paragraph, Part, Sentences
from gwmond.reports.render.fields import Datum, Unit
from gwmond.reports.render.formats import UNKNOWN, hours, number, percent, seconds, words
from gwmond.reports.render.periods import both, rfc3339
from gwmond.reports.render.table import Column, Table, table

K = FactoryKind
_OF_FILES = ("queue", "summary")

MEANINGS = {
    Cause.OUTSIDE: "a line counts the pilot's whole life: the part of it outside the period",
    Cause.RUNNING: "pilots that ran on at the period's end: their lines are written later",
    Cause.LINE_LATER: "pilots that ended in the period, whose line was written after it",
    Cause.LINE_EARLIER: "pilots whose line was written before the period, though they lived in it",
    Cause.NO_LINE: "the queue recorded the pilot's end, but there is no line: one that was killed "
    "hard, or was in the same round as one (GlideinWMS's writer fails for all of the entry)",
    Cause.NO_DURATION: "lines of -1, 0, or longer than 60 days: the output was cut off, empty or "
    "missing",
    Cause.ONLY_JOBS: "pilots that are known from records of jobs only",
    Cause.ESTIMATED: "the line differs from a life whose begin or end is estimated",
    Cause.REPEATED_LINES: "lines that were read twice, or whose pilots are no longer kept",
    Cause.NOT_RECORDED: "NOT EXPLAINED: no file that was read has the pilot's end, or its line",
    Cause.UNKNOWN_PILOT: "NOT EXPLAINED: lines of pilots that gwmond does not know",
    Cause.DIFFERENT: "NOT EXPLAINED: the line differs from a life that was measured",
}


NO_LINES = (
    "No completed_jobs log was read for this period: the factory's server directory has them too "
    "(gwmond import /var/log/gwms-factory, or [factory] directories)"
)


NO_LINES_WRITTEN = (
    "The factory's event logs have pilots that ended in this period, and no completed_jobs log was "
    "read: its server directory is not read, or GlideinWMS (3.10.17 and later, 3.11.3) wrote none, "
    "since its parser cannot read event logs with events 028"
)


FITS = ("real", "divided", "both", "neither")


def _number(kind: FactoryKind) -> Callable[[Reconciled], int | None]:
    """Return a number's value; a zero of files is not stored, but known if their others are."""
    source = kind.value.partition("_")[0]

    def value(row: Reconciled) -> int | None:
        zero = source in _OF_FILES and any(other.value.startswith(source) for other in row.numbers)
        return row.numbers.get(kind, 0 if zero else None)

    return value


def _fits(fit: str) -> Callable[[Reconciled], int]:
    return lambda row: row.fits[fit]


def _watched(kind: FactoryKind) -> Callable[[Reconciled], int | None]:
    """Return a value times the time in which ads had it; None if they had not."""
    time = K(f"{kind.value.removesuffix('_seconds')}_watched_seconds")
    return lambda row: row.numbers.get(kind, 0) if row.numbers.get(time) else None


def _of_cause(cause: Cause) -> tuple[Datum[Reconciled], ...]:
    return (
        Datum(f"{cause.value}_pilots", lambda row: row.part(cause).pilots),
        Datum(f"{cause.value}_seconds", lambda row: row.part(cause).us, unit=_MICROS),
    )


def _kind_of_sum(row: Reconciled) -> str | None:
    """Return what most lines that have it have as their jobs' time; None: no line has."""
    real, divided = row.fits["real"], row.fits["divided"]
    if not row.fits.total():
        return None
    if row.fits["neither"] > real + divided + row.fits["both"]:
        return "neither"
    if real and divided:
        return "mixed"
    return "real" if real else "divided" if divided else "either"


_COUNT = Unit(lambda key, value: {key: value}, number)
_MICROS = Unit(lambda key, us: {key: seconds(us)}, lambda us: hours(us, 2))
_FACTORYS = Unit(
    lambda key, us: {key: seconds(us)},
    lambda us: "no factory numbers" if us is None else hours(us, 2),
)
_WORD = Unit(lambda key, value: {key: value}, lambda value: value or UNKNOWN)
_SECONDS = Unit(
    lambda key, value: {key: value},
    lambda value: hours(None if value is None else value * SECOND_US, 2),
)
_SHARE = Unit(
    lambda key, share: {key: share}, lambda share: UNKNOWN if share is None else percent(share)
)
"""Without the factory's sum no share is known."""

_JOBS = 50
"""From here on: columns of the table of jobs, before: of pilots."""
FIELDS: tuple[Datum[Reconciled], ...] = (
    Datum("entry", lambda row: row.entry, 1, name=True),
    Datum("pilots_ended", lambda row: row.ended, 2, "ended", _COUNT),
    Datum("pilot_seconds", lambda row: row.pilots_us, 3, "hours", _MICROS),
    Datum("pilot_core_seconds", lambda row: row.pilot_core_us, 4, "core h", _MICROS),
    Datum("job_core_seconds", lambda row: row.jobs.core_us, 52, "by records", _MICROS),
    Datum(
        "job_core_seconds_not_settled",
        *(lambda row: row.jobs.open_core_us, 53, "not settled", _MICROS),
        zero=True,
    ),
    Datum(
        "job_core_seconds_by_summaries",
        *(lambda row: row.jobs.summarised_core_us, 54, "by summaries", _MICROS),
        zero=True,
    ),
    Datum(
        "job_core_seconds_by_category", lambda row: row.posted_core_us, 55, "by category", _MICROS
    ),
    Datum(
        "job_core_seconds_shared", lambda row: row.shared_core_us, 56, "shared", _MICROS, zero=True
    ),
    Datum("factory_told", lambda row: row.factory_us is not None),
    Datum("factory_queue_started", _number(K.QUEUE_STARTED), 5, "queue started", _COUNT),
    Datum("factory_queue_ended", _number(K.QUEUE_ENDED), 6, "queue ended", _COUNT),
    Datum("factory_queue_removed", _number(K.QUEUE_REMOVED)),
    Datum("factory_queue_held", _number(K.QUEUE_HELD)),
    Datum("factory_lines", _number(K.SUMMARY_PILOTS), 7, "lines", _COUNT),
    Datum(
        "factory_lines_without_duration",
        *(_number(K.SUMMARY_NO_DURATION), 8, "no duration", _COUNT),
    ),
    Datum("factory_pilot_seconds", lambda row: row.factory_us, 9, "factory h", _FACTORYS),
    Datum("factory_validation_seconds", _number(K.SUMMARY_VALIDATION_SECONDS)),
    Datum("factory_condor_seconds", _number(K.SUMMARY_CONDOR_SECONDS), 10, "HTCondor h", _SECONDS),
    Datum("factory_jobs", _number(K.SUMMARY_JOBS)),
    Datum("factory_job_seconds", _number(K.SUMMARY_JOB_SECONDS), 57, "factory's job h", _SECONDS),
    Datum("factory_job_seconds_are", _kind_of_sum, 58, "which are", _WORD),
    *(Datum(f"factory_job_lines_{fit}", _fits(fit)) for fit in FITS),
    Datum(
        "registered_slot_seconds",
        *(_watched(K.CLIENT_SLOTS_TOTAL_SECONDS), 59, "registered slot h", _SECONDS),
    ),
    Datum(
        "claimed_slot_seconds",
        *(_watched(K.CLIENT_SLOTS_RUNNING_SECONDS), 60, "claimed slot h", _SECONDS),
    ),
    Datum("slots_watched_seconds", _number(K.CLIENT_SLOTS_TOTAL_WATCHED_SECONDS)),
    Datum("residual_seconds", lambda row: row.residual_us, 11, "residual h", _MICROS),
    Datum("residual_ratio", lambda row: row.residual_ratio, 12, "residual %", _SHARE),
    Datum(
        "unexplained_seconds",
        *(lambda row: row.unexplained_us, 13, "unexplained h", _MICROS),
        zero=True,
    ),
    Datum(
        "unexplained_ratio",
        *(lambda row: row.unexplained_ratio, 14, "unexplained %", _SHARE),
        zero=True,
    ),
    *(field for cause in Cause for field in _of_cause(cause)),
)
"""Properties of an entry, in the order of JSON and CSV; keys have units."""


def record(row: Reconciled) -> dict[str, Any]:
    return fields.record(FIELDS, row)


def document(sheet: Reconciliation, age: Age) -> Document:
    since, until = sheet.period

    def parts() -> Iterator[Part]:
        when = f"{rfc3339(since)} to {rfc3339(until)}"
        yield Paragraph(f"Pilots, jobs and the factory's numbers: {when}", "title")
        yield Paragraph(age.text)
        if not sheet.rows:
            yield Paragraph(
                "Nothing is known of this period. See gwmond reconcile --help: --from", "heading"
            )
            return
        yield from tables(sheet.rows)
        yield Sentences(explanations(sheet.rows))

    def as_json() -> dict[str, Any]:
        return {
            **age.as_json(),
            "period": {**both("from", since), **both("to", until)},
            "unexplained_ratio": unexplained_ratio(sheet.rows),
            "entries": list(map(record, sheet.rows)),
        }

    return Document(parts, as_json, lambda: map(record, sheet.rows), lambda: record(Reconciled("")))


def tables(rows: Iterable[Reconciled]) -> list[Table]:
    """Return the tables: pilots, jobs, and why they differ."""
    entries = list(rows)
    whole = total(entries) if len(entries) > 1 else None
    causes = [cause for cause in Cause if any(cause in row.parts for row in entries)]
    entry = fields.columns(FIELDS[:1])
    pilots = fields.columns(field for field in FIELDS if field.at < _JOBS)
    jobs = fields.columns(field for field in FIELDS if field.at >= _JOBS)
    title = "Pilots: hours, and what the factory says (residual: its hours less gwmond's)"
    tables = [
        table(title, pilots, entries, whole, _left_out(entries)),
        table("Jobs: core-hours, and what the factory says", [*entry, *jobs], entries, whole),
    ]
    if causes:
        title = "Why the factory's hours of pilots differ (number of pilots)"
        residual, unexplained = fields.columns(
            field for field in FIELDS if field.key in {"residual_seconds", "unexplained_seconds"}
        )
        columns = [*entry, residual, *map(_cause_column, causes), unexplained]
        differ = [row for row in entries if row.parts]
        tables.append(table(title, columns, differ, whole if whole and whole.parts else None))
    return tables


def _cause_column(cause: Cause) -> Column[Reconciled]:
    def cell(row: Reconciled) -> str:
        part = row.parts.get(cause)
        return "" if part is None else f"{hours(part.us, 2)} ({part.pilots})"

    return Column(words(cause), cell)


def _left_out(rows: list[Reconciled]) -> str:
    """Return that the residual of all is not of all entries; empty if it is, or there is none."""
    without = [row for row in rows if row.factory_us is None]
    if not without or len(without) == len(rows):
        return ""
    left = sum(row.pilots_us for row in without)
    return (
        f"all: {len(rows) - len(without)} of {len(rows)} entries have factory numbers, and what is "
        f"residual is of these; {hours(left, 2)} of the hours are of the others."
    )


class _Total(Reconciled):
    """The sum of all entries; differences only of those with numbers of the factory."""

    told_us: int = 0

    @property
    def residual_us(self) -> int | None:
        """The sum of the entries' residuals."""
        return None if self.factory_us is None else self.factory_us - self.told_us

    @property
    def larger_us(self) -> int:
        """See ``gwmond.reports.reconcile.reconcile.unexplained_ratio``."""
        return max(self.factory_us or 0, self.told_us)


def total(rows: Iterable[Reconciled]) -> Reconciled:
    """Return the sums of all entries, under the name ``all``."""
    sums = _Total("all")
    numbers = Counter[FactoryKind]()
    for row in rows:
        sums.ended += row.ended
        sums.pilots_us += row.pilots_us
        sums.pilot_core_us += row.pilot_core_us
        sums.posted_core_us += row.posted_core_us
        sums.doubtful_us += row.doubtful_us
        sums.jobs = RunTime(*map(sum, zip(sums.jobs, row.jobs, strict=True)))
        sums.fits.update(row.fits)
        numbers.update(row.numbers)
        if row.factory_us is not None:
            sums.factory_us = (sums.factory_us or 0) + row.factory_us
            sums.told_us += row.pilots_us
        for cause, part in row.parts.items():
            before = sums.part(cause)
            sums.parts[cause] = CausePart(before.pilots + part.pilots, before.us + part.us)
    sums.numbers = dict(numbers)
    return sums


def explanations(rows: Iterable[Reconciled]) -> list[str]:
    """Return what each cause that occurs means, those that explain nothing last."""
    entries = list(rows)
    causes = {cause for row in entries for cause in row.parts}
    ordered = [cause for cause in Cause if cause in causes - UNEXPLAINED]
    ordered += [cause for cause in Cause if cause in causes & UNEXPLAINED]
    meanings = [f"{words(cause)}: {MEANINGS[cause]}" for cause in ordered]
    kinds = {kind.value for row in entries for kind in row.numbers}
    if entries and not any(kind.startswith("summary") for kind in kinds):
        ended = FactoryKind.QUEUE_ENDED.value in kinds
        meanings.append(NO_LINES_WRITTEN if ended else NO_LINES)
    return meanings
