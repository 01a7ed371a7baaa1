"""The durable memory of gwmond: totals for ever, history by the hour, and where to go on.

    ledger = Ledger.open("/var/lib/gwmond/ledger.sqlite")
    state = ledger.load()
    ledger.commit(Batch(before=state.batches, now_us=..., tick=now, site_time=...))

Everything that fails is a ``LedgerError`` with a remedy.  A report opens a ``LedgerReader``.

In: batches of one poll.  Out: rows, and what a daemon goes on from.  Never here: a rule of the
accounting.  Rooms, each of which imports only those before it: ``database``, ``rows``, ``reading``,
``export``; what writes (``store``) stays here.
"""
