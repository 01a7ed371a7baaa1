"""Pilots' time, jobs' time and the factory's numbers, side by side.

In: a ledger, in one transaction.  Out: differences, each with its cause.
Never here: a correction.
"""
