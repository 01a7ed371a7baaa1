"""Jobs and pilots are counted once, and only those that count, whatever they look like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.daemon.running import RunningDaemon
from tests.daemon.scene import PILOT, Scene, pledged
from tests.daemon.scrape import Metrics
from tests.pool import feign
from tests.pool.condor import CondorPool

Start = Callable[..., RunningDaemon]


@pytest.fixture
def empty(shared_scene: Scene) -> Iterator[Scene]:
    """The module's pool, with no job in it before and after."""
    yield shared_scene
    pool = shared_scene.pool
    for schedd in pool.schedds:
        for user in ("alice", "bob"):
            pool.remove(schedd, user=user)
    # What runs (scheduler universe) is killed first.
    pool.wait_for("no jobs", lambda: not any(map(pool.jobs, pool.schedds)))


def _jobs(metrics: Metrics, **labels: str) -> float:
    return metrics.sum("gwmond_demand_jobs", **labels)


def _demand(metrics: Metrics, resource: str = "cpu") -> dict[str, float]:
    fates = {
        fate: metrics.sum("gwmond_demand_canonical_units", fate=fate, resource=resource)
        for fate in ("absorbed", "assigned", "unmatched")
    }
    return {"idle": metrics.sum("gwmond_demand_idle_canonical_units", resource=resource), **fates}


def test_a_job_that_matches_three_sites_is_one_job(empty: Scene, daemon: Start) -> None:
    """Each site shows the job as matching, but the sites' bottlenecks sum to the jobs there are."""
    for site in ("M1", "M2", "M3"):
        empty.resource(site)
    empty.jobs(12, "M1", "M2", "M3")
    empty.jobs(6, "M1", schedd=1)
    running = daemon(empty.pool.collector, tables=pledged(M1=20, M2=20, M3=20))
    metrics = running.metrics()
    matching = [
        metrics.value("gwmond_entry_idle_jobs_matching", site=site) for site in ("M1", "M2", "M3")
    ]
    assert matching == [18, 12, 12]
    assert metrics.value("gwmond_entry_idle_jobs_unique", site="M1") == 6
    assert metrics.sum("gwmond_entry_idle_jobs_assigned") == pytest.approx(18)
    assert [metrics.units(s, "provisioning_bottleneck") for s in ("M1", "M2", "M3")] == [6, 6, 6]
    assert _demand(metrics) == {"idle": 18, "absorbed": 0, "assigned": 18, "unmatched": 0}


def test_which_jobs_are_demand(empty: Scene, daemon: Start) -> None:
    """Jobs not materialised yet count, held, local, scheduler and grid universe jobs do not.

    Jobs of the parallel universe are demand, but the frontend's job query leaves them out.
    """
    empty.resource("Kinds")
    empty.jobs(50, "Kinds", max_idle=5)
    empty.jobs(2, "Kinds", universe="parallel", machine_count=1)
    empty.jobs(3, "Kinds", hold=True, owner="bob")
    empty.jobs(4, universe="local", requirements="false")
    empty.jobs(4, universe="scheduler", requirements="false")
    empty.jobs(4, universe="grid", grid_resource="batch slurm", requirements="true")
    running = daemon(empty.pool.collector, tables=pledged(Kinds=60))
    metrics = running.wait_until(
        "held and late jobs",
        lambda m: _jobs(m, status="held") == 3 and _jobs(m, status="unmaterialized") == 45,
    )
    assert _jobs(metrics, status="idle") == 7
    assert _demand(metrics)["idle"] == 52
    assert metrics.units("Kinds", "provisioning_bottleneck") == 50
    assert metrics.units("Kinds", "insufficient_demand") == 10


def test_gpus_are_a_resource_of_their_own(empty: Scene, daemon: Start) -> None:
    """Jobs that ask for GPUs make a bottleneck of GPUs, after what a pilot's free ones absorb."""
    empty.pilot("Chips", gpus=2)
    empty.resource("Chips", running=1, gpus=2)
    empty.jobs(5, "Chips", request_gpus=1)
    tables = {"site": {"pledge": [{"site": "Chips", "cores": 16, "gpus": 6}]}}
    metrics = daemon(empty.pool.collector, tables=tables).metrics()
    found = {
        kind: metrics.units("Chips", kind, "gpu")
        for kind in ("capacity", "provisioned", "provisioning_bottleneck", "insufficient_demand")
    }
    assert found == {
        "capacity": 6,
        "provisioned": 2,
        "provisioning_bottleneck": 3,
        "insufficient_demand": 1,
    }
    assert _demand(metrics, "gpu") == {"idle": 5, "absorbed": 2, "assigned": 3, "unmatched": 0}
    assert metrics.units("Chips", "provisioning_bottleneck") == 3
    assert metrics.units("Chips", "provisioned") == PILOT


def test_two_frontend_groups_share_one_entry(empty: Scene, daemon: Start) -> None:
    """The entry's limit and totals are taken once, what each group asks for is added up."""
    for client, pending in (("frontend.main", 0), ("other.group", 0)):
        empty.pilot("Shared", client=client, busy=PILOT)
        empty.resource(
            "Shared",
            client=client,
            running=1,
            pending=pending,
            requested_idle=2,
            GlideFactoryMonitorTotalStatusRunning=2,
            GlideFactoryConfigPerEntryMaxGlideins=3,
        )
    empty.jobs(5, "Shared")
    metrics = daemon(empty.pool.collector).metrics()
    found = {
        kind: metrics.units("Shared", kind)
        for kind in ("capacity", "provisioned", "provisioning_bottleneck", "insufficient_demand")
    }
    assert found == {
        "capacity": 3 * PILOT,
        "provisioned": 2 * PILOT,
        "provisioning_bottleneck": 5,
        "insufficient_demand": 3,
    }
    for client in ("frontend.main", "other.group"):
        labels = {"site": "Shared", "group": client}
        assert metrics.value("gwmond_pilots", state="busy", **labels) == 1
        assert metrics.value("gwmond_factory_pilots", state="running", **labels) == 1
        assert metrics.value("gwmond_pilots_requested", **labels) == 2


def test_a_collector_that_is_asked_twice(empty: Scene, daemon: Start) -> None:
    """Two collectors with the same ads show the same pilots and schedds, each of them once."""
    empty.pilot("Twice", busy=5)
    empty.resource("Twice", running=1)
    empty.jobs(10, "Twice")
    address = empty.pool.collector
    other = address.replace("127.0.0.1", "localhost")
    running = daemon(address, other, tables=pledged(Twice=32))
    metrics = running.metrics()
    for source in (address, other):
        assert metrics.value("gwmond_source_up", source=source, kind="slots") == 1
    assert metrics.sum("gwmond_pilots", site="Twice") == metrics.registered(site="Twice") == 1
    assert metrics.sum("gwmond_factory_pilots", site="Twice", state="running") == 1
    assert metrics.units("Twice", "provisioned") == PILOT
    assert _jobs(metrics, status="idle") == 10
    assert _demand(metrics) == {"idle": 10, "absorbed": 3, "assigned": 7, "unmatched": 0}
    assert metrics.state("Twice") == "provisioning_bottleneck"


def test_a_schedd_that_flocks_here(scene: Scene, daemon: Start) -> None:
    """Schedds of another pool are asked, and count once: one that really flocks here, and one of
    which nothing but submitter ads is here. Their ads would stay in a shared collector."""
    scene.resource("Flocked")
    config = f"""
FLOCK_TO = {scene.pool.collector}
SCHEDD2.FLOCK_TO =
SCHEDD_INTERVAL = 1
NEGOTIATOR_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
"""
    with CondorPool(config=config, domain="other.test") as other:
        away = Scene(other)
        away.jobs(9, "Flocked")
        away.jobs(4, "Flocked", schedd=1)
        (second,) = other.query("Schedd", f'Name == "{other.schedds[1]}"', ["MyAddress"])
        submitter = {
            "MyType": "Submitter",
            "Name": "alice@other.test",
            "ScheddName": other.schedds[1],
            "ScheddIpAddr": second["MyAddress"],
            "MyAddress": second["MyAddress"],
            "IdleJobs": 4,
            "RunningJobs": 0,
            "HeldJobs": 0,
        }
        scene.pool.advertise([submitter], "UPDATE_SUBMITTOR_AD")
        for schedd in other.schedds:
            find = partial(scene.pool.query, "Submitter", f'ScheddName == "{schedd}"')
            scene.pool.wait_for(f"a submitter of {schedd}", find)
        assert not scene.pool.query("Schedd", f'Name == "{other.schedds[1]}"')
        address = scene.pool.collector
        both = address, address.replace("127.0.0.1", "localhost")
        metrics = daemon(*both, tables=pledged(Flocked=16)).metrics()
        jobs = [_jobs(metrics, status="idle", schedd=schedd) for schedd in other.schedds]
        assert jobs == [9, 4]
        assert _demand(metrics) == {"idle": 13, "absorbed": 0, "assigned": 13, "unmatched": 0}
        assert metrics.units("Flocked", "provisioning_bottleneck") == 13


def test_a_plain_pool_has_a_chosen_attribute_as_site(daemon: Start) -> None:
    """Machines without a glidein attribute are sites by the attribute that is configured."""
    machine = """
DAEMON_LIST = $(DAEMON_LIST) STARTD
NUM_CPUS = 3
MEMORY = 6144
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
NUM_SLOTS_TYPE_1 = 1
Rack = "R1"
STARTD_ATTRS = $(STARTD_ATTRS) Rack
"""
    with CondorPool(config=machine) as pool:
        pool.wait_for("the machine", lambda: pool.query("Slot", 'Rack == "R1"', ["Name"]))
        static = [feign.static_slot("r2@plain", n, glidein={"Rack": "R2"}) for n in (1, 2)]
        pool.advertise(static, feign.COMMANDS["Machine"])
        rack = 'TARGET.Rack == "R1"'
        jobs = pool.submit(pool.schedds[0], 5, requirements=rack, request_memory=2000)
        both = f"ClusterId == {jobs} && JobStatus == 2"
        pool.wait_for("three jobs to run", lambda: len(pool.jobs(pool.schedds[0], both)) == 3)
        tables = pledged(R1=10, R2=4) | {"attributes": {"site": ["Rack"], "entry": []}}
        running = daemon(pool.collector, tables=tables)
        metrics = running.wait_until(
            "busy slots",
            lambda m: m.sum("gwmond_pilot_canonical_units", site="R1", use="busy") == 3,
        )
        assert metrics.state("R1") == "provisioning_bottleneck"
        assert metrics.reason("R1") == "no_factory"
        assert metrics.units("R1", "provisioned") == 3
        assert metrics.units("R1", "provisioning_bottleneck") == 2
        assert metrics.state("R2") == "insufficient_demand"
        assert metrics.units("R2", "provisioned") == 2
