"""Source: glidefrontendmonitor ads: how many idle jobs each frontend counts in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gwmond.model.facts import FrontendJobs
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import CollectorSource, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2


def query() -> Query:
    """Return the query for frontends' own monitoring ads."""
    return Query(
        "frontendmonitor",
        "Any",
        'MyType == "glidefrontendmonitor"',
        (
            *("Name", "GlideFrontendName", "LastHeardFrom", "ClassAdLifetime"),
            *(f"GlideFrontend_IdleJobs_{age}" for age in ("Total", "600", "3600")),
        ),
    )


def decode(found: Sequence[classad2.ClassAd], now: float) -> tuple[FrontendJobs, ...]:
    """Turn the ads into counts."""
    return tuple(
        FrontendJobs(
            ads.text(ad, "GlideFrontendName") or ads.text(ad, "Name") or "",
            *(ads.count(ad, f"GlideFrontend_IdleJobs_{age}") for age in ("Total", "600", "3600")),
        )
        for ad in ads.fresh(found, now)
    )


SOURCES = (
    CollectorSource("frontendmonitor", lambda _: query(), lambda found, t: decode(found, t.now)),
)
