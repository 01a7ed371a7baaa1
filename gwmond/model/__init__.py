"""The vocabulary: units, facts, pilots and runs, and what is shown.  Imports nothing of ours.

In: nothing; each type says its units, and what an absent value means.  Out: immutable values.
Never here: a query, a file, a clock, a sentence for people.

Rooms, each of which imports only those before it: what stands in this folder, ``runs``,
``pilots``, ``entries``, ``demand``, ``factory``, ``poll``.
"""
