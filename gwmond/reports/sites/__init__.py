"""Sites and entries: their table now, and their time by the hour.

In: a snapshot, or a ledger.  Out: a document, series of sums.  Never here: a single pilot.
"""
