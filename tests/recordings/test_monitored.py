"""What the recorded pool's factories and frontends say of each other."""

from __future__ import annotations

from collections import Counter
from importlib import resources

import pytest

from gwmond.metrics import factory
from gwmond.sources import tasks
from gwmond.sources.glideresource import Requests
from gwmond.sources.recording import Recording, ReplayAccess
from tests.snapshots import snapshot
from tests.sources.make import ATTRIBUTES

HOST = "cm.demo.example"


@pytest.fixture(scope="module", params=[0, 143])
def told(request: pytest.FixtureRequest) -> Requests:
    """The glideresource ads of a frame."""
    demo = str(resources.files("gwmond").joinpath("data").joinpath("demo.zip"))
    moment = Recording(demo).times[request.param]
    access = ReplayAccess(demo, moment, 0.0)
    found, read = tasks.collector_requests(access, HOST, ATTRIBUTES, moment)
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


def test_what_was_not_recorded_has_no_sample(told: Requests) -> None:
    """The recording has no attribute of cores; of all else there are samples for each group."""
    numbers = {e.site: e.numbers for e in told.entries}
    entries = {r.entry: numbers[r.entry.site] for r in told.requests}
    shown = snapshot(requests=told.requests, entry_monitors=entries)
    found = {family.name: len(list(family.samples(shown))) for family in factory.FAMILIES}
    assert {name for name, samples in found.items() if not samples} == {
        name for name in found if "_cores" in name
    }
    assert found["gwmond_factory_pilots"] == 5 * len(told.requests)
