"""Whether runs fail early more often at one place than at others: statistics.

In: trials, one a run.  Out: the places at fault, and the p-values behind that.
Never here: pilots in memory, or the ledger.
"""
