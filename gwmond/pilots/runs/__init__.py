"""Runs of jobs: on which pilot each was, its outcome, and when that is decided.

In: records of jobs, pilots in memory.  Out: runs with outcomes, and what the others wait for.
Never here: how a source came by a record.
"""
