"""Histories: records of runs, of schedds and of startds.

In: records since a cursor, in answers of bounded size.  Out: records of runs, a later cursor.
Never here: which pilot a record is of.
"""
