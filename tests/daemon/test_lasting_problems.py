"""Files that are looked at less often than is polled: what is wrong with them, and how often."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gwmond.model.problem_names import ProblemName
from tests.daemon.running import RunningDaemon, patient
from tests.daemon.scene import Scene

Start = Callable[..., RunningDaemon]
COUNTED = "gwmond_problems_total"
UP = "gwmond_source_up"
SUCCESS = "gwmond_source_last_success_timestamp_seconds"
GARBAGE = 3
KINDS = {"factory": ("directories", "factory_files"), "central_log": ("files",)}


def factory(root: Path) -> Path:
    """A directory with a link that leads out of it, and lines that are none of their log."""
    entry = root / "user_fe" / "glidein_g" / "entry_ce1"
    entry.mkdir(parents=True)
    (entry / "job.7.0.out").symlink_to("/etc/passwd")
    (entry / "completed_jobs_20261121.log").write_text("nonsense\n" * GARBAGE)
    return root


def central_logs(root: Path) -> Path:
    """The same, of a directory of central logs."""
    root.mkdir()
    (root / "linked.log").symlink_to("/etc/passwd")
    (root / "pilots.log").write_text("nonsense\n" * GARBAGE)
    return root


MADE = {"factory": factory, "central_log": central_logs}
OPTIONS = {"factory": "directories", "central_log": "central_logs"}


@pytest.fixture(params=["factory", "central_log"])
def source(request: pytest.FixtureRequest) -> str:
    """Whose directories they are."""
    return str(request.param)


def tables(source: str, root: Path, every: str) -> dict[str, dict[str, Any]]:
    return {**patient(1), "factory": {OPTIONS[source]: [str(root)], "every": every}}


def events(running: RunningDaemon, source: str, problem: str) -> list[str]:
    """The log's events about a problem."""
    said = running.log(source=source, problem=problem)
    return [str(record["event"]) for record in said]


def test_between_two_looks_a_problem_lasts(
    shared_scene: Scene, daemon: Start, tmp_path: Path, source: str
) -> None:
    """It is counted once a look, lines each, and is not over at polls that do not look."""
    root = MADE[source](tmp_path / "root")
    running = daemon(shared_scene.pool.collector, tables=tables(source, root, "1h"))
    running.wait_for(COUNTED, {"source": source, "problem": "link_outside"}, bool)
    metrics = running.next_polls(4)
    assert metrics.value(COUNTED, source=source, problem="link_outside") == 1
    assert metrics.value(COUNTED, source=source, problem="garbage") == GARBAGE
    for problem, n in (("link_outside", 1), ("garbage", GARBAGE)):
        assert events(running, source, problem) == ["problem"]
        (said,) = running.log("problem", source=source, problem=problem)
        assert said["n"] == n
        name = ProblemName(problem)
        assert (said["meaning"], said["remedy"]) == (name.meaning, name.remedy)


def test_a_directory_that_is_gone(
    shared_scene: Scene, daemon: Start, tmp_path: Path, source: str
) -> None:
    """Its source is down until it is back, its last success stands still; nothing else is over."""
    root = MADE[source](tmp_path / "root")
    running = daemon(shared_scene.pool.collector, tables=tables(source, root, "2s"))
    running.wait_for(COUNTED, {"source": source, "problem": "link_outside"}, bool)
    root.rename(tmp_path / "elsewhere")
    kinds = KINDS[source]

    def shown(name: str, metrics: Any) -> list[float | None]:
        return [metrics.value(name, source=source, kind=kind) for kind in kinds]

    gone = running.wait_until("it to be down", lambda m: set(shown(UP, m)) == {0})
    counted = gone.value(COUNTED, source=source, problem="no_root") or 0
    later = running.wait_until(
        "two more looks",
        lambda m: (m.value(COUNTED, source=source, problem="no_root") or 0) >= counted + 2,
    )
    assert set(shown(UP, later)) == {0}
    assert shown(SUCCESS, later) == shown(SUCCESS, gone)
    assert None not in shown(SUCCESS, gone)
    assert events(running, source, "no_root") == ["problem"]
    (said,) = running.log("problem", source=source, problem="no_root")
    assert "No such file" in said["detail"]
    name = ProblemName.NO_ROOT
    assert (said["meaning"], said["remedy"]) == (name.meaning, name.remedy)
    assert events(running, source, "link_outside") == ["problem"]

    (tmp_path / "elsewhere").rename(root)
    running.wait_until("it to be back", lambda m: set(shown(UP, m)) == {1})
    running.next_polls(2)
    assert events(running, source, "no_root") == ["problem", "problem over"]
    assert events(running, source, "link_outside") == ["problem"]
    (root / "linked.log").unlink(missing_ok=True)
    (root / "user_fe/glidein_g/entry_ce1/job.7.0.out").unlink(missing_ok=True)
    running.wait_until(
        "the link to be over", lambda _: "problem over" in events(running, source, "link_outside")
    )
    assert events(running, source, "link_outside") == ["problem", "problem over"]

    root.rename(tmp_path / "elsewhere")
    running.wait_until("it to be down again", lambda m: set(shown(UP, m)) == {0})
    root.mkdir()
    running.wait_until("it to be up with nothing in it", lambda m: set(shown(UP, m)) == {1})
