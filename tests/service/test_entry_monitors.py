"""What is shown of requests: of each party its own word, else what the other says."""

from __future__ import annotations

import pytest

from gwmond.model.facts import EntryKey, EntryRequest
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.sources.htcondor.factory import ClientAsk, FactoryClient
from gwmond.sources.htcondor.glideresource import Requests
from gwmond.sources.htcondor.monitors import FactoryEntry
from tests.build.answers import Answers
from tests.build.facts import NOW, A, B, request

FACTORY, GROUP = "glidein@factory", "frontend.main"


@pytest.fixture
def scene() -> Answers:
    return Answers()


def client(name: str = GROUP, entry: str = A.entry, **told: int) -> FactoryClient:
    """What a factory says of a client."""
    return FactoryClient(entry, FACTORY, name, (), Monitor(**told), "Theirs", NOW - 30)


def told(monitor: Monitor) -> dict[str, int]:
    return {name: value for name, value in monitor._asdict().items() if value is not None}


def shown(scene: Answers) -> dict[tuple[str, str], EntryRequest]:
    return {(r.entry.entry, r.group): r for r in scene.take().requests}


def test_factory_is_believed_of_its_pilots(scene: Answers) -> None:
    """The factory's own ad stands before its copy, the frontend's word before what was heard."""
    copy = Monitor(status_running=1, status_held=2, client_jobs_idle=3, asked_idle=4)
    scene.requests(request(A, running=1, held=2, submitted_wait=0)._replace(monitor=copy))
    its = client(
        status_running=10,
        status_wait=6,
        client_jobs_idle=30,
        client_jobs_here=40,
        client_info_age=9,
    )
    scene.answer("wms:f", "factoryclient", (its,))
    found = shown(scene)[A.entry, GROUP]
    assert told(found.monitor) == {
        "status_running": 10,
        "status_held": 2,
        "status_wait": 6,
        "client_info_age": 9,
        "client_jobs_idle": 3,
        "client_jobs_here": 40,
        "asked_idle": 4,
    }
    assert (found.monitor.status_running, found.monitor.status_held, found.monitor.status_wait) == (
        10,
        2,
        6,
    )


def test_accounting_rests_on_glideresource_ads(scene: Answers) -> None:
    """What is shown of a request changes nothing in what is accounted."""
    scene.requests(request(A, running=1, pending=3))
    before = scene.take().facts.totals
    assert before is not None
    scene.answer("wms:f", "factoryclient", (client(status_running=50), client("other.main")))
    after = scene.take()
    assert after.facts.totals == before
    assert [r.monitor.status_running for r in after.requests] == [50]


def test_a_stale_answer_of_the_factory_is_not_used(scene: Answers) -> None:
    """A WMS collector that fell silent leaves the copies in glideresource ads."""
    scene.requests(request(A, running=1)._replace(monitor=Monitor(status_running=1)))
    scene.answer("wms:f", "factoryclient", (client(status_running=50),), age=500)
    scene.answer("wms:f", "glideclient", (ClientAsk(A.entry, FACTORY, GROUP, 2, 3),), age=500)
    found = shown(scene)[A.entry, GROUP]
    assert (found.monitor.status_running, told(found.monitor)) == (1, {"status_running": 1})


def test_advertised_against_requested(scene: Answers) -> None:
    """At its limit a factory says that 0 are requested; what the client asks stands beside it."""
    scene.requests(request(A, requested_idle=2)._replace(monitor=Monitor(asked_idle=2)))
    scene.answer("wms:f", "factoryclient", (client(requested_idle=0),))
    found = shown(scene)[A.entry, GROUP].monitor
    assert (found.asked_idle, found.requested_idle) == (2, 0)


def test_asks_of_glideclient_ads(scene: Answers) -> None:
    """They count where a glideresource ad has none, added over a client's credentials."""
    scene.requests(
        request(A)._replace(monitor=Monitor()),
        request(B, requested_idle=1)._replace(monitor=Monitor(asked_idle=1)),
    )
    ask = ClientAsk(A.entry, FACTORY, GROUP, 2, 7)
    at_b = ClientAsk(B.entry, FACTORY, GROUP, 99, None)
    scene.answer("wms:f", "glideclient", (ask, ask, at_b))
    scene.answer("wms:g", "glideclient", (ask,))
    found = shown(scene)
    at_a = found[A.entry, GROUP]
    assert (at_a.monitor.asked_idle, at_a.monitor.asked_max) == (4, 14)
    assert told(at_a.monitor) == {"asked_idle": 4, "asked_max": 14}
    assert told(found[B.entry, GROUP].monitor) == {"asked_idle": 1}


def test_clients_without_glideresource_ads(scene: Answers) -> None:
    """On a factory's host, whose collector has no glideresource ads, its clients are shown."""
    scene.requests()
    one = client(status_running=10, status_wait=1, client_jobs_idle=5, client_slots_idle=2)
    scene.answer("wms:f", "factoryclient", (one, client("other.main", "ce9", status_held=3)))
    scene.answer("wms:f", "glideclient", (ClientAsk(A.entry, FACTORY, GROUP, 2, 7),))
    state = scene.take()
    found = {(r.entry, r.group): r for r in state.requests}
    assert set(found) == {
        (EntryKey("Theirs", A.entry), GROUP),
        (EntryKey("Theirs", "ce9"), "other.main"),
    }
    ours = found[EntryKey("Theirs", A.entry), GROUP]
    assert (ours.monitor.status_running, ours.monitor.status_wait, ours.monitor.asked_idle) == (
        10,
        1,
        2,
    )
    assert (ours.jobs_matching, ours.slots_idle, ours.monitor.pending) == (5, 2, None)
    assert ours.last_heard == NOW - 30
    assert state.facts.totals == {}
    assert state.facts.entries == frozenset()


def test_other_frontends_clients_are_not_ours(scene: Answers) -> None:
    """Where glideresource ads tell of our groups, a factory's other clients are not shown."""
    scene.requests(request(A))
    scene.answer("wms:f", "factoryclient", (client("other.main"), client(), client(entry="ce9")))
    assert set(shown(scene)) == {(A.entry, GROUP), ("ce9", GROUP)}


def test_replicas_of_a_wms_collector(scene: Answers) -> None:
    """Of two collectors that tell of one client, the one that heard of it last is believed."""
    scene.requests(request(A))
    old = client(status_running=1)._replace(last_heard=NOW - 100)
    new = client(status_running=2)
    for first, second in ((old, new), (new, old)):
        scene.answer("wms:f", "factoryclient", (first,))
        scene.answer("wms:g", "factoryclient", (second,))
        assert shown(scene)[A.entry, GROUP].monitor.status_running == 2


def entry(
    name: str, factory: str, running: int | None, most: int | None, heard: int
) -> FactoryEntry:
    numbers = EntryMonitor(Monitor(status_running=running), None, None, most)
    return FactoryEntry(name, factory, numbers, "Site", heard)


def test_numbers_of_entries(scene: Answers) -> None:
    """The factory's own ad of an entry stands before copies; factories add up."""
    copies = (entry(A.entry, "f1", 1, 10, NOW - 60), entry(A.entry, "f2", 5, 20, NOW - 60))
    newer = entry(A.entry, "f2", 6, 20, NOW)
    scene.answer("cm", "glideresource", Requests((request(A),), (), (), copies))
    scene.answer("cm2", "glideresource", Requests((), (), (), (newer,)))
    own = (entry(A.entry, "f1", 3, None, NOW), entry("ce9", "f1", 70, 80, NOW))
    scene.answer("wms:f", "factory", own)
    assert scene.take().entry_monitors == {
        A: EntryMonitor(Monitor(status_running=9), None, None, 30)
    }


def test_number_that_one_factory_does_not_tell(scene: Answers) -> None:
    """A sum over factories is absent when one of them does not tell its part."""
    copies = (entry(A.entry, "f1", 1, 10, NOW), entry(A.entry, "f2", None, 20, NOW))
    scene.answer("cm", "glideresource", Requests((request(A),), (), (), copies))
    assert scene.take().entry_monitors == {A: EntryMonitor(Monitor(), None, None, 30)}


def test_entries_without_glideresource_ads(scene: Answers) -> None:
    """On a factory's host all its entries are shown, at the sites that their ads name."""
    scene.requests()
    scene.answer("wms:f", "factory", (entry("ce9", "f1", 70, 80, NOW),))
    assert set(scene.take().entry_monitors) == {EntryKey("Site", "ce9")}
