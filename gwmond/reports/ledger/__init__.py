"""A ledger, read for people: which, how old it is, and what is open in it.

In: an address, a period, a place.  Out: rows, step by step.  Never here: a write.
"""
