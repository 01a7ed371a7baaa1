"""Pilots: what was told of them, where the rest is what their entry's other pilots have."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision: str | None = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("pilots", sa.Column("told", sa.Text()))


def downgrade() -> None:
    """Back to pilots of which that is not known."""
    raise NotImplementedError("the ledger is only ever upgraded")
