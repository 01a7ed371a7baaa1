"""Kinds of cursors that readers of the ledger know, too."""

FACTORY_FILES = "factory_files"
"""How far a directory of a factory was read."""

CENTRAL_LOG = "central_log"
"""How far a directory of central logs was read."""

IMPORTED_LOG = "imported_log"
"""How far an import has read a central log."""

SILENT_BEFORE, UPDATE_GAPS, WAITING_LINES = "silent_before", "update_gaps", "waiting"
KEPT_NAMES, KEPT_VERDICTS, LOOKS = "names", "verdicts", "looks"
"""What is kept like a cursor, but is of no source that is read."""

SCHEDD_KINDS = ("epochs", "history")
"""How far the histories of a schedd were read."""

TRANSFERS = "transfers"
"""How far a schedd's records of transfers were read: nothing that is settled waits for them."""

BEGIN_KINDS = {kind: f"{kind}_begin" for kind in SCHEDD_KINDS}
"""From when on they were read, where that is known: ``complete_us`` of such a cursor."""
