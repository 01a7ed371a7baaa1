"""What a place offers to the groups of idle jobs, and what each group makes of it.

Units: times are epoch seconds; groups are counted by their place in the list that was asked for.
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.model.facts import EntryKey
from gwmond.model.waiting_job import JobPlace


class GroupOffer(NamedTuple):
    """One group of idle jobs at a place.

    - ``runs``: it could run on an empty pilot there.
    - ``clauses``: its Requirements, divided at ``&&``.
    - ``places``: empty pilots there, and the slots of one pilot as they are now; none where the
      group was not examined clause by clause.
    - ``elsewhere``: other entries with pilots, or pilots known, on which it could run.
    """

    group: int
    runs: bool
    clauses: tuple[str, ...]
    places: tuple[JobPlace, ...]
    elsewhere: tuple[EntryKey, ...]


class Negotiator(NamedTuple):
    """A negotiator in a collector, and when it last ended a cycle; None: it never did."""

    name: str
    ended: int | None


class PlaceOffers(NamedTuple):
    """All groups at a place; ``negotiators``: None where they were not asked for."""

    groups: tuple[GroupOffer, ...]
    negotiators: tuple[Negotiator, ...] | None
