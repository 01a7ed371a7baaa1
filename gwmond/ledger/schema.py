"""The tables as the newest migration leaves them (a test holds the two equal).

An amount is two columns, ``*whole`` canonical seconds and ``*micros`` 0 ... 999,999.  Per series,
always: total = pruned + sum of its hours.  Works on SQLite from 3.24 and PostgreSQL from 9.5.
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
REVISIONS = ("0010",)
HEAD = REVISIONS[-1]

metadata = MetaData()

# SQLite gives only INTEGER PRIMARY KEY its own short row number.
ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")

site_seconds = Table(
    "site_seconds",
    metadata,
    Column("id", ROW_NUMBER, primary_key=True),
    Column("resource", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("entry", Text, nullable=False),
    Column("whole", BigInteger, nullable=False),
    Column("micros", Integer, nullable=False),
    Column("created", Double, nullable=False),
    # What was taken out of site_hours by retention.
    Column("pruned_whole", BigInteger, nullable=False, server_default="0"),
    Column("pruned_micros", Integer, nullable=False, server_default="0"),
    UniqueConstraint("site", "entry", "resource", "state", "reason", name="site_seconds_key"),
    CheckConstraint("whole >= 0 AND micros BETWEEN 0 AND 999999", name="site_seconds_amount"),
    CheckConstraint(
        "pruned_whole >= 0 AND pruned_micros BETWEEN 0 AND 999999", name="site_seconds_pruned"
    ),
)

# The series by number, and no row numbers of SQLite's own: a row is some twenty bytes.
site_hours = Table(
    "site_hours",
    metadata,
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column(
        "series",
        BigInteger,
        ForeignKey("site_seconds.id", name="site_hours_series"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("whole", BigInteger, nullable=False),
    Column("micros", Integer, nullable=False),
    CheckConstraint("whole >= 0 AND micros BETWEEN 0 AND 999999", name="site_hours_amount"),
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

ticks = Table(
    "ticks",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("wall", Double, nullable=False),
    Column("mono", Double, nullable=False),
    Column("boot", Double, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("commits", BigInteger, nullable=False),
    CheckConstraint("id = 1", name="ticks_one_row"),
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
