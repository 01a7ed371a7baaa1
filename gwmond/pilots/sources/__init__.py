"""What collectors and central logs report of pilots.

In: ads and events of one poll.  Out: facts of pilots and runs in memory.
Never here: an outcome, or an amount of time.
"""
