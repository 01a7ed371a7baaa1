"""Site time: totals, hours, entries, peaks, the last tick, problems."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the first tables."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "site_seconds",
        sa.Column("id", number, primary_key=True),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("whole", sa.BigInteger(), nullable=False),
        sa.Column("micros", sa.Integer(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("pruned_whole", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("pruned_micros", sa.Integer(), nullable=False, server_default="0"),
        sa.UniqueConstraint(
            "site", "entry", "resource", "state", "reason", name="site_seconds_key"
        ),
        sa.CheckConstraint(
            "whole >= 0 AND micros BETWEEN 0 AND 999999", name="site_seconds_amount"
        ),
        sa.CheckConstraint(
            "pruned_whole >= 0 AND pruned_micros BETWEEN 0 AND 999999", name="site_seconds_pruned"
        ),
    )
    op.create_table(
        "site_hours",
        sa.Column("hour", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column(
            "series",
            sa.BigInteger(),
            sa.ForeignKey("site_seconds.id", name="site_hours_series"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("whole", sa.BigInteger(), nullable=False),
        sa.Column("micros", sa.Integer(), nullable=False),
        sa.CheckConstraint("whole >= 0 AND micros BETWEEN 0 AND 999999", name="site_hours_amount"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "entries",
        sa.Column("site", sa.Text(), primary_key=True),
        sa.Column("entry", sa.Text(), primary_key=True),
        sa.Column("first_seen", sa.Double(), nullable=False),
        sa.Column("last_accounted", sa.Double()),
        sa.Column("in_use_cpu", sa.BigInteger()),
        sa.Column("in_use_gpu", sa.BigInteger()),
    )
    op.create_table(
        "peaks",
        sa.Column("site", sa.Text(), primary_key=True),
        sa.Column("entry", sa.Text(), primary_key=True),
        sa.Column("resource", sa.Text(), primary_key=True),
        sa.Column("hour", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "ticks",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("wall", sa.Double(), nullable=False),
        sa.Column("mono", sa.Double(), nullable=False),
        sa.Column("boot", sa.Double(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("commits", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("id = 1", name="ticks_one_row"),
    )
    op.create_table(
        "problems",
        sa.Column("id", number, primary_key=True),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    op.create_index("ix_problems_time", "problems", ["time"])


def downgrade() -> None:
    """There is nothing before the first revision."""
    raise NotImplementedError("the ledger is only ever upgraded")
