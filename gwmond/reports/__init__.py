"""What people read: reports, lists and tables of what the ledger and the snapshot hold.

In: a ledger to read, a snapshot, a question.  Out: documents: parts for people, records for
programs.  Never here: a query to the pool, or a new fact.

Rooms, each of which imports only those before it: ``render``, ``stored``, ``ledger``, ``sites``,
``factory_tools``, ``failures``, ``pilots``, ``reconcile``, ``report``.
"""
