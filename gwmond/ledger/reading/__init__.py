"""Reading a ledger while its daemon writes: what commands, pages, checks and the daemon ask for.

In: a place, a period, keys.  Out: values of the model.  Never here: a write.
"""
