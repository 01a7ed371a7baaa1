"""Outputs that cannot be read for now are read once they can be: each once, none is lost."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gwmond.model.pilots.file_facts import CompletedPilot, PilotOutput
from gwmond.sources.gwms import factory_dir
from gwmond.sources.gwms.directory_cursor import FileAnswer
from tests.build.gwms.directory import GOOD, LINES, Number, fetch, numbers, of, put, read_on
from tests.unprivileged import unprivileged

BEGIN = 1_794_996_000


def sources(answer: FileAnswer, word: str = "unreadable") -> list[str]:
    return [problem.source for problem in answer.problems if problem.problem == word]


class Faults:
    """Files that cannot be opened, and files of which the status cannot be told, for now."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.closed: dict[str, int] = {}
        self.blind = set[str]()
        opened, scandir = os.open, os.scandir

        def open_(path: Any, *rest: Any, **more: Any) -> int:
            if (number := self.closed.get(str(path))) is not None:
                raise OSError(number, os.strerror(number), path)
            return opened(path, *rest, **more)

        def scan(path: Any) -> Any:
            return _Listing(scandir(path), self.blind)

        monkeypatch.setattr(os, "open", open_)
        monkeypatch.setattr(os, "scandir", scan)


class _Listing:
    def __init__(self, entries: Any, blind: set[str]) -> None:
        self.entries, self.blind = entries, blind

    def __enter__(self) -> Any:
        return (_Entry(entry, self.blind) for entry in self.entries)

    def __exit__(self, *_: object) -> None:
        self.entries.close()


class _Entry:
    def __init__(self, entry: Any, blind: set[str]) -> None:
        self.name, self.path, self.entry, self.blind = entry.name, entry.path, entry, blind
        self.is_symlink, self.is_file, self.is_dir = entry.is_symlink, entry.is_file, entry.is_dir

    def stat(self) -> os.stat_result:
        if self.path in self.blind:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), self.path)
        found: os.stat_result = self.entry.stat()
        return found


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def test_a_user_who_may_not_read_and_later_may(tmp_path: Path) -> None:
    """Though nothing of the files has changed since; meanwhile the state stays short."""
    paths = put(tmp_path, *GOOD[:9])
    log = tmp_path / "completed_jobs_20261118.log"
    log.write_text("".join(LINES[:4]))
    for path in (*paths, log):
        path.chmod(0)
    state = ""
    for _ in range(3):
        with unprivileged():
            answer = fetch(tmp_path, state)
        assert (answer.facts, answer.behind) == ((), False)
        assert sorted(sources(answer)) == sorted(map(str, (*paths, log)))
        assert answer.left == 9
        assert answer.complete_us is not None
        assert answer.complete_us <= min(path.stat().st_ctime for path in paths) * 1e6
        state = answer.state
        assert len(state) < 200
    answer = fetch(tmp_path, state)
    assert sorted(numbers(answer)) == sorted(of(*GOOD[:9]))
    assert sum(isinstance(fact, CompletedPilot) for fact in answer.facts) == 4
    assert answer.problems == ()
    assert json.loads(answer.state)[2] == []
    assert fetch(tmp_path, answer.state).facts == ()


def test_an_error_while_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the pilot counts, however much of it was read, and reading ends."""
    put(tmp_path, *GOOD[:2])
    fstat, opened = os.fstat, list[int]()

    def failing(descriptor: int) -> os.stat_result:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(f"{GOOD[0].stem}.err"):
            opened.append(descriptor)
            if len(opened) % 2 == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", failing)
    answers = read_on(tmp_path, size=1)
    assert [number for answer in answers for number in numbers(answer)] == of(GOOD[1])
    monkeypatch.undo()
    assert numbers(fetch(tmp_path, answers[-1].state)) == of(GOOD[0])


def test_more_than_there_is_room_for(
    tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading goes no further, says so, and does not go on for ever; nothing is lost."""
    monkeypatch.setattr(factory_dir, "MAX_UNREAD", 2)
    for pilot in GOOD[:8]:
        put(tmp_path, pilot)
        time.sleep(0.02)
    faults.closed = {str(tmp_path / f"{pilot.stem}.out"): errno.EIO for pilot in GOOD[:8:2]}
    state, found = "", list[Number]()
    for _ in range(8):
        answer = fetch(tmp_path, state, facts=1)
        state, found = answer.state, found + numbers(answer)
    assert not answer.behind
    assert found == of(GOOD[1], GOOD[3])
    assert sources(answer, "too_many_unread") == [str(tmp_path)]
    assert answer.left == 6
    faults.closed = {}
    answer = fetch(tmp_path, state)
    assert sorted(found + numbers(answer)) == sorted(of(*GOOD[:8]))


def test_a_status_that_cannot_be_told(tmp_path: Path, faults: Faults) -> None:
    """Neither is the pilot half told, nor is it lost as another is taken meanwhile."""
    put(tmp_path, *GOOD[:1])
    time.sleep(0.02)
    put(tmp_path, *GOOD[1:2])
    faults.blind = {str(tmp_path / f"{GOOD[0].stem}.out")}
    first = fetch(tmp_path)
    assert (numbers(first), sources(first)) == (of(GOOD[1]), [*faults.blind])
    assert first.complete_us is None
    faults.blind = set()
    last = fetch(tmp_path, first.state)
    assert numbers(last) == of(GOOD[0])
    assert json.loads(last.state)[2] == []


def test_a_directory_that_can_be_listed_only(tmp_path: Path) -> None:
    """As if it could not: also for what is too old, which is left out when it is seen first."""
    paths = put(tmp_path, *GOOD[:3])
    for path in paths[:2]:
        os.utime(path, (1, time.time() - 10 * 86400))
    tmp_path.chmod(0o400)
    with unprivileged():
        first = fetch(tmp_path, lookback_s=86400)
        tmp_path.chmod(0o700)
    assert (first.facts, first.state, len(sources(first))) == ((), "", 6)
    last = fetch(tmp_path, first.state, lookback_s=86400)
    assert sorted(numbers(last)) == sorted(of(*GOOD[1:3]))
    assert fetch(tmp_path, last.state, lookback_s=86400).facts == ()


def test_what_is_too_old_is_left_out_for_good(tmp_path: Path) -> None:
    """Also where nothing else is there, and of logs that could not be read at first."""
    for path in put(tmp_path, *GOOD[:2]):
        os.utime(path, (1, time.time() - 10 * 86400))
    for name, age in (("completed_jobs_20261117.log", 10), ("completed_jobs_20261118.log", 0)):
        (tmp_path / name).write_text("".join(LINES[:3]))
        (tmp_path / name).chmod(0)
        os.utime(tmp_path / name, (1, time.time() - age * 86400))
    with unprivileged():
        state = fetch(tmp_path, lookback_s=86400).state
    answer = fetch(tmp_path, state, lookback_s=86400)
    assert (len(answer.facts), numbers(answer)) == (3, [])
    with (tmp_path / "completed_jobs_20261117.log").open("a") as stream:
        stream.write(LINES[3])
    assert len(fetch(tmp_path, answer.state).facts) == 1


def test_what_is_old_by_the_time_it_is_read(tmp_path: Path) -> None:
    """The first look found no pilot; none of those that come later is too old."""
    (tmp_path / "completed_jobs_20261118.log").write_text("".join(LINES[:3]))
    state = fetch(tmp_path, lookback_s=86400).state
    for path in put(tmp_path, *GOOD[:2]):
        os.utime(path, (1, time.time() - 10 * 86400))
    assert numbers(fetch(tmp_path, state, lookback_s=86400)) == of(*GOOD[:2])


def test_what_is_too_old_beside_a_log_that_takes_several_calls(tmp_path: Path) -> None:
    """It is left out, though the first call has not come to it."""
    for path in put(tmp_path, *GOOD[:2]):
        os.utime(path, (1, time.time() - 10 * 86400))
    (tmp_path / "completed_jobs_20261118.log").write_text("".join(LINES[:3]))
    first = fetch(tmp_path, lookback_s=86400, facts=1)
    assert first.behind
    last = fetch(tmp_path, first.state, lookback_s=86400)
    assert (numbers(last), last.behind) == ([], False)
    assert fetch(tmp_path, last.state, lookback_s=86400).facts == ()


def test_a_log_that_is_renamed_and_cannot_be_read_for_once(tmp_path: Path, faults: Faults) -> None:
    """It goes on from where it was."""
    log = tmp_path / "completed_jobs_20261118.log"
    log.write_text(LINES[0])
    state = fetch(tmp_path).state
    with log.open("a") as stream:
        stream.write(LINES[1])
    renamed = log.rename(f"{log}.1")
    faults.closed = {str(renamed): errno.ESTALE}
    answer = fetch(tmp_path, state)
    assert (answer.facts, sources(answer)) == ((), [str(renamed)])
    faults.closed = {}
    assert len(fetch(tmp_path, answer.state).facts) == 1


# -- whatever happens


class World:
    """A directory whose pilots come, change and go; each file tells its version."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.directory, self.chance = directory, chance
        self.there: dict[int, dict[str, int]] = {}
        self.told: dict[int, dict[str, int]] = {}
        self.unsure = set[int]()
        self.version = 0

    def path(self, number: int, kind: str) -> Path:
        return self.directory / f"job.{number}.0.{kind}"

    def step(self) -> None:
        """Change up to three pilots."""
        for _ in range(self.chance.randrange(4)):
            number = self.chance.randrange(1, 12)
            if number in self.there and self.chance.random() < 0.3:
                for kind in self.there.pop(number):
                    self.path(number, kind).unlink()
                self.told.pop(number, None)
                continue
            kinds = self.chance.choice([("out",), ("err",), ("out", "err")])
            for kind in kinds:
                self.version += 1
                self.there.setdefault(number, {})[kind] = self.version
                self.path(number, kind).write_text(self.text(kind))

    def text(self, kind: str) -> str:
        if kind == "err":
            return f"\nGLIDEIN_Site V{self.version}\n"
        return f"Starting glidein_startup.sh at ({BEGIN + self.version})\n"

    def take(self, answer: FileAnswer, hidden: Callable[[int], bool]) -> None:
        """Each fact is of a pilot that can be read, whole, as it is, and had not been told.

        Only what may have changed while its status could not be told comes again.
        """
        for fact in answer.facts:
            assert isinstance(fact, PilotOutput)
            number = fact.name.cluster or 0
            assert not hidden(number)
            said = {"out": fact.start_us and fact.start_us // 10**6 - BEGIN}
            said["err"] = int(fact.name.site[1:]) if fact.name.site else None
            assert {kind: of for kind, of in said.items() if of} == self.there[number]
            assert self.told.get(number) != self.there[number] or number in self.unsure
            self.unsure.discard(number)
            self.told[number] = dict(self.there[number])


@pytest.mark.parametrize("seed", range(24))
def test_whatever_fails_each_pilot_is_told_once(
    tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Files and their status fail at random, while pilots come, change and go."""
    chance = random.Random(seed)
    monkeypatch.setattr(factory_dir, "MAX_UNREAD", chance.choice([2, 200]))
    world, state = World(tmp_path, chance), ""
    for step in range(40):
        world.step()
        time.sleep(0.01)  # a change has a later time than what was read, by the file system's clock
        files = [
            str(world.path(number, kind)) for number, kinds in world.there.items() for kind in kinds
        ]
        bad = chance.choice([0, 0.2, 0.6, 1]) if step < 39 else 0
        some = [path for path in files if chance.random() < bad]
        errors = [errno.ESTALE, errno.EIO, errno.EACCES]
        faults.closed = {path: chance.choice(errors) for path in some}
        faults.blind = {path for path in files if chance.random() < bad / 4}
        world.unsure |= {int(Path(path).name.split(".")[1]) for path in faults.blind}

        def hidden(number: int) -> bool:
            paths = {str(world.path(number, kind)) for kind in world.there[number]}
            return bool(paths & (faults.blind | faults.closed.keys()))

        for _ in range(60):
            answer = fetch(tmp_path, state, later=60 + step, facts=chance.choice([1, 2, 3, 100]))
            world.take(answer, hidden)
            state = answer.state
            if not answer.behind:
                break
        assert not answer.behind
        assert len(json.loads(state or "[0, 0, []]")[2]) <= factory_dir.MAX_UNREAD
    assert world.told == world.there
    assert json.loads(state)[2] == []
