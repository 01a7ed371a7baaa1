"""Recordings of a pool, and their replay.

In: answers of a pool.  Out: files, and from them the same answers.
Never here: a name or a text of users that the recording need not have.
"""
