"""What the ledger costs: an hour's bytes."""

from __future__ import annotations

from pathlib import Path

from gwmond.ledger.store import Ledger
from tests.ledger.batches import batch


def test_an_hour_is_small(file: Path) -> None:
    """Sixty entries with five series each take under 16 KiB an hour: 140 MB a year at the most."""
    hours = 60
    with Ledger.open(str(file)) as ledger:
        first = batch(1, series=300)
        ledger.commit(first)
    start = file.stat().st_size
    with Ledger.open(str(file)) as ledger:
        for hour in range(1, hours + 1):
            site_time = {(at + hour, series): n for (at, series), n in first.site_time.items()}
            ledger.commit(first._replace(before=hour, site_time=site_time))
    each = (file.stat().st_size - start) / hours
    print(f"{each:.0f} bytes for each hour of 60 entries with 5 series")
    assert each < 16 * 1024
