"""Runs of jobs: what sources report of one, how it ended, and what that means.

In: HTCondor's codes and times.  Out: facts of runs, outcomes, phases.
Never here: on which pilot a run was.
"""
