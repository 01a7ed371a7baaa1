"""The factory's side: pilots as its jobs, its own numbers, and how these compare with ours.

In: events of a queue, lines of summaries, ads.  Out: jobs, sums by hour, differences.
Never here: the reading of a file.
"""
