"""The book of pilots: what is known of each, kept up to date from one poll to the next.

Facts come in (what collectors show, records of jobs), are joined to pilots and attempts, and what
has become settled goes out as one batch for the ledger.  No I/O: what is no longer in memory is
looked up through ``Lookup``, which the ledger's reader satisfies.
"""
