"""What a place offers to the groups of idle jobs, and what each group makes of it.

Units: times are epoch seconds; groups are counted by their place in the list that was asked for.
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.model.demand.order import Negotiator
from gwmond.model.demand.waiting_job import JobPlace
from gwmond.model.facts import EntryKey

_HIDDEN = "a clause that is not shown here"


class GroupOffer(NamedTuple):
    """One group of idle jobs at a place.

    - ``runs``: it could run on an empty pilot there.
    - ``clauses``: its Requirements, divided at ``&&``.
    - ``places``: empty pilots there, and the slots of one pilot as they are now; none where the
      group was not examined clause by clause.
    - ``elsewhere``: other entries with pilots, or pilots known, on which it could run.
    - ``words``: what the negotiator said last (LastRejMatchReason), and of how many of its jobs.
    """

    group: int
    runs: bool
    clauses: tuple[str, ...]
    places: tuple[JobPlace, ...]
    elsewhere: tuple[EntryKey, ...]
    words: tuple[tuple[str, int], ...] = ()


class PlaceOffers(NamedTuple):
    """All groups at a place; ``negotiators``: None where they were not asked for."""

    groups: tuple[GroupOffer, ...]
    negotiators: tuple[Negotiator, ...] | None

    @property
    def without_expressions(self) -> PlaceOffers:
        """The same without clauses of Requirements and START and words, which may name users."""

        def hidden(place: JobPlace) -> JobPlace:
            return place._replace(refusals=(_HIDDEN,) * len(place.refusals))

        groups = (
            group._replace(
                clauses=(_HIDDEN,) * len(group.clauses),
                places=tuple(map(hidden, group.places)),
                words=(),
            )
            for group in self.groups
        )
        return self._replace(groups=tuple(groups))
