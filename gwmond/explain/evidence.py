"""What answers rest on: the one place that decides whether one is proven.

An answer is proven by what can be shown: what a daemon said, places that were tried, rows of
entries.  Nothing to show proves nothing, and what follows from an estimate is one.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from gwmond.model.demand.waiting_job import JobPlace
from gwmond.reports.sites.sites import SiteRow


class Proof(StrEnum):
    """What an answer rests on."""

    PROVEN = "proven"
    ESTIMATED = "estimated"
    NOT_KNOWN = "not known"


def weaker(*proofs: Proof) -> Proof:
    """Return what a statement rests on that needs all of these."""
    return max(proofs, key=list(Proof).index)


def sure_if(holds: bool) -> Proof:
    """Return what an answer is that was shown, but is an inference unless something holds."""
    return Proof.PROVEN if holds else Proof.ESTIMATED


def told(fact: object) -> Proof:
    """Return what rests on something that was said, or counted: on nothing, if there is none."""
    return Proof.PROVEN if fact else Proof.NOT_KNOWN


def could_run(places: Collection[JobPlace]) -> Proof:
    """Return what rests on that jobs could run at some of these places."""
    best = {place.evidence for place in places}
    return sure_if("measured" in best) if best else Proof.NOT_KNOWN


def none_runs(places: Collection[JobPlace]) -> Proof:
    """Return what rests on that jobs could run at none of these places.

    A clause of the job that an ad does not meet is certain, as what an ad does not have counts as
    met.  The START of an estimated empty pilot is other pilots', or its frontend's query.
    """
    if not places:
        return Proof.NOT_KNOWN
    return sure_if(all(place.evidence == "measured" or place.blocked for place in places))


def of_rows(*rows: SiteRow) -> Proof:
    """Return what rests on the states of entries."""
    return sure_if(all(row.evidence == "measured" for row in rows)) if rows else Proof.NOT_KNOWN
