"""Pilots and entries among groups of idle jobs (``explain.places``)."""

from __future__ import annotations

from typing import Any

from gwmond.explain.places import PlaceSituation
from gwmond.model.demand.order import NO_LIMITS, Limits, Negotiator
from gwmond.model.demand.waiting_job import GroupOffer, JobPlace, PlaceOffers
from gwmond.model.facts import DemandGroup, EntryKey, Pilot, Size
from gwmond.reports.sites.sites import SiteRow
from tests.build.waiting import place

AT = 10_000.0
ENTRY = EntryKey("S", "E")
NEGOTIATOR = (Negotiator("cm", None, 9_990),)


def group(jobs: int = 3, **changed: Any) -> DemandGroup:
    return DemandGroup("ap", "cms", "x", "", jobs, Size(1, 2000), None)._replace(**changed)


def pilot(**changed: Any) -> Pilot:
    free = (Size(2, 4000),)
    known = Pilot("p", 1_000, ENTRY, "f.g", "", Size(8, 16000), free, (), True, 3600, 9_990)
    return known._replace(**changed)


def here(
    *found: tuple[DemandGroup, tuple[JobPlace, ...]],
    pilots: tuple[Pilot, ...] = (pilot(),),
    startd: str = "p",
    entry: SiteRow | None = None,
    negotiators: tuple[Negotiator, ...] | None = NEGOTIATOR,
    missing: tuple[str, ...] = (),
    limits: Limits = NO_LIMITS,
    words: tuple[tuple[str, int], ...] = (),
) -> PlaceSituation:
    """Return a pilot of an entry (without ``startd``: the entry) among groups of idle jobs."""
    offers = tuple(
        GroupOffer(
            i, any(p.matches for p in places), ("A", "B"), places, (EntryKey("T", "F"),), words
        )
        for i, (_, places) in enumerate(found)
    )
    groups = [one for one, _ in found]
    known = groups, PlaceOffers(offers, negotiators)
    return PlaceSituation(ENTRY, startd, entry, pilots, known, AT, missing, limits=limits)


FITTING = (group(), (place(),))
"""A group of jobs, which the place would take."""
