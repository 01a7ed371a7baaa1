"""Rows of the tables: how values become columns and back, how they are added and forgotten.

In: values of the model, a connection in the caller's transaction.  Out: rows.
Never here: the begin or the end of a transaction.
"""
