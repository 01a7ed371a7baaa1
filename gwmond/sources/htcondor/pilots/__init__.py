"""Ads of pilots in collectors: slots, startds, claims, failed validations.

In: ads.  Out: facts of pilots, and of the runs that their slots show now.
Never here: jobs in a queue.
"""
