"""Answers with names that are kept apart: what is folded is added up, and nothing is lost."""

from __future__ import annotations

from gwmond.model.facts import Berth, DemandGroup, EntryKey, FrontendJobs, JobCount, Limit, Size
from gwmond.model.monitor import Monitor
from gwmond.model.names import DAY_S, OTHER, OTHER_ENTRY, SCHEDDS, NameLimits, Names
from gwmond.sources import folding
from gwmond.sources.htcondor.demand import ScheddDemand
from gwmond.sources.htcondor.glideresource import Requests
from gwmond.sources.htcondor.monitors import FactoryEntry
from gwmond.sources.htcondor.pilots.slots import SampleSlot, Slots
from gwmond.sources.htcondor.schedds import Schedds
from gwmond.sources.round import Answer
from tests.build.facts import NOW, A, B, pilot, request, template

C = EntryKey("Gamma", "gamma-ce1")


def names(*, entries: int = 2, groups: int = 10, accounting: int = 1) -> Names:
    return Names(NameLimits(entries, groups, accounting, DAY_S))


def answered(kind: str, value: object) -> dict[tuple[str, str], Answer]:
    return {("cm", kind): Answer(value, 0.0)}


def test_pilots_of_many_names_are_pilots_of_other() -> None:
    """Each pilot is there once; those that keep their names are as they were, and only of such
    are there samples."""
    pilots = (pilot(A), pilot(A), pilot(B), pilot(B), pilot(C, group="mine"))
    samples = tuple(SampleSlot(key, "slot", Size(8, 16000), pilots[0].group) for key in (A, B, C))
    slots = Slots(pilots, samples, ())
    kept = names()
    folding.note_places(kept, answered("slots", slots), frozenset(), NOW)
    found = folding.fold(kept, "slots", slots)
    assert found.pilots[:4] == pilots[:4]
    assert found.pilots[4] == pilots[4]._replace(entry=OTHER_ENTRY, group=OTHER)
    assert found.samples == samples[:2]


def test_nothing_changes_where_all_have_their_names() -> None:
    """As in any pool within the bound."""
    slots = Slots((pilot(A), pilot(B)), (), ())
    kept = names()
    folding.note_places(kept, answered("slots", slots), frozenset(), NOW)
    assert folding.fold(kept, "slots", slots) == slots


def test_what_frontends_ask_of_folded_entries_is_added_up() -> None:
    """A sum of which a part is absent is absent; there is no limit of many entries, no template."""
    asked = (
        request(A, pending=1),
        request(B, pending=2, running=4, held=None, max_pilots=9, last_heard=NOW - 5),
        request(C, pending=3, running=5, held=1, limits=(Limit("x", "y"),), last_heard=NOW),
    )
    entries = tuple(FactoryEntry(r.entry.entry, "F", site=r.entry.site) for r in asked)
    templates = tuple(template(key) for key in (A, B))
    requests = Requests(asked, templates, (), entries)
    kept = names(entries=1)
    kept.note({Berth(A, asked[0].group): 1}, frozenset(), NOW)
    folding.note_places(kept, answered("glideresource", requests), frozenset(), NOW)
    found = folding.fold(kept, "glideresource", requests)
    first, other = found.requests
    assert first == asked[0]
    assert (other.entry, other.group, other.factory) == (OTHER_ENTRY, OTHER, OTHER)
    assert (other.monitor.pending, other.monitor.status_running, other.monitor.status_held) == (
        5,
        9,
        None,
    )
    assert (other.whole.max_pilots, other.limits, other.last_heard) == (None, (), NOW)
    assert found.entries == entries[:1]
    assert [of.entry for of in found.templates] == [A]


def test_groups_of_one_entry_are_added_up_and_the_entry_is_as_heard_last() -> None:
    """The factory's numbers of the entry are the same in the ads of all groups."""
    asked = [
        request(A, group=f"f.{n}", pending=n, max_pilots=100 + n, last_heard=NOW - n)._replace(
            monitor=Monitor(status_idle=n)
        )
        for n in range(3)
    ]
    found = folding.together(Berth(A, OTHER), asked)
    assert (found.entry, found.group, found.factory) == (A, OTHER, asked[0].factory)
    assert (found.monitor.pending, found.whole.max_pilots, found.last_heard) == (3, 100, NOW)
    assert found.monitor.status_idle == 3


def test_accounting_groups_are_added_up() -> None:
    """The largest are kept apart first; counts of a status stay what they are in sum."""
    counts = tuple(
        JobCount("ap", name, "idle", jobs) for name, jobs in (("a", 1), ("b", 5), ("c", 2))
    )
    strangers = tuple(JobCount(f"s{n}", "b", "running", 1) for n in range(3))
    groups = tuple(
        DemandGroup(
            "ap", count.accounting_group, count.accounting_group, "[]", count.jobs, Size(1, 1), None
        )
        for count in counts
    )
    demand = ScheddDemand(groups, (*counts, *strangers), 3, complete=True, problems=())
    kept = names()
    kept.note_words(SCHEDDS, {"ap": 1}, NOW)
    folding.note_words(kept, answered("demand", demand), NOW)
    found = folding.fold(kept, "demand", demand)
    assert found.counts == (
        JobCount("ap", "b", "idle", 5),
        JobCount("ap", OTHER, "idle", 3),
        JobCount(OTHER, "b", "running", 3),
    )
    assert [group.accounting_group for group in found.groups] == [OTHER, "b", OTHER]
    assert [group.jobs for group in found.groups] == [1, 5, 2]


def test_what_precedes_a_dot_of_a_user_is_no_accounting_group() -> None:
    """Unless some idle job has it, or the negotiator knows it."""
    counts = tuple(
        JobCount("ap", name, "held", 1) for name in ("ada", "cms", "cms.ada", "ligo.dev.albert")
    )
    demand = ScheddDemand((), (JobCount("ap", "cms", "idle", 1),), 1, complete=True, problems=())
    told = Schedds((), counts)
    kept = names(accounting=10)
    kept.note_words(SCHEDDS, {"ap": 1}, NOW)
    answers = answered("demand", demand) | answered("submitters", told)
    folding.note_words(kept, answers | answered("quotas", {"ligo": None}), NOW)
    assert folding.fold(kept, "submitters", told).counts == (
        JobCount("ap", "", "held", 1),
        JobCount("ap", "cms", "held", 2),
        JobCount("ap", "ligo", "held", 1),
    )


def test_frontends_beyond_the_limit_are_one() -> None:
    """A sum of which a part is absent is absent; the first that were there keep their names."""
    counted = (
        FrontendJobs("a", 1, 2, 3),
        FrontendJobs("b", 4, 5, None),
        FrontendJobs("c", 6, 7, 8),
    )
    kept = Names(NameLimits(1, 1, 1, DAY_S, frontends=1))
    folding.note_words(kept, answered("frontendmonitor", counted[:1]), NOW)
    folding.note_words(kept, answered("frontendmonitor", counted), NOW)
    found = folding.fold(kept, "frontendmonitor", counted)
    assert found == (counted[0], FrontendJobs(OTHER, 10, 12, None))
    assert [(told.kind, told.few) for told in kept.together] == [("frontends", ("b", "c"))]


def test_factories_and_pledges_vouch_for_entries() -> None:
    """By a glideresource ad, by a factory's own ad, or in the configuration."""
    kept = names(entries=1)
    slots = Slots((pilot(A), pilot(A), pilot(B)), (), ())
    answers = answered("slots", slots) | {
        ("wms:f", "factory"): Answer((FactoryEntry(B.entry, "F"),), 0.0)
    }
    folding.note_places(kept, answers, frozenset(), NOW)
    assert set(kept.entries) == {B}
    pledged = names(entries=1)
    folding.note_places(pledged, answered("slots", slots), frozenset({B.site}), NOW)
    assert set(pledged.entries) == {B}
