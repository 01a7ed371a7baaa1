"""All tables of the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables: those that others refer to come first."""
    _attempts()
    _cursors()
    _entries()
    _factory_jobs()
    _gaps()
    _ledger_state()
    _peaks()
    _pilots()
    _problems()
    _series()
    _verdict_checks()
    _corrections()
    _series_hours()


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("run", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("pilot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=True),
        sa.Column("cores", sa.Double(), nullable=False),
        sa.Column("memory_mib", sa.Double(), nullable=False),
        sa.Column("gpus", sa.Double(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("job_group", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("estimated", sa.Integer(), nullable=True),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("open", sa.Integer(), nullable=False),
        sa.Column("cpu_resource", sa.BigInteger(), nullable=True),
        sa.Column("cpu_canonical", sa.BigInteger(), nullable=True),
        sa.Column("gpu_resource", sa.BigInteger(), nullable=True),
        sa.Column("gpu_canonical", sa.BigInteger(), nullable=True),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job", "run", "pilot"),
    )
    op.create_index("ix_attempts_end_us", "attempts", ["end_us"], unique=False)
    op.create_index("ix_attempts_pilot", "attempts", ["pilot"], unique=False)
    op.create_index("ix_attempts_start_us", "attempts", ["start_us"], unique=False)


def _cursors() -> None:
    op.create_table(
        "cursors",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("complete_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("source", "kind"),
    )


def _entries() -> None:
    op.create_table(
        "entries",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("first_seen", sa.Double(), nullable=False),
        sa.Column("last_accounted", sa.Double(), nullable=True),
        sa.Column("provisioned_cpu", sa.BigInteger(), nullable=True),
        sa.Column("provisioned_gpu", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("site", "entry"),
    )


def _factory_jobs() -> None:
    op.create_table(
        "factory_jobs",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("open", sa.Integer(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_index("ix_factory_jobs_last_us", "factory_jobs", ["last_us"], unique=False)
    op.create_index(
        "ix_factory_jobs_open",
        "factory_jobs",
        ["name"],
        unique=False,
        sqlite_where=sa.text("open = 1"),
    )


def _gaps() -> None:
    op.create_table(
        "gaps",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=True),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _peaks() -> None:
    op.create_table(
        "peaks",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("site", "entry", "resource", "hour"),
        sqlite_with_rowid=False,
    )


def _pilots() -> None:
    op.create_table(
        "pilots",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("factory_job", sa.Text(), nullable=False),
        sa.Column("factory", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=True),
        sa.Column("contact_us", sa.BigInteger(), nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.Column("validation", sa.Text(), nullable=False),
        sa.Column("estimated", sa.Text(), nullable=False),
        sa.Column("ended", sa.Text(), nullable=False),
        sa.Column("retire_us", sa.BigInteger(), nullable=True),
        sa.Column("die_us", sa.BigInteger(), nullable=True),
        sa.Column("known_until_us", sa.BigInteger(), nullable=True),
        sa.Column("mark_us", sa.BigInteger(), nullable=False),
        sa.Column("ran_jobs", sa.Integer(), nullable=False),
        sa.Column("closed", sa.Integer(), nullable=False),
        sa.Column("settled", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
        sa.Column("validation_end_us", sa.BigInteger(), nullable=True),
        sa.Column("heard_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("factory_number", sa.Text(), server_default="", nullable=False),
        sa.Column("facts", sa.Text(), server_default="{}", nullable=False),
        sa.Column("attempts_pruned", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_pilots_end_us", "pilots", ["end_us"], unique=False)
    op.create_index("ix_pilots_entry", "pilots", ["entry"], unique=False)
    op.create_index("ix_pilots_factory_job", "pilots", ["factory_job"], unique=False)
    op.create_index("ix_pilots_factory_number", "pilots", ["factory_number"], unique=False)
    op.create_index("ix_pilots_name", "pilots", ["name"], unique=False)
    op.create_index(
        "ix_pilots_open", "pilots", ["id"], unique=False, sqlite_where=sa.text("closed = 0")
    )


def _problems() -> None:
    op.create_table(
        "problems",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_problems_time", "problems", ["time"], unique=False)


def _verdict_checks() -> None:
    op.create_table(
        "verdict_checks",
        sa.Column("pilot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("registered_us", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pilot"),
    )
    op.create_index(
        "ix_verdict_checks_open",
        "verdict_checks",
        ["pilot"],
        unique=False,
        sqlite_where=sa.text("result = ''"),
    )
    op.create_index(
        "ix_verdict_checks_registered_us", "verdict_checks", ["registered_us"], unique=False
    )


def _corrections() -> None:
    op.create_table(
        "corrections",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("pilot", sa.BigInteger(), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("series", sa.BigInteger(), nullable=False),
        sa.Column("micros", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name="corrections_series"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_corrections_time_us", "corrections", ["time_us"], unique=False)


def _series() -> None:
    op.create_table(
        "series",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("whole", sa.BigInteger(), nullable=False),
        sa.Column("micros", sa.Integer(), nullable=False),
        sa.Column("high_whole", sa.BigInteger(), nullable=False),
        sa.Column("high_micros", sa.Integer(), nullable=False),
        sa.Column("pruned_whole", sa.BigInteger(), nullable=False),
        sa.Column("pruned_micros", sa.Integer(), nullable=False),
        sa.CheckConstraint("whole >= 0 AND micros BETWEEN 0 AND 999999", name="series_amount"),
        sa.CheckConstraint(
            "high_whole >= 0 AND high_micros BETWEEN 0 AND 999999", name="series_high"
        ),
        sa.CheckConstraint(
            "pruned_whole >= 0 AND pruned_micros BETWEEN 0 AND 999999", name="series_pruned"
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("labels", "kind", name="series_key"),
    )


def _series_hours() -> None:
    op.create_table(
        "series_hours",
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("series", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("amount BETWEEN 0 AND 9223372036854775807", name="series_hours_amount"),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name="series_hours_series"),
        sa.PrimaryKeyConstraint("hour", "series"),
        sqlite_with_rowid=False,
    )


def _ledger_state() -> None:
    op.create_table(
        "ledger_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("batches", sa.BigInteger(), nullable=False),
        sa.Column("next_id", sa.BigInteger(), nullable=False),
        sa.Column("pruned_before", sa.Integer(), nullable=False),
        sa.Column("pilots_pruned_us", sa.BigInteger(), nullable=False),
        sa.Column("attempts_pruned_us", sa.BigInteger(), nullable=False),
        sa.Column("wall", sa.Double(), nullable=True),
        sa.Column("mono", sa.Double(), nullable=True),
        sa.Column("boot", sa.Double(), nullable=True),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.CheckConstraint("id = 1", name="ledger_state_one_row"),
        sa.PrimaryKeyConstraint("id"),
    )
