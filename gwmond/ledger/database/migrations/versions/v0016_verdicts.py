"""When the poll was whose verdict a pilot checks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of earlier checks only when the pilot registered is known."""
    op.add_column(
        "verdict_checks",
        sa.Column("verdict_us", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.execute("UPDATE verdict_checks SET verdict_us = registered_us")


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")
