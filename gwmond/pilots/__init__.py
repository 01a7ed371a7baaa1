"""Pilots' time: what is known of each pilot, and where its time goes.  Pure.

In: facts from sources, and rows of the ledger.  Out: batches for the ledger, and what a poll shows.
Never here: a clock, a file, a query, a database.

Rooms, each of which imports only those before it: ``early``, ``life``, ``memory``, ``runs``,
``sources``, ``factory``; at the top is what joins them (``accounting``, ``settlement``).
"""
