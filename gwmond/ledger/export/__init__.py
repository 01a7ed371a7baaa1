"""Export of a ledger: datasets, as Parquet.

In: a reader.  Out: files.  Never here: a figure that the ledger does not hold.
"""
