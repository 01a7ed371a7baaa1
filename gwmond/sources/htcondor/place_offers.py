"""Source: what the groups of idle jobs and one pilot, or the pilots of an entry, say of each other.

A pilot's slots are asked for by one projected query.  An entry is what is known of its empty
pilots.  Which negotiators there are, and when they ended a cycle, is asked of the collectors
(HTCondor manual, "Negotiator ClassAd Attributes").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gwmond.model.facts import EntryKey, Verdict
from gwmond.model.place_offers import GroupOffer, Negotiator, PlaceOffers
from gwmond.model.waiting_job import JobPlace
from gwmond.sources.htcondor import ads, clauses, matching, pilot_ads, slots, waiting_job
from gwmond.sources.htcondor.access import Query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import classad2

    from gwmond.model.facts import DemandGroup
    from gwmond.sources.htcondor.access import Access
    from gwmond.sources.htcondor.waiting_job import ExplainTerms

_ENDED = "LastNegotiationCycleEnd0"
_FREE = ("Cpus", "Memory", "GPUs")
_WHOLE = ("TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs")


def offers(
    access: Access,
    entry: EntryKey,
    startd: str,
    groups: Sequence[DemandGroup],
    terms: ExplainTerms,
) -> tuple[PlaceOffers, int]:
    """Return what each group makes of an entry, or of its pilot ``startd`` (empty: of all).

    Of the groups beyond the ``FEW_GROUPS`` first ones only whether they could run there is said.
    """
    templates = terms.templates
    pairs = [(i, j) for i in range(len(groups)) for j in range(len(templates))]
    verdicts, _ = matching.evaluate([group.ad for group in groups], templates, pairs)
    fitting: dict[int, set[EntryKey]] = {}
    for (i, j), verdict in zip(pairs, verdicts, strict=True):
        if verdict is not Verdict.NO:
            fitting.setdefault(i, set()).add(templates[j].entry)
    there = [template for template in templates if template.entry == entry]
    template_ads = [ads.parse(template.ad) for template in there]
    job_ads = [ads.parse(group.ad) for group in groups]
    own = list(_slots(access, startd, [*job_ads, *template_ads], terms)) if startd else []
    found = []
    for i, job in enumerate(job_ads):
        wanted = clauses.attribute_clauses(job, "Requirements")
        places: list[JobPlace] = []
        if i < waiting_job.FEW_GROUPS:
            for slot in own:
                places += _both(job, slot, wanted, terms)
            if not own:
                places += (
                    waiting_job.empty_pilot(t, waiting_job.place(job, slot, wanted, t.evidence))
                    for t, slot in zip(there, template_ads, strict=True)
                )
        empty = [place for place in places if place.kind == "pilot"]
        runs = any(one.matches for one in empty) if empty else entry in fitting.get(i, ())
        elsewhere = tuple(sorted(fitting.get(i, set()) - {entry}))
        found.append(GroupOffer(i, runs, wanted, tuple(places), elsewhere))
    return PlaceOffers(tuple(found), _negotiators(access, terms)), len(groups) + len(own)


def _slots(
    access: Access, startd: str, others: Sequence[classad2.ClassAd], terms: ExplainTerms
) -> Iterator[classad2.ClassAd]:
    """Yield the slots of a startd, with what jobs, START and an empty pilot refer to."""
    asked = slots.query(terms.attributes)
    names = {name.lower(): name for name in (*asked.projection, "Requirements", "Start")}
    for ad in others:
        for name in clauses.references(ad, "Requirements"):
            names.setdefault(name, name)
    import classad2  # noqa: PLC0415 (only ever in a child)

    text = classad2.quote(startd)
    mine = f"(Name == {text} || splitSlotName(Name)[1] == {text})"
    query = asked._replace(
        constraint=f"{asked.constraint} && {mine}", projection=tuple(names.values())
    )
    for host in terms.hosts:
        found = ads.fresh(access.collector_ads(host, query), terms.now)
        if found:
            yield from (ad for ad in found if not slots.is_no_resource(ad))
            return


def _both(
    job: classad2.ClassAd, slot: classad2.ClassAd, wanted: Sequence[str], terms: ExplainTerms
) -> Iterator[JobPlace]:
    """Yield a slot as it is now, and as an empty pilot."""
    whole = pilot_ads.size_of(slot, _WHOLE)
    size = pilot_ads.size_of(slot, _FREE)
    if size is None:
        return
    dies = ads.first_number(slot, terms.attributes.die)
    shown: dict[str, Any] = {
        "entry": pilot_ads.entry_of(slot, terms.attributes),
        "group": pilot_ads.group_of(slot, terms.attributes),
        "size": size,
        "whole": whole or size,
        "takes_jobs": ads.text(slot, "State") == "Unclaimed" and not ads.truth(slot, "Draining"),
        "remaining_s": None if dies is None else max(0, int(dies - terms.now)),
    }
    yield waiting_job.place(job, slot, wanted, "measured")._replace(kind="slot", **shown)
    empty = ads.parse(str(slot))
    for name, total in zip(_FREE, _WHOLE, strict=True):
        if total in slot:
            empty[name] = slot.lookup(total)
    place = waiting_job.place(job, empty, wanted, "measured")
    yield place._replace(kind="pilot", **shown | {"size": whole or size, "takes_jobs": True})


def _negotiators(access: Access, terms: ExplainTerms) -> tuple[Negotiator, ...]:
    """Return the negotiators that the collectors know, each once."""
    query = Query("negotiators", "Negotiator", "", ("Name", _ENDED))
    found = {}
    for host in terms.hosts:
        for ad in access.collector_ads(host, query):
            name = ads.text(ad, "Name") or ""
            found[name] = Negotiator(name, ads.count(ad, _ENDED))
    return tuple(found[name] for name in sorted(found))
