"""What factories say: totals and hours of their numbers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of factories' numbers."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "factory_totals",
        sa.Column("id", number, primary_key=True),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        # What was taken out of factory_hours by retention, with what came later for such hours.
        sa.Column("pruned", sa.BigInteger(), nullable=False, server_default="0"),
        sa.UniqueConstraint("entry", "client", "kind", name="factory_totals_key"),
        sa.CheckConstraint("pruned >= 0 AND number >= pruned", name="factory_totals_number"),
    )
    op.create_table(
        "factory_hours",
        sa.Column("hour", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column(
            "series",
            sa.BigInteger(),
            sa.ForeignKey("factory_totals.id", name="factory_hours_series"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("number >= 0", name="factory_hours_number"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Back to pilots without factories."""
    raise NotImplementedError("the ledger is only ever upgraded")
