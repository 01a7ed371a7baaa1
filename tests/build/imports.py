"""`gwmond import` as it is typed, and what is then in the ledger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.stored_pilots import PilotRow
from tests.build.command_line import gwmond

Totals = dict[tuple[str, ...], int]


def command(ledger: Path, *paths: Path) -> list[str]:
    url = f"sqlite:///{ledger}"
    return [sys.executable, "-m", "gwmond", "import", "--ledger", url, *map(str, paths)]


def run(ledger: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Import, to the end, in this process."""
    return gwmond(*command(ledger, *paths)[3:])


def totals(ledger: Path) -> Totals:
    """All totals, in micros."""
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        found = reader.load().totals.pilots
    return {tuple(map(str, series)): total.net for series, total in found.items() if total.net}


def pilots(ledger: Path) -> dict[str, PilotRow]:
    """Pilots by the factory's job."""
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        return {row.identity.factory_job.partition("#")[2]: row for row in reader.pilot_rows()}


def contents(url: str) -> tuple[object, object, object, dict[str, PilotRow]]:
    """Totals, counts, the factory's numbers by hour, and pilots but for what says when they were
    accounted; all is consistent."""
    with LedgerReader.open(url) as ledger:
        state = ledger.load()
        rows = {
            row.identity.name: row._replace(id=0, known_until_us=None)
            for row in ledger.pilot_rows()
        }
        numbers = ledger.factory_hours(0, 10**7)
        assert [wrong for wrong in ledger.check() if wrong.micros] == []
    pilots, counts = (
        {key: total.net for key, total in found.items() if total.net}
        for found in (state.totals.pilots, state.totals.counts)
    )
    return pilots, counts, numbers, rows
