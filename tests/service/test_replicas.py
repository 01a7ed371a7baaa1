"""Several collectors: replicas of one pool, or each with a part of it."""

from __future__ import annotations

import pytest

from gwmond.model.facts import EntryKey
from gwmond.model.monitor import EntryMonitor
from gwmond.sources.htcondor.monitors import FactoryEntry
from tests.build.answers import Answers, watched
from tests.build.facts import NOW, A, B, pilot, request


def _scene(**pool: object) -> Answers:
    """Two collectors; the second is silent, and two pilots of A were seen before."""
    scene = Answers(pool=pool)
    scene.slots(pilot(A))
    scene.collector(NOW - 10**6)
    scene.requests(request(A, pending=0), request(B, pending=0))
    scene.discovery("ap1")
    scene.demand("ap1")
    for kind in ("slots", "glideresource", "schedds", "submitters"):
        scene.silent("cm2", kind)
    return scene


@pytest.mark.parametrize(
    ("replicated", "doubtful", "pending"), [(False, "collector", None), (True, None, 0)]
)
def test_a_silent_collector(replicated: bool, doubtful: str | None, pending: int | None) -> None:
    """Of a part of the pool it leaves pilots, demand and queues in doubt; one replica suffices."""
    state = _scene(replicated=replicated).take(watched(A, B, units=16))
    assert state.facts.doubtful.get(A) == doubtful
    assert state.facts.demand_complete is replicated
    assert state.facts.totals is not None
    assert state.facts.totals[A].pending == pending


def test_the_factorys_own_ads_give_limits_that_are_missing() -> None:
    """A limit that a glideresource ad lacks comes from glidefactory ads, added over factories."""
    scene = _scene(replicated=True)
    scene.requests(request(A, max_pilots=None), request(B, max_pilots=7))
    limits = (
        FactoryEntry(A.entry, "f1", EntryMonitor(max_pilots=100)),
        FactoryEntry(A.entry, "f2", EntryMonitor(max_pilots=50)),
        FactoryEntry(B.entry, "f1", EntryMonitor(max_pilots=9)),
    )
    scene.answer("wms:f", "factory", limits)
    totals = scene.take().facts.totals
    assert totals is not None
    assert {key: totals[key].max_pilots for key in (A, B)} == {A: 150, EntryKey(*B): 7}
