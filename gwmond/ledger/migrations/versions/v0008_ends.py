"""Pilots: what each source says of their end, where only the best was kept."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision: str | None = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("pilots", sa.Column("ends", sa.Text(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Back to pilots of which only the best end is known."""
    raise NotImplementedError("the ledger is only ever upgraded")
