"""Export of a ledger as Parquet, partitioned by ledger and day, for DuckDB, Spark or Trino.

    DIR/pilot_hours/ledger=NAME/day=2026-01-31/part-0.parquet   hourly totals of pilot time
    DIR/site_hours/...                                          hourly totals of site time
    DIR/pilots/..., DIR/runs/...                                by the day of their begin (UTC)
    DIR/ledgers/NAME                                            which ledger NAME is

An amount is two columns: ``*_micros``, an exact int64 of 10^-6 unit-seconds, to be summed, and
``*_seconds``, the same as float64, to be looked at.  Times are timestamps in UTC, memory is MiB.

A day is one file a dataset.  It is written under another name and renamed when complete, so
whoever reads sees the old day or the new one.  A day that is empty now, between days that are not,
loses its file: its rows were corrected.  What retention has begun to take out is not exported any
more where there is a file of that day already: that one has more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from gwmond.model.times import DAY_US, Period

Columns: TypeAlias = tuple[Any, ...]
Progress: TypeAlias = Callable[[str, int, int], None]

ROWS_IN_A_GROUP = 20_000
_FILE = "part-0.parquet"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Target(NamedTuple):
    """Where to: a directory, and what the ledger is called there."""

    directory: Path
    name: str

    def claim(self, began: float, where: str) -> str:
        """Note whose exports these are; return why not, empty if all is well.

        ``began``: when the ledger's first series was made, by which it is known wherever it is.
        Two ledgers of one name would replace each other's days.
        """
        if not _NAME.fullmatch(self.name):
            return f'--name "{self.name}": use letters, digits, ".", "_" and "-"'
        note = self.directory / "ledgers" / self.name
        note.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), note.open("x") as file:
            file.write(f"{began} {where}\n")
        noted, _, place = note.read_text().strip().partition(" ")
        if noted == str(began):
            return ""
        return (
            f"{self.directory} has exports of another ledger as {self.name} ({place}): give this "
            f"one ({where}) a name of its own (--name)"
        )

    def root(self, dataset: str) -> Path:
        return self.directory / dataset / f"ledger={self.name}"


class Dataset(NamedTuple):
    """What is exported; ``rows`` yields microseconds and columns, by day.

    Rows of a day that begins before ``complete_us`` may have been taken out.
    """

    name: str
    schema: pa.Schema
    rows: Iterator[tuple[int, Columns]]
    total: int
    complete_us: int


class Exported(NamedTuple):
    """``kept`` are files that are more complete than what the ledger still has."""

    dataset: str
    rows: int
    files: tuple[Path, ...]
    kept: tuple[Path, ...]


def whole_days(period: Period) -> Period:
    """Return the days that a period touches."""
    first, last = period.since_us // DAY_US, -(-period.until_us // DAY_US)
    return Period(first * DAY_US, last * DAY_US)


def write(dataset: Dataset, target: Target, progress: Progress) -> Exported:
    """Write the days of a dataset; a failure leaves each file as it was, or whole and new."""
    root = target.root(dataset.name)
    files: list[Path] = []
    kept: list[Path] = []
    number = 0

    def columns(rows: Iterable[tuple[int, Columns]]) -> Iterator[Columns]:
        nonlocal number
        for _, row in rows:
            if number % 1000 == 0:
                progress(dataset.name, number, dataset.total)
            number += 1
            yield row

    days: list[int] = []
    for day, rows in groupby(dataset.rows, lambda row: row[0] // DAY_US):
        days.append(day)
        path = _path(root, day)
        if day * DAY_US < dataset.complete_us and path.exists():
            kept.append(path)
            continue
        _write(path, dataset.schema, columns(rows))
        files.append(path)
    for day in range(days[0], days[-1]) if days else ():
        if day * DAY_US >= dataset.complete_us and day not in days:
            _path(root, day).unlink(missing_ok=True)
    progress(dataset.name, dataset.total, dataset.total)
    return Exported(dataset.name, number, tuple(files), tuple(kept))


def _path(root: Path, day: int) -> Path:
    date = datetime.fromtimestamp(day * DAY_US // 1_000_000, UTC).date()
    return root / f"day={date.isoformat()}" / _FILE


def _write(path: Path, schema: pa.Schema, rows: Iterator[Columns]) -> None:
    """Write a file and put it in its place, durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    try:
        with pq.ParquetWriter(new, schema, compression="zstd") as writer:
            while some := tuple(islice(rows, ROWS_IN_A_GROUP)):
                values = zip(*some, strict=True)
                arrays = [pa.array(v, f.type) for v, f in zip(values, schema, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
