"""Slots that run a job, in slot ads of a real pool (tests/recordings/histories/claims.json)."""

from __future__ import annotations

import classad2
import pytest

from gwmond.model.facts import Size
from gwmond.model.runs.run_facts import Source
from gwmond.sources.htcondor.pilots import claims
from tests.build.histories import load, parsed, rows
from tests.pool.adtext import Ad
from tests.sources.make import NOW, classad, classads, heard


def test_the_claims_of_a_real_pool() -> None:
    """Each claim names job, start, size, user and pilot, but no run; it is not over."""
    found = list(map(parsed, rows("claims")))
    now = max(int(ad["LastHeardFrom"]) for ad in found) + 1
    decoded = claims.decode(found, "collector", now)
    assert decoded.problems == ()
    assert len(decoded.records) == len(found) > 8
    jobs = {str(ad["GlobalJobId"]) for _, ad in load("epochs")}
    for record in decoded.records:
        fact = record.fact
        assert (fact.source, fact.shadow_start, fact.end_us) == (Source.LIVE_SLOT, None, None)
        assert (fact.user, fact.size) == ("alice@pool.test", Size(1, 128, 0))
        assert fact.job in jobs
        assert not fact.ending.over
        assert record.startd.startswith("glidein_")
        assert record.started is not None


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"State": "Preempting"}, True),
        ({"State": "Unclaimed"}, False),
        ({"SlotType": "Partitionable"}, False),
        ({"SlotType": "Static"}, True),
        ({"JobStart": NOW - 100}, False),
    ],
)
def test_which_slots_are_asked_for(changes: dict[str, str | int], wanted: bool) -> None:
    """Claimed ones that name a job, since a time if one is given."""
    slot: Ad = {
        "State": "Claimed",
        "SlotType": "Dynamic",
        "GlobalJobId": "s#1.0#1",
        "JobStart": NOW - 10,
    }
    found = classad({**slot, **changes})
    constraint = classad2.ExprTree(claims.query(NOW - 50).constraint)
    assert (constraint.eval(found) is True) is wanted
    del found["GlobalJobId"]
    assert constraint.eval(found) is not True


def test_parts_of_all_claims() -> None:
    """Each claim of a real pool is in one part, with all others of its startd; joined, in all."""
    every = claims.query().constraint
    parts = [
        [ad for ad in map(parsed, rows("claims")) if wanted.eval(ad) is True]
        for wanted in (
            classad2.ExprTree(claims.query(part=(k, 3)).constraint.removeprefix(f"{every} && "))
            for k in range(3)
        )
    ]
    names = [{str(ad["Name"]).partition("@")[2] for ad in part} for part in parts]
    assert not names[0] & names[1] | names[1] & names[2] | names[0] & names[2]
    together = claims.joined([claims.decode(part, "collector", 0) for part in parts])
    whole = claims.decode(list(map(parsed, rows("claims"))), "collector", 0)
    assert sorted(r.fact.job for r in together.records) == sorted(r.fact.job for r in whole.records)


def test_claims_that_are_old_or_make_no_sense() -> None:
    """An expired ad is dropped; one without name or job is a problem."""
    good: Ad = {
        "Name": "slot1@n",
        "GlobalJobId": "s#1.0#1",
        "JobStart": NOW,
        "Cpus": 1,
        "Memory": 9,
    }
    found = classads(
        heard({**good, "Name": "slot9@gone"}, NOW - 5000),
        heard({"GlobalJobId": "s#1.0#1"}),
        heard({"Name": "slot2@n"}),
        heard({**good, "JobStart": -1, "Cpus": -1}),
    )
    decoded = claims.decode(found, "collector", NOW)
    assert [(p.problem, p.detail) for p in decoded.problems] == [
        ("no_name", "ad without a name"),
        ("no_job", "slot2@n"),
    ]
    (record,) = decoded.records
    assert (record.startd, record.fact.start_us, record.fact.size) == ("n", None, None)
