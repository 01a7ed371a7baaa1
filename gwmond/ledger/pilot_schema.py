"""The tables of pilots and their attempts, on the metadata of ``schema``.

Amounts are micros.  Columns ``*_us`` are microseconds since the epoch.  Facts, resources over time
and what is booked for a pilot are compact JSON (see ``pilot_codec``).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

from gwmond.ledger.schema import ROW_NUMBER, metadata

pilots = Table(
    "pilots",
    metadata,
    Column("id", ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, index=True),
    Column("started", BigInteger, nullable=False),
    Column("factory_job", Text, nullable=False, index=True),
    Column("factory", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("entry", Text, nullable=False, index=True),
    Column("group_name", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("start_us", BigInteger, nullable=False),
    Column("end_us", BigInteger, index=True),
    Column("contact_us", BigInteger, nullable=False),
    Column("steps", Text, nullable=False),
    Column("validation", Text, nullable=False),
    Column("estimated", Text, nullable=False),
    Column("ended", Text, nullable=False),
    Column("retire_us", BigInteger),
    Column("die_us", BigInteger),
    Column("known_until_us", BigInteger),
    Column("mark_us", BigInteger, nullable=False),
    Column("ran_jobs", Integer, nullable=False),
    Column("closed", Integer, nullable=False),
    Column("settled", Text, nullable=False),
    Column("failure", Text, nullable=False),
    Column("validation_end_us", BigInteger),
    # The last contact, as contact_us is of the version that is booked.
    Column("heard_us", BigInteger, nullable=False, server_default="0"),
    # cluster.proc of factory_job.
    Column("factory_number", Text, nullable=False, server_default="", index=True),
    # What each source says of it, as JSON (see gwmond.model.pilot_sources).
    Column("facts", Text, nullable=False, server_default="{}"),
    # How many of its attempts were taken out by retention.
    Column("attempts_pruned", BigInteger, nullable=False, server_default="0"),
)
# Migrations give PostgreSQL these conditions, too; to name them here would load its dialect.
Index(
    "ix_pilots_open",
    pilots.c.id,
    sqlite_where=text("closed = 0"),
)

# The key begins with the job, so that its index is the one that runs of a job are found by.
attempts = Table(
    "attempts",
    metadata,
    Column("job", Text, primary_key=True),
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    Column("pilot", BigInteger, primary_key=True, autoincrement=False, index=True),
    Column("start_us", BigInteger, nullable=False, index=True),
    Column("end_us", BigInteger, index=True),
    Column("cores", Double, nullable=False),
    Column("memory_mib", Double, nullable=False),
    Column("gpus", Double, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("job_group", Text, nullable=False),
    Column("category", Text),
    Column("outcome", Text),
    Column("estimated", Integer),
    Column("result", Text, nullable=False),
    Column("open", Integer, nullable=False),
    Column("cpu_resource", BigInteger),
    Column("cpu_canonical", BigInteger),
    Column("gpu_resource", BigInteger),
    Column("gpu_canonical", BigInteger),
    Column("facts", Text, nullable=False),
)

# What the factory's queue and summary tell of its jobs, ``number`` is cluster.proc: facts as JSON.
factory_jobs = Table(
    "factory_jobs",
    metadata,
    Column("name", Text, primary_key=True),
    Column("entry", Text, nullable=False),
    Column("number", Text, nullable=False),
    # 1 as long as a pilot is waited for, or more is expected.
    Column("open", Integer, nullable=False),
    Column("last_us", BigInteger, nullable=False, index=True),
    Column("facts", Text, nullable=False),
)
Index(
    "ix_factory_jobs_open",
    factory_jobs.c.name,
    sqlite_where=text("open = 1"),
)

# Pilots that registered while a verdict on their entry stood; result: "" as long as it is open.
verdict_checks = Table(
    "verdict_checks",
    metadata,
    Column("pilot", BigInteger, primary_key=True, autoincrement=False),
    Column("site", Text, nullable=False),
    Column("entry", Text, nullable=False),
    Column("group_name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("registered_us", BigInteger, nullable=False, index=True),
    Column("result", Text, nullable=False),
)
Index(
    "ix_verdict_checks_open",
    verdict_checks.c.pilot,
    sqlite_where=text("result = ''"),
)

corrections = Table(
    "corrections",
    metadata,
    Column("id", ROW_NUMBER, primary_key=True),
    Column("time_us", BigInteger, nullable=False, index=True),
    Column("pilot", BigInteger, nullable=False),
    Column("hour", Integer, nullable=False),
    Column(
        "series",
        BigInteger,
        ForeignKey("series.id", name="corrections_series"),
        nullable=False,
    ),
    Column("micros", BigInteger, nullable=False),
    Column("cause", Text, nullable=False),
)

cursors = Table(
    "cursors",
    metadata,
    Column("source", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("complete_us", BigInteger),
)

gaps = Table(
    "gaps",
    metadata,
    Column("id", ROW_NUMBER, primary_key=True),
    Column("source", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("start_us", BigInteger),
    Column("end_us", BigInteger, nullable=False),
    Column("detail", Text, nullable=False),
)
