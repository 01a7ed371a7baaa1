"""What factories and frontends say of each other, from ads in a real collector."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.daemon.running import configuration, gwmond, polls
from tests.daemon.scene import Scene
from tests.daemon.scrape import Metrics
from tests.pool import feign

AT = {"site": "Site", "entry": "ce1", "group": "frontend.main"}


def advertise(scene: Scene) -> None:
    """At its limit the factory reports that nothing is requested, while the client asks for 2."""
    limit = {"IdleGlideinsPerEntry": (5, 5)}
    copy = feign.glideresource(
        *("ce1", "Site"),
        pending=1,
        running=3,
        requested_idle=2,
        jobs_idle=30,
        jobs_running=20,
        slots_idle=4,
        slots_running=9,
        GlideFactoryMonitorClientMonitorInfoAge=500,
        GlideClientMonitorJobsIdleOld=6,
        GlideClientMonitorGlideinsFailed=1,
    )
    del copy["GlideFactoryMonitorRequestedIdle"]
    own = feign.glidefactoryclient(
        *("ce1", "Site"),
        pending=5,
        running=7,
        held=1,
        staging=2,
        requested_idle=0,
        jobs_idle=99,
        info_age=120,
        limits=limit,
        GlideinMonitorStatusStageOut=3,
    )
    entry = feign.glidefactory("ce1", "Site", pending=6, running=70, held=8)
    ask = feign.glideclient("ce1", idle=2, most=44)
    only_asked = feign.glideclient("ce2", idle=1, most=5)
    second = feign.glideclient("ce2", idle=3, most=5, credential="B_")
    silent = feign.glideresource("ce2", "Site", factory_heard=False)
    for name in ("GlideinsRequestIdle", "GlideinsRequestMaxRun"):
        del silent[f"GlideClientMonitor{name}"]
    for ad in (copy, silent, own, entry, ask, only_asked, second):
        scene.pool.advertise([ad], feign.COMMANDS[str(ad["MyType"])])


def once(scene: Scene, directory: Path, *, wms: bool) -> Metrics:
    """What one poll of the pool tells, with its WMS collector or without."""
    collectors = [scene.pool.collector] if wms else []
    tables = polls(20) | {"pool": {"wms": {"collectors": collectors}}}
    file = directory / "gwmond.toml"
    file.write_text(configuration(directory / "ledger.sqlite", [scene.pool.collector], tables))
    done = gwmond("once", "--config", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    lint = subprocess.run(
        ["promtool", "check", "metrics"],
        input=done.stdout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (lint.returncode, lint.stdout + lint.stderr) == (0, "")
    return Metrics.parse(done.stdout)


@pytest.fixture(scope="module")
def polled(
    shared_scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Metrics, Metrics]:
    """What one poll tells that knows the frontend's copies, and one of the factory's own ads."""
    advertise(shared_scene)
    directory = tmp_path_factory.mktemp("once")
    return once(shared_scene, directory, wms=False), once(shared_scene, directory, wms=True)


def test_pilots_in_each_state(polled: tuple[Metrics, Metrics]) -> None:
    """The factory is taken at its own word, where that is heard."""
    copied, direct = polled
    pilots = "gwmond_factory_pilots"
    assert copied.value(pilots, state="running", **AT) == 3
    states = {"submitted": 2, "idle_pending": 5, "idle_stage_in": 0, "idle_other": 0}
    for state, number in (states | {"running": 7, "stage_out": 3}).items():
        assert direct.value(pilots, state=state, **AT) == number
    assert direct.value("gwmond_pilots", state="submitted", **AT) == 2
    assert direct.value("gwmond_factory_idle_pilots", **AT) == sum(states.values())
    assert copied.value("gwmond_factory_idle_pilots", **AT) == 1
    assert direct.value("gwmond_factory_running_cores", **AT) == 56


def test_what_is_asked_stands_beside_what_is_heard(polled: tuple[Metrics, Metrics]) -> None:
    """Pilots that the client asks for; only the factory's collector has what the factory heard."""
    copied, direct = polled
    for seen in (copied, direct):
        assert seen.value("gwmond_pilots_requested", **AT) == 2
    assert copied.value("gwmond_factory_pilots_requested", **AT) is None
    assert direct.value("gwmond_factory_pilots_requested", **AT) == 0
    age = "gwmond_entry_request_age_seconds"
    assert [seen.value(age, **AT) for seen in (copied, direct)] == [None, 120]
    advertised = direct.value("gwmond_entry_advertisement_age_seconds", **AT)
    assert advertised is not None
    assert advertised >= 0


def test_jobs_and_slots_are_the_frontends(polled: tuple[Metrics, Metrics]) -> None:
    """As its client tells the factory."""
    _, direct = polled
    jobs = "gwmond_entry_frontend_running_jobs"
    assert direct.value(f"{jobs}_here", **AT) == direct.value(f"{jobs}_matching", **AT) == 20
    assert direct.value("gwmond_entry_frontend_idle_jobs_matching", **AT) == 30
    assert direct.value("gwmond_entry_frontend_old_idle_jobs", **AT) == 6
    for state, number in {"idle": 4, "running": 9, "failed": 1}.items():
        assert direct.value("gwmond_entry_frontend_slots", state=state, **AT) == number
    assert direct.value("gwmond_entry_frontend_slots_registered", **AT) == 13
    assert direct.value("gwmond_entry_frontend_cores_registered", **AT) == 24


def test_entries_and_asks(polled: tuple[Metrics, Metrics]) -> None:
    """Entries' totals and limits are the factory's own; glideclient ads ask where nothing does."""
    copied, direct = polled
    at = {"site": "Site", "entry": "ce1"}
    pilots = "gwmond_factory_entry_pilots"
    assert copied.value(pilots, state="running", **at) == 3
    assert direct.value(pilots, state="running", **at) == 70
    assert direct.value(pilots, state="held", **at) == 8
    assert direct.value("gwmond_factory_entry_limit_pilots", **at) == 1000
    other = {"site": "Site", "entry": "ce2"}
    for name, number in (("gwmond_pilots_requested", 4), ("gwmond_pilots_requested_max", 10)):
        assert copied.value(name, **other) is None
        assert direct.value(name, **other) == number
    assert direct.value("gwmond_factory_pilots", **other, state="running") is None
