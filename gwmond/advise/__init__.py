"""What would waste less of the pilots' time: estimates from the pilots and runs of a ledger.

In: stored pilots and runs.  Out: estimates with intervals, and what was lost.
Never here: a query to the pool, or a change of a configuration.
"""
