"""Attempts: an index by start, as early failures are compared with what began when they did."""

from alembic import op

revision = "0006"
down_revision: str | None = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_attempts_start_us", "attempts", ["start_us"])


def downgrade() -> None:
    """Back to a search by ends."""
    raise NotImplementedError("the ledger is only ever upgraded")
