"""Since when groups of idle jobs wait for which reason."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, which the next poll begins to fill."""
    op.create_table(
        "waits",
        sa.Column("schedd", sa.Text, primary_key=True),
        sa.Column("identity", sa.Text, primary_key=True),
        sa.Column("since_us", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until_us", sa.BigInteger),
        sa.Column("wants", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_waits_until_us", "waits", ["until_us"])
    op.create_index("ix_waits_wants", "waits", ["wants"])


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")
