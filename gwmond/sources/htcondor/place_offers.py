"""Source: what the groups of idle jobs and one pilot, or the pilots of an entry, say of each other.

A pilot's slots are asked for by one projected query.  An entry is what is known of its empty
pilots.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gwmond.model.facts import EntryKey, Verdict
from gwmond.model.place_offers import GroupOffer, PlaceOffers
from gwmond.model.waiting_job import JobPlace
from gwmond.sources.htcondor import ads, clauses, matching, order, rejections, slots, waiting_job
from gwmond.sources.htcondor.alike import Alike, Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import classad2

    from gwmond.model.facts import DemandGroup
    from gwmond.sources.htcondor.access import Access, Daemon
    from gwmond.sources.htcondor.waiting_job import ExplainTerms


def offers(
    access: Access,
    entry: EntryKey,
    startd: str,
    groups: Sequence[DemandGroup],
    schedds: Sequence[Daemon],
    terms: ExplainTerms,
) -> tuple[PlaceOffers, int]:
    """Return what each group makes of an entry, or of its pilot ``startd`` (empty: of all).

    Of the groups beyond the ``FEW_GROUPS`` first ones only whether they could run there is said.
    Schedds of those that could are asked for what the negotiator said of them last.
    """
    templates = terms.templates
    pairs = [(i, j) for i in range(len(groups)) for j in range(len(templates))]
    verdicts, _ = matching.evaluate([group.ad for group in groups], templates, pairs)
    fitting: dict[int, set[EntryKey]] = {}
    for (i, j), verdict in zip(pairs, verdicts, strict=True):
        if verdict is not Verdict.NO:
            fitting.setdefault(i, set()).add(templates[j].entry)
    there = [template for template in templates if template.entry == entry]
    pilots = [Values(ads.parse(template.ad)) for template in there]
    job_ads = [ads.parse(group.ad) for group in groups]
    own = _slots(access, startd, job_ads, pilots, terms) if startd else []
    found = []
    for i, job in enumerate(job_ads):
        wanted = clauses.attribute_clauses(job, "Requirements")
        places: list[JobPlace] = []
        if i < waiting_job.FEW_GROUPS:
            alike = Alike(job)
            for slot in own:
                places += _both(alike, slot, wanted, terms)
            if not own:
                places += (
                    waiting_job.empty_pilot(t, waiting_job.place(alike, slot, wanted, t.evidence))
                    for t, slot in zip(there, pilots, strict=True)
                )
        empty = [place for place in places if place.kind == "pilot"]
        runs = any(one.matches for one in empty) if empty else entry in fitting.get(i, ())
        elsewhere = tuple(sorted(fitting.get(i, set()) - {entry}))
        found.append(GroupOffer(i, runs, wanted, tuple(places), elsewhere))
    found = _with_words(access, found, groups, schedds, terms)
    return PlaceOffers(tuple(found), order.negotiators(access, terms)), len(groups) + len(own)


def _with_words(
    access: Access,
    found: Sequence[GroupOffer],
    groups: Sequence[DemandGroup],
    schedds: Sequence[Daemon],
    terms: ExplainTerms,
) -> list[GroupOffer]:
    """Return the groups with what the negotiator said of those that could run there."""
    of_them = {groups[offer.group].schedd for offer in found if offer.runs}
    grouping = waiting_job.grouping_of(terms)
    said = {
        schedd.name: rejections.last_words(access, schedd, grouping)
        for schedd in schedds
        if schedd.name in of_them
    }

    def words(group: DemandGroup) -> tuple[tuple[str, int], ...]:
        known = said.get(group.schedd, {}).get((group.accounting_group, group.identity), Counter())
        return tuple(known.most_common())

    return [
        offer._replace(words=words(groups[offer.group]) if offer.runs else ()) for offer in found
    ]


def _slots(
    access: Access,
    startd: str,
    jobs: Sequence[classad2.ClassAd],
    pilots: Sequence[Values],
    terms: ExplainTerms,
) -> list[Values]:
    """Return the slots of a startd, of the first collector that has any."""
    asked = waiting_job.slot_query(jobs, pilots, terms.attributes)
    text = ads.quoted(startd)
    mine = f"(Name == {text} || splitSlotName(Name)[1] == {text})"
    query = asked._replace(constraint=f"{asked.constraint} && {mine}")
    for host in terms.hosts:
        if found := ads.fresh(access.collector_ads(host, query), terms.now):
            return [Values(ad) for ad in found if not slots.is_no_resource(ad)]
    return []


def _both(
    alike: Alike, slot: Values, wanted: tuple[str, ...], terms: ExplainTerms
) -> Iterator[JobPlace]:
    """Yield a slot as it is now, and as an empty pilot."""
    now = waiting_job.slot_place(alike, slot, wanted, terms)
    if now is None:
        return
    yield now
    empty = ads.parse(str(slot.ad))
    for name, total in zip(waiting_job.FREE, waiting_job.WHOLE, strict=True):
        if total in slot.ad:
            empty[name] = slot.ad.lookup(total)
    said = waiting_job.place(alike, Values(empty), wanted, "measured")
    shown = now._replace(kind="pilot", size=now.whole, takes_jobs=True)
    yield shown._replace(blocked=said.blocked, refusals=said.refusals)
