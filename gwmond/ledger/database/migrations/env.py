"""Run by Alembic: migrates the connection that ``gwmond.ledger.database.migrate`` hands over.

The transaction is the caller's, so that all migrations are done or none.
"""

from alembic import context

from gwmond.ledger.database.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
