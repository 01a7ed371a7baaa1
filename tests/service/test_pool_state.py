"""From answers to the state of a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.model.demand.submitters import SubmitterCount
from gwmond.model.elapsed import Elapsed, Tick
from gwmond.model.entries.evaluation import Capacity
from gwmond.model.entries.waiting import Waiting
from gwmond.model.facts import (
    EntryKey,
    EntryRequest,
    FrontendJobs,
    JobCount,
    Limit,
    Size,
)
from gwmond.model.monitor import Monitor
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.poller import remembered
from gwmond.service.pool.known_entries import EMPTY, Memory, window_hours
from gwmond.service.pool.pool_state import merge_pilots
from gwmond.sites.capacity import PeakWindow
from gwmond.sources.htcondor.factory import FactoryClient, QueueCount
from gwmond.sources.htcondor.pilots.startds import Startds
from gwmond.sources.htcondor.schedds import Schedds
from tests.build.answers import DAY, HOUR, Answers, watched
from tests.build.facts import A2, BIG, NOW, A, B, group, pilot, request


@pytest.fixture
def scene() -> Answers:
    """A pool that answers everything: a pilot at A, none at B, one schedd, an old collector."""
    found = Answers()
    found.slots(pilot(A))
    found.collector(NOW - 30 * DAY)
    found.requests(request(A), request(B, running=0))
    found.discovery("ap1")
    found.demand("ap1", group(5))
    return found


def test_everything_is_known(scene: Answers) -> None:
    """When everybody has answered, pilots, entries, demand and templates are all known."""
    state = scene.take()
    assert state.facts.pilots is not None
    assert state.facts.entries == {A, B}
    assert state.facts.doubtful == {}
    assert state.facts.demand_complete
    assert [g.jobs for g in state.facts.groups] == [5]
    assert {t.entry for t in state.facts.templates} == {A, B}
    assert state.memory.first_seen == {A: NOW, B: NOW}
    assert state.memory.provisioned[A, "cpu"] == 8
    facts = state.facts
    assert facts.pilots == state.pilots
    assert facts.totals == state.facts.totals


@pytest.mark.parametrize(("age", "known"), [(0, True), (120, True), (121, False)])
def test_answers_are_fresh_for_two_polls(age: float, known: bool) -> None:
    """An answer is used for two polls, then what it told is unknown."""
    scene = Answers()
    scene.slots(pilot(A), age=age)
    scene.requests(request(A), age=age)
    scene.discovery("ap1", age=0)
    scene.demand("ap1", group(5), age=age)
    state = scene.take(watched(A))
    assert (state.facts.pilots is not None) is known
    assert (state.facts.pilots is not None) is known
    assert (state.facts.totals is not None) is known
    assert state.facts.demand_complete is known
    assert bool(state.facts.groups) is known
    assert A in state.facts.entries


@pytest.mark.parametrize(("age", "complete"), [(600, True), (601, False)])
def test_answer_of_a_busy_schedd_is_fresh_for_longer(
    scene: Answers, age: float, complete: bool
) -> None:
    """The demand of a schedd that is skipped on purpose stays known that much longer."""
    scene.demand("ap1", group(5), age=age, skipped=4)
    assert scene.take().facts.demand_complete is complete
    scene.demand("ap1", group(5), age=121, skipped=0)
    assert not scene.take().facts.demand_complete


def test_stale_pilots_leave_memory_alone(scene: Answers) -> None:
    """While pilots are unknown neither peaks nor units in use change."""
    scene.slots(age=500)
    memory = watched(A)
    state = scene.take(memory)
    assert state.facts.pilots is None
    assert state.memory.provisioned == memory.provisioned
    assert state.memory.peaks == memory.peaks


def test_silent_collector_makes_doubtful(scene: Answers) -> None:
    """With one of two collectors silent, entries that show fewer pilots or are new are doubted."""
    new = EntryKey("New", "new")
    scene.slots(pilot(A), pilot(A2), pilot(new))
    scene.silent("cm2", "slots")
    memory = watched(A, A2, B)
    memory = memory._replace(provisioned={**memory.provisioned, (A, "cpu"): 16})
    state = scene.take(memory)
    assert state.facts.pilots is not None
    assert state.facts.doubtful == {A: "collector", B: "collector", new: "collector"}
    assert state.memory.provisioned[A, "cpu"] == 16
    assert state.memory.provisioned[A2, "cpu"] == 8
    assert (A, "cpu") in state.memory.peaks
    assert (new, "cpu") not in state.memory.peaks


def test_fewer_gpus_make_doubtful_too(scene: Answers) -> None:
    """An entry that has lost its GPUs only is doubted as well."""
    memory = watched(A)
    memory = memory._replace(provisioned={(A, "cpu"): 8, (A, "gpu"): 2})
    scene.silent("cm2", "slots")
    assert scene.take(memory).facts.doubtful[A] == "collector"


def test_collector_that_is_back_ends_all_doubt(scene: Answers) -> None:
    """Once all collectors have answered, fewer pilots are fewer pilots."""
    scene.slots(source="cm2")
    state = scene.take(watched(A, A2, units=80))
    assert state.facts.doubtful == {}
    assert state.memory.provisioned[A, "cpu"] == 8
    assert state.memory.provisioned[A2, "cpu"] == 0


@pytest.mark.parametrize(
    ("started", "doubtful"),
    [
        (NOW - 599, {A2: "young_collector"}),
        (NOW - 600, {}),
        (None, {}),
    ],
)
def test_young_collector(
    scene: Answers, started: int | None, doubtful: dict[EntryKey, str]
) -> None:
    """A collector is not believed that pilots are gone before two updates: 600 s by default.

    Until when is known.
    """
    scene.collector(started)
    scene.slots(pilot(A), pilot(EntryKey("New", "new")))
    state = scene.take(watched(A, A2))
    assert state.facts.doubtful == doubtful
    assert state.young_until == (NOW + 1 if doubtful else None)


def test_entry_that_has_vanished_from_a_young_collector() -> None:
    """An entry of which a young collector shows nothing, not even an ad, may be out of sight."""
    scene = Answers(site={"pledge": [{"site": "Ghost", "cores": 5}]})
    scene.slots()
    scene.requests(request(A))
    scene.collector(NOW - 60)
    ghost = EntryKey("Ghost", "Ghost")
    state = scene.take(watched(A, B, ghost, units=0))
    assert state.facts.entries == {A, B, ghost}
    assert state.facts.doubtful == {B: "young_collector"}
    scene.collector(NOW - DAY)
    assert scene.take(watched(A, B, ghost, units=0)).facts.doubtful == {}


def test_distrust_is_configured() -> None:
    """How long a young collector is distrusted is an option."""
    scene = Answers(site={"collector_distrust": "5m"})
    scene.slots()
    scene.collector(NOW - 301)
    assert scene.take(watched(A)).facts.doubtful == {}
    scene.collector(NOW - 299)
    assert scene.take(watched(A)).facts.doubtful == {A: "young_collector"}


def test_pilots_that_are_silent() -> None:
    """Those heard of more than two updates ago, by our clock, unless the collector has another."""
    scene = Answers()
    scene.collector(NOW - DAY)
    scene.slots(pilot(A)._replace(last_heard=NOW - 100))
    assert scene.take().silent_before == NOW - 600
    scene.slots(pilot(A)._replace(last_heard=NOW - 5000))
    assert scene.take().silent_before == NOW - 5600
    scene.slots(pilot(A)._replace(last_heard=NOW, ad_lifetime_s=300))
    assert scene.take().silent_before == NOW - 200
    scene.slots()
    assert scene.take().silent_before is None


def test_pilots_of_two_collectors_count_once(scene: Answers) -> None:
    """A pilot that both collectors show is one pilot."""
    scene.slots(pilot(A), source="cm2")
    assert len(scene.take().pilots) == 1


def test_pilot_of_which_only_the_startd_is_seen(scene: Answers) -> None:
    """A pilot whose slots are missing is known by its startd, one with slots is not doubled."""
    other = pilot(B)._replace(name="other", accepting=False)
    first = pilot(A, size=Size(1, 1))._replace(name="pilot0")
    scene.answer("cm", "startds", Startds((first, other), frozenset({"other"})))
    state = scene.take()
    assert [(p.name, p.size) for p in state.pilots] == [("pilot0", BIG), ("other", BIG)]
    assert {key: pilot_units.unused for (key, _), pilot_units in state.pilot_groups.items()} == {
        A: 0,
        B: 1,
    }
    scene.slots(age=500)
    assert scene.take().pilots == ()


def test_a_pilot_that_only_tells_that_its_validation_failed(scene: Answers) -> None:
    """It is no capacity, hides nothing and makes no entry known; two collectors show it once."""
    without = scene.take()
    failed = pilot(A)._replace(
        name="failed", size=None, free=(), accepting=False, factory_job="s#1.0", failed=True
    )
    alone = failed._replace(name="alone", entry=EntryKey("C", "c"), factory_job="s#2.0")
    later = failed._replace(name="later", last_heard=failed.last_heard + 1)
    scene.slots(pilot(A), failed, alone)
    scene.slots(pilot(A), later, source="cm2")
    state = scene.take()
    assert {p.name for p in state.pilots} == {"pilot0", "later1", "alone2"}
    assert state.running == without.pilots
    assert state.facts.pilots == without.pilots
    assert (state.facts.entries, state.facts.doubtful) == (
        without.facts.entries,
        without.facts.doubtful,
    )
    contacts = without.memory.contacts
    assert state.memory._replace(contacts=contacts) == without.memory
    assert state.memory.contacts.pilots == contacts.pilots
    assert state.facts.capacities == without.facts.capacities
    groups = state.pilot_groups
    for key, pilot_units in without.pilot_groups.items():
        assert groups[key] == pilot_units._replace(failed=1)
    assert [
        pilot_units.failed for pilot_units in groups.values() if not pilot_units.registered
    ] == [1]


@pytest.mark.parametrize(
    ("dies", "silent_s", "failed"),
    [(NOW + 1, 0, 1), (NOW, 0, 0), (None, 700, 1), (None, 701, 0), (NOW + 1, 701, 0)],
)
def test_ads_that_outlive_their_pilot(
    scene: Answers, dies: int | None, silent_s: int, failed: int
) -> None:
    """Of a failed validation they cannot be withdrawn: it is there until it said, or is silent."""
    heard = NOW - silent_s
    told = pilot(A)._replace(size=None, free=(), failed=True, dies=dies, last_heard=heard)
    scene.slots(told)
    state = scene.take()
    assert [pilot_group.failed for pilot_group in state.pilot_groups.values()] == [failed]
    assert state.pilots == (told._replace(name="pilot0"),)


@pytest.mark.parametrize(
    ("free", "jobs", "units"),
    [
        ((Size(1, 1900),), (), (1, 0, 1)),  # total, busy, idle
        ((), (Size(1, 1500),), (1, 1, 0)),
        ((Size(1, 400),), (Size(1, 1500),), (1, 1, 0)),
        ((), (), (1, 0, 0)),  # its slot refuses
    ],
)
def test_a_pilot_below_one_unit_counts_as_one(
    scene: Answers, free: tuple[Size, ...], jobs: tuple[Size, ...], units: tuple[int, int, int]
) -> None:
    """It is busy or idle as a whole, and its entry is named; pilots to come count as well."""
    small = Size(1, 1900)
    scene.slots(pilot(A, size=small)._replace(free=free, jobs=jobs))
    scene.requests(request(A, pilot_size=BIG), request(B, running=0, pilot_size=small))
    state = scene.take()
    assert state.below_one_unit == {A.entry, B.entry}
    (pilot_units,) = state.pilot_groups.values()
    assert pilot_units.units["cpu"] == units
    assert state.facts.capacities[B, "cpu"] == Capacity(990, "limit")  # 10 are of others


def test_a_pilot_of_unknown_size(scene: Answers) -> None:
    """It is there, and of its capacity nothing is known."""
    scene.slots(pilot(A)._replace(size=None, free=()))
    state = scene.take()
    assert state.memory.provisioned[A, "cpu"] == 0
    (pilot_units,) = state.pilot_groups.values()
    assert (pilot_units.registered, pilot_units.units["cpu"].total) == (1, 0)


def test_requests_are_merged_over_collectors(scene: Answers) -> None:
    """The same ad in two collectors is one, the newer; ads of other groups are added."""
    old, new = request(A, requested_idle=5), request(A, requested_idle=7, last_heard=NOW + 1)
    other = request(A, group="frontend.other", requested_idle=20)
    scene.requests(old, request(B))
    scene.requests(new, other, source="cm2")
    state = scene.take()
    assert state.facts.totals is not None
    assert state.facts.totals[A].requested_idle == 27
    assert len(state.requests) == 3
    scene.requests(new, other)
    scene.requests(old, source="cm2")
    assert scene.take().facts.totals == {A: state.facts.totals[A]}


def test_no_ad_is_not_the_same_as_no_answer(scene: Answers) -> None:
    """A collector without glideresource ads says that there are none."""
    scene.requests()
    state = scene.take()
    assert state.facts.totals == {}
    assert state.requests == ()
    scene.requests(age=500)
    assert scene.take().facts.totals is None


def test_pledged_site_of_which_nothing_is_seen() -> None:
    """A pledged site counts although nothing runs there; one that is seen is not doubled."""
    pledges = [{"site": "Alpha", "cores": 100}, {"site": "Ghost", "cores": 50.5, "gpus": 2}]
    scene = Answers(site={"pledge": pledges})
    scene.slots(pilot(A))
    scene.requests(request(A))
    state = scene.take()
    ghost = EntryKey("Ghost", "Ghost")
    assert state.facts.entries == {A, ghost}
    assert state.facts.capacities[ghost, "cpu"] == Capacity(50, "pledge")
    assert state.facts.capacities[ghost, "gpu"] == Capacity(2, "pledge")
    assert state.facts.capacities[A, "cpu"] == Capacity(100, "pledge")


def test_pledge_of_an_entry_and_of_memory() -> None:
    """An entry's own pledge counts, and its memory where that is what is short."""
    pledges = [{"entry": A.entry, "cores": 100, "memory_mib": 40000}]
    scene = Answers(site={"pledge": pledges})
    scene.slots(pilot(A), pilot(B))
    assert scene.take().facts.capacities[A, "cpu"] == Capacity(20, "pledge")
    assert scene.take().facts.capacities[B, "cpu"].evidence != "pledge"


def test_peak_counts_once_the_entry_was_watched(scene: Answers) -> None:
    """Within the first day the limit is the capacity, afterwards the peak."""
    young = watched(A, units=40, since=NOW - DAY + 1)
    assert scene.take(young).facts.capacities[A, "cpu"] == Capacity(1000 * 8, "limit")
    old = watched(A, units=40, since=NOW - DAY)
    assert scene.take(old).facts.capacities[A, "cpu"] == Capacity(40, "peak")


def test_what_runs_under_a_limit_raises_no_peak(scene: Answers) -> None:
    """So none is stored, and the limit is a bottleneck on every day."""
    hit = Limit("GlideClientLimitTotalGlideinsPerEntry", "count=5, limit=5")
    for limits, is_peak in (((), True), ((hit,), False)):
        scene.requests(request(A, limits=limits))
        assert ((A, "cpu") in scene.take().memory.peaks) is is_peak


def test_what_ran_under_a_limit_is_known_after_a_restart(scene: Answers, tmp_path: Path) -> None:
    """A pilot ends, so the limit is not hit at this moment: what ran says what was asked for."""
    hit = Limit("GlideClientLimitTotalGlideinsPerEntry", "count=5, limit=5")
    pilots = [pilot(A)._replace(started=NOW - n) for n in range(1, 6)]
    scene.slots(*pilots)
    scene.requests(request(A, limits=(hit,)))
    before = scene.take(watched(A, units=40, since=NOW - 2 * DAY)).memory
    config = Config.model_validate({"ledger": {"url": str(tmp_path / "ledger.sqlite")}})
    keeper = LedgerKeeper(config)
    keeper.open(EMPTY, window_hours(config))
    keeper.add(
        Tick(NOW, NOW, NOW, "a"), Elapsed(0, known=False, reason="first_poll"), [], before, []
    )
    keeper.close()
    scene.slots(*pilots[1:])
    scene.requests(request(A))
    for memory in (before, remembered(config)[0]):
        assert scene.take(memory).facts.capacities[A, "cpu"].evidence == "limit"


@pytest.mark.parametrize(
    "ad",
    [
        request(A, max_pilots=None),
        request(A, pilot_size=None),
        request(A, running=None),
        None,
    ],
)
def test_peak_counts_at_once_where_there_is_no_limit(
    scene: Answers, ad: EntryRequest | None
) -> None:
    """Where no limit can be told the peak is the capacity from the start."""
    scene.requests(*([ad] if ad else []))
    young = watched(A, units=40, since=NOW - 60)
    assert scene.take(young).facts.capacities[A, "cpu"] == Capacity(40, "peak")


def test_pilots_that_were_killed_and_replaced_are_not_capacity(scene: Answers) -> None:
    """50 pilots of 8 units, each replaced within 15 minutes: 400 in use, and a peak of 400."""
    old = [pilot(A)._replace(last_heard=NOW - 890)] * 50
    new = [pilot(A)._replace(started=NOW - n, last_heard=NOW) for n in range(50)]
    scene.requests(request(A, max_pilots=None))
    scene.slots(*old)
    before = scene.take(now=NOW - 880)
    scene.slots(*old, *new)
    state = scene.take(before.memory)
    assert len(state.pilots) == 100  # the accounting of pilots' time knows when they ended
    assert len(state.running) == 50
    assert state.facts.capacities[A, "cpu"] == Capacity(400, "peak")
    assert state.memory.provisioned[A, "cpu"] == 400
    assert [pilot_group.units["cpu"].total for pilot_group in state.pilot_groups.values()] == [400]
    later = NOW + 86400
    scene.slots(*[key._replace(last_heard=later) for key in new])
    assert scene.take(state.memory, later).facts.capacities[A, "cpu"] == Capacity(400, "peak")


def test_no_ad_that_is_renewed_is_doubtful(scene: Answers) -> None:
    """The collector answers, but shows the same contacts as eleven minutes ago."""
    before = scene.take()
    assert before.facts.doubtful == {}
    state = scene.take(before.memory, NOW + 660)
    assert state.facts.doubtful == {A: "collector"}
    assert state.facts.doubtful == {A: "collector"}


def test_precedence_of_capacities() -> None:
    """A pledge goes before a peak, a peak before a limit, and none is below what runs."""
    scene = Answers(site={"pledge": [{"entry": A.entry, "cores": 5}]})
    scene.slots(pilot(A), pilot(A2))
    scene.requests(request(A), request(A2), request(B, max_pilots=11, running=10))
    found = scene.take(watched(A, A2, units=40)).facts.capacities
    assert found[A, "cpu"] == Capacity(8, "above_pledge")
    assert found[A2, "cpu"] == Capacity(40, "peak")
    assert found[B, "cpu"] == Capacity(88, "limit")


def test_peak_leaves_the_window(scene: Answers) -> None:
    """A peak older than the window is forgotten, and with it an entry that is nowhere seen."""
    gone = EntryKey("Gone", "gone")
    window = PeakWindow().add(HOUR - 720, 99)
    memory = Memory({gone: 0}, {(gone, "cpu"): 0}, {(gone, "cpu"): window}, {})
    state = scene.take(memory)
    assert gone not in state.facts.entries
    assert (gone, "cpu") not in state.memory.peaks
    memory = memory._replace(peaks={(gone, "cpu"): PeakWindow().add(HOUR - 719, 99)})
    assert scene.take(memory).facts.capacities[gone, "cpu"] == Capacity(99, "peak")


def test_window_that_was_configured_anew() -> None:
    """A changed peak_window holds for what was remembered before, too."""
    scene = Answers(site={"peak_window": "10h"})
    scene.slots(pilot(A))
    memory = watched(A, units=40)
    found = scene.take(memory)
    assert found.memory.peaks[A, "cpu"].hours == 10
    assert found.facts.capacities[A, "cpu"] == Capacity(8, "peak")


def test_first_sight_is_kept(scene: Answers) -> None:
    """An entry's first sight stays, also over a poll in which nothing is known."""
    memory = watched(A)
    after = scene.take(memory).memory
    assert after.first_seen == {A: NOW - 2 * DAY, B: NOW}
    assert Answers().take(after).memory.first_seen == after.first_seen
    scene.requests()
    assert scene.take(after).memory.first_seen == {A: NOW - 2 * DAY}


def test_demand_of_a_schedd_that_is_stale(scene: Answers) -> None:
    """A schedd that has not answered lately makes the demand incomplete; others' remains."""
    scene.discovery("ap1", "ap2")
    scene.demand("ap2", group(7), age=500)
    state = scene.take()
    assert not state.facts.demand_complete
    assert [g.jobs for g in state.facts.groups] == [5]


def test_demand_of_a_schedd_that_never_answered(scene: Answers) -> None:
    """A schedd that is known and has never answered makes the demand incomplete."""
    scene.discovery("ap1", "ap2")
    scene.silent("ap2", "demand")
    assert not scene.take().facts.demand_complete


def test_demand_without_any_schedd(scene: Answers) -> None:
    """Where no schedd is known at all, no demand is not proven."""
    scene.discovery()
    assert not scene.take().facts.demand_complete


def test_demand_that_was_cut(scene: Answers) -> None:
    """A schedd that left groups out makes the demand incomplete."""
    scene.demand("ap1", group(5), complete=False)
    assert not scene.take().facts.demand_complete


@pytest.mark.parametrize("kind", ["schedds", "submitters"])
def test_demand_when_schedds_are_not_surely_all_known(scene: Answers, kind: str) -> None:
    """While a collector does not tell its schedds there may be more of them."""
    scene.silent("cm2", kind)
    assert not scene.take().facts.demand_complete


def test_factory_that_is_silent_does_not_hide_demand(scene: Answers) -> None:
    """A WMS collector knows none of our schedds, so its silence leaves demand complete."""
    scene.silent("wms:factory", "schedds")
    assert scene.take().facts.demand_complete


@pytest.mark.parametrize(
    ("wanted", "complete"),
    [
        (["ap1"], True),
        (["AP1"], True),
        (["ap?"], True),
        (["ap*", "nowhere*"], True),
        (["ap1", "ap2"], False),
    ],
    ids=str,
)
def test_demand_of_configured_schedds(wanted: list[str], complete: bool) -> None:
    """A schedd that is configured by name must be there, one by pattern need not."""
    scene = Answers(pool={"schedds": wanted})
    scene.discovery("ap1")
    scene.demand("ap1")
    assert scene.take().facts.demand_complete is complete


def test_jobs_of_submitters_and_schedds(scene: Answers) -> None:
    """Running and held jobs come from submitters, idle ones from the schedd, once each."""
    counts = (JobCount("ap1", "users", "running", 9), JobCount("far", "", "held", 1))
    for source in ("cm", "cm2"):
        scene.answer(source, "submitters", Schedds((), counts))
    assert scene.take().jobs == (
        JobCount("ap1", "users", "idle", 5),
        JobCount("ap1", "users", "running", 9),
        JobCount("far", "", "held", 1),
    )


def test_users_of_submitters(scene: Answers) -> None:
    """Accounting groups are those of idle jobs; that no collector tells of users is not known."""
    ada = SubmitterCount("ap1", "users.ada@x", "", 5, 1, 0, NOW)
    for source in ("cm", "cm2"):
        scene.answer(source, "submitters", Schedds((), (), (ada,)))
    users = scene.take().users
    assert users is not None
    assert [(one.user, one.submitter, one.waiting) for one in users.jobs] == [
        ("ada@x", "users.ada@x", 5)
    ]
    assert users.complete
    scene.answer("cm2", "submitters", Schedds((), ()), age=10_000)
    users = scene.take().users
    assert users is not None
    assert (len(users.jobs), users.complete) == (1, False)
    scene.answer("cm", "submitters", Schedds((), ()), age=10_000)
    assert scene.take().users is None


def test_templates_of_entries_that_are_known(scene: Answers) -> None:
    """Templates of entries that are gone are left out."""
    scene.requests(request(A))
    assert [t.entry for t in scene.take().facts.templates] == [A]


def test_waiting_pilots_are_of_frontend_groups(scene: Answers) -> None:
    """Each group's ad counts its own; what it does not tell counts nothing."""
    scene.requests(
        request(A, group="fe.a", pending=3),
        request(A, group="fe.b", pending=None),
        request(A, group="fe.a", factory="other", pending=2),
    )
    assert scene.take().facts.asked == {A: {"fe.a": 5, "fe.b": 0}}


def test_frontends_are_taken_together(scene: Answers) -> None:
    """What frontends count themselves is taken from all collectors."""
    scene.answer("cm", "frontendmonitor", (FrontendJobs("a", 1, 1, 1),))
    scene.answer("cm2", "frontendmonitor", (FrontendJobs("b", 2, 2, 2),))
    assert [f.frontend for f in scene.take().reported.frontendmonitor] == ["a", "b"]


def test_waiting_is_estimated_from_counts(scene: Answers) -> None:
    """Without the factory's queue, what waited through the whole grace counts as beyond it."""
    scene.requests(request(A, pending=5))
    state = scene.take()
    assert state.facts.waiting[A] == Waiting(0, 5, "estimated")
    later = scene.take(state.memory, NOW + 1800)
    assert later.facts.waiting[A] == Waiting(5, 0, "estimated")


def test_an_entry_that_fills_for_longer_than_the_grace(scene: Answers) -> None:
    """One pilot waits whenever it is looked at, and one starts every ten minutes."""
    memory, long = EMPTY, []
    for minute in range(0, 60, 5):
        now = NOW + 60 * minute
        started = [pilot(A, started=NOW + 600 * n) for n in range(minute // 10 + 1)]
        scene.slots(*[key._replace(last_heard=now) for key in started])
        scene.requests(request(A, pending=1), request(B, pending=0))
        state = scene.take(memory, now)
        memory = state.memory
        long += [minute] if state.facts.long_filling else []
        assert state.facts.long_filling <= {A}
        assert state.facts.long_filling == state.facts.long_filling
    assert long == [35, 40, 45, 50, 55]


def test_waiting_history_outlives_a_poll_without_ads(scene: Answers) -> None:
    """A poll in which the ads are unknown does not make waiting pilots young again."""
    scene.requests(request(A, pending=5))
    memory = scene.take().memory
    scene.requests(request(A, pending=5), age=500)
    between = scene.take(memory, NOW + 900)
    assert between.facts.waiting == {}
    scene.requests(request(A, pending=5))
    assert scene.take(between.memory, NOW + 1800).facts.waiting[A].beyond == 5


def test_waiting_that_is_not_told(scene: Answers) -> None:
    """An entry whose ads do not tell its queue is not among those whose queue is known."""
    scene.requests(request(A, pending=None), request(B))
    assert set(scene.take().facts.waiting) == {B}


def queue(*counts: QueueCount) -> tuple[QueueCount, ...]:
    return counts


def count(
    entry: EntryKey, status: str, pilots: int, beyond: int = 0, client: str = "frontend.main"
) -> QueueCount:
    return QueueCount(entry.entry, "glidein@factory", client, status, pilots, beyond)


def test_factory_queue_measures_waiting(scene: Answers) -> None:
    """Where the factory's queue can be read, waiting is measured there."""
    scene.requests(request(A, pending=9), request(B, pending=9), request(A2, pending=3))
    scene.answer(
        "fs", "queue", queue(count(A, "pending", 5, 2), count(A, "running", 9), count(B, "held", 1))
    )
    found = scene.take().facts.waiting
    assert found[A] == Waiting(2, 3, "measured")
    assert found[B] == Waiting(0, 0, "measured")
    assert found[A2] == Waiting(0, 3, "estimated")


def test_queues_of_several_factories(scene: Answers) -> None:
    """Pilots in two factories' queues are added; one that is silent leaves estimates."""
    scene.requests(request(A, pending=9))
    scene.answer("fs1", "queue", queue(count(A, "pending", 5, 2)))
    scene.answer("fs2", "queue", queue(count(A, "pending", 1, 1)))
    assert scene.take().facts.waiting[A] == Waiting(3, 3, "measured")
    scene.silent("fs3", "queue")
    assert scene.take().facts.waiting[A].evidence == "estimated"


def test_pilots_of_other_frontends_do_not_wait_for_us(scene: Answers) -> None:
    """Of a factory's queue only our groups' pilots count, unless it names none of them."""
    scene.requests(request(A))
    theirs = count(A, "pending", 50, 50, client="other.main")
    scene.answer("fs", "queue", queue(theirs, count(A, "pending", 4, 1)))
    assert scene.take().facts.waiting[A] == Waiting(1, 3, "measured")
    scene.answer("fs", "queue", queue(theirs))
    assert scene.take().facts.waiting[A] == Waiting(50, 0, "measured")


def client(name: str, info_age: int | None, *limits: str) -> FactoryClient:
    hit = tuple(Limit(limit, "count=1, limit=1") for limit in limits)
    return FactoryClient(A.entry, "glidein@factory", name, hit, Monitor(client_info_age=info_age))


def test_factory_tells_the_age_of_its_information(scene: Answers) -> None:
    """Ages and limits of our own clients at the factory count, others' do not."""
    scene.requests(request(A, info_age_s=None, limits=(Limit("Own", "x"),)))
    ours, theirs = client("frontend.main", 4000, "Factory"), client("other.main", 5, "Theirs")
    scene.answer("wms:factory", "factoryclient", (ours, theirs))
    totals = scene.take().facts.totals
    assert totals is not None
    assert totals[A].info_age_s == 4000
    assert [limit.name for limit in totals[A].limits] == ["Factory", "Own"]


def test_factory_that_does_not_tell_the_age(scene: Answers) -> None:
    """Where the factory tells no age, that of the glideresource ad stays."""
    scene.requests(request(A, info_age_s=77))
    scene.answer("wms:factory", "factoryclient", (client("frontend.main", None),))
    totals = scene.take().facts.totals
    assert totals is not None
    assert totals[A].info_age_s == 77


def test_pilots_of_two_collectors_are_merged() -> None:
    """A pilot that two collectors know is one, as heard of last; two lives of one are two."""
    old = pilot()._replace(name="a", last_heard=1, accepting=True)
    new = old._replace(last_heard=2, accepting=False)
    restarted = old._replace(started=old.started + 1)
    other = old._replace(name="b")
    assert merge_pilots([(old, other), (new, restarted)]) == (new, restarted, other)
    assert merge_pilots([(new,), (old,)]) == (new,)


def test_a_pilot_is_late_then_silent_and_one_that_ended_has_no_slots(scene: Answers) -> None:
    """Of a pilot that is not heard of the entry is estimated first, and has nothing then."""
    scene.slots(pilot(A), pilot(B))
    memory = scene.take().memory
    for after, late, silent in ((360, [], []), (400, [A], []), (660, [], ["pilot0"])):
        alive = pilot(B)._replace(last_heard=NOW + after)
        scene.slots(pilot(A), alive)
        state = scene.take(memory, NOW + after)
        assert (list(state.facts.late), list(state.silent)) == (late, silent), after
        assert (A in {one.entry for one in state.running}) == (not silent)
    scene.slots(pilot(A), pilot(B))
    told = scene.take(memory._replace(ended={"pilot0": NOW}))
    assert (list(told.facts.late), list(told.silent)) == ([], ["pilot0"])
    assert {berth.entry for berth, has in told.pilot_groups.items() if has.registered} == {B}
