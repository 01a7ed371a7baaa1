"""A ledger with hours of site time and pilots' time at places of ``tests.build.snapshots``."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import PilotSeries
from gwmond.model.poll.batch import Batch
from gwmond.model.states import State
from gwmond.model.times import HOUR_US
from gwmond.model.totals import SiteKey
from tests.build.facts import NOW
from tests.build.snapshots import BORED, BORED2, STARVING

LAST = int(NOW // 3600) - 1
"""The last whole hour before the snapshot's time."""


def write(directory: Path) -> str:
    """Make the ledger; return its URL.

    Hour by hour to ``LAST``: 90 units provisioned at STARVING and 10 short of them (of which 6.5
    with a reason), 20 at each entry of the other site; the 3rd last hour has nothing.  Pilots at
    STARVING: 60 units of goodput, 20 of overhead; 4 chips of goodput in the last hour alone.
    """
    site_time: dict[tuple[int, SiteKey], int] = {}
    increments: defaultdict[PilotSeries, dict[int, int]] = defaultdict(dict)
    short = State.PROVISIONING_BOTTLENECK.value
    for hour in range(LAST - 40, LAST + 1):
        if hour == LAST - 2:
            continue

        def site(state: str, reason: str, place: EntryKey, units: float, hour: int = hour) -> None:
            site_time[hour, SiteKey("cpu", state, reason, *place)] = round(units * HOUR_US)

        site("provisioned", "", STARVING, 90)
        site(short, "frontend_limit", STARVING, 6.5)
        site(short, "unexplained", STARVING, 3.5)
        site("provisioned", "", BORED, 20)
        site("provisioned", "", BORED2, 20)
        for category, units in ((Category.GOODPUT, 60), (Category.PILOT_OVERHEAD, 20)):
            series = PilotSeries(
                *("cpu", "canonical", category, "", *STARVING, "frontend.main", "measured")
            )
            increments[series][hour] = units * HOUR_US
            increments[series._replace(measure="resource")][hour] = 2 * units * HOUR_US
    gpus = PilotSeries(
        *("gpu", "canonical", Category.GOODPUT, "", *STARVING, "frontend.main", "measured")
    )
    increments[gpus][LAST] = 4 * HOUR_US
    url = str(directory / "ledger.sqlite")
    ledger = Ledger.open(url)
    ledger.commit(
        Batch(
            before=0,
            now_us=round(NOW * 1e6),
            tick=Tick(NOW, 1000.0, 1000.0, "boot"),
            site_time=site_time,
            site_since=NOW - 50 * 3600,
            increments=increments,
        )
    )
    ledger.close()
    return url
