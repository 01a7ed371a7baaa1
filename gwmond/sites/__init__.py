"""Site time: capacity, demand, and why an entry is idle.  Pure.

In: facts of one poll, what is remembered of entries.  Out: states, reasons, canonical units.
Never here: a clock, a query, a pilot's life.
"""
