"""Pilots: end of the validation, last contact, the factory's number and what its queue tells."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table."""
    op.add_column("pilots", sa.Column("validation_end_us", sa.BigInteger()))
    op.add_column(
        "pilots", sa.Column("heard_us", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.add_column(
        "pilots", sa.Column("factory_number", sa.Text(), nullable=False, server_default="")
    )
    after = (
        "split_part(factory_job, '#', 2)"
        if op.get_bind().dialect.name == "postgresql"
        else "substr(factory_job, instr(factory_job, '#') + 1)"
    )
    op.execute(f"UPDATE pilots SET factory_number = {after} WHERE factory_job <> ''")
    op.create_index("ix_pilots_factory_number", "pilots", ["factory_number"])
    op.create_index("ix_pilots_entry", "pilots", ["entry"])
    op.create_table(
        "factory_jobs",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("open", sa.Integer(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
    )
    op.create_index("ix_factory_jobs_last_us", "factory_jobs", ["last_us"])
    op.create_index(
        "ix_factory_jobs_open",
        "factory_jobs",
        ["name"],
        sqlite_where=sa.text("open = 1"),
        postgresql_where=sa.text("open = 1"),
    )


def downgrade() -> None:
    """Back to pilots without the evidence of the factory's queue."""
    raise NotImplementedError("the ledger is only ever upgraded")
