"""Pilots: what each source reports of one, and how the ledger has it.

In: names, times and sizes as sources have them.  Out: facts of pilots, rows of pilots and runs.
Never here: what follows from facts (``gwmond.pilots``).
"""
