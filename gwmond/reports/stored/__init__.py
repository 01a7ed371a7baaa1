"""Figures of stored pilots and their runs.  Pure.

In: rows of the ledger.  Out: records and sums, of which all outputs are made.
Never here: a ledger, or a layout.
"""
