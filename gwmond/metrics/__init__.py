"""Metrics as lists of families, one file a topic; a family has a function from the snapshot.

In: a snapshot, totals of the ledger.  Out: families, and their text.
Never here: state, or a query.
"""
