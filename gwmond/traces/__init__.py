"""Traces of pilots and jobs, as OpenTelemetry spans, made from what the ledger holds.  Pure.

In: stored pilots and runs.  Out: spans, with ids that are the same each time.
Never here: the sending of them.
"""
