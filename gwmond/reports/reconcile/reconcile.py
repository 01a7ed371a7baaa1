"""Pilots' time against jobs' time against the factory's own numbers, entry by entry.

Units: times and lengths are whole microseconds; of pilots they are wall-clock time, of jobs
core-time (``_core_us``) or wall-clock time (``_wall_us``).

The causes, and what is compared, are in ``gwmond.model.factory.reconciliation``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase

from gwmond.ledger.reading import factory_lives
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.factory.jobs import GUARD_US, FactoryJob
from gwmond.model.factory.reconciliation import FIT_US, Cause, Reconciled, Reconciliation
from gwmond.model.factory.totals import FactoryKind, FactoryLife, FactoryLives
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.times import SECOND_US, Period
from gwmond.reports.stored.stored_pilot import StoredPilot


def gather(ledger: LedgerReader, period: Period, now_us: int, pattern: str = "*") -> Reconciliation:
    """Reconcile a period of whole hours, for entries whose name matches; raises LedgerError.

    ``now_us``: up to when pilots that run are known to do so.
    """
    stored = factory_lives.read(ledger, *period, now_us, _life)
    rows = [
        reconciled
        for reconciled in reconcile(stored, period, now_us)
        if fnmatchcase(reconciled.entry, pattern)
    ]
    return Reconciliation(period, rows, stored.pruned_us)


def _life(row: PilotRow, jobs_wall_us: int) -> FactoryLife:
    """Return a stored pilot as it is compared with its factory's numbers."""
    pilot, key = StoredPilot(row), row.identity
    return FactoryLife(
        key.key.entry,
        key.factory_number,
        row.start_us,
        row.end_us,
        key.origin,
        pilot.times_estimated,
        pilot.first_size.cores,
        jobs_wall_us,
    )


def reconcile(stored: FactoryLives, period: Period, now_us: int) -> list[Reconciled]:
    """Return each entry of which anything is known, by name; ``period`` has whole hours.

    ``now_us``: up to when pilots that run are known to do so.
    """
    rows: dict[str, Reconciled] = {}

    def row_of(entry: str) -> Reconciled:
        return rows.setdefault(entry, Reconciled(entry))

    for (entry, kind), number in stored.numbers.items():
        row_of(entry).numbers[kind] = number
    for entry, runs in stored.runs.items():
        row_of(entry).jobs = runs
    for (entry, _), micros in stored.posted.items():
        row_of(entry).posted_core_us += micros
    for entry in stored.reported & {*rows, *(life.entry for life in stored.lives)}:
        row_of(entry).factory_us = (
            row_of(entry).numbers.get(FactoryKind.SUMMARY_SECONDS, 0) * SECOND_US
        )
    pairs, alone = _paired(stored)
    lines: Counter[str] = Counter()
    for life, job in pairs:
        lines[life.entry] += _add(row_of(life.entry), life, job, period, now_us)
    for entry, job in alone:
        if job.line is not None and _within(job.line.written_us, period) and job.duration_us:
            lines[entry] += job.duration_us
            row_of(entry).add(Cause.UNKNOWN_PILOT, job.duration_us)
    for row in rows.values():
        if row.factory_us is not None and (rest := row.factory_us - lines[row.entry]):
            row.add(Cause.REPEATED_LINES, rest)
    return [rows[name] for name in sorted(rows)]


def _add(
    entry: Reconciled, life: FactoryLife, job: FactoryJob | None, period: Period, now_us: int
) -> int:
    """Take in a pilot; return how long its line says it lasted, if written in the period."""
    end_us = max(life.start_us, now_us if life.end_us is None else life.end_us)
    inside = max(0, min(end_us, period.until_us) - max(life.start_us, period.since_us))
    entry.pilots_us += inside
    entry.pilot_core_us += round(inside * life.cores)
    entry.ended += _within(life.end_us, period)
    if job is not None and job.line is not None and _within(job.line.written_us, period):
        _compare(entry, life, job, inside, end_us)
        return job.duration_us or 0
    if inside and entry.factory_us is not None:
        entry.add(_missing(life, job, period), -inside)
    return 0


def _paired(
    stored: FactoryLives,
) -> tuple[list[tuple[FactoryLife, FactoryJob | None]], list[tuple[str, FactoryJob]]]:
    """Return each pilot with the factory's job that it ran as, and the jobs that are left."""
    left = {key: list(jobs) for key, jobs in stored.jobs.items()}
    pairs: list[tuple[FactoryLife, FactoryJob | None]] = []
    for life in sorted(stored.lives, key=lambda life: (life.entry, life.number, life.start_us)):
        jobs = left.get((life.entry, life.number), []) if life.number else []
        fitting = [job for job in jobs if job.fits(life.start_us, GUARD_US)]
        job = min(fitting, key=lambda job: abs(_began(job) - life.start_us), default=None)
        if job is not None:
            jobs.remove(job)
        pairs.append((life, job))
    return pairs, [(entry, job) for (entry, _), jobs in left.items() for job in jobs]


def _began(job: FactoryJob) -> int:
    began = job.life[0] if job.life is not None else job.started_us or job.submitted_us
    return began if began is not None else job.settled_us or 0


def _compare(
    entry: Reconciled, life: FactoryLife, job: FactoryJob, inside: int, end_us: int
) -> None:
    """Take in a pilot whose line was written in the period."""
    duration = job.duration_us
    if not duration:
        entry.add(Cause.NO_DURATION, -inside)
        return
    length = end_us - life.start_us
    if length > inside:
        entry.add(Cause.OUTSIDE, length - inside)
    if length != duration:
        cause = Cause.ESTIMATED if life.estimated else Cause.DIFFERENT
        entry.add(cause, duration - length)
    jobs_s = job.line.jobs_s if job.line is not None else None
    if jobs_s and life.jobs_wall_us:
        entry.fits[_fit(jobs_s * SECOND_US, life)] += 1


def _fit(told_us: int, life: FactoryLife) -> str:
    """Return what a line's time of jobs is, within a hundredth: GlideinWMS cuts to seconds."""
    real = abs(told_us - life.jobs_wall_us) <= FIT_US + life.jobs_wall_us // 100
    part = round(life.jobs_wall_us / max(life.cores, 1.0))
    divided = abs(told_us - part) <= FIT_US + part // 100
    if real and divided:
        return "both"
    return "real" if real else "divided" if divided else "neither"


def _missing(life: FactoryLife, job: FactoryJob | None, period: Period) -> Cause:
    """Return why a pilot that lived in the period has no line in it."""
    line = job.line if job is not None else None
    written_us = line.written_us if line is not None else None
    if written_us is not None and written_us < period.since_us:
        return Cause.LINE_EARLIER
    if life.end_us is None or life.end_us >= period.until_us:
        return Cause.RUNNING
    if written_us is not None:
        return Cause.LINE_LATER
    if job is not None and job.ended_us is not None:
        return Cause.NO_LINE
    return Cause.ONLY_JOBS if life.origin == "jobs" else Cause.NOT_RECORDED


def _within(time_us: int | None, period: Period) -> bool:
    return time_us is not None and period.since_us <= time_us < period.until_us


def unexplained_ratio(rows: Iterable[Reconciled]) -> float | None:
    """Return the unexplained share of pilot time, of entries with numbers of the factory.

    That is the larger of both: the factory's of all these entries, or gwmond's.
    """
    compared = [row for row in rows if row.factory_us is not None]
    if not compared:
        return None
    most = max(sum(row.factory_us or 0 for row in compared), sum(row.pilots_us for row in compared))
    return sum(row.doubtful_us for row in compared) / most if most else 0.0
