"""The tables as the newest migration leaves them (a test holds the two equal).

Series and their hours are described in ``counters``.  Works on SQLite from 3.24 and PostgreSQL
from 9.5.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

VERSION_TABLE = "gwmond_schema"
# Every revision that this gwmond knows, oldest first.
REVISIONS = ("0011",)
HEAD = REVISIONS[-1]

metadata = MetaData()

# SQLite gives only INTEGER PRIMARY KEY its own short row number.
ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")

# ``labels`` are a JSON list of texts, see ``counters``.
series = Table(
    "series",
    metadata,
    Column("id", ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("whole", BigInteger, nullable=False),
    Column("micros", Integer, nullable=False),
    # The highest that the total has been.
    Column("high_whole", BigInteger, nullable=False),
    Column("high_micros", Integer, nullable=False),
    # What was taken out of series_hours by retention, with later corrections of that.
    Column("pruned_whole", BigInteger, nullable=False),
    Column("pruned_micros", Integer, nullable=False),
    UniqueConstraint("labels", "kind", name="series_key"),
    CheckConstraint("whole >= 0 AND micros BETWEEN 0 AND 999999", name="series_amount"),
    CheckConstraint("high_whole >= 0 AND high_micros BETWEEN 0 AND 999999", name="series_high"),
    CheckConstraint(
        "pruned_whole >= 0 AND pruned_micros BETWEEN 0 AND 999999", name="series_pruned"
    ),
)

# The series by number, and no row numbers of SQLite's own: a row is some twenty bytes.
series_hours = Table(
    "series_hours",
    metadata,
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column(
        "series",
        BigInteger,
        ForeignKey("series.id", name="series_hours_series"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("amount", BigInteger, nullable=False),
    # SQLite makes a fraction of what does not fit 64 bits.
    CheckConstraint("amount BETWEEN 0 AND 9223372036854775807", name="series_hours_amount"),
    sqlite_with_rowid=False,
)

entries = Table(
    "entries",
    metadata,
    Column("site", Text, primary_key=True),
    Column("entry", Text, primary_key=True),
    Column("first_seen", Double, nullable=False),
    Column("last_accounted", Double),
    Column("provisioned_cpu", BigInteger),
    Column("provisioned_gpu", BigInteger),
)

peaks = Table(
    "peaks",
    metadata,
    Column("site", Text, primary_key=True),
    Column("entry", Text, primary_key=True),
    Column("resource", Text, primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column("units", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# One row: how many batches were committed, up to when site time is accounted, and what retention
# took out: the hours before ``pruned_before``, and closed pilots and attempts that ended before
# ``*_pruned_us``.  ``next_id`` of a pilot is never given back, also when the latest are pruned.
ledger_state = Table(
    "ledger_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("batches", BigInteger, nullable=False),
    Column("next_id", BigInteger, nullable=False),
    Column("pruned_before", Integer, nullable=False),
    Column("pilots_pruned_us", BigInteger, nullable=False),
    Column("attempts_pruned_us", BigInteger, nullable=False),
    Column("wall", Double),
    Column("mono", Double),
    Column("boot", Double),
    Column("boot_id", Text),
    CheckConstraint("id = 1", name="ledger_state_one_row"),
)

problems = Table(
    "problems",
    metadata,
    Column("id", ROW_NUMBER, primary_key=True),
    Column("time", Double, nullable=False, index=True),
    Column("source", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("detail", Text, nullable=False),
)
