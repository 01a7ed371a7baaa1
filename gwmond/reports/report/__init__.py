"""``gwmond report``: where the time of a period went, by what it is grouped by.

In: a ledger, a period, groupings.  Out: a document with tables and plots.
Never here: a single pilot.
"""
