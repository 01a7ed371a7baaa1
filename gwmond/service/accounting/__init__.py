"""Pilots' time, poll by poll: what is read, added up and stored, through whatever happens to it.

In: facts of a poll, records of histories and files, a ledger.  Out: batches, cursors.
Never here: how a pilot's time is divided (``gwmond.pilots``).
"""
