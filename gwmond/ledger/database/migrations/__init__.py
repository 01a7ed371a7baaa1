"""The ledger's Alembic migrations; ``database.migrate`` runs them when a ledger is opened.

A new ledger is made as ``database.schema`` has the tables; migrations upgrade older ones.  A
new one: change the tables there, write what does so to an older ledger into a file of ``versions``
(the last one shows its frame), and add its revision to ``REVISIONS``.  One that was released is
never edited.
"""
