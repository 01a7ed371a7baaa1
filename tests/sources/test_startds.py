"""From StartD ads to pilots."""

from __future__ import annotations

from collections.abc import Mapping

from gwmond.model.facts import EntryKey, Size
from gwmond.sources.htcondor.pilots import startds
from gwmond.sources.htcondor.pilots.startds import Startds
from tests.pool.adtext import Expr, Value
from tests.pool.feign import glidein, startd_ad
from tests.sources.make import ATTRIBUTES, NOW, classads, heard


def decode(*ads: Mapping[str, Value]) -> Startds:
    return startds.decode(classads(*ads), ATTRIBUTES, NOW)


def ad(name: str = "pilot", **more: Value) -> dict[str, Value]:
    return heard(startd_ad(name, started=NOW - 60, now=NOW, glidein=glidein())) | more


def test_pilot_by_its_startd() -> None:
    """A StartD ad tells who a pilot is and its size, but neither free slots nor jobs."""
    (found,) = decode(ad(TotalGPUs=2)).pilots
    assert (found.name, found.entry, found.group) == (
        "pilot",
        EntryKey("Site", "entry"),
        "frontend.main",
    )
    assert (found.size, found.started, found.last_heard) == (Size(8, 16384, 2), NOW - 60, NOW)
    assert (found.free, found.jobs, found.accepting) == ((), (), False)


def test_unused_pilots() -> None:
    """A pilot whose startd has started no job is unused."""
    found = decode(ad("new", JobStarts=0), ad("used", JobStarts=3))
    assert found.unused == {"new"}


def test_ads_that_tell_nothing_new() -> None:
    """Ads made up from a slot's (no JobStarts), of monitors, absurd or stale ones are left out."""
    found = decode(
        ad("no_count", JobStarts=Expr("undefined")),
        ad("monitor", IS_MONITOR_VM=True),
        ad("absurd", TotalCpus=1e9),
        ad("negative", TotalMemory=-1),
        ad("stale", LastHeardFrom=NOW - 1000),
        ad("fine"),
    )
    assert [p.name for p in found.pilots] == ["fine"]


def test_query_projects_what_is_decoded() -> None:
    """The query asks for the attributes by which pilots are distinguished."""
    query = startds.query(ATTRIBUTES)
    assert query.ad_type == "StartDaemon"
    assert {"Name", "JobStarts", "TotalCpus", "GLIDEIN_Site"} <= set(query.projection)
