"""Rules for what few pilots and hosts do: the rest of the reading is understood without them.

In: what was read.  Out: what is taken of it, and a problem.
Never here: a rule that each file needs.
"""
