"""One pilot: from facts to its life, and from that to its time by category.

In: the facts of one pilot and of its runs.  Out: begin, end, size, runs, segments, amounts.
Never here: state, or a second pilot.
"""
