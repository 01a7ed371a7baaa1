"""Export of a ledger as Parquet, partitioned by month, for DuckDB, Spark or Trino.

    DIR/pilot_hours/year=2026/month=01/part-0.parquet     hourly totals of pilot time
    DIR/site_hours/...                                    hourly totals of site time
    DIR/pilots/..., DIR/runs/...                      by the month in which they began (UTC)

An amount is two columns: ``*_micros``, an exact int64 of 10^-6 unit-seconds, to be summed, and
``*_seconds``, the same as float64, to be looked at.  Times are timestamps in UTC, memory is MiB.

A month is one file a dataset.  It is written under another name and renamed when complete, so
whoever reads sees the old month or the new one.  What retention has begun to take out is not
exported any more where there is a file of that month already: that one has more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

Month: TypeAlias = tuple[int, int]
Columns: TypeAlias = tuple[Any, ...]
Progress: TypeAlias = Callable[[str, int, int], None]

ROWS_IN_MEMORY = 50_000
ROWS_IN_A_GROUP = 20_000
_FILE = "part-0.parquet"


class Months(NamedTuple):
    """From the first month to the last, both included; None is without end."""

    first: Month | None = None
    last: Month | None = None

    def has(self, month: Month) -> bool:
        return (self.first is None or month >= self.first) and (
            self.last is None or month <= self.last
        )

    @property
    def start_us(self) -> int:
        """The first month's start."""
        return 0 if self.first is None else start_us(self.first)

    @property
    def stop_us(self) -> int | None:
        """The last month's end."""
        return None if self.last is None else start_us(following(self.last))


class Dataset(NamedTuple):
    """What is exported; ``rows`` yields microseconds, by which the month is found, and columns.

    Rows of a month that begins before ``complete_us`` may have been taken out.
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


def month_of(time_us: int) -> Month:
    """Return year and month (UTC).

    >>> month_of(0)
    (1970, 1)
    """
    at = datetime.fromtimestamp(time_us // 1_000_000, UTC)
    return at.year, at.month


def following(month: Month) -> Month:
    """Return the month after.

    >>> following((2026, 12))
    (2027, 1)
    """
    year, number = month
    return (year + 1, 1) if number == 12 else (year, number + 1)


def start_us(month: Month) -> int:
    return int(datetime(*month, 1, tzinfo=UTC).timestamp()) * 1_000_000


class _File:
    """One month of one dataset, until it is complete."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self._schema = schema
        self._rows: list[Columns] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._new = path.with_name(f".{path.name}.new")
        self._writer = pq.ParquetWriter(self._new, schema, compression="zstd")

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Columns) -> None:
        self._rows.append(row)
        if len(self._rows) >= ROWS_IN_A_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory as a row group."""
        if self._rows:
            arrays = [
                pa.array(values, field.type)
                for values, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
            ]
            self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
            self._rows = []

    def finish(self) -> None:
        """Put the file in its place, durably."""
        self.flush()
        self._writer.close()
        with self._new.open("rb") as file:
            os.fsync(file.fileno())
        self._new.replace(self.path)

    def abandon(self) -> None:
        with suppress(Exception):
            self._writer.close()
        self._new.unlink(missing_ok=True)


class _Files:
    """The months of a dataset that are being written; None stands for one that is kept."""

    def __init__(self, root: Path, dataset: Dataset) -> None:
        self._root, self._dataset = root, dataset
        self._files: dict[Month, _File | None] = {}
        self._in_memory = 0
        self.rows = 0

    def add(self, month: Month, row: Columns) -> None:
        if month not in self._files:
            self._files[month] = self._open(month)
        file = self._files[month]
        if file is None:
            return
        held = len(file)
        file.add(row)
        self.rows += 1
        self._in_memory += len(file) - held
        if self._in_memory >= ROWS_IN_MEMORY:
            for each in self._opened():
                each.flush()
            self._in_memory = 0

    def finish(self) -> Exported:
        """Put all files in their places, after all were written."""
        opened = self._opened()
        for file in opened:
            file.flush()
        for file in opened:
            file.finish()
        months = sorted(self._files)
        kept = tuple(_path(self._root, month) for month in months if self._files[month] is None)
        paths = tuple(sorted(file.path for file in opened))
        return Exported(self._dataset.name, self.rows, paths, kept)

    def abandon(self) -> None:
        for file in self._opened():
            file.abandon()

    def _opened(self) -> list[_File]:
        return [file for file in self._files.values() if file is not None]

    def _open(self, month: Month) -> _File | None:
        path = _path(self._root, month)
        if start_us(month) < self._dataset.complete_us and path.exists():
            return None
        return _File(path, self._dataset.schema)


def write(dataset: Dataset, directory: Path, months: Months, progress: Progress) -> Exported:
    """Write a dataset's months; a failure leaves each file as it was, or whole and new."""
    files = _Files(directory / dataset.name, dataset)
    try:
        for number, (time_us, row) in enumerate(dataset.rows):
            if number % 1000 == 0:
                progress(dataset.name, number, dataset.total)
            month = month_of(time_us)
            if months.has(month):
                files.add(month, row)
        exported = files.finish()
    except BaseException:
        files.abandon()
        raise
    progress(dataset.name, dataset.total, dataset.total)
    return exported


def _path(root: Path, month: Month) -> Path:
    return root / f"year={month[0]:04}" / f"month={month[1]:02}" / _FILE
