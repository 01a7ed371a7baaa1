"""Since when more is lost at a place, what was changed at that time, and what that did.

In: hourly totals, pilots and runs that ended, changed values.  Out: stretches, effects, tables.
Never here: single failures and their nodes (``gwmond.reports.failures``).
"""
