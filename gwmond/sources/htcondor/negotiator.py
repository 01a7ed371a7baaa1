"""Source: ads of negotiators: how long the last cycle took, and how many matches it made.

Attributes as in HTCondor's manual, "Negotiator ClassAd Attributes"; 0 is the last cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gwmond.model.facts import Negotiator
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import CollectorSource, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

_CYCLE = "LastNegotiationCycle"


def query() -> Query:
    """Return the query for negotiators' ads."""
    names = ("Name", f"{_CYCLE}Duration0", f"{_CYCLE}Matches0", "LastHeardFrom", "ClassAdLifetime")
    return Query("negotiator", "Negotiator", "", names)


def decode(found: Sequence[classad2.ClassAd], now: float) -> tuple[Negotiator, ...]:
    """Turn the ads into facts."""
    return tuple(
        Negotiator(
            ads.label(ad, ("Name",)) or "",
            ads.count(ad, f"{_CYCLE}Duration0"),
            ads.count(ad, f"{_CYCLE}Matches0"),
        )
        for ad in ads.fresh(found, now)
    )


SOURCES = (CollectorSource("negotiator", lambda _: query(), lambda found, t: decode(found, t.now)),)
