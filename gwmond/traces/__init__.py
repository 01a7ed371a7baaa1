"""Traces of pilots and jobs, as OpenTelemetry spans, made from what the ledger holds.  Pure."""
