"""The factory's ads, and its queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import classad2

from gwmond.model.facts import FrontendJobs, Limit
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.sources.htcondor import factory, glideresource
from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.factory import ClientAsk, QueueCount
from tests.pool.adtext import Ad, Expr, Value
from tests.pool.feign import (
    glideclient,
    glidefactory,
    glidefactoryclient,
    glidefrontendmonitor,
)
from tests.sources.feigned_access import Unasked
from tests.sources.make import NOW, classad, classads, heard


def test_client() -> None:
    """A glidefactoryclient ad tells one client's pilots at one entry, and how old its wish is."""
    ad = glidefactoryclient(
        pending=5,
        staging=2,
        running=30,
        held=1,
        requested_idle=7,
        requested_max=40,
        info_age=120,
        limits={"IdleGlideinsPerEntry": (5, 5)},
    )
    (found,) = factory.decode_clients(classads(heard(ad)), NOW)
    assert (found.entry, found.factory, found.client) == (
        "entry",
        "glidein@factory",
        "frontend.main",
    )
    monitor = found.monitor
    assert (monitor.pending, monitor.status_running, monitor.status_held) == (5, 30, 1)
    asked = monitor.requested_idle, monitor.requested_max, monitor.client_info_age
    assert asked == (7, 40, 120)
    name = "GlideinMonitorStatus_GlideFactoryLimitIdleGlideinsPerEntry"
    assert found.limits == (Limit(name, "count=5, limit=5"),)


def test_client_that_tells_nothing() -> None:
    """What a glidefactoryclient ad lacks is absent, not zero."""
    ad: Ad = {"MyType": "glidefactoryclient", "Name": "e@g@f@c", "LastHeardFrom": NOW}
    (found,) = factory.decode_clients(classads(ad), NOW)
    assert found[:3] == ("e", "g@f@c", "")
    assert found[3:] == ((), Monitor(), "", NOW)


def test_stale_ads_of_the_factory() -> None:
    """Ads of a factory that is gone are dropped."""
    old, new = heard(glidefactoryclient(), NOW - 1000), heard(glidefactoryclient("other"))
    assert [c.entry for c in factory.decode_clients(classads(old, new), NOW)] == ["other"]
    old, new = heard(glidefactory(), NOW - 1000), heard(glidefactory("other"))
    assert [e.entry for e in factory.decode_entries(classads(old, new), NOW)] == ["other"]


def test_entry() -> None:
    """A glidefactory ad tells an entry's limits and totals; a limit below 0 is none."""
    ads = classads(
        heard(glidefactory(running=3, GlideinConfigPerEntryMaxGlideins=250)),
        heard(glidefactory("e2", GlideinConfigPerEntryMaxGlideins=-1)),
    )
    one, two = factory.decode_entries(ads, NOW)
    assert (one.entry, one.factory, one.site, one.last_heard) == (
        "entry",
        "glidein@factory",
        "Site",
        NOW,
    )
    assert one.numbers[1:] == (100, 50, 250)
    assert (one.numbers.total.status_running, one.numbers.total.status_running_cores) == (3, 24)
    assert (two.entry, two.numbers.max_pilots) == ("e2", None)


def test_entry_that_tells_nothing() -> None:
    """What a glidefactory ad lacks is absent."""
    ad: Ad = {"MyType": "glidefactory", "Name": "e@g@f", "LastHeardFrom": NOW}
    (found,) = factory.decode_entries(classads(ad), NOW)
    assert (found.entry, found.factory, found.numbers) == ("e", "g@f", EntryMonitor())


def test_entries_are_asked_only_for_what_is_read() -> None:
    """With the projection alone the same is read of a glidefactory ad."""
    ad = heard(glidefactory(running=3, pending=2, held=1))
    asked = {name.lower() for name in factory.ENTRIES.projection}
    less = {name: value for name, value in ad.items() if name.lower() in asked}
    assert len(less) < len(ad)
    assert factory.decode_entries(classads(less), NOW) == factory.decode_entries(classads(ad), NOW)


def test_asks() -> None:
    """A glideclient ad tells what a client asks for; one that names nobody tells nothing."""
    ads = classads(
        heard(glideclient("ce1", idle=2, most=7)),
        heard(glideclient("ce1", credential="A_", ReqIdleGlideins="many", ReqMaxGlideins=-1)),
        heard({"MyType": "glideclient", "Name": "x", "ReqIdleGlideins": 3}),
    )
    assert factory.decode_asks(ads, NOW) == (
        ClientAsk("ce1", "glidein@factory", "frontend.main", 2, 7),
        ClientAsk("ce1", "glidein@factory", "frontend.main", None, None),
    )
    asked = factory.ASKS.projection
    assert {"ClientName", "ReqGlidein", "ReqIdleGlideins", "ReqMaxGlideins"} <= set(asked)


def row(status: int, jobs: int, **more: Value) -> Ad:
    """Pilots in the factory's queue, as GroupBy returns them."""
    ad: Ad = {
        "JobStatus": status,
        "JobUniverse": 9,
        "JobCount": jobs,
        "GlideinEntryName": "entry",
        "GlideinName": "glidein",
        "GlideinFactory": "factory",
        "GlideinClient": "frontend.main",
    }
    return ad | more


def test_queue_by_status() -> None:
    """Pilots are counted by status: those that the site has not acknowledged do not wait there."""
    every = classads(
        row(1, 3, GridJobStatus="PENDING"),
        row(1, 2, GridJobStatus="IDLE"),
        row(1, 4),
        row(1, 1, GridJobStatus=Expr("undefined")),
        row(2, 30, GridJobStatus="RUNNING"),
        row(5, 6),
        row(4, 7),
    )
    old = classads(
        row(1, 1, GridJobStatus="PENDING", QDate=NOW - 9000),
        row(1, 1, GridJobStatus="PENDING", QDate=NOW - 8000),
    )
    found = {c.status: (c.pilots, c.waiting_long) for c in factory.decode_queue(every, old)}
    assert found == {
        "pending": (5, 2),
        "submitted": (5, 0),
        "running": (30, 0),
        "held": (6, 0),
        "other": (7, 0),
    }


def test_queue_by_entry_factory_and_client() -> None:
    """Counts of different entries, factories and clients stay apart, absent names are empty."""
    every = classads(
        row(2, 1),
        row(2, 2, GlideinEntryName="e2"),
        row(2, 3, GlideinFactory="f2"),
        row(2, 4, GlideinClient="frontend.other"),
        {"JobStatus": 2, "JobCount": 5},
    )
    assert factory.decode_queue(every, ()) == (
        QueueCount("", "", "", "running", 5, 0),
        QueueCount("e2", "glidein@factory", "frontend.main", "running", 2, 0),
        QueueCount("entry", "glidein@f2", "frontend.main", "running", 3, 0),
        QueueCount("entry", "glidein@factory", "frontend.main", "running", 1, 0),
        QueueCount("entry", "glidein@factory", "frontend.other", "running", 4, 0),
    )


def test_held_pilots_are_counted_by_their_reason() -> None:
    """Of others no reason is; those that were removed while held are counted apart."""
    full: dict[str, Any] = {"HoldReason": "queue H is full", "HoldReasonCode": 26}
    every = classads(
        row(5, 3, **full),
        row(5, 2, HoldReason="proxy\nexpired" + "x" * 200, HoldReasonCode=4),
        row(5, 1),
        row(3, 9),
        row(2, 4, **full),
    )
    removed = classads(
        row(3, 4, LastHoldReason="queue H is full", LastHoldReasonCode=26, LastJobStatus=5),
        row(3, 1, LastHoldReason="queue H is full", LastHoldReasonCode=26, LastJobStatus=5),
    )
    found = factory.decode_queue(every, (), removed)
    assert [(c.status, c.hold[:15], c.hold_code, c.pilots) for c in found] == [
        ("held", "", None, 1),
        ("held", "proxy expiredxx", 4, 2),
        ("held", "queue H is full", 26, 3),
        ("other", "", None, 9),
        ("removed", "queue H is full", 26, 5),
        ("running", "", None, 4),
    ]
    assert max(len(c.hold) for c in found) == 100


@dataclass
class Schedd(Unasked):
    """A factory's schedd: it finds nothing of a constraint whose attributes are not projected."""

    jobs: tuple[str, ...]

    def job_ads(self, _schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        expression = classad2.ExprTree(query.constraint)
        wanted = {ref.lower() for ref in classad("[]").externalRefs(expression)}
        if not wanted <= {name.lower() for name in query.projection}:
            return []
        return [ad for ad in map(classad, self.jobs) if ad.flatten(expression) is True]


def test_fetch_queue() -> None:
    """All pilots, those that have waited beyond the grace, those held and removed within it."""
    common = 'JobUniverse = 9; GlideinEntryName = "entry"; JobCount = 1'
    held = 'JobStatus = 3; LastJobStatus = 5; LastHoldReason = "why"'
    jobs = (
        f'[ {common}; JobStatus = 1; GridJobStatus = "PENDING"; QDate = {NOW - 1801} ]',
        f'[ {common}; JobStatus = 1; GridJobStatus = "PENDING"; QDate = {NOW - 1799} ]',
        f"[ {common}; JobStatus = 1; QDate = {NOW - 9000} ]",
        f"[ {common}; JobStatus = 2; QDate = {NOW - 9000} ]",
        "[ JobUniverse = 5; JobStatus = 1; QDate = 0; JobCount = 1 ]",
        f"[ {common}; {held}; EnteredCurrentStatus = {NOW - 1800} ]",
        f"[ {common}; {held}; EnteredCurrentStatus = {NOW - 1801} ]",
        f"[ {common}; JobStatus = 3; LastJobStatus = 2; EnteredCurrentStatus = {NOW} ]",
    )
    found = factory.fetch_queue(Schedd(jobs), Daemon("schedd", "<>"), 1800, NOW)
    assert [(c.status, c.pilots, c.waiting_long) for c in found] == [
        ("other", 3, 0),
        ("pending", 2, 1),
        ("removed", 1, 0),
        ("running", 1, 0),
        ("submitted", 1, 0),
    ]


def test_frontend_monitor() -> None:
    """A frontend's own count of idle jobs by age is taken, and what it lacks is absent."""
    ads = classads(
        heard(glidefrontendmonitor(idle=9, idle_600=4, idle_3600=1)),
        heard(glidefrontendmonitor("stale"), NOW - 1000),
        {"Name": "bare", "GlideFrontend_IdleJobs_Total": -1, "LastHeardFrom": NOW},
    )
    assert glideresource.decode_frontends(ads, NOW) == (
        FrontendJobs("frontend", 9, 4, 1),
        FrontendJobs("bare", None, None, None),
    )
