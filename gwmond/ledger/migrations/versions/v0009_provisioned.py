"""Site time: what pilots hold of an entry is "provisioned", busy or not; it was called "in_use"."""

from alembic import op

revision = "0009"
down_revision: str | None = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename in place."""
    op.execute("UPDATE site_seconds SET state = 'provisioned' WHERE state = 'in_use'")
    for resource in ("cpu", "gpu"):
        op.alter_column("entries", f"in_use_{resource}", new_column_name=f"provisioned_{resource}")


def downgrade() -> None:
    """Back to the old name."""
    raise NotImplementedError("the ledger is only ever upgraded")
