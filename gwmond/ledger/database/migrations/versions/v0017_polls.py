"""What each poll found, of entries and idle jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, which the next poll begins to fill."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "polls",
        sa.Column("time_us", number, primary_key=True, autoincrement=False),
        sa.Column("found", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")
