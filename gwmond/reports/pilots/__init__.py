"""Single pilots and runs: lists, one pilot's life, traces.

In: stored pilots, spans.  Out: documents.  Never here: sums over pilots.
"""
