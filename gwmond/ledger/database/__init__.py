"""The database: SQLite or PostgreSQL, its tables, locks, transactions and migrations.

In: an address.  Out: an open session, or a ``LedgerError``.  Never here: what a row means.
"""
