"""What ``gwmond ledger export`` writes: the columns of each dataset, and where rows come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, Select, and_, func, select

from gwmond.ledger.database.schema import factory_jobs, pilots, runs, series
from gwmond.ledger.export.parquet import Columns, Dataset, Exported, Progress, Target, write
from gwmond.ledger.reading.pilot_reader import PILOT_ROWS, RUN
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows import counters
from gwmond.ledger.rows.counters import Kind
from gwmond.ledger.rows.pilot_codec import pilot_row, run_row
from gwmond.ledger.rows.tables import PLACE, place_row, stored_state
from gwmond.model.pilot_life import KINDS
from gwmond.model.pilots.pilot_facts import SHOWN
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.runs.phases import failed_transfer, phases_of
from gwmond.model.times import HOUR_US, Period
from gwmond.pilots.factory.records import jobs

_AT_ONCE = 2000
_TEXT, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TIME = pa.timestamp("us", tz="UTC")
_AMOUNT = {"amount_micros": _INT, "amount_seconds": _FLOAT}
_SERIES = ("resource", "measure", "category", "outcome", "site", "entry", "group", "evidence")
_SITE = ("resource", "state", "reason", "site", "entry")

PILOT_HOURS = pa.schema({"hour": _TIME, **dict.fromkeys(_SERIES, _TEXT), **_AMOUNT})
FACTORY_HOURS = pa.schema(
    {"hour": _TIME, "entry": _TEXT, "client": _TEXT, "kind": _TEXT, "number": _INT}
)
SITE_HOURS = pa.schema(
    {
        "hour": _TIME,
        **dict.fromkeys(_SITE, _TEXT),
        "canonical_micros": _INT,
        "canonical_seconds": _FLOAT,
    }
)
_SIZE = {"cores": _FLOAT, "memory_mib": _FLOAT, "gpus": _FLOAT}
_BOOKED = ("resource", "measure", "category", "outcome")
_PILOT: Mapping[str, tuple[pa.DataType, Callable[[PilotRow], Any]]] = {
    "pilot": (_INT, lambda row: row.id),
    "name": (_TEXT, lambda row: row.identity.name),
    "factory_job": (_TEXT, lambda row: row.identity.factory_job),
    "factory": (_TEXT, lambda row: row.identity.factory),
    "site": (_TEXT, lambda row: row.identity.key.site),
    "entry": (_TEXT, lambda row: row.identity.key.entry),
    "group": (_TEXT, lambda row: row.identity.group),
    "node": (_TEXT, lambda row: row.identity.node),
    "origin": (_TEXT, lambda row: row.identity.origin),
    "start": (_TIME, lambda row: row.start_us),
    "end": (_TIME, lambda row: row.end_us),
    "last_contact": (_TIME, lambda row: row.posted_last_heard_us),
    "retires": (_TIME, lambda row: row.retire_us),
    "dies": (_TIME, lambda row: row.die_us),
    "end_source": (_TEXT, lambda row: row.end_source),
    "validation": (_TEXT, lambda row: str(row.validation)),
    "validation_end": (_TIME, lambda row: row.validation_end_us),
    "ran_jobs": (_BOOL, lambda row: row.ran_jobs),
    "closed": (_BOOL, lambda row: row.closed),
    "cores": (_FLOAT, lambda row: row.steps[0].size.cores if row.steps else None),
    "memory_mib": (_FLOAT, lambda row: row.steps[0].size.memory_mib if row.steps else None),
    "gpus": (_FLOAT, lambda row: row.steps[0].size.gpus if row.steps else None),
    "steps": (
        pa.list_(pa.struct({"since": _TIME, **_SIZE})),
        lambda row: [{"since": step.at_us, **step.size._asdict()} for step in row.steps],
    ),
    "settled": (
        pa.list_(pa.struct({**dict.fromkeys(_BOOKED, _TEXT), **_AMOUNT})),
        lambda row: [
            {**dict(zip(_BOOKED, map(str, kind), strict=True)), **_amount(micros)}
            for kind, micros in row.settled.items()
        ],
    ),
    "assumed": (
        pa.list_(pa.struct({"rule": _TEXT, "start": _TIME, "end": _TIME})),
        lambda row: [
            {"rule": rule.value, "start": start, "end": end}
            for rule, (start, end) in row.assumed.items()
        ],
    ),
}
"""The columns of pilots with their types and values; size: what it had at first."""
PILOTS = pa.schema(
    {**{name: kind for name, (kind, _) in _PILOT.items()}, **dict.fromkeys(SHOWN, _TEXT)}
)
_OF_LINE = ("duration_s", "condor_s", "jobs", "jobs_s", "goodput_s", "terminated_s")
FACTORY_JOBS = pa.schema(
    {
        **dict.fromkeys(("entry", "number", "instance", "user", "client"), _TEXT),
        **dict.fromkeys(("submitted", "started", "ended", "summary_written"), _TIME),
        "condor_started": _BOOL,
        **dict.fromkeys((f"summary_{name}" for name in _OF_LINE), _INT),
    }
)
_OF_RUN = tuple(map("_".join, KINDS))
_PHASES = ("stage_in", "execute", "stage_out", "transfer_queued_in", "transfer_queued_out")
RUNS = pa.schema(
    {
        "pilot": _INT,
        "pilot_name": _TEXT,
        "site": _TEXT,
        "entry": _TEXT,
        "group": _TEXT,
        "node": _TEXT,
        "job": _TEXT,
        "number": _INT,
        "start": _TIME,
        "end": _TIME,
        **_SIZE,
        "user": _TEXT,
        "project": _TEXT,
        "accounting_group": _TEXT,
        "schedd": _TEXT,
        "job_group": _TEXT,
        "category": _TEXT,
        "outcome": _TEXT,
        "evidence": _TEXT,
        "result": _TEXT,
        "open": _BOOL,
        **dict.fromkeys((f"{name}_seconds" for name in _PHASES), _FLOAT),
        **dict.fromkeys(("input_bytes", "output_bytes"), _INT),
        **dict.fromkeys(("failed_direction", "failed_protocol", "failed_host"), _TEXT),
        **{f"{kind}_micros": _INT for kind in _OF_RUN},
        **{f"{kind}_seconds": _FLOAT for kind in _OF_RUN},
    }
)


def export(
    reader: LedgerReader, target: Target, period: Period, progress: Progress
) -> list[Exported]:
    """Write the whole days of ``period`` of all datasets; each sees one state of the ledger.

    Raises ``LedgerError`` for the ledger, ``OSError`` for the files, and ``ValueError`` where the
    target has exports of another ledger.
    """
    exported = []
    makers: tuple[Callable[[Connection, Period], Dataset], ...] = (
        _hours(Kind.PILOT, PILOT_HOURS, lambda micros: (micros, _seconds(micros))),
        _hours(Kind.SITE, SITE_HOURS, lambda micros: (micros, _seconds(micros))),
        _pilots,
        _runs,
        _hours(Kind.FACTORY, FACTORY_HOURS, lambda number: (number,)),
        _factory_jobs,
    )
    with reader.reading() as connection:
        began = connection.scalar(select(series.c.created).order_by(series.c.id).limit(1))
    if began is not None and (why := target.claim(began, reader.where)):
        raise ValueError(why)
    for make in makers:
        failed: OSError | None = None
        with reader.reading() as connection:
            try:
                exported.append(write(make(connection, period), target, progress))
            except OSError as exc:  # of the files: the ledger's own are of its driver
                failed = exc
        if failed is not None:
            raise failed
    return exported


def _stream(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    """Yield rows as they come, some at a time."""
    yield from connection.execute(query.execution_options(yield_per=_AT_ONCE))


def _within(column: ColumnElement[int], period: Period) -> ColumnElement[bool]:
    return and_(column >= period.since_us, column < period.until_us)


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / 1_000_000


def _hours(
    kind: Kind, schema: pa.Schema, amounts: Callable[[int], Columns]
) -> Callable[[Connection, Period], Dataset]:
    """Return what makes the dataset of a kind's hours; ``amounts`` are its last columns."""

    def dataset(connection: Connection, period: Period) -> Dataset:
        first, last = period.hours
        hours = counters.hour_rows(connection, kind, first, last)
        rows = (
            (hour * HOUR_US, (hour * HOUR_US, *labels, *amounts(amount)))
            for hour, labels, amount in hours
        )
        query = counters.within(kind, first, last).subquery()
        count = connection.scalar(select(func.count()).select_from(query)) or 0
        complete = stored_state(connection).pruned_before * HOUR_US
        return Dataset(f"{kind.value}_hours", schema, rows, count, complete)

    return dataset


def _pilots(connection: Connection, period: Period) -> Dataset:
    within = _within(pilots.c.start_us, period)
    query = PILOT_ROWS.where(within).order_by(pilots.c.start_us, pilots.c.id)

    def rows() -> Iterator[tuple[int, Columns]]:
        for row in map(pilot_row, _stream(connection, query)):
            values = (value(row) for _, value in _PILOT.values())
            yield row.start_us, (*values, *map(row.facts.attribute, SHOWN))

    count = connection.scalar(select(func.count()).select_from(pilots).where(within)) or 0
    complete = stored_state(connection).pilots_pruned_us
    return Dataset("pilots", PILOTS, rows(), count, complete)


def _factory_jobs(connection: Connection, period: Period) -> Dataset:
    """Each pilot as a job of its factory, on the day on which it was last reported."""
    c = factory_jobs.c
    within = _within(c.last_us, period)
    query = select(c.last_us, *PLACE).where(within).order_by(c.last_us, c.name)

    def rows() -> Iterator[tuple[int, Columns]]:
        for last_us, *values in _stream(connection, query):
            place = place_row(values)
            for job in jobs(place):
                line = job.line
                numbers = [getattr(line, name) if line else None for name in _OF_LINE]
                times = job.submitted_us, job.started_us, job.ended_us
                summary = (line.written_us, line.condor_started) if line else (None, None)
                owner = job.instance, job.user, job.client
                yield last_us, (place.entry, place.number, *owner, *times, *summary, *numbers)

    count = connection.scalar(select(func.count()).select_from(factory_jobs).where(within)) or 0
    complete = stored_state(connection).pilots_pruned_us
    return Dataset("factory_jobs", FACTORY_JOBS, rows(), count, complete)


def _amount(micros: int) -> dict[str, object]:
    return {"amount_micros": micros, "amount_seconds": _seconds(micros)}


def _runs(connection: Connection, period: Period) -> Dataset:
    within = _within(runs.c.start_us, period)
    names = ("name", "site", "entry", "group_name", "node")
    query = (
        select(*(pilots.c[name] for name in names), *RUN)
        .join_from(runs, pilots, runs.c.pilot == pilots.c.id)
        .where(within)
        .order_by(runs.c.start_us)
    )

    def rows() -> Iterator[tuple[int, Columns]]:
        for values in _stream(connection, query):
            row = run_row(values[len(names) :])
            outcome = row.outcome or (None, None, None)
            amounts = [row.settled.get(kind) for kind in KINDS]
            phases = phases_of(row.facts, row.start_us, row.end_us)
            failed = failed_transfer(row.facts) or (None, None, None)
            yield (
                row.start_us,
                (
                    *(row.pilot, *values[: len(names)], row.key.job, row.key.shadow_start),
                    *(row.start_us, row.end_us),
                    *(*row.size, row.user, row.project, row.accounting_group, row.schedd),
                    *(row.job_group, *outcome, row.result, row.open),
                    *(*map(_seconds, phases[:5]), phases.bytes_in, phases.bytes_out, *failed),
                    *(*amounts, *map(_seconds, amounts)),
                ),
            )

    count = connection.scalar(select(func.count()).select_from(runs).where(within)) or 0
    stored = stored_state(connection)
    return Dataset("runs", RUNS, rows(), count, stored.runs_pruned_us)
