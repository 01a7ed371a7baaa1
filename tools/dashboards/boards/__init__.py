"""The boards, one file each."""

from __future__ import annotations

from pathlib import Path

from tools.dashboards.boards import (
    demand,
    factory,
    itself,
    jobs,
    overview,
    pilot_time,
    site,
    unusable,
)

DIRECTORY = Path(__file__).parents[3] / "etc" / "grafana" / "dashboards"
BOARDS = (
    overview.BOARD,
    site.BOARD,
    pilot_time.BOARD,
    unusable.BOARD,
    demand.BOARD,
    jobs.BOARD,
    factory.BOARD,
    itself.BOARD,
)
