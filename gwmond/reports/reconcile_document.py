"""A reconciliation as a document: tables for people, records for JSON and CSV.

Tables have hours, records seconds; None (``?`` in tables) is what nobody reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from gwmond.model.factory_totals import FactoryKind, RunTime
from gwmond.model.reconciliation import UNEXPLAINED, Cause, CausePart, Reconciled, Reconciliation
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger_reading import Age
from gwmond.reports.periods import both, rfc3339
from gwmond.reports.reconcile import unexplained_ratio
from gwmond.reports.render.document import Document, Paragraph, Part, Sentences
from gwmond.reports.render.formats import UNKNOWN, hours, number, percent, words
from gwmond.reports.render.table import Column, Table, table

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
    Cause.NOT_RECORDED: "NOT EXPLAINED: no file that was read has the pilot's end, or its line",
    Cause.UNKNOWN_PILOT: "NOT EXPLAINED: lines of pilots that gwmond does not know",
    Cause.DIFFERENT: "NOT EXPLAINED: the line differs from a life that was measured",
}


NO_LINES = (
    "No completed_jobs log was read for this period: the factory's server directory has them too "
    "(gwmond import /var/log/gwms-factory, or [factory] directories)"
)


def record(row: Reconciled) -> dict[str, Any]:
    """Return an entry flat; keys have units, ``parts`` and ``fits`` are spread out."""
    numbers = row.numbers

    def number(kind: FactoryKind) -> int | None:
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
        "factory_queue_started": number(K.QUEUE_STARTED),
        "factory_queue_ended": number(K.QUEUE_ENDED),
        "factory_queue_removed": number(K.QUEUE_REMOVED),
        "factory_queue_held": number(K.QUEUE_HELD),
        "factory_lines": number(K.SUMMARY_PILOTS),
        "factory_lines_without_duration": number(K.SUMMARY_NO_DURATION),
        "factory_pilot_seconds": None if row.factory_us is None else row.factory_us / SECOND_US,
        "factory_validation_seconds": number(K.SUMMARY_VALIDATION_SECONDS),
        "factory_condor_seconds": number(K.SUMMARY_CONDOR_SECONDS),
        "factory_jobs": number(K.SUMMARY_JOBS),
        "factory_job_seconds": number(K.SUMMARY_JOB_SECONDS),
        "factory_job_seconds_are": _kind_of_sum(row),
        **{f"factory_job_lines_{fit}": row.fits[fit] for fit in FITS},
        "registered_slot_seconds": watched(K.CLIENT_SLOTS_TOTAL_SECONDS),
        "claimed_slot_seconds": watched(K.CLIENT_SLOTS_RUNNING_SECONDS),
        "slots_watched_seconds": number(K.CLIENT_SLOTS_TOTAL_WATCHED_SECONDS),
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


def document(found: Reconciliation, age: Age) -> Document:
    """Return a reconciliation in all forms."""
    since, until = found.period

    def parts() -> Iterator[Part]:
        when = f"{rfc3339(since)} to {rfc3339(until)}"
        yield Paragraph(f"Pilots, jobs and the factory's numbers: {when}", "title")
        yield Paragraph(age.text)
        if not found.rows:
            yield Paragraph(
                "Nothing is known of this period. See gwmond reconcile --help: --from", "heading"
            )
            return
        yield from tables(found.rows)
        yield Sentences(explanations(found.rows))

    def as_json() -> dict[str, Any]:
        return {
            **age.as_json(),
            "period": {**both("from", since), **both("to", until)},
            "unexplained_ratio": unexplained_ratio(found.rows),
            "entries": list(map(record, found.rows)),
        }

    return Document(parts, as_json, lambda: map(record, found.rows), lambda: record(Reconciled("")))


def tables(rows: Iterable[Reconciled]) -> list[Table]:
    """Return the tables: pilots, jobs, and why they differ."""
    every = list(rows)
    whole = total(every) if len(every) > 1 else None
    causes = [cause for cause in Cause if any(cause in row.parts for row in every)]
    title = "Pilots: hours, and what the factory says (residual: its hours less gwmond's)"
    found = [
        table(title, _PILOTS, every, whole, _left_out(every)),
        table("Jobs: core-hours, and what the factory says", _JOBS, every, whole),
    ]
    if causes:
        title = "Why the factory's hours of pilots differ (number of pilots)"
        columns = [_ENTRY, _RESIDUAL, *map(_of_cause, causes), _UNEXPLAINED]
        differ = [row for row in every if row.parts]
        found.append(table(title, columns, differ, whole if whole and whole.parts else None))
    return found


def _hours(header: str, us: Callable[[Reconciled], int | None], zero: bool = False) -> _Column:
    return Column(header, lambda row: hours(us(row), 2), zero=zero)


def _number(header: str, name: str) -> _Column:
    return Column(header, lambda row: number(record(row)[name]))


def _told(header: str, name: str) -> _Column:
    """Return a column of hours of what is recorded in seconds."""

    def cell(row: Reconciled) -> str:
        seconds = record(row)[name]
        return hours(None if seconds is None else seconds * SECOND_US, 2)

    return Column(header, cell)


def _of_cause(cause: Cause) -> _Column:
    def cell(row: Reconciled) -> str:
        part = row.parts.get(cause)
        return "" if part is None else f"{hours(part.us, 2)} ({part.pilots})"

    return Column(words(cause), cell)


_Column: TypeAlias = Column[Reconciled]
_ENTRY: _Column = Column("entry", lambda row: row.entry, name=True)
_RESIDUAL = _hours("residual h", lambda row: row.residual_us)
_UNEXPLAINED = _hours("unexplained h", lambda row: row.unexplained_us, zero=True)
_PILOTS: tuple[_Column, ...] = (
    _ENTRY,
    Column("ended", lambda row: str(row.ended)),
    _hours("hours", lambda row: row.pilots_us),
    _hours("core h", lambda row: row.pilot_core_us),
    _number("queue started", "factory_queue_started"),
    _number("queue ended", "factory_queue_ended"),
    _number("lines", "factory_lines"),
    _number("no duration", "factory_lines_without_duration"),
    Column(
        "factory h",
        lambda row: "no factory numbers" if row.factory_us is None else hours(row.factory_us, 2),
    ),
    _told("HTCondor h", "factory_condor_seconds"),
    _RESIDUAL,
    Column("residual %", lambda row: _share(row.residual_ratio)),
    _UNEXPLAINED,
    Column("unexplained %", lambda row: _share(row.unexplained_ratio), zero=True),
)
_JOBS: tuple[_Column, ...] = (
    _ENTRY,
    _hours("by records", lambda row: row.jobs.core_us),
    _hours("not settled", lambda row: row.jobs.open_core_us, zero=True),
    _hours("by summaries", lambda row: row.jobs.summarised_core_us, zero=True),
    _hours("by category", lambda row: row.booked_core_us),
    _hours("shared", lambda row: row.shared_core_us, zero=True),
    _told("factory's job h", "factory_job_seconds"),
    Column("which are", lambda row: record(row)["factory_job_seconds_are"] or UNKNOWN),
    _told("registered slot h", "registered_slot_seconds"),
    _told("claimed slot h", "claimed_slot_seconds"),
)


def _share(share: float | None) -> str:
    """Return what part of the larger sum something is; without the factory's sum it is unknown."""
    return UNKNOWN if share is None else percent(share)


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
    numbers, parts = Counter[FactoryKind](), dict[Cause, CausePart]()
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
            before = parts.get(cause, CausePart(0, 0))
            parts[cause] = CausePart(before.pilots + part.pilots, before.us + part.us)
    found.numbers, found.parts = dict(numbers), parts
    return found


def explanations(rows: Iterable[Reconciled]) -> list[str]:
    """Return what each cause that occurs means, those that explain nothing last."""
    every = list(rows)
    found = {cause for row in every for cause in row.parts}
    ordered = [cause for cause in Cause if cause in found - UNEXPLAINED]
    ordered += [cause for cause in Cause if cause in found & UNEXPLAINED]
    meanings = [f"{words(cause)}: {MEANINGS[cause]}" for cause in ordered]
    kinds = {kind.value for row in every for kind in row.numbers}
    if every and not any(kind.startswith("summary") for kind in kinds):
        meanings.append(NO_LINES)
    return meanings
