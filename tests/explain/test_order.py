"""A job's place in the negotiator's order, and what this order limits."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.explain.order import (
    FullQuota,
    Rivals,
    full_ceiling,
    full_group,
    place,
    rivals,
    words,
)
from gwmond.model.demand.order import AccountingQuota, Submitter
from gwmond.model.entries.evaluation import IdleJobs, MatchedKind
from gwmond.model.facts import DemandGroup, EntryKey, Size
from gwmond.sources.htcondor.order import ahead
from tests.build import waiting
from tests.build.waiting import QUOTAS, order, waiting_job


def test_users_of_a_better_priority_and_groups_of_a_lower_key_are_ahead() -> None:
    mine = place(waiting_job(), order())
    assert mine is not None
    assert (mine.users, mine.users_ahead, mine.jobs_ahead) == (4, 2, 9)  # bob, and erin of cms
    assert (mine.own_ahead, mine.used, mine.share) == (12, 3.0, 10.0)
    erin = place(waiting_job(submitter="cms.erin@pool"), order())
    assert erin is not None
    assert (erin.users_ahead, erin.group_used, erin.group_quota) == (0, 4.0, 10.0)
    assert "cms uses 4 of its quota of 10" in erin.text()


def test_what_is_not_known_of_the_order_is_said() -> None:
    assert place(waiting_job(submitter="new@pool"), order()) is None
    assert "accounts nothing of its user yet" in words(waiting_job(submitter="x@y"), order())
    assert "could not be read" in words(waiting_job(), None)
    assert "? idle jobs of its own user are" in words(waiting_job(), order(own_ahead=None))


def test_one_is_ahead_and_none_are_said_as_such() -> None:
    mine = place(waiting_job(), order(own_ahead=1))
    assert mine is not None
    one = mine._replace(users_ahead=1).ahead()
    assert "1 of 4 other users with idle jobs is ahead by" in one
    assert "; 1 idle job of its own user is ahead in" in one
    assert mine._replace(users=0, users_ahead=0).ahead().startswith("no other user has idle jobs; ")


def idle(jobs: int, *entries: str, **more: Any) -> IdleJobs:
    group = DemandGroup("ap", "", "s", "[]", jobs, Size(1, 2000), None)._replace(**more)
    keys = tuple(EntryKey("S", entry) for entry in entries)
    kinds = tuple(MatchedKind(key, "f.g", sure=True) for key in keys)
    return IdleJobs(group, 0.0, 0.0, keys, kinds=kinds)


def test_only_jobs_that_could_take_the_same_slots_count() -> None:
    """By the kinds of pilots, what is free of them, and the schedd of those of the same user."""
    job = waiting_job(identity="me")
    free = [waiting.place(size=Size(2, 4000)), waiting.place(size=Size(1, 8000))]
    every = [
        idle(3, "E", identity="me"),
        idle(4, "E", "other"),
        idle(100),
        idle(100, "other"),
        idle(100, "E", size=Size(2, 8000)),
        idle(2, "E", schedd="ap2", identity="me"),
    ]
    found = rivals(job, every, free)
    assert found == Rivals(6, 8)
    mine = place(job, order(), found)
    assert mine is not None
    assert (mine.jobs_ahead, mine.jobs_ahead_there) == (9, 8)
    assert (mine.own_ahead, mine.own_ahead_there) == (12, 6)
    text = words(job, order(), found)
    assert "with 9 idle jobs, of which at most 8 could run where it could; 12 idle jobs" in text
    assert "(JobPrio, QDate), of which at most 6 could run where it could; " in text
    assert not mine.nobody
    alone = place(job, order(), rivals(job, every[2:5], free))
    assert alone is not None
    assert alone.nobody
    assert alone.ahead().count("of which none could run where it could") == 2
    all_of_them = alone._replace(jobs_ahead_there=alone.jobs_ahead, own_ahead_there=alone.own_ahead)
    assert "of which" not in all_of_them.ahead()  # at most all of them: that is no news
    assert rivals(job, [idle(3, "other", identity="me")], free) is None  # nodes there differ


def test_a_quota_that_is_used_up() -> None:
    """While anything is left, a job of any size is given a slot."""
    job = waiting_job(submitter="cms.prod.erin@pool", size=Size(7, 2000))
    assert full_group(job, order()) is None
    full = {"cms": QUOTAS["cms"]._replace(used=10.0)}
    assert full_group(job, order(groups=full)) == FullQuota("cms", 10, 10)  # the group above
    surplus = {"cms": full["cms"]._replace(surplus=True)}
    assert full_group(job, order(groups=surplus)) is None
    assert full_group(waiting_job(), order(groups=full)) is None
    assert full_group(job._replace(submitter="CMS.erin@pool"), order(groups=full)) is not None


def quota(quota: float, used: float, *, surplus: bool = False, never: bool = False) -> Any:
    return AccountingQuota(0.0, quota, used, surplus, quota, never)


SEEN = {
    "group_z": quota(0, 3, surplus=True, never=True),
    "group_zero": quota(0, 0, never=True),
    "group_a": quota(1, 0),
    "group_a.sub": quota(4, 1),
    "group_b": quota(2, 0),
    "group_b.sub": quota(1, 2, surplus=True),
    "group_b.tic": quota(1, 0, surplus=True),
    "group_c": quota(3, 2),
    "group_c.sub": quota(1, 1),
    "group_d": quota(2, 0, surplus=True),
    "group_d.sub": quota(1, 4, surplus=True),
    "group_e": quota(1, 3),
    "group_e.sub": quota(4, 0),
    "group_f": quota(0, 0, never=True),
    "group_f.sub": quota(0, 2)._replace(regroup=True),
    "<none>": quota(24, 2, surplus=True),
}
"""As a pool of HTCondor 25.14.1 with 24 free cores advertised it, its negotiator at rest."""
KEPT_BY = {
    "group_zero": "group_zero",
    "group_a": "group_a",
    "group_a.sub": "group_a",
    "group_b": "group_b",
    "group_b.sub": "group_b",
    "group_b.tic": "group_b",
    "group_c": "group_c",
    "group_c.sub": "group_c.sub",
    "group_e.sub": "group_e",
    "group_z": None,
    "group_d": None,
    "group_d.sub": None,
    "group_f.sub": None,
}
"""Idle jobs of one core of each group were given nothing there, but those of the last."""


@pytest.mark.parametrize("group", KEPT_BY)
def test_quotas_of_groups_above_and_of_nothing(group: str) -> None:
    """What a group and all below it use counts together; surplus is bound by the groups above."""
    full = full_group(waiting_job(submitter=f"{group}.erin@pool"), order(groups=SEEN))
    assert (full and full.name) == KEPT_BY[group]


def test_a_quota_that_says_nothing() -> None:
    """All are 0 in a pool without slots."""
    job = waiting_job(submitter="cms.prod.erin@pool")
    assert full_group(job, order(groups={"cms": quota(0, 0)})) is None


def test_the_ceiling_of_a_submitter() -> None:
    job = waiting_job(submitter="alice@pool", size=Size(2, 2000))
    alice = Submitter("<none>", 600.0, 3.0, 10.0, 50)
    ceilings = {None: None, 4.0: None, 3.0: 3.0, 0.0: 0.0}
    for ceiling, kept in ceilings.items():
        known = order(submitters={"alice@pool": alice._replace(ceiling=ceiling)})
        full = full_ceiling(job, known)
        assert (full and full.quota) == kept


def test_own_jobs_that_are_offered_before() -> None:
    text = ahead(waiting_job(number="12.3", priority=5, submitted=100))
    assert 'User == "alice@pool" && AccountingGroup is undefined' in text
    assert "(JobPrio ?: 0) > 5" in text
    assert "(ClusterId == 12 && ProcId < 3)" in text
    grouped = ahead(waiting_job(submitter="cms.alice@pool"))
    assert 'AccountingGroup == "cms.alice"' in grouped
