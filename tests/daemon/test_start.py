"""START expressions that refer to job attributes which nobody has configured, on a real pool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.daemon.running import RunningDaemon, Tables, configuration, gwmond
from tests.daemon.scene import Scene, pledged
from tests.daemon.scrape import Metrics
from tests.pool.adtext import Expr


def once(directory: Path, scene: Scene, **cores: int) -> Metrics:
    """Return what one poll of a process that has just begun finds."""
    file = directory / "gwmond.toml"
    tables: Tables = {**pledged(**cores), "poll": {"interval": "60s", "deadline": "45s"}}
    text = configuration(directory / "none.sqlite", [scene.pool.collector], tables, 0)
    file.write_text(text)
    done = gwmond("once", "--config", str(file))
    assert done.returncode == 0, done.stderr
    return Metrics.parse(done.stdout)


def two_groups(scene: Scene) -> None:
    """Three busy pilots of each of two frontend groups, which start the jobs of one VO each."""
    for group in ("voA", "voB"):
        start = Expr(f'TARGET.WantVO == "{group}"')
        for _ in range(3):
            scene.pilot("Two", busy=8, client=f"fe.{group}", Start=start)
        scene.resource("Two", client=f"fe.{group}", running=3)


def test_jobs_are_judged_by_the_start_of_each_frontend_group(scene: Scene, tmp_path: Path) -> None:
    """Jobs that one of two groups starts are a bottleneck, as many as there are; others are not.

    The attribute is a key of the grouping by itself, already in the first poll, so nothing is
    estimated.
    """
    two_groups(scene)
    scene.jobs(30, "Two", attrs={"WantVO": "voB"})
    scene.jobs(40, "Two", attrs={"WantVO": "voC"})
    scene.jobs(50, "Two")
    metrics = once(tmp_path, scene, Two=200)
    assert metrics.state("Two") == "provisioning_bottleneck"
    assert metrics.units("Two", "provisioning_bottleneck") == 30
    assert metrics.units("Two", "insufficient_demand") == 200 - 48 - 30
    assert metrics.value("gwmond_site_evidence_info", site="Two", evidence="measured") == 1
    assert metrics.sum("gwmond_demand_idle_canonical_units") == 120


def test_free_slots_of_a_group_that_refuses_the_jobs_hide_no_bottleneck(
    scene: Scene, tmp_path: Path
) -> None:
    """A pilot with free slots takes only what its own group's START takes."""
    two_groups(scene)
    scene.pilot("Two", client="fe.voA", Start=Expr('TARGET.WantVO == "voA"'))
    scene.jobs(30, "Two", attrs={"WantVO": "voB"})
    metrics = once(tmp_path, scene, Two=200)
    assert metrics.units("Two", "provisioning_bottleneck") == 30


def test_an_attribute_with_a_value_for_each_job_is_left_out(
    scene: Scene, daemon: Callable[..., RunningDaemon]
) -> None:
    """It is reported, what depends on it is estimated, and other attributes go on to count."""
    start = Expr('TARGET.WantVO == "a" && TARGET.Serial =!= 7')
    scene.pilot("One", busy=8, Start=start)
    scene.resource("One", running=1)
    serial = Expr("$(Cluster) * 1000 + $(Process)")
    scene.jobs(150, "One", attrs={"WantVO": "a", "Serial": serial})
    scene.jobs(150, "One", attrs={"WantVO": "b", "Serial": serial})
    running = daemon(scene.pool.collector, tables=pledged(One=400))
    metrics = running.next_polls(2)
    assert metrics.units("One", "provisioning_bottleneck") == 150
    assert metrics.value("gwmond_site_evidence_info", site="One", evidence="estimated") == 1
    assert metrics.value("gwmond_problems_total", problem="start_attribute")
    (told,) = running.log("problem", problem="start_attribute")
    assert "Serial" in told["detail"]
    assert "WantVO" not in told["detail"]
