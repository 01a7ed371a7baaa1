"""Reads what a reconciliation is made of, and makes it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from gwmond.ledger import factory_lives
from gwmond.ledger.reader import LedgerReader
from gwmond.model.reconciliation import Reconciliation
from gwmond.model.times import Period
from gwmond.reports.reconcile import reconcile


def gather(ledger: LedgerReader, period: Period, now_us: int, pattern: str = "*") -> Reconciliation:
    """Reconcile a period of whole hours, for entries whose name matches; raises LedgerError.

    ``now_us``: up to when pilots that run are known to do so.
    """
    found = factory_lives.read(ledger, period.since_us, period.until_us, now_us)
    rows = [
        reconciled
        for reconciled in reconcile(found, period, now_us)
        if fnmatchcase(reconciled.entry, pattern)
    ]
    return Reconciliation(period, rows, found.pruned_us)
