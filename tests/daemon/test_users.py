"""Users' jobs now, beside what condor_status says of submitters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.build.web import rows
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import Scene
from tests.pool.condor import CondorPool

Counts = dict[str, tuple[int, ...]]
NUMBERS = "waiting_jobs", "running_jobs", "held_jobs"
JOBS = {"http": {"jobs": "all"}}


def condor_status(pool: CondorPool) -> Counts:
    """Idle, running and held jobs by submitter, as HTCondor's own program has them."""
    found: dict[str, Counter[int]] = {}
    told = pool.tool(
        *("condor_status", "-submitters", "-af", "Name", "IdleJobs", "RunningJobs", "HeldJobs")
    )
    assert told.returncode == 0, told.stderr
    for name, *numbers in map(str.split, told.stdout.splitlines()):
        found.setdefault(name, Counter()).update(dict(enumerate(map(int, numbers))))
    return {name: tuple(sums[i] for i in range(3)) for name, sums in found.items() if sums.total()}


def told_by(running: RunningDaemon, query: str = "") -> list[Any]:
    users: list[Any] = json.loads(running.get(f"/api/v1/users{query}"))["users"]
    return [one for one in users if any(one[name] for name in NUMBERS)]


def counts(users: list[Any]) -> Counts:
    return {one["submitter"]: tuple(one[name] for name in NUMBERS) for one in users}


@pytest.fixture
def pool(htcondor: str) -> Iterator[CondorPool]:
    with CondorPool(htcondor=htcondor) as running:
        yield running


def test_users_of_two_schedds(pool: CondorPool, daemon: Callable[..., RunningDaemon]) -> None:
    """Jobs that wait, run and are held, with accounting groups and a user with a dot: by submitter
    as condor_status has them, by user on the page."""
    scene, (first, second) = Scene(pool), pool.schedds
    pool.start_pilot("one", cores=2, memory=2048, attrs={"GLIDEIN_Site": "Real"})
    pool.submit(first, 2)
    pool.wait_for("two jobs to run", lambda: len(pool.jobs(first, "JobStatus == 2")) == 2)
    scene.jobs(3, "Nowhere", accounting_group="cms.prod", accounting_group_user="alice")
    scene.jobs(4, "Nowhere", schedd=1)
    scene.jobs(5, "Nowhere", schedd=1, owner="bob")
    scene.jobs(2, "Nowhere", owner="bob", hold=True)
    scene.jobs(1, "Nowhere", accounting_group="cms.prod", accounting_group_user="ada.lovelace")
    scene.jobs(1, "Nowhere", accounting_group_user="ada.lovelace", hold=True)
    expected: Counts = {
        "ada.lovelace@pool.test": (0, 0, 1),
        "alice@pool.test": (4, 2, 0),
        "bob@pool.test": (5, 0, 2),
        "cms.prod.ada.lovelace@pool.test": (1, 0, 0),
        "cms.prod.alice@pool.test": (3, 0, 0),
    }
    pool.wait_for("all of them to be told", lambda: condor_status(pool) == expected)
    running = daemon(pool.collector, tables=JOBS)
    assert counts(told_by(running)) == condor_status(pool)
    assert [one["schedds"] for one in told_by(running, "?user=bob")] == [2]
    page = running.get("/user")
    assert [line[:4] for line in rows(page, "Jobs now")] == [
        ["alice@pool.test", "7", "2", "0"],
        ["bob@pool.test", "5", "0", "2"],
        ["ada.lovelace@pool.test", "1", "0", "1"],
    ]
    rows_of = running.metrics().rows("gwmond_demand_jobs")
    groups = {dict(labels)["accounting_group"] for labels in rows_of}
    assert groups == {"", "cms.prod"}  # and no part of a name
    pool.remove(second, user="bob")
    pool.wait_for("bob's jobs to go", lambda: "bob@pool.test" in condor_status(pool))
    pool.wait_for("it to be told", lambda: condor_status(pool)["bob@pool.test"] == (0, 0, 2))
    running.wait_until(
        "the next poll", lambda _: counts(told_by(running))["bob@pool.test"] == (0, 0, 2)
    )


def test_a_user_whose_schedd_flocks(scene: Scene, daemon: Callable[..., RunningDaemon]) -> None:
    """Both pools are told of the same jobs: they wait once, and run in either."""
    config = f"""
FLOCK_TO = {scene.pool.collector}
SCHEDD_INTERVAL = 1
NEGOTIATOR_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
"""
    with CondorPool(config=config, domain="other.test") as other:
        schedd = other.schedds[0]
        Scene(other).jobs(9, "Nowhere")
        scene.pool.wait_for(
            "its submitter to flock", lambda: condor_status(scene.pool).get("alice@pool.test")
        )
        running = daemon(other.collector, scene.pool.collector, tables=JOBS)
        assert counts(told_by(running)) == {"alice@pool.test": (9, 0, 0)}
        scene.pool.start_pilot("away", cores=2, memory=2048, attrs={"GLIDEIN_Site": "Real"})
        other.submit(schedd, 3)
        other.wait_for("two jobs to run", lambda: len(other.jobs(schedd, "JobStatus == 2")) == 2)
        running.wait_until(
            "what runs away",
            lambda _: counts(told_by(running)) == {"alice@pool.test": (10, 2, 0)},
        )
