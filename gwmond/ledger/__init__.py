"""The durable memory of gwmond: totals for ever, history by the hour, and where to go on.

    ledger = Ledger.open("/var/lib/gwmond/ledger.sqlite")
    state = ledger.load()
    ledger.commit(Batch(before=state.batches, now_us=..., tick=now, site_time=...))

Everything that fails is a ``LedgerError`` with a remedy.  A report opens a ``LedgerReader``.
"""

from gwmond.ledger.errors import (
    LedgerClosed,
    LedgerConflict,
    LedgerCorrupt,
    LedgerError,
    LedgerFailed,
    LedgerForeign,
    LedgerFull,
    LedgerLocation,
    LedgerLocked,
    LedgerMoved,
    LedgerReadOnly,
    LedgerRefused,
    LedgerTooNew,
    LedgerTooOld,
    LedgerUnreachable,
)
from gwmond.ledger.pilot_prune import Pruned, Retention
from gwmond.ledger.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.batch import Batch, EntryState, LedgerState, Peak, TimedProblem, Totals
from gwmond.model.elapsed import Tick
from gwmond.model.totals import HourTotal, SiteKey, Total

__all__ = [
    "Batch",
    "EntryState",
    "HourTotal",
    "Ledger",
    "LedgerClosed",
    "LedgerConflict",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerFailed",
    "LedgerForeign",
    "LedgerFull",
    "LedgerLocation",
    "LedgerLocked",
    "LedgerMoved",
    "LedgerReadOnly",
    "LedgerReader",
    "LedgerRefused",
    "LedgerState",
    "LedgerTooNew",
    "LedgerTooOld",
    "LedgerUnreachable",
    "Peak",
    "Pruned",
    "Retention",
    "SiteKey",
    "Tick",
    "TimedProblem",
    "Total",
    "Totals",
]
