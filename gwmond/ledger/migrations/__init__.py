"""The ledger's Alembic migrations; ``gwmond.ledger.migrate`` runs them when a ledger is opened.

A new one: copy the last file of ``versions``, change the tables in ``gwmond.ledger.schema`` too,
and add its revision to ``REVISIONS`` there.  One that was released is never edited.
"""
