"""Pilots: rows, attempts, totals and hours of their time, counts, corrections, cursors, gaps."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"
branch_labels = None
depends_on = None

_AMOUNT = "whole >= 0 AND micros BETWEEN 0 AND 999999"


def upgrade() -> None:
    """Create the tables of pilots."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "pilot_seconds",
        sa.Column("id", number, primary_key=True),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("measure", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("whole", sa.BigInteger(), nullable=False),
        sa.Column("micros", sa.Integer(), nullable=False),
        sa.Column("high_whole", sa.BigInteger(), nullable=False),
        sa.Column("high_micros", sa.Integer(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        # What was taken out of pilot_hours by retention, with later corrections of that.
        sa.Column("pruned_whole", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("pruned_micros", sa.Integer(), nullable=False, server_default="0"),
        sa.UniqueConstraint(
            *(
                "site",
                "entry",
                "group_name",
                "resource",
                "measure",
                "category",
                "outcome",
                "evidence",
            ),
            name="pilot_seconds_key",
        ),
        sa.CheckConstraint(_AMOUNT, name="pilot_seconds_amount"),
        sa.CheckConstraint(
            "high_whole >= 0 AND high_micros BETWEEN 0 AND 999999", name="pilot_seconds_high"
        ),
        sa.CheckConstraint(
            "pruned_whole >= 0 AND pruned_micros BETWEEN 0 AND 999999", name="pilot_seconds_pruned"
        ),
    )
    op.create_table(
        "pilot_hours",
        sa.Column("hour", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column(
            "series",
            sa.BigInteger(),
            sa.ForeignKey("pilot_seconds.id", name="pilot_hours_series"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("whole", sa.BigInteger(), nullable=False),
        sa.Column("micros", sa.Integer(), nullable=False),
        sa.CheckConstraint(_AMOUNT, name="pilot_hours_amount"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pilots",
        sa.Column("id", number, primary_key=True, autoincrement=False),
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
        sa.Column("end_us", sa.BigInteger()),
        sa.Column("contact_us", sa.BigInteger(), nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.Column("validation", sa.Text(), nullable=False),
        sa.Column("estimated", sa.Text(), nullable=False),
        sa.Column("ended", sa.Text(), nullable=False),
        sa.Column("retire_us", sa.BigInteger()),
        sa.Column("die_us", sa.BigInteger()),
        sa.Column("known_until_us", sa.BigInteger()),
        sa.Column("mark_us", sa.BigInteger(), nullable=False),
        sa.Column("ran_jobs", sa.Integer(), nullable=False),
        sa.Column("closed", sa.Integer(), nullable=False),
        sa.Column("settled", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
        # How many of its attempts were taken out by retention.
        sa.Column("attempts_pruned", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.create_index(
        "ix_pilots_open",
        "pilots",
        ["id"],
        sqlite_where=sa.text("closed = 0"),
        postgresql_where=sa.text("closed = 0"),
    )
    op.create_table(
        "attempts",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("run", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("pilot", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger()),
        sa.Column("cores", sa.Double(), nullable=False),
        sa.Column("memory_mib", sa.Double(), nullable=False),
        sa.Column("gpus", sa.Double(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("job_group", sa.Text(), nullable=False),
        sa.Column("category", sa.Text()),
        sa.Column("outcome", sa.Text()),
        sa.Column("estimated", sa.Integer()),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("open", sa.Integer(), nullable=False),
        sa.Column("cpu_resource", sa.BigInteger()),
        sa.Column("cpu_canonical", sa.BigInteger()),
        sa.Column("gpu_resource", sa.BigInteger()),
        sa.Column("gpu_canonical", sa.BigInteger()),
        sa.Column("facts", sa.Text(), nullable=False),
    )
    op.create_table(
        "pilot_counts",
        sa.Column("what", sa.Text(), primary_key=True),
        sa.Column("category", sa.Text(), primary_key=True),
        sa.Column("outcome", sa.Text(), primary_key=True),
        sa.Column("site", sa.Text(), primary_key=True),
        sa.Column("entry", sa.Text(), primary_key=True),
        sa.Column("group_name", sa.Text(), primary_key=True),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("high", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.CheckConstraint("number >= 0 AND high >= number", name="pilot_counts_number"),
    )
    op.create_table(
        "pilot_carried",
        sa.Column("resource", sa.Text(), primary_key=True),
        sa.Column("measure", sa.Text(), primary_key=True),
        sa.Column("category", sa.Text(), primary_key=True),
        sa.Column("outcome", sa.Text(), primary_key=True),
        sa.Column("site", sa.Text(), primary_key=True),
        sa.Column("entry", sa.Text(), primary_key=True),
        sa.Column("group_name", sa.Text(), primary_key=True),
        sa.Column("whole", sa.BigInteger(), nullable=False),
        sa.Column("micros", sa.Integer(), nullable=False),
        sa.CheckConstraint(_AMOUNT, name="pilot_carried_amount"),
    )
    op.create_table(
        "corrections",
        sa.Column("id", number, primary_key=True),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("pilot", sa.BigInteger(), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column(
            "series",
            sa.BigInteger(),
            sa.ForeignKey("pilot_seconds.id", name="corrections_series"),
            nullable=False,
        ),
        sa.Column("micros", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
    )
    op.create_table(
        "cursors",
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("complete_us", sa.BigInteger()),
    )
    op.create_table(
        "gaps",
        sa.Column("id", number, primary_key=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("start_us", sa.BigInteger()),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    op.create_table(
        "pilot_batches",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("batches", sa.BigInteger(), nullable=False),
        sa.Column("next_id", sa.BigInteger(), nullable=False),
        sa.Column("pruned_before", sa.Integer(), nullable=False),
        sa.Column("pilots_pruned_us", sa.BigInteger(), nullable=False),
        sa.Column("attempts_pruned_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("id = 1", name="pilot_batches_one_row"),
    )
    op.create_index("ix_pilots_name", "pilots", ["name"])
    op.create_index("ix_pilots_factory_job", "pilots", ["factory_job"])
    op.create_index("ix_pilots_end_us", "pilots", ["end_us"])
    op.create_index("ix_attempts_pilot", "attempts", ["pilot"])
    op.create_index("ix_attempts_end_us", "attempts", ["end_us"])
    op.create_index("ix_corrections_time_us", "corrections", ["time_us"])


def downgrade() -> None:
    """Back to site time alone."""
    raise NotImplementedError("the ledger is only ever upgraded")
