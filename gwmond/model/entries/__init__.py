"""Entries: their states in one poll, what waits there, and what checks a verdict.

In: states and units.  Out: evaluations, verdicts, suspected places.
Never here: how a state is found (``gwmond.sites``).
"""
