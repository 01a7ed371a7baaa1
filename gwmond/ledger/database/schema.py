"""The tables of a new ledger; migrations make those of older ledgers equal to them.

Series and their hours are described in ``counters``; other amounts are micros.  Columns ``*_us``
are microseconds since the epoch.  Facts, resources over time and what is posted for a pilot are
compact JSON (see ``pilot_codec``).  Works on SQLite from 3.24 and PostgreSQL from 9.5.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

VERSION_TABLE = "gwmond_schema"
# Every revision that this gwmond knows, oldest first.
REVISIONS = ("0012", "0013", "0014", "0015", "0016", "0017", "0018")
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
# took out: the hours before ``pruned_before``, and closed pilots and runs that ended before
# ``*_pruned_us``.  ``next_id`` of a pilot is never given back, also when the latest are pruned.
ledger_state = Table(
    "ledger_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("batches", BigInteger, nullable=False),
    Column("next_id", BigInteger, nullable=False),
    Column("pruned_before", Integer, nullable=False),
    Column("pilots_pruned_us", BigInteger, nullable=False),
    Column("runs_pruned_us", BigInteger, nullable=False),
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
    Column("posted_last_heard_us", BigInteger, nullable=False),
    Column("steps", Text, nullable=False),
    Column("validation", Text, nullable=False),
    Column("estimated", Text, nullable=False),
    Column("end_source", Text, nullable=False),
    Column("retire_us", BigInteger),
    Column("die_us", BigInteger),
    Column("known_until_us", BigInteger),
    Column("settled_until_us", BigInteger, nullable=False),
    Column("ran_jobs", Integer, nullable=False),
    Column("closed", Integer, nullable=False),
    Column("settled", Text, nullable=False),
    Column("failure", Text, nullable=False),
    Column("validation_end_us", BigInteger),
    # The last contact, as posted_last_heard_us is of the version that is posted.
    Column("last_heard_us", BigInteger, nullable=False, server_default="0"),
    # cluster.proc of factory_job.
    Column("factory_number", Text, nullable=False, server_default="", index=True),
    # What each source reports on it, as JSON (see gwmond.model.pilots.pilot_facts).
    Column("facts", Text, nullable=False, server_default="{}"),
    # When a poll last found an ad of it; NULL: at the last look (``memory.ad_times``).
    Column("last_polled_us", BigInteger),
    # MiB of a canonical unit in what is posted; 0: of before, until the daemon says which.
    Column("unit_mib", BigInteger, nullable=False, server_default="0"),
    # How many of its runs were taken out by retention.
    Column("runs_pruned", BigInteger, nullable=False, server_default="0"),
)
# (For PostgreSQL they have no condition: to name one here would load its dialect.)
Index(
    "ix_pilots_open",
    pilots.c.id,
    sqlite_where=text("closed = 0"),
)

# The key begins with the job, so that its index is the one that runs of a job are found by.
runs = Table(
    "runs",
    metadata,
    Column("job", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
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
    # When a slot last showed it; NULL: at the last look, or it is over (``memory.ad_times``).
    Column("last_shown_us", BigInteger),
    Column("facts", Text, nullable=False),
)

# What the factory's queue and summary report of its jobs, ``number`` is cluster.proc: facts as
# JSON.
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
    Column("verdict_us", BigInteger, nullable=False, server_default="0"),
)
Index(
    "ix_verdict_checks_open",
    verdict_checks.c.pilot,
    sqlite_where=text("result = ''"),
)

# What is to be exported as traces and was not yet, in the order in which it was settled: in which
# batch, and where in it; when that was stored, by this machine's clock.
unsent = Table(
    "unsent",
    metadata,
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("stored_us", BigInteger, nullable=False),
    Column("pilot", BigInteger, nullable=False),
    Column("job", Text, nullable=False),
    Column("number", BigInteger),
    sqlite_with_rowid=False,
)

# What each poll found, of entries and idle jobs: see ``reports.sites.polls``.
polls = Table(
    "polls",
    metadata,
    Column("time_us", ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("found", LargeBinary, nullable=False),
)

# Since when groups of idle jobs wait for which reason; ``wants``: what records of runs know of a
# group (see gwmond.model.demand.idle_history).
waits = Table(
    "waits",
    metadata,
    Column("schedd", Text, primary_key=True),
    Column("identity", Text, primary_key=True),
    Column("since_us", BigInteger, primary_key=True, autoincrement=False),
    Column("until_us", BigInteger, index=True),
    Column("wants", Text, nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("site", Text, nullable=False),
    sqlite_with_rowid=False,
)

# What is set at entries, or of the pilots of a group there: a row when it changes.
changes = Table(
    "changes",
    metadata,
    Column("site", Text, primary_key=True),
    Column("entry", Text, primary_key=True),
    Column("group_name", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("time_us", BigInteger, primary_key=True, autoincrement=False, index=True),
    Column("value", Text, nullable=False),
    sqlite_with_rowid=False,
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
