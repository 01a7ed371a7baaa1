"""Source: what the groups of idle jobs and one pilot, or the pilots of an entry, say of each other.

A pilot's slots are asked for by one projected query.  An entry is what is known of its empty
pilots.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gwmond.model.demand.waiting_job import GroupOffer, JobPlace, PlaceOffers
from gwmond.model.facts import EntryKey
from gwmond.sources.htcondor import ads, order, rejections, waiting_job
from gwmond.sources.htcondor.pilots import slots
from gwmond.sources.htcondor.places import Asking, EmptyPilots, emptied, job_place, slot_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gwmond.model.facts import DemandGroup
    from gwmond.sources.htcondor.access import Access, Daemon
    from gwmond.sources.htcondor.alike import Values
    from gwmond.sources.htcondor.places import ExplainTerms


def offers(
    access: Access,
    entry: EntryKey,
    startd: str,
    groups: Sequence[DemandGroup],
    entries: Sequence[tuple[EntryKey, ...]],
    schedds: Sequence[Daemon],
    terms: ExplainTerms,
) -> tuple[PlaceOffers, int]:
    """Return what each group makes of an entry, or of its pilot ``startd`` (empty: of all).

    ``entries``: where each group could run.  Of the groups beyond the ``FEW_GROUPS`` first ones
    only that is said.  Schedds of those that could run there are asked for what the negotiator said
    of them last.
    """
    few = groups[: waiting_job.FEW_GROUPS]
    there = EmptyPilots([t for t in terms.templates if t.entry == entry])
    jobs = [Asking(ads.parse(group.ad)) for group in few]
    own = _slots(access, startd, jobs, there.slots, terms) if startd else []
    others = {id(keys): tuple(key for key in keys if key != entry) for keys in entries}
    offered = []
    for i, job in enumerate(jobs):
        own_places = (place for slot in own for place in _both(job, slot, terms))
        places = tuple(own_places) if own else there.places(job)
        empty = [place for place in places if place.kind == "pilot"]
        runs = any(place.matches for place in empty) if empty else entry in entries[i]
        offered.append(GroupOffer(i, runs, job.clauses, places, others[id(entries[i])]))
    offered += (
        GroupOffer(i, entry in entries[i], (), (), others[id(entries[i])])
        for i in range(len(few), len(groups))
    )
    offered = _with_words(access, offered, groups, schedds, terms)
    return PlaceOffers(tuple(offered), order.negotiators(access, terms)), len(groups) + len(own)


def _with_words(
    access: Access,
    offered: Sequence[GroupOffer],
    groups: Sequence[DemandGroup],
    schedds: Sequence[Daemon],
    terms: ExplainTerms,
) -> list[GroupOffer]:
    """Return the groups with what the negotiator said of those that could run there."""
    of_them = {groups[offer.group].schedd for offer in offered if offer.runs}
    grouping = waiting_job.grouping_of(terms)
    last = {
        schedd.name: rejections.last_words(access, schedd, grouping)
        for schedd in schedds
        if schedd.name in of_them
    }

    def words(group: DemandGroup) -> tuple[tuple[str, int], ...]:
        counts = last.get(group.schedd, {}).get((group.accounting_group, group.identity), Counter())
        return tuple(counts.most_common())

    return [
        offer._replace(words=words(groups[offer.group]) if offer.runs else ()) for offer in offered
    ]


def _slots(
    access: Access,
    startd: str,
    jobs: Sequence[Asking],
    pilots: Sequence[Values],
    terms: ExplainTerms,
) -> list[Values]:
    """Return the slots of a startd."""
    text = ads.quoted(startd)
    mine = f"(Name == {text} || splitSlotName(Name)[1] == {text})"
    values = waiting_job.fetch_slots(access, [job.ad for job in jobs], pilots, terms, mine)
    return [slot for slot in values if not slots.is_no_resource(slot.ad)]


def _both(job: Asking, slot: Values, terms: ExplainTerms) -> Iterator[JobPlace]:
    """Yield a slot as it is now, and as an empty pilot."""
    now = slot_place(job.alike, slot, job.clauses, terms)
    if now is None:
        return
    yield now
    empty = job_place(job.alike, emptied(slot), job.clauses, "measured")
    shown = now._replace(kind="pilot", size=now.whole, takes_jobs=True)
    yield shown._replace(blocked=empty.blocked, refusals=empty.refusals)
