"""Metrics of what factories and frontends say of each other."""

from __future__ import annotations

import pytest

from gwmond.metrics import catalog
from gwmond.metrics.budget import within
from gwmond.metrics.factory import FAMILIES
from gwmond.metrics.family import Family
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.model.poll.snapshot import Snapshot
from tests.build.facts import NOW, A, B, request
from tests.build.snapshots import MONITOR, snapshot

NUMBERS = MONITOR._asdict()
NAMES = {family.name: family for family in FAMILIES}


def samples(name: str, s: Snapshot) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in NAMES[name].samples(s)}


def of(monitor: Monitor, **more: object) -> Snapshot:
    """A snapshot of one request that says this."""
    one = request(A)._replace(monitor=monitor)
    return snapshot(requests=(one,), entry_monitors={}, **more)


def test_no_number_has_two_names() -> None:
    """Each value of a request is one sample of one family, or is in another family already."""
    at = (*A, "frontend.main")
    seen: dict[float, list[str]] = {}
    for family in FAMILIES:
        for sample in family.samples(of(MONITOR)):
            assert sample.labels[-3:] == at
            if family.name != "gwmond_entry_advertisement_age_seconds":
                seen.setdefault(sample.value, []).append(family.name)
    assert {len(names) for names in seen.values()} == {1}
    elsewhere = {
        *("asked_idle", "asked_max"),  # gwmond_pilots_requested, _max
        "client_jobs_idle",  # gwmond_entry_frontend_idle_jobs_matching
    }
    assert set(seen) == {value for name, value in NUMBERS.items() if name not in elsewhere}


def test_numbers_of_a_client() -> None:
    """Each label says what it says."""
    at = (*A, "frontend.main")
    s = of(MONITOR)
    assert samples("gwmond_factory_pilots", s) == {
        ("submitted", *at): NUMBERS["status_wait"],
        ("idle_pending", *at): NUMBERS["status_pending"],
        ("idle_stage_in", *at): NUMBERS["status_stage_in"],
        ("idle_other", *at): NUMBERS["status_idle_other"],
        ("running", *at): NUMBERS["status_running"],
        ("stage_out", *at): NUMBERS["status_stage_out"],
        ("held", *at): NUMBERS["status_held"],
    }
    for name, field in {
        "gwmond_factory_idle_pilots": "status_idle",
        "gwmond_factory_pilots_requested": "requested_idle",
        "gwmond_factory_pilots_requested_adjusted": "requested_adjusted_idle",
        "gwmond_factory_pilots_requested_max": "requested_max",
        "gwmond_entry_frontend_running_jobs_matching": "client_jobs_running",
        "gwmond_entry_frontend_running_jobs_here": "client_jobs_here",
    }.items():
        assert samples(name, s) == {at: NUMBERS[field]}
    assert (
        samples("gwmond_entry_frontend_slots", s)["failed", *at] == NUMBERS["client_slots_failed"]
    )
    assert samples("gwmond_factory_running_cores", s) == {at: NUMBERS["status_running_cores"]}


def test_absent_is_no_sample_and_zero_is_one() -> None:
    """What no ad says has no sample, and 0 is a number."""
    assert all(not list(f.samples(of(Monitor()))) for f in FAMILIES if "age" not in f.name)
    assert list(samples("gwmond_factory_pilots", of(Monitor(status_wait=0))).values()) == [0]


def test_factories_add_up_unless_one_is_silent() -> None:
    """Two factories' numbers of one group are added; what one does not tell is absent."""
    requests = (
        request(A, factory="f1")._replace(monitor=Monitor(status_held=3, status_stage_out=1)),
        request(A, factory="f2")._replace(monitor=Monitor(status_held=4)),
        request(B)._replace(monitor=Monitor(status_stage_out=5)),
    )
    assert samples("gwmond_factory_pilots", snapshot(requests=requests)) == {
        ("held", *A, "frontend.main"): 7,
        ("stage_out", *B, "frontend.main"): 5,
    }


def test_numbers_of_entries() -> None:
    """Over all clients every state is told, and the limits."""
    s = snapshot(entry_monitors={A: EntryMonitor(MONITOR, 7, None, 50)})
    pilots = samples("gwmond_factory_entry_pilots", s)
    assert pilots["running", *A] == NUMBERS["status_running"]
    assert pilots["submitted", *A] == NUMBERS["status_wait"]
    assert len(pilots) == 7
    assert samples("gwmond_factory_entry_limit_pilots", s) == {tuple(A): 50}
    assert samples("gwmond_factory_entry_limit_idle_pilots", s) == {tuple(A): 7}
    assert samples("gwmond_factory_entry_limit_held_pilots", s) == {}


def test_ages() -> None:
    """Of several factories the oldest counts; an ad that says not when it came has no age."""
    requests = (
        request(A, factory="f1", last_heard=NOW - 40)._replace(monitor=Monitor(client_info_age=70)),
        request(A, factory="f2", last_heard=NOW - 30)._replace(monitor=Monitor(client_info_age=80)),
        request(B, last_heard=0, info_age_s=None),
        request(B, group="frontend.ahead", last_heard=NOW + 9, info_age_s=None),
    )
    s = snapshot(requests=requests)
    assert samples("gwmond_entry_request_age_seconds", s) == {(*A, "frontend.main"): 80}
    assert samples("gwmond_entry_advertisement_age_seconds", s) == {
        (*A, "frontend.main"): 40,
        (*B, "frontend.ahead"): 0,
    }


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_budget_keeps_unlike_numbers_apart(family: Family) -> None:
    """Series over the budget are summed, but never those of different kinds."""
    requests = tuple(request(A, group=f"f.g{n}")._replace(monitor=MONITOR) for n in range(20))
    all_of_them = list(family.samples(snapshot(requests=requests)))
    kept, _ = within(all_of_them, family.labels, 1)
    assert sum(s.value for s in kept) == sum(s.value for s in all_of_them)
    if family.labels[0] in {"kind", "state"}:
        assert {s.labels[0] for s in kept} == {s.labels[0] for s in all_of_them}


def test_families_are_in_the_catalog() -> None:
    """They are served and listed."""
    assert set(FAMILIES) <= set(catalog.FAMILIES)
