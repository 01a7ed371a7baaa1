"""Which schedds there are."""

from __future__ import annotations

import pytest

from gwmond.model.demand.order import ScheddLoad
from gwmond.model.demand.submitters import SubmitterCount
from gwmond.model.facts import JobCount
from gwmond.sources.htcondor import schedds
from gwmond.sources.htcondor.access import Daemon
from gwmond.sources.htcondor.schedds import ScheddSeen
from tests.pool.adtext import Ad, Expr, Value
from tests.sources.make import NOW, classads, heard


def schedd_ad(name: str = "schedd1", **more: Value) -> Ad:
    ad: Ad = {
        "Name": name,
        "MyAddress": f"<10.0.0.1:9618?alias={name}>",
        "CondorVersion": "$CondorVersion: 23.9.6 $",
        "RecentDaemonCoreDutyCycle": 0.25,
        "JobsUnmaterialized": 0,
    }
    return heard(ad) | more


def submitter_ad(name: str, schedd: str = "schedd1", **more: Value) -> Ad:
    ad: Ad = {
        "Name": name,
        "ScheddName": schedd,
        "ScheddIpAddr": f"<10.0.0.2:9618?alias={schedd}>",
        "RunningJobs": 5,
        "HeldJobs": 1,
    }
    return heard(ad) | more


def seen(name: str, address: str = "<a>", *, flocks: bool = False) -> ScheddSeen:
    return ScheddSeen(Daemon(name, address), ScheddLoad(), flocks, None)


def test_schedd() -> None:
    """A schedd's ad tells how to ask it, how busy it is and what it has not materialized."""
    found = schedds.decode(classads(schedd_ad(JobsUnmaterialized=40)), NOW)
    daemon = Daemon("schedd1", "<10.0.0.1:9618?alias=schedd1>", "$CondorVersion: 23.9.6 $")
    assert found.schedds == (ScheddSeen(daemon, ScheddLoad(duty_cycle=0.25), False, 40),)


def test_which_jobs_it_starts_itself() -> None:
    """Of universes that run on no pilot, if its own expression says so."""
    ad = schedd_ad() | {
        "StartSchedulerUniverse": Expr("TARGET.Mine"),
        "StartLocalUniverse": Expr("TotalLocalJobsRunning < 2"),
        "TotalLocalJobsRunning": 2,
    }
    (read,) = classads(ad)
    assert schedds.load(read).starts_none == {12}


@pytest.mark.parametrize("without", ["Name", "MyAddress"])
def test_schedd_that_cannot_be_asked(without: str) -> None:
    """An ad without a name or an address is no schedd."""
    ads = classads(schedd_ad() | {without: Expr("undefined")}, schedd_ad("other"))
    assert [s.daemon.name for s in schedds.decode(ads, NOW).schedds] == ["other"]


def test_unknown_load() -> None:
    """What a schedd does not report of its load and its unmaterialized jobs is unknown."""
    ad = schedd_ad(RecentDaemonCoreDutyCycle=Expr("undefined"), JobsUnmaterialized=-1)
    (found,) = schedds.decode(classads(ad), NOW).schedds
    assert (found.load.duty_cycle, found.unmaterialized) == (None, None)


def test_stale_ads() -> None:
    """A schedd or submitter that was heard of too long ago is gone."""
    ads = classads(schedd_ad("old", LastHeardFrom=NOW - 1000), schedd_ad("new"))
    assert [s.daemon.name for s in schedds.decode(ads, NOW).schedds] == ["new"]
    ads = classads(submitter_ad("a@x", LastHeardFrom=NOW - 1000), submitter_ad("a@x", "new"))
    assert [s.daemon.name for s in schedds.decode_submitters(ads, NOW).schedds] == ["new"]


def test_submitters_tell_of_a_schedd_that_flocks() -> None:
    """A schedd is known by its submitters' ads alone, once however many users it has."""
    ads = classads(submitter_ad("alice@x", "far"), submitter_ad("bob@x", "far"))
    (found,) = schedds.decode_submitters(ads, NOW).schedds
    assert found == ScheddSeen(Daemon("far", "<10.0.0.2:9618?alias=far>"), ScheddLoad(), True, None)


def test_submitters_count_by_accounting_group() -> None:
    """Running and held jobs are added up by schedd and accounting group, never by user."""
    ads = classads(
        submitter_ad("cms.prod.alice@x"),
        submitter_ad("cms.prod.bob@x", RunningJobs=7),
        submitter_ad("carol@x", HeldJobs=Expr("undefined")),
        submitter_ad("carol@x", "schedd2", RunningJobs=-1, HeldJobs=2),
    )
    assert schedds.decode_submitters(ads, NOW).counts == (
        JobCount("schedd1", "", "running", 5),
        JobCount("schedd1", "cms.prod", "held", 2),
        JobCount("schedd1", "cms.prod", "running", 12),
        JobCount("schedd2", "", "held", 2),
    )


def test_jobs_of_submitters() -> None:
    """What is not told is not known; of two ads of one schedd the later counts."""
    ads = classads(
        submitter_ad("alice@x", IdleJobs=7, LastHeardFrom=NOW - 60),
        submitter_ad("alice@x", IdleJobs=9, RunningJobs=6, SubmitterTag=""),
        submitter_ad("cms.bob@x", IdleJobs=0, SubmitterTag="far.org", HeldJobs=Expr("error")),
        submitter_ad("bob@x", "schedd2"),
        submitter_ad("", "schedd2", IdleJobs=1),
    )
    found = schedds.decode_submitters(ads, NOW)
    assert found.submitters == (
        SubmitterCount("schedd1", "alice@x", "", 9, 6, 1, NOW),
        SubmitterCount("schedd1", "cms.bob@x", "far.org", 0, 5, None, NOW),
        SubmitterCount("schedd2", "bob@x", "", None, 5, 1, NOW),
    )
    assert found.counts[0] == JobCount("schedd1", "", "held", 1)


@pytest.mark.parametrize("without", ["ScheddName", "ScheddIpAddr"])
def test_submitter_without_schedd(without: str) -> None:
    """A submitter that does not tell its schedd tells nothing."""
    ads = classads(submitter_ad("alice@x") | {without: Expr("undefined")})
    assert schedds.decode_submitters(ads, NOW) == schedds.Schedds((), ())


def test_each_schedd_once() -> None:
    """A schedd that several collectors know is asked once, the same one whatever their order."""
    found = schedds.choose([seen("b"), seen("a"), seen("b")], ())
    assert [s.daemon.name for s in found] == ["a", "b"]


def test_own_ad_goes_before_a_submitters() -> None:
    """Where a schedd sends its own ad, that one counts: it has the address and the load."""
    own, flocking = seen("a", "<own>"), seen("a", "<submitter>", flocks=True)
    assert schedds.choose([flocking, own], ()) == [own]
    assert schedds.choose([own, flocking], ()) == [own]
    assert schedds.choose([flocking], ()) == [flocking]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ([], ["ap1.a.org", "ap2.a.org", "login@b.org"]),
        (["ap1.a.org"], ["ap1.a.org"]),
        (["AP1.A.org"], ["ap1.a.org"]),
        (["ap?.a.org"], ["ap1.a.org", "ap2.a.org"]),
        (["*.org"], ["ap1.a.org", "ap2.a.org", "login@b.org"]),
        (["*@b.org", "ap2*"], ["ap2.a.org", "login@b.org"]),
        (["ap1"], []),
    ],
    ids=str,
)
def test_patterns(wanted: list[str], chosen: list[str]) -> None:
    """Schedds are chosen by name or by pattern, in whatever case."""
    known = [seen("ap1.a.org"), seen("ap2.a.org"), seen("login@b.org")]
    assert [s.daemon.name for s in schedds.choose(known, wanted)] == chosen


def test_queries_project_what_is_decoded() -> None:
    """Both queries name their attributes, and none that has users' secrets."""
    assert {"Name", "MyAddress", "JobsUnmaterialized"} <= set(schedds.QUERY.projection)
    assert {"ScheddName", "IdleJobs", "RunningJobs"} <= set(schedds.SUBMITTERS.projection)
