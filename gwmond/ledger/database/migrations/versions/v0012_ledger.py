"""The first schema that is upgraded: no migration makes it, a new ledger has the newest at once."""

revision = "0012"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing comes before it."""
    raise NotImplementedError("a new ledger is made as gwmond.ledger.database.schema has it")


def downgrade() -> None:
    """A ledger is only ever upgraded."""
    raise NotImplementedError("the ledger is only ever upgraded")
