"""What the collectors say of the negotiator, and of whom it serves."""

from __future__ import annotations

from pathlib import Path

import classad2

from gwmond.config.settings import DemandOptions
from gwmond.model.demand.order import Negotiator
from gwmond.sources.htcondor import order
from gwmond.sources.htcondor.access import Daemon, LiveAccess, Query
from gwmond.sources.htcondor.places import ExplainTerms
from tests.build.waiting import waiting_job
from tests.pool.adtext import Ad, ad_text
from tests.sources.feigned_access import Feigned
from tests.sources.make import ATTRIBUTES, NOW

TERMS = ExplainTerms(("cm1", "cm2"), (), ATTRIBUTES, DemandOptions(), NOW)


def collectors(path: Path, **kinds: list[Ad]) -> Feigned:
    """A pair of collectors: each has all ads, as far as these are addressed to both."""
    answers = {
        (host, kind): tuple(ad_text(ad | {"LastHeardFrom": NOW}) for ad in ads)
        for host in ("cm1", "cm2")
        for kind, ads in kinds.items()
    }
    return Feigned(answers, str(path / "log"))


def test_idle_jobs_that_two_collectors_know_count_once(tmp_path: Path) -> None:
    idle: list[Ad] = [
        {"Name": "bob@pool", "ScheddName": schedd, "IdleJobs": 7} for schedd in ("ap1", "ap2")
    ]
    found, _ = order.fetch(
        collectors(tmp_path, submitters=idle), Daemon("ap1", "ap1"), waiting_job(), TERMS
    )
    assert {name: one.idle for name, one in found.submitters.items()} == {"bob@pool": 14}


class Schedd(LiveAccess):
    """A schedd that has no job of which a constraint is true; collectors without ads."""

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        del host, query
        return []

    def count_jobs(self, schedd: Daemon, constraint: str) -> int:
        del schedd, constraint
        return 0


def test_own_jobs_of_a_name_that_was_cut_are_not_known() -> None:
    """None has that name, which says nothing."""
    for user, jobs in (("alice@pool", 0), ("x" * 99 + "…", None), ("al?ce@pool", None)):
        found, _ = order.fetch(Schedd(), Daemon("ap1", "ap1"), waiting_job(user=user), TERMS)
        assert found.own_ahead == jobs


def test_when_the_last_cycle_was(tmp_path: Path) -> None:
    """The negotiator's own ad is minutes old; those of accounting groups come in each cycle."""
    own: Ad = {"Name": "cm", "LastNegotiationCyclePeriod0": 60}
    own |= {"LastNegotiationCycleTime0": NOW - 290, "LastNegotiationCycleEnd0": NOW - 280}
    group: Ad = {"Name": "<none>", "NegotiatorName": "cm", "LastUpdate": NOW - 20}
    (found,) = order.negotiators(collectors(tmp_path, negotiators=[own], cycles=[group]), TERMS)
    assert found == Negotiator("cm", NOW - 30, NOW - 20, None, 60)
    (alone,) = order.negotiators(collectors(tmp_path, negotiators=[own]), TERMS)
    assert alone == Negotiator("cm", NOW - 290, NOW - 280, NOW, 60)
    other = group | {"NegotiatorName": "other"}
    (apart,) = order.negotiators(collectors(tmp_path, negotiators=[own], cycles=[other]), TERMS)
    assert apart == alone
