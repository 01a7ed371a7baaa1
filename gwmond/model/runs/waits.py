"""Runs whose outcome is still open: why, and until when at the latest.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Why(StrEnum):
    """What a run that is over waits for."""

    EARLY = "early_failure"
    RECORD = "record"
    PILOT = "pilot"
    SCHEDD = "schedd"


class Wait(NamedTuple):
    """Runs that wait for the same; all are decided at ``until_us``, None: that is not known."""

    why: Why
    runs: int
    until_us: int | None
