"""Sources that are daemons of HTCondor: collectors, schedds, startds.

In: ads.  Out: facts, records of runs, what matches what.
Never here: a sum over polls.
"""
