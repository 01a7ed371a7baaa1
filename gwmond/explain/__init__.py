"""Why a job is not running: one reason, what would change it, and whose move it is.  No I/O.

In: a job, a poll, answers of the pool.  Out: one reason, with its steps.
Never here: a query, or a layout.
"""
