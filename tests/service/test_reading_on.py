"""Several directories are read on, each line once, whatever fails in between."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gwmond.config.settings import Config
from gwmond.model.facts import Cursor
from gwmond.model.pilots.file_facts import CompletedPilot, FileFact
from gwmond.service.accounting import file_readers
from gwmond.service.accounting.file_readers import CentralLogs, FactoryFiles, read_on
from gwmond.sources import gwms_tasks, tail
from gwmond.sources.gwms import factory_dir, following, layout
from gwmond.sources.gwms.directory_cursor import FileAnswer, FileLimits
from gwmond.sources.gwms_tasks import Directory
from tests.build.gwms import generate, simulated
from tests.build.gwms.figures import FIGURE_7
from tests.unprivileged import unprivileged

LINES = [line for pilot in simulated.pilots(3, 200) if (line := generate.completed(pilot))]
GOOD = [pilot for pilot in simulated.pilots(3, 200) if pilot.kind == "good"]


class Reader:
    """Stands for the keeper and for the gatherer: runs tasks here, and notes what they gave."""

    def __init__(self) -> None:
        self.cursors: dict[tuple[str, str], Cursor] = {}
        self.facts: list[FileFact] = []

    def run(self, _: str, __: str, task: Callable[..., Any], *rest: Any, **___: Any) -> Any:
        return task(*rest)[0]

    def cursor(self, source: str, kind: str) -> Cursor | None:
        return self.cursors.get((source, kind))

    def add_files(self, read: Sequence[tuple[Sequence[FileFact], Cursor]]) -> None:
        for facts, cursor in read:
            self.facts += facts
            self.cursors[cursor.source, cursor.kind] = cursor


def read_all(files: FactoryFiles | CentralLogs) -> None:
    """Read until nothing is left."""
    files.read(time.time() + 60)
    while files.behind:
        files.read(time.time() + 60)


def options(**more: Any) -> Config:
    """A configuration that reads everything."""
    return Config.model_validate({"factory": more, "histories": {"lookback": "20000d"}})


def directories(root: Path, number: int) -> list[str]:
    """Directories of so many entries, with pilots and a log each."""
    paths = []
    for entry in range(number):
        path = root / f"entry_E{entry}"
        path.mkdir(parents=True)
        (path / "completed_jobs_20261118.log").write_text("".join(LINES[:5]))
        for pilot in GOOD[:4]:
            for name, content in generate.files(pilot).items():
                (path / name).write_bytes(content)
        paths.append(str(path))
    return paths


def counted(facts: Sequence[FileFact]) -> Counter[str]:
    """How often something was told."""
    return Counter(repr(fact) for fact in facts)


@pytest.mark.parametrize("limit", [1, 3, 7, 20, 1000])
def test_each_directory_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """However much of the directories fits into one call; none is skipped, none is read twice."""
    paths = directories(tmp_path, 4)
    monkeypatch.setattr(file_readers, "LIMITS", FileLimits(facts=limit))
    reader: Any = Reader()
    read_all(FactoryFiles(options(directories=[str(tmp_path)]), reader, reader))
    whole = [
        fact
        for path in paths
        for fact in factory_dir.fetch(path, "", FileLimits(), time.time() + 60).facts
    ]
    assert counted(reader.facts) == counted(whole)


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_what_cannot_be_read_at_one_look_is_at_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Also of another process, and though no file has changed; the look comes to its end."""
    directories(tmp_path, 4)
    monkeypatch.setattr(file_readers, "LIMITS", FileLimits(facts=limit))
    reader: Any = Reader()
    closed = [*tmp_path.rglob(f"{GOOD[1].stem}.*"), *tmp_path.glob("entry_E2/*")]
    for path in closed:
        path.chmod(0)
    with unprivileged():
        files = FactoryFiles(options(directories=[str(tmp_path)]), reader, reader)
        read_all(files)
        told = files.read(time.time() + 60)
    assert "unreadable" in {problem.problem for problem in told}
    assert len(counted(reader.facts)) == 3 * (5 + 3)
    read_all(FactoryFiles(options(directories=[str(tmp_path)]), reader, reader))
    assert set(counted(reader.facts).values()) == {1}
    assert len(reader.facts) == 4 * (5 + 4)


def test_one_call_goes_no_further_than_a_directory_that_is_unfinished(tmp_path: Path) -> None:
    """The limit counts what a pilot ran, too; so one is full before it has so many facts."""
    paths = directories(tmp_path, 3)
    wanted = [Directory(path, "") for path in paths]
    for limit in range(1, 60):
        answers, _ = gwms_tasks.read(wanted, FileLimits(facts=limit), time.time() + 60)
        assert not any(answer.behind for answer in answers[:-1])
        heaviest = max(1 + len(pilot.jobs) * 2 for pilot in GOOD[:4])
        assert sum(answer.weight for answer in answers) <= limit + max(heaviest, 5)


def test_what_is_unfinished_stays_first_in_order() -> None:
    """Whatever was answered."""

    def answer(path: str, behind: bool) -> FileAnswer:
        return FileAnswer((), "", None, behind, 0, (), 0, path=path)

    waiting = deque("abcd")
    read_on(waiting, [answer("a", True), answer("b", True), answer("c", False)])
    assert list(waiting) == ["a", "b", "d"]


def test_a_root_within_another(tmp_path: Path) -> None:
    """Each line counts once."""
    path = directories(tmp_path, 1)[0]
    reader: Any = Reader()
    read_all(FactoryFiles(options(directories=[str(tmp_path), path]), reader, reader))
    assert len([fact for fact in reader.facts if isinstance(fact, CompletedPilot)]) == 5


def test_a_directory_of_central_logs_that_is_named_twice(tmp_path: Path) -> None:
    """Each line counts once."""
    (tmp_path / "starters.log").write_text(FIGURE_7)
    reader: Any = Reader()
    read_all(CentralLogs(options(central_logs=[str(tmp_path)] * 2), reader, reader, None))
    assert len(reader.facts) == 7


# -- logs that cannot be seen for once


def fetch(directory: Path, state: str = "") -> FileAnswer:
    return factory_dir.fetch(str(directory), state, FileLimits(), time.time() + 60)


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Three logs in a directory, each with two lines."""
    paths = [tmp_path / f"completed_jobs_2026111{day}.log" for day in range(3)]
    for day, path in enumerate(paths):
        path.write_text("".join(LINES[2 * day : 2 * day + 2]))
        os.utime(path, (1, 1_700_000_000 + day))
    return paths


def test_a_directory_that_cannot_be_listed_for_once(tmp_path: Path, logs: list[Path]) -> None:
    """It is said, and reading goes on from where it was."""
    first = fetch(tmp_path)
    away = tmp_path.rename(tmp_path.with_name("away"))
    failed = fetch(tmp_path, first.state)
    assert [problem.problem for problem in failed.problems] == ["unreadable"]
    assert (failed.state, failed.complete_us, failed.behind) == (first.state, None, False)
    away.rename(tmp_path)
    assert (len(first.facts), fetch(tmp_path, failed.state).facts) == (6, ())


def test_a_listing_that_breaks_off(
    tmp_path: Path, logs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if there were none: what was not listed is not forgotten."""
    first = fetch(tmp_path)
    files_in = layout.files_in

    def breaks_off(*rest: Any) -> Any:
        yield next(files_in(*rest))
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(layout, "files_in", breaks_off)
    failed = fetch(tmp_path, first.state)
    monkeypatch.undo()
    assert fetch(tmp_path, failed.state).facts == ()


def test_a_log_whose_status_fails_for_once(
    tmp_path: Path, logs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on from where it was; one that is really gone is forgotten."""
    first = fetch(tmp_path)
    scandir = os.scandir

    class Entry:
        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.path = entry.name, entry.path
            self.is_symlink, self.is_file, self.entry = entry.is_symlink, entry.is_file, entry

        def stat(self) -> os.stat_result:
            if self.name == logs[1].name:
                raise OSError(116, "Stale file handle")
            return self.entry.stat()

    class Listing:
        def __init__(self, path: str) -> None:
            self.entries = scandir(path)

        def __enter__(self) -> Any:
            return map(Entry, self.entries)

        def __exit__(self, *_: object) -> None:
            self.entries.close()

    monkeypatch.setattr(os, "scandir", Listing)
    failed = fetch(tmp_path, first.state)
    monkeypatch.undo()
    assert [problem.problem for problem in failed.problems] == ["unreadable"]
    assert fetch(tmp_path, failed.state).facts == ()
    logs[1].unlink()
    assert logs[1].name not in fetch(tmp_path, failed.state).state


def test_logs_beyond_the_limit_are_not_read_again(
    tmp_path: Path, logs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is cut and then written again goes on from where it was; the state is bounded."""
    monkeypatch.setattr(following, "MAX_LOGS", 2)
    logs[2].rename(tmp_path / "away")
    state = fetch(tmp_path).state
    (tmp_path / "away").rename(logs[2])
    cut = fetch(tmp_path, state)
    assert [problem.problem for problem in cut.problems] == ["too_many_logs"]
    assert len(cut.facts) == 2
    with logs[0].open("a") as stream:
        stream.write(LINES[6])
    assert len(fetch(tmp_path, cut.state).facts) == 1
    for day in range(3, 9):
        (tmp_path / f"completed_jobs_2026112{day}.log").write_text(LINES[day])
        state = fetch(tmp_path, state).state
    assert state.count("completed_jobs") == 4


def test_a_log_that_fails_while_it_is_read(
    tmp_path: Path, logs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of it counts once."""
    monkeypatch.setattr(tail, "CHUNK_BYTES", len(LINES[0].encode()))
    chunks = tail.chunks

    def failing(*rest: Any) -> Any:
        yield next(chunks(*rest))
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(tail, "chunks", failing)
    first = fetch(tmp_path)
    monkeypatch.undo()
    assert {problem.problem for problem in first.problems} == {"unreadable"}
    assert len((*first.facts, *fetch(tmp_path, first.state).facts)) == 6
