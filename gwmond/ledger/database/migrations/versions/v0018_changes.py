"""What is set at entries, and when it changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, which the next poll begins to fill."""
    op.create_table(
        "changes",
        sa.Column("site", sa.Text, primary_key=True),
        sa.Column("entry", sa.Text, primary_key=True),
        sa.Column("group_name", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("time_us", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("value", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_changes_time_us", "changes", ["time_us"])


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")
