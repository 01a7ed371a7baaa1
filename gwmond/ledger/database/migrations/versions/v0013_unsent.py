"""The backlog of traces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, which is empty until traces are exported."""
    op.create_table(
        "unsent",
        sa.Column("batch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("stored_us", sa.BigInteger, nullable=False),
        sa.Column("pilot", sa.BigInteger, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")
