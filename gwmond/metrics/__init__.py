"""Metrics as lists of families, one file a topic; a family has a function from the snapshot."""
