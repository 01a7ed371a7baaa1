"""When pilots and claims were last seen, and in which units a pilot is accounted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns: nothing is known of what was seen, and the units are those configured."""
    op.add_column("pilots", sa.Column("last_polled_us", sa.BigInteger))
    op.add_column(
        "pilots", sa.Column("unit_mib", sa.BigInteger, nullable=False, server_default="0")
    )
    op.add_column("runs", sa.Column("last_shown_us", sa.BigInteger))


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")
