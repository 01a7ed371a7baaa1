"""Which templates are remembered between rounds."""

from __future__ import annotations

from gwmond.model.facts import EntryKey, Evidence, Size, Template
from gwmond.sources.htcondor.pilots.slots import SampleSlot
from gwmond.sources.htcondor.templates import TTL_S, UNUSED_S, Templates

ENTRY = EntryKey("Site", "entry")
SIZE = Size(8, 16000)


def sample(group: str = "a", size: Size = SIZE) -> SampleSlot:
    return SampleSlot(ENTRY, "slot1@pilot", size, group, "v1", 100)


def template(group: str = "a", evidence: Evidence = "measured") -> Template:
    return Template(ENTRY, "[]", group, SIZE, None, evidence, group)


def evidence(known: Templates) -> dict[str, str]:
    return {group: t.evidence for (_, group), t in known.current().items()}


def test_a_sample_is_fetched_when_it_is_new_changed_or_old() -> None:
    """What is known of a group is not asked for again in each round."""
    known = Templates()
    assert known.wants(sample(), 0)
    assert not known.wants(sample(), 0)  # from another collector
    known.add(template(), 0)
    known.forget(0)
    assert not known.wants(sample(), TTL_S)
    known.forget(0)
    assert known.wants(sample(), TTL_S + 1)
    known.forget(0)
    assert known.wants(sample(size=Size(16, 32000)), 1)


def test_what_start_refers_to_is_told_once_and_sorted() -> None:
    """The order in which templates are learnt makes no difference."""
    refers = {"a": ("Zeta", "owner"), "b": ("Owner", "Alpha")}
    for order in ("ab", "ba"):
        known = Templates()
        for group in order:
            known.add(template(group)._replace(refers=refers[group]), 0)
        assert known.start_references() == ("Alpha", "Owner", "Zeta")


def test_a_live_slot_goes_before_an_ad() -> None:
    """The estimate stands in only while the group runs no pilot at the entry."""
    known = Templates()
    known.wants(sample(), 0)
    known.add(template(), 0)
    known.add(template(evidence="estimated"), 0)
    known.add(template("b", "estimated"), 0)
    known.forget(0)
    assert evidence(known) == {"a": "measured", "b": "estimated"}
    known.add(template(evidence="estimated"), 1)
    assert evidence(known) == {"a": "estimated", "b": "estimated"}


def test_the_start_of_pilots_elsewhere_is_of_the_groups_estimated_templates() -> None:
    """A group has one START; what it counts stands for it only where no pilot of it is known."""
    known = Templates()
    known.wants(sample(), 0)
    known.add(template()._replace(start="TARGET.VO == 1"), 0)
    other = EntryKey("Other", "other")
    for group in "ab":
        ad = "[ Cpus = 8 ]"
        here = template(group, "estimated")._replace(entry=other, ad=ad, query="TARGET.Counted")
        known.add(here, 0)
    found = known.current()
    starts = {berth: one.start for berth, one in found.items() if berth[0] == other}
    assert starts == {(other, "a"): "(TARGET.VO == 1)", (other, "b"): "TARGET.Counted"}
    assert found[other, "a"].signature != found[other, "b"].signature != "b"
    assert known.start_references() == ("Counted", "VO")


def test_the_template_of_a_group_that_is_gone_is_forgotten_but_not_an_entrys_last() -> None:
    """A group which asks for no pilots any more offers nothing, where others tell what runs."""
    known = Templates()
    for group in "ab":
        known.wants(sample(group), 0)
        known.add(template(group), 0)
    known.forget(0)
    known.wants(sample("b"), UNUSED_S)
    known.forget(UNUSED_S)
    assert evidence(known).keys() == {"a", "b"}
    known.wants(sample("b"), UNUSED_S + 1)
    known.forget(UNUSED_S + 1)
    assert evidence(known).keys() == {"b"}
    known.forget(9 * UNUSED_S)
    assert evidence(known).keys() == {"b"}


def test_what_new_pilots_start_replaces_what_older_ones_did() -> None:
    """At once where they run, as an estimate elsewhere: the frontend was reconfigured."""
    known, other = Templates(), EntryKey("Other", "other")
    before, after = "TARGET.VO == 1", "TARGET.VO == 2"
    for entry in (ENTRY, other):
        known.wants(sample()._replace(entry=entry), 0)
        known.add(template()._replace(entry=entry, ad="[ A = 1 ]", start=before), 0)
    known.forget(0)
    new = sample()._replace(version="v2", started=200)
    assert known.wants(new, 60)
    assert not known.wants(sample()._replace(entry=other), 60)
    told = {entry: (of.evidence, of.start) for (entry, _), of in known.current().items()}
    assert set(told.values()) == {("measured", before)}, "it is asked for, and not known yet"
    known.add(template()._replace(ad="[ A = 1 ]", start=after), 60)
    known.forget(60)
    told = {entry: (of.evidence, of.start) for (entry, _), of in known.current().items()}
    assert told == {ENTRY: ("measured", after), other: ("estimated", f"({after})")}
    assert not known.wants(new, 120)
