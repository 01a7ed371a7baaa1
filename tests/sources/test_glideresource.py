"""What frontends ask of entries."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gwmond.config.settings import Attributes
from gwmond.model.facts import EntryKey, EntryRequest, Limit, Size, Verdict
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.sources.htcondor import glideresource, matching
from gwmond.sources.htcondor.glideresource import Requests
from gwmond.sources.htcondor.monitors import FactoryEntry
from tests.pool.adtext import Ad, Expr, Value
from tests.pool.feign import glideresource as feigned
from tests.sources.make import ATTRIBUTES, NOW, attributes, classad, classads, heard


def decode(*ads: Mapping[str, Value], by: Attributes = ATTRIBUTES) -> Requests:
    return glideresource.decode(classads(*ads), by, "cm", NOW)


def request(ad: Ad) -> EntryRequest:
    found = decode(heard(ad))
    assert not found.problems
    assert len(found.requests) == 1
    return found.requests[0]


def test_query_asks_for_whole_ads_by_their_type() -> None:
    """Whole ads are asked for, in whatever table of the collector they are."""
    query = glideresource.QUERY
    assert query.projection == ()
    assert query.constraint == 'MyType == "glideresource"'
    assert query.ad_type == "Any"


def test_every_fact() -> None:
    """Each fact comes from the attribute by which GlideinWMS publishes it."""
    ad = feigned(
        "ce1",
        "T2_Example",
        pending=5,
        staging=3,
        running=40,
        held=2,
        requested_idle=7,
        requested_max=60,
        jobs_idle=100,
        slots_idle=11,
        GlideClientMonitorJobsIdleMatching=130,
        GlideClientMonitorJobsIdleUnique=20,
        GlideFactoryMonitorTotalStatusIdle=18,
        GlideFactoryMonitorTotalStatusWait=4,
        GlideFactoryMonitorTotalStatusRunning=90,
        GlideFactoryMonitorTotalStatusHeld=6,
    )
    found, its = request(ad), request(ad).monitor
    assert (its.pending, its.status_running, its.status_held, its.status_wait) == (5, 40, 2, 3)
    assert (its.asked_idle, its.asked_max, its.client_info_age) == (7, 60, None)
    total = found.whole.total
    assert (total.pending, total.status_running, total.status_held) == (14, 90, 6)
    assert found.whole.max_pilots == 1000
    assert found._replace(monitor=Monitor(), whole=EntryMonitor()) == EntryRequest(
        entry=EntryKey("T2_Example", "ce1"),
        group="frontend.main",
        factory="glidein@factory",
        down=False,
        limits=(),
        jobs_matching=130,
        jobs_proportional=100,
        jobs_unique=20,
        jobs_effective=89,
        slots_idle=11,
        pilot_size=Size(8, 16384),
        last_heard=NOW,
    )


def test_factory_not_heard_of() -> None:
    """Without the factory's part its counts are absent, not zero, and the frontend's remain."""
    found = request(feigned(factory_heard=False, requested_idle=3))
    assert found.monitor.asked_idle == 3
    factorys = (
        found.monitor.pending,
        found.monitor.status_running,
        found.monitor.status_held,
        found.monitor.status_wait,
    )
    totals = (
        found.whole.total.pending,
        found.whole.total.status_running,
        found.whole.total.status_held,
        found.monitor.client_info_age,
    )
    assert factorys == totals == (None,) * 4


def test_nothing_but_a_name() -> None:
    """An ad that has nothing but its name is an entry of which nothing is known."""
    found = request({"MyType": "glideresource", "Name": "ce1@glidein@factory"})
    assert found.entry == EntryKey("ce1", "ce1")
    assert (found.group, found.factory, found.down, found.limits) == (
        "",
        "glidein@factory",
        False,
        (),
    )
    told = {k: v for k, v in found._asdict().items() if v is not None}
    numbers = {"monitor", "whole", "here_contradicts"}
    assert set(told) - numbers == {"entry", "group", "factory", "down", "limits", "last_heard"}
    assert (found.monitor, found.whole) == (Monitor(), EntryMonitor())
    (entry,) = decode({"MyType": "glideresource", "Name": "ce1@glidein@factory"}).entries
    assert entry == FactoryEntry("ce1", "glidein@factory", EntryMonitor(), "ce1")


def test_ad_without_a_name_is_a_problem() -> None:
    """An ad that names no entry is counted as a problem."""
    found = decode({"MyType": "glideresource", "LastHeardFrom": NOW})
    assert found.requests == ()
    assert [(p.source, p.problem) for p in found.problems] == [("cm", "no_entry")]


@pytest.mark.parametrize("without", ["GlideFactoryName", "GlideFrontendName", "GlideClientName"])
def test_names_from_what_there_is(without: str) -> None:
    """Entry, factory and client are distinguished whichever of the names is missing."""
    ad = feigned("ce1", glidein="v3", factory="cern", client="cms.main")
    del ad[without]
    found = request(ad)
    assert (found.entry.entry, found.factory, found.group) == ("ce1", "v3@cern", "cms.main")


@pytest.mark.parametrize(
    ("said", "down"),
    [
        ("True", True),
        ("true", True),
        (1, True),
        (True, True),
        ("False", False),
        (0, False),
        (False, False),
        (Expr("undefined"), False),
        ("perhaps", False),
    ],
)
def test_downtime_spellings(said: Value, down: bool) -> None:
    """Downtime is understood in each of its spellings, and is not assumed."""
    assert request(feigned(down=said)).down is down


def test_limits_and_curbs() -> None:
    """Every limit and curb that is hit is told, by its attribute and in its own words."""
    ad = feigned(
        limits={"TotalGlideinsPerEntry": (1000, 1000)},
        curbs={"IdleGlideinsGlobal": (300, 200)},
        factory_limits={"HeldGlideinsPerEntry": (50, 50)},
        GlideClientLimitIdleGlideinsPerGroup=0,
        GlideClientLimitTotalGlideinsGlobal=Expr("undefined"),
        GlideClientLimitTotalGlideinsPerGroup="",
    )
    assert request(ad).limits == (
        Limit("GlideClientCurbCurbIdleGlideinsGlobal", "count=300, curb=200"),
        Limit("GlideClientLimitTotalGlideinsPerEntry", "count=1000, limit=1000"),
        Limit(
            "GlideFactoryMonitorStatus_GlideFactoryLimitHeldGlideinsPerEntry",
            "count=50, limit=50",
        ),
    )


def test_limit_in_many_words_is_cut() -> None:
    """A limit's text is bounded and can be printed, whatever the ad says; so is its name."""
    ad = feigned(GlideClientLimitTotalGlideinsPerEntry="\x1b" + "x" * 5000)
    assert request(ad).limits[0].text == "?" + "x" * 98 + "…"
    whole = classad("['GlideClientLimit\x1b' = 1]")
    assert [limit.name for limit in glideresource.limits(whole)] == ["GlideClientLimit?"]


@pytest.mark.parametrize(
    ("more", "waiting"),
    [
        ({"StatusIdle": 8, "StatusWait": 3, "StatusPending": 2}, 5),
        ({"StatusIdle": 2, "StatusWait": 3}, 0),
        ({"StatusIdle": 8, "StatusPending": 2}, 2),
        ({"StatusIdle": 8}, 8),
        ({"StatusPending": 2}, 2),
        ({"StatusWait": 3}, None),
        ({"StatusIdle": -1, "StatusWait": 3}, None),
        ({}, None),
    ],
    ids=str,
)
def test_waiting_is_idle_less_wait(more: dict[str, int], waiting: int | None) -> None:
    """Pilots wait in the site's queue once the site has acknowledged them."""
    ad = feigned(factory_heard=False) | {f"GlideFactoryMonitor{k}": v for k, v in more.items()}
    assert request(ad).monitor.pending == waiting


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({"GLIDEIN_CPUS": "8"}, Size(8, 16384)),
        ({"GLIDEIN_CPUS": 4}, Size(4, 16384)),
        ({"GLIDEIN_CPUS": "auto", "GLIDEIN_ESTIMATED_CPUS": "64"}, Size(64, 16384)),
        ({"GLIDEIN_CPUS": "auto"}, None),
        ({"GLIDEIN_CPUS": "node", "GLIDEIN_ESTIMATED_CPUS": 0}, None),
        ({"GLIDEIN_CPUS": "-1"}, None),
        ({"GLIDEIN_CPUS": "1e9"}, None),
        ({"GLIDEIN_CPUS": "inf"}, None),
        ({"GLIDEIN_CPUS": "nan"}, None),
        ({"GLIDEIN_MaxMemMBs": "auto"}, None),
        ({"GLIDEIN_MaxMemMBs": 0, "GLIDEIN_ESTIMATED_MEMORY": "4000"}, Size(8, 4000)),
        ({"GLIDEIN_MaxMemMBs": 0, "GLIDEIN_MemMBsPerCPU": 2500}, Size(8, 20000)),
        ({"GLIDEIN_MaxMemMBs": 1e12}, None),
        ({"GLIDEIN_Resource_Slots": "GPUs,2,type=main"}, Size(8, 16384, 2)),
        ({"GLIDEIN_Resource_Slots": "ioslot,4;GPUs,1,type=main"}, Size(8, 16384, 1)),
        ({"GLIDEIN_Resource_Slots": "GPUs,type=main"}, Size(8, 16384, 1)),
        ({"GLIDEIN_Resource_Slots": "GPUs"}, Size(8, 16384, 1)),
        ({"GLIDEIN_Resource_Slots": "GPUs,999999999,type=main"}, Size(8, 16384, 100000)),
        ({"GLIDEIN_Resource_Slots": "ioslot,4,type=extra"}, Size(8, 16384)),
        ({"GLIDEIN_GPUS": "2"}, Size(8, 16384, 2)),
    ],
    ids=str,
)
def test_pilot_size(more: Ad, size: Size | None) -> None:
    """A pilot's size is known only where cores and memory are sensible numbers."""
    assert request(feigned() | more).pilot_size == size


def test_gpus_as_the_factory_writes_them() -> None:
    """An entry with GPUs has them in its pilots' size and in its template."""
    found = decode(heard(feigned(gpus=4)))
    assert found.requests[0].pilot_size == Size(8, 16384, 4)
    assert found.templates[0].size == Size(8, 16384, 4)


def test_stale_ads_are_dropped() -> None:
    """The ad of a frontend that is gone is dropped by its own lifetime."""
    old = heard(feigned("old"), NOW - 1000)
    found = decode(old, heard(feigned("new")), old | {"Name": "kept", "ClassAdLifetime": 3600})
    assert len(found.requests) == 2


def test_a_template_for_each_frontend_group() -> None:
    """Two groups that ask the same entry make two templates; an entry of no size makes none."""
    found = decode(
        heard(feigned("ce1", client="f.a")),
        heard(feigned("ce1", client="f.b")),
        heard(feigned("ce2", GLIDEIN_CPUS="auto")),
    )
    assert [(t.entry.entry, t.group) for t in found.templates] == [("ce1", "f.a"), ("ce1", "f.b")]
    assert found.templates[0].evidence == "estimated"
    assert found.templates[0].lifetime_s == 172800


@pytest.mark.parametrize(
    ("start", "owner", "verdict"),
    [
        ('Owner == "a"', "a", Verdict.YES),
        ('Owner == "a"', "b", Verdict.NO),
        ('TARGET.Owner == "a"', None, Verdict.POSSIBLE),
        ("((", "a", Verdict.YES),
    ],
)
def test_the_start_expression_of_the_frontend_counts(
    start: str, owner: str | None, verdict: Verdict
) -> None:
    """Where no pilot of a group runs, its ad says what its pilots would start."""
    ad = heard(feigned(GlideClientConstraintFactoryCondorExpr=start))
    (template,) = decode(ad).templates
    template = matching.with_start(template, ())
    said = "" if owner is None else f'Owner = "{owner}"'
    job = f"[Requirements = true; JobUniverse = 5; {said}]"
    assert matching.evaluate([job], [template], [(0, 0)]) == ([verdict], 1)


def test_template_does_not_change_with_the_counts() -> None:
    """What changes by the minute is not in the template, so that verdicts on it stay."""
    before = decode(heard(feigned(running=1, jobs_idle=5))).templates[0]
    after = decode(heard(feigned(running=9, jobs_idle=0, sequence=7), NOW + 60)).templates[0]
    assert before.signature == after.signature
    assert "glidein_site" in attributes(before.ad)
    assert not any(name.startswith("glideclientmonitor") for name in attributes(before.ad))


def test_absurd_counts_are_absent() -> None:
    """A count that cannot be is absent, and does no harm to sums."""
    ad = feigned(
        GlideFactoryMonitorStatusRunning=1e300,
        GlideFactoryMonitorStatusHeld=-1,
        GlideFactoryConfigPerEntryMaxGlideins=Expr('real("INF")'),
        GlideClientMonitorJobsIdle="many",
    )
    found = request(ad)
    assert (found.monitor.status_running, found.monitor.status_held, found.whole.max_pilots) == (
        None,
        None,
        None,
    )
    assert found.jobs_proportional is None
