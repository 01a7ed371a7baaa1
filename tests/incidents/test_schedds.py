"""Incidents of access points: a schedd that is overloaded, or offers nothing (docs/truth.md).

The ads are feigned, and go through the functions of a poll.
"""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.explain.answers import answers
from gwmond.explain.idle import Causes
from gwmond.explain.reasons import Mover, Tier
from gwmond.explain.situation import Situation
from gwmond.model.demand.order import Limits
from gwmond.model.demand.waiting_job import Examined
from gwmond.model.entries.evaluation import Evaluation
from gwmond.model.facts import FrontendJobs
from gwmond.model.states import State
from gwmond.reports.sites.sites import Polled, SiteRow, columns, cpu_rows
from gwmond.service.pool.pool_state import limits_of
from gwmond.sites.site_time import evaluate
from gwmond.sources.htcondor import schedds
from gwmond.sources.htcondor.schedds import LOAD, QUERY
from tests.build.answers import Answers, watched
from tests.build.facts import NOW, A, group, pilot, request, verdicts
from tests.build.waiting import place, waiting_job
from tests.pool.adtext import Ad, Expr
from tests.sources.make import classads, heard

CURB = Expr(
    "RecentDaemonCoreDutyCycle > 0.98 "
    "|| TransferQueueNumWaitingToUpload > TransferQueueMaxUploading"
)
"""The default of CURB_MATCHMAKING."""
HEALTHY: Ad = {
    "Name": "ap1",
    "MyAddress": "<a>",
    "RecentDaemonCoreDutyCycle": 0.1,
    "CurbMatchmaking": CURB,
    "TransferQueueMaxUploading": 100,
    "TransferQueueNumUploading": 3,
    "TransferQueueNumWaitingToUpload": 0,
    "MaxJobsRunning": 1000,
    "TotalRunningJobs": 5,
}
OVERLOADED: dict[str, tuple[Ad, str]] = {
    "a: duty cycle": ({"RecentDaemonCoreDutyCycle": 0.99}, "CurbMatchmaking, duty cycle 99%"),
    "a: transfers that wait": (
        {"TransferQueueNumWaitingToUpload": 101},
        "CurbMatchmaking, duty cycle 10%",
    ),
    "b: transfers": (
        {"TransferQueueNumUploading": 96},
        "it sends files to 96 of at most 100 jobs",
    ),
    "c: running jobs": ({"TotalRunningJobs": 955}, "it runs 955 of at most 1000 jobs"),
}


def polled(more: Ad, *frontends: FrontendJobs, **asked: Any) -> tuple[SiteRow, Limits, Evaluation]:
    """An entry with a pilot and room; 300 idle jobs at ap1, and none at ap2, which is healthy."""
    scene = Answers()
    scene.answer("cm", "frontendmonitor", frontends)
    scene.slots(pilot(A))
    scene.collector(1)
    scene.requests(request(A, **asked))
    scene.discovery("ap1", "ap2")
    sent = {name: value for name, value in (HEALTHY | more).items() if name in QUERY.projection}
    found = schedds.decode(classads(heard(sent), heard(HEALTHY | {"Name": "ap2"})), NOW)
    scene.chosen = list(found.schedds)
    scene.demand("ap1", group(300, schedd="ap1"))
    scene.demand("ap2")
    state = scene.take(watched(A, units=100))
    totals, facts = state.facts.totals or {}, state.facts
    facts = facts._replace(verdicts=verdicts(facts.groups, facts.templates))
    evaluation = evaluate(facts, NOW)
    row = cpu_rows(Polled(state.pilot_groups, evaluation, totals))[A]
    return row, limits_of((), found.schedds), evaluation


@pytest.mark.parametrize("case", OVERLOADED)
def test_2_the_frontend_leaves_out_an_overloaded_schedd(case: str) -> None:
    """The schedd is named, with why, and whose move it is."""
    more, why = OVERLOADED[case]
    row, limits, evaluation = polled(more, jobs_matching=0, jobs_effective=0)
    assert (row.state, row.reason) == (State.PROVISIONING_BOTTLENECK, "schedd_left_out")
    assert row.limits == f"ap1 ({why})"
    job = waiting_job(schedd="ap1", since=0)
    empty = Examined(job, (place(entry=A, group="frontend.main"),))
    rows = {A: row._replace(registered_pilots=0)}
    found = answers(Situation(empty, rows, NOW, order=limits.order("ap1")))
    assert {(one.name, one.mover) for one in found} == {("schedd_left_out", Mover.ACCESS_POINT)}
    assert f"the idle jobs of overloaded schedds (ap1 ({why}))" in found[-1].text
    if case.startswith("a"):
        assert found[0].text == f"ap1 is overloaded, and asks for no slots ({why})"
    causes = Causes(rows, {}, limits, pilots=True)
    assert {cause.cause for cause, _ in causes.of(evaluation.idle[0])} >= {"schedd_left_out"}


def test_2_without_overload_the_reason_is_the_frontends() -> None:
    """Near its limits a schedd still counts, and so does one that tells nothing of its load."""
    near: Ad = {"TransferQueueNumUploading": 94, "TotalRunningJobs": 949}
    silent: Ad = dict.fromkeys(LOAD, Expr("undefined"))
    for more in (near, silent):
        row, _, _ = polled(more, jobs_matching=0)
        assert (row.reason, row.limits) == ("no_match_in_frontend", ""), more
    row, _, _ = polled({"TotalRunningJobs": 955}, requested_idle=5)
    assert row.reason == "not_submitted", "pilots are requested all the same"


def test_2_free_slots_are_not_taken_for_the_same_cause() -> None:
    """A schedd that asks for no slots is named where free slots match its jobs."""
    _, limits, _ = polled(OVERLOADED["a: duty cycle"][0])
    free = place(kind="slot", entry=A, takes_jobs=True)
    here = Situation(Examined(waiting_job(schedd="ap1"), (free,)), {}, NOW)
    here.order = limits.order("ap1")
    first = answers(here)[0]
    assert (first.tier, first.name) == (Tier.POLICY, "schedd_left_out")


@pytest.mark.parametrize(("counted", "sees"), [(0, False), (250, True), (None, True)])
def test_1_the_frontend_sees_no_job_of_the_pool(counted: int | None, sees: bool) -> None:
    """Not only that none matches the entry: that is what the first line and the table say."""
    said = "the frontend counts 0 of the pool's 300 idle jobs: it does not see them"
    row, _, _ = polled({}, FrontendJobs("frontend", counted, 0, 0), jobs_matching=0)
    assert (row.reason, row.limits) == ("no_match_in_frontend", "" if sees else said)
    empty = Examined(waiting_job(schedd="ap1", since=0), (place(entry=A, group="frontend.main"),))
    here = Situation(empty, {A: row._replace(registered_pilots=0)}, NOW)
    first = answers(here)[0]
    assert (first.name, first.mover) == ("no_match_in_frontend", Mover.FRONTEND)
    assert first.text.startswith("No pilot is at 1 of 1 entry where it could run")
    assert first.text.endswith(f": {said}") is not sees
    assert ("CONDOR_Q_ONLY_MY_JOBS" in first.change) is not sees
    (cell,) = (one.cell(row) for one in columns(entries=True) if one.header == "reason")
    assert cell == ("no match in frontend" + ("" if sees else f": {said}"))
