"""The daemon and the importer: one poll after another, what they keep, and their problems.

In: a configuration, answers of sources.  Out: batches for the ledger, snapshots, traces, logs.
Never here: a rule of the accounting, or a layout.

Rooms, each of which imports only those before it: ``host``, ``pool``, ``accounting``; the loops
(``poller``, ``daemon``, ``importer``, ``trace_export``) stay here.
"""
