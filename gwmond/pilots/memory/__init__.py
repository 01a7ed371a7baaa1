"""Pilots that may still change: which are in memory, under which names, and what is posted of them.

In: facts by pilot, rows of the ledger.  Out: pilots, and differences to post.
Never here: a source's own format.
"""
