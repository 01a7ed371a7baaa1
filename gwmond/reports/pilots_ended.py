"""Pilots that ended in a period, read some at a time while the daemon writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gwmond.ledger.pilot_reader import chunks
from gwmond.ledger.pilot_reports import PilotFilter
from gwmond.ledger.reader import LedgerReader
from gwmond.model.stored_pilots import AttemptRow, PilotRow
from gwmond.model.times import HOUR_US, Period

_AT_ONCE_US = 6 * HOUR_US
_PILOTS = 200


def windows(period: Period) -> Iterator[Period]:
    """Yield the parts of a period of which pilots are read at once."""
    for first in range(*period, _AT_ONCE_US):
        yield Period(first, min(first + _AT_ONCE_US, period.until_us))


def rows_ended(
    ledger: LedgerReader, period: Period, site: str | None, entry: str | None, group: str | None
) -> Iterator[list[PilotRow]]:
    """Yield the pilots that ended in a period, without their runs; None of a place: all."""
    for window in windows(period):
        yield [
            row
            for row in ledger.pilot_rows(PilotFilter(*window, False, site, entry, group))
            if row.end_us is not None and window.since_us <= row.end_us < window.until_us
        ]


def pilots_ended(
    ledger: LedgerReader, period: Period, site: str | None, entry: str | None, group: str | None
) -> Iterator[tuple[PilotRow, Sequence[AttemptRow]]]:
    """Yield the pilots that ended in a period, with their runs; None of a place: all."""
    for rows in rows_ended(ledger, period, site, entry, group):
        for some in chunks(rows, _PILOTS):
            theirs = ledger.attempts_of([row.id for row in some])
            yield from ((row, theirs.get(row.id, ())) for row in some)
