"""Idle jobs: one and in groups, where they could run, in which order, and for how long they wait.

In: facts of groups of jobs.  Out: values that an explanation starts from.
Never here: whether a job matches (``gwmond.sources``), or why it does not run (``gwmond.explain``).
"""
