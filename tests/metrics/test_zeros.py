"""Counters that are there before anything is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gwmond.metrics import catalog
from gwmond.metrics.budget import within
from gwmond.metrics.family import Sample
from gwmond.metrics.zeros import places
from gwmond.model.factory.totals import FactoryKind
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Category
from gwmond.model.poll.snapshot import GpuUse, LedgerStatus, PilotTime, Snapshot
from gwmond.model.runs.outcomes import RUNS
from gwmond.model.totals import Total
from gwmond.sites.reasons import REASONS
from tests.build.facts import NOW, request
from tests.build.snapshots import BORED, STARVING, pilot_time, snapshot

NEW = EntryKey("T2_New", "new-ce1")
GROUP = "frontend.main"
FAMILIES = {family.name: family for family in catalog.FAMILIES}
SPENT = "gwmond_pilot_canonical_seconds_total"
OF_SITES = "gwmond_site_canonical_seconds_total"
NOTHING = PilotTime({}, {}, {}, {}, {}, None)


def asked(**said: Any) -> Snapshot:
    """A pool whose ledger is new and in which a group asks something of a new entry."""
    none: dict[str, Any] = dict.fromkeys(
        ("requested_idle", "submitted_wait", "pending", "running", "held"), 0
    )
    requests = (request(NEW, group=GROUP, **none | said),)
    return snapshot(pilot_time=NOTHING, pilots={}, requests=requests, totals={})


def samples(s: Snapshot, name: str, key: EntryKey = NEW) -> list[Sample]:
    """The samples of a family that are of one entry."""
    family = FAMILIES[name]
    at = family.labels.index("entry")
    return [sample for sample in family.samples(s) if sample.labels[at] == key.entry]


def test_each_category_of_pilots_that_are_asked_for_is_0() -> None:
    """All categories, measured and estimated, of CPUs: no GPU is known of there."""
    found = samples(asked(requested_idle=1), SPENT)
    assert {sample.labels for sample in found} == {
        ("cpu", category.value, *NEW, GROUP, evidence)
        for category in Category
        for evidence in ("measured", "estimated")
    }
    assert {(sample.value, sample.created) for sample in found} == {(0.0, None)}


def test_each_outcome_of_runs_is_0() -> None:
    """Runs have a series for each line of the table of outcomes, pilots for what they can be."""
    found = samples(asked(pending=2), "gwmond_job_runs_total")
    assert {sample.labels[:2] for sample in found} == set(RUNS)
    ended = samples(asked(held=1), "gwmond_pilots_ended_total")
    assert {sample.labels[0] for sample in ended} == {
        *("pilot_overhead", "decision_problem", "validation_fails", "unclassified")
    }


def test_a_group_that_asks_nothing_of_an_entry_has_no_pilots_there() -> None:
    """What is not known may be, though."""
    assert not samples(asked(), SPENT)
    assert samples(asked(running=None), SPENT)


def test_gpus_are_counted_where_pilots_have_some() -> None:
    """By what their slots show, or by what was counted."""
    found = places(snapshot())
    assert found[*STARVING, GROUP] == {"cpu", "gpu"}
    assert found[*BORED, ""] == {"cpu"}


def test_what_was_counted_stays_as_it_is() -> None:
    """A number is shown once, with its beginning; zeros are beside it."""
    found = [s for s in samples(snapshot(), SPENT, STARVING) if s.labels[4] == GROUP]
    assert len({sample.labels for sample in found}) == len(found) == 2 * 2 * len(Category)
    assert sorted(sample.value for sample in found if sample.value) == [5e-6, 2.0, 3600.0]
    assert all((sample.created is None) == (sample.value == 0) for sample in found)


def test_entries_have_all_states_and_the_reasons_that_any_has_met() -> None:
    """Of CPUs, and of GPUs where the entry has some; a bottleneck has all reasons."""
    found = {sample.labels[:3] for sample in samples(snapshot(), OF_SITES, STARVING)}
    assert {of for of in found if of[0] == "cpu"} == {
        ("cpu", "provisioned", ""),
        *(("cpu", "provisioning_bottleneck", reason.name) for reason in REASONS),
        ("cpu", "insufficient_demand", ""),
        ("cpu", "filling", ""),
        ("cpu", "down", ""),
        ("cpu", "unknown", ""),
        ("cpu", "unknown", "pilots"),
    }
    assert {of[1:] for of in found if of[0] == "gpu"} == {of[1:] for of in found}
    bored = {sample.labels[:3] for sample in samples(snapshot(), OF_SITES, BORED)}
    assert bored == {of for of in found if of[0] == "cpu"}


def test_a_new_client_of_a_factory_whose_logs_are_read_has_all_events() -> None:
    """Clients whose events are not counted yet are the groups that ask for pilots."""
    asks = (request(NEW, group=GROUP, requested_idle=1),)
    found = samples(snapshot(requests=asks), "gwmond_factory_queue_events_total")
    assert len({sample.labels[0] for sample in found}) == len(found) == 9
    assert {(sample.value, sample.created) for sample in found} == {(0.0, None)}
    unread = snapshot(requests=asks, pilot_time=pilot_time()._replace(factory={}))
    assert not samples(unread, "gwmond_factory_queue_events_total")


def test_numbers_of_one_kind_of_files_begin_together() -> None:
    """A client of which one line of completed_jobs is known has 0 of what no line has said."""
    began = NOW - 60.0
    key = ("e", "frontend", FactoryKind.SUMMARY_PILOTS)
    s = snapshot(pilot_time=pilot_time()._replace(factory={key: Total(4, began)}))
    family = FAMILIES["gwmond_factory_completed_jobs_total"]
    assert list(family.samples(s)) == [Sample(("e", "frontend"), 0.0)]
    assert not list(FAMILIES["gwmond_factory_outputs_total"].samples(s))


def test_zeros_take_no_place_of_a_number() -> None:
    """In a family that is over its budget all that was counted is shown as without zeros."""
    family = FAMILIES[OF_SITES]
    every = list(family.samples(snapshot()))
    counted = [sample for sample in every if sample.value]
    assert len(every) > 10 * len(counted)
    kept, folded = within(every, family.labels, len(counted))
    assert {sample for sample in kept if sample.value} == set(counted)
    assert folded == 0


def test_without_a_ledger_nothing_is_counted() -> None:
    """`gwmond once` has no counters, and neither has a daemon whose ledger was never there."""
    bare = replace(asked(requested_idle=1), pilot_time=None, ledger=LedgerStatus(True, "", None, 0))
    for name in (SPENT, "gwmond_job_runs_total", OF_SITES):
        assert not samples(bare, name, NEW)
        assert not samples(bare, name, STARVING)


def test_models_of_gpus_are_bounded() -> None:
    """Pilots choose the names; those of most GPUs stand apart, and none is lost."""
    gpus: dict[tuple[str, GpuUse], int] = {(f"GPU {n}", "idle"): 1 for n in range(60)}
    gpus["GPU 59", "busy"] = 5
    pilots = snapshot().pilots
    (berth, *_), group = pilots, next(iter(pilots.values()))
    found = samples(
        snapshot(pilots={berth: group._replace(gpus=gpus)}), "gwmond_pilot_gpus", berth.entry
    )
    by_model = {sample.labels[:2]: sample.value for sample in found}
    assert (by_model["GPU 59", "busy"], by_model["other", "idle"]) == (5, 10)
    assert (len(by_model), sum(by_model.values())) == (52, 65)
