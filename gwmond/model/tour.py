"""What a demo has to show."""

from __future__ import annotations

from typing import NamedTuple


class TourStop(NamedTuple):
    """A sentence, and the path of the daemon's page that shows what it says."""

    text: str
    link: str
