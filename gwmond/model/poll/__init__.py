"""One poll: what it asks of the ledger, what it stores there, and what it shows.

In: values of all other rooms.  Out: batches, keys, snapshots: immutable, swapped whole.
Never here: anything that changes after it is made.
"""
