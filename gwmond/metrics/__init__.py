"""Metrics as lists of families, one file a topic; a family says how it is had from a snapshot."""
