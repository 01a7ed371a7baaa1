"""What the recorded pool's factories and frontends say of each other."""

from __future__ import annotations

from collections import Counter
from importlib import resources

import pytest

from gwmond.metrics import factory
from gwmond.sources import tasks
from gwmond.sources.htcondor.access import Terms
from gwmond.sources.htcondor.glideresource import Requests
from gwmond.sources.recording.recording import Recording, ReplayAccess
from gwmond.sources.round import REQUESTS
from tests.build.snapshots import snapshot
from tests.sources.make import ATTRIBUTES

HOST = "cm.demo.example"


@pytest.fixture(scope="module", params=[0, 143])
def told(request: pytest.FixtureRequest) -> Requests:
    """The glideresource ads of a frame."""
    demo = str(resources.files("gwmond").joinpath("data").joinpath("demo.zip"))
    moment = Recording(demo).times[request.param]
    access = ReplayAccess(demo, moment, 0.0)
    found, read = tasks.ask(Terms(access, HOST, ATTRIBUTES, moment), REQUESTS)
    assert isinstance(found, Requests)
    assert read > 100
    return found


def test_parts_of_idle(told: Requests) -> None:
    """StatusIdle is the sum of its four parts, in every ad."""
    for one in (request.monitor for request in told.requests):
        parts = (
            *(one.status_wait, one.status_pending),
            *(one.status_stage_in, one.status_idle_other),
        )
        assert None not in parts
        assert one.status_idle == sum(part or 0 for part in parts)


def test_totals_are_those_of_all_groups(told: Requests) -> None:
    """An entry's own numbers are told once, and are the sums over its groups."""
    running: Counter[tuple[str, str]] = Counter()
    for request in told.requests:
        running[request.entry.entry, request.factory] += request.monitor.status_running or 0
    own = {(e.entry, e.factory): e.numbers.total.status_running for e in told.entries}
    assert own == dict(running)
    assert len(told.entries) == len(own)


def test_each_group_has_all_numbers(told: Requests) -> None:
    """There are samples for each group of what it and the factory tell, also in cores.

    But for the age of a request, which only the factory's collector knows.
    """
    numbers = {e.site: e.numbers for e in told.entries}
    entries = {r.entry: numbers[r.entry.site] for r in told.requests}
    shown = snapshot(requests=told.requests, entry_monitors=entries)
    found = {family.name: len(list(family.samples(shown))) for family in factory.FAMILIES}
    groups = len(told.requests)
    assert {name for name, samples in found.items() if not samples} == {
        "gwmond_entry_request_age_seconds"
    }
    assert found["gwmond_factory_pilots"] == 7 * groups
    assert found["gwmond_factory_running_cores"] == groups
    assert found["gwmond_factory_cores_requested"] == groups
    assert found["gwmond_entry_frontend_cores"] == 2 * groups


def test_cores_add_up(told: Requests) -> None:
    """Those that the frontend sees are claimed or idle; an entry's are the sums over its groups."""
    asked: Counter[tuple[str, str]] = Counter()
    running: Counter[tuple[str, str]] = Counter()
    for request in told.requests:
        one = request.monitor
        assert one.client_cores_total == (one.client_cores_idle or 0) + (
            one.client_cores_running or 0
        )
        of = request.entry.entry, request.factory
        asked[of] += one.requested_idle_cores or 0
        running[of] += one.status_running_cores or 0
    totals = {(e.entry, e.factory): e.numbers.total for e in told.entries}
    assert sum(running.values()) > 1000
    assert {of: one.status_running_cores for of, one in totals.items()} == dict(running)
    assert {of: one.requested_idle_cores for of, one in totals.items()} == dict(asked)
