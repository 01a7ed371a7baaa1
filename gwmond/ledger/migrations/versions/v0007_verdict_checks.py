"""Pilots that checked the verdict on their entry."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision: str | None = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "verdict_checks",
        sa.Column("pilot", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("registered_us", sa.BigInteger(), nullable=False, index=True),
        sa.Column("result", sa.Text(), nullable=False),
    )
    op.create_index(
        "ix_verdict_checks_open",
        "verdict_checks",
        ["pilot"],
        sqlite_where=sa.text("result = ''"),
        postgresql_where=sa.text("result = ''"),
    )


def downgrade() -> None:
    """Back to verdicts that nothing checks."""
    raise NotImplementedError("the ledger is only ever upgraded")
