"""`gwmond import` by a user who may not read all of it, and then by one who may."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.service.host import places
from tests.build.gwms import generate, simulated
from tests.build.imports import command, contents, pilots, run, totals
from tests.unprivileged import give_up, unprivileged

NUMBER, SEED = 40, 7
_KILLED = """
import os, signal, sys
from gwmond import cli
from gwmond.service import importer
from gwmond.ledger.store import Ledger
commit, left = Ledger.commit, [int(sys.argv.pop(1))]
def counted(self, batch):
    changed = commit(self, batch)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return changed
Ledger.commit = counted
importer.LIMITS = importer.LIMITS._replace(facts=20)
sys.exit(cli.main(sys.argv[1:]))
"""


def unread(ledger: Path, *paths: Path, python: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Import as one who may not read what is closed; return status, output and errors."""
    words = command(ledger, *paths)
    words[1:3] = python or words[1:3]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=180, preexec_fn=give_up
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("original")
    generate.write(directory, SEED, NUMBER)
    return directory


@pytest.fixture(scope="module")
def expected(original: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    """What a ledger has into which all was imported at once."""
    ledger = tmp_path_factory.mktemp("whole") / "ledger.sqlite"
    assert run(ledger, original).returncode == 0
    return contents(f"sqlite:///{ledger}")


@pytest.fixture
def factory(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "factory"))


def close(factory: Path, which: Callable[[int], bool], *kinds: str) -> int:
    """Let no user read files of pilots with some clusters; return how many."""
    some = [
        path
        for path in factory.rglob("job.*")
        if which(int(path.name.split(".")[1])) and path.suffix[1:] in kinds
    ]
    for path in some:
        path.chmod(0)
    return len(some)


def test_nothing_can_be_read(factory: Path, expected: object, tmp_path: Path) -> None:
    """It fails and says so; imported by one who may, all is accounted, though nothing changed."""
    for path in factory.rglob("*"):
        if path.is_file():
            path.chmod(0)
    number = sum(path.is_file() for path in factory.rglob("*"))
    ledger = tmp_path / "ledger.sqlite"
    for _ in range(2):
        status, said, why = unread(ledger, factory)
        assert (status, "[unreadable]: " + str(number) in said) == (1, True), said
        assert "nothing could be read" in why
        assert pilots(ledger) == {}
    done = run(ledger, factory)
    assert done.returncode == 0, done.stderr
    assert "[unreadable]" not in done.stdout
    assert contents(f"sqlite:///{ledger}") == expected


@pytest.mark.parametrize("kinds", [["out"], ["err"]])
def test_a_part_can_be_read(
    factory: Path, expected: object, tmp_path: Path, kinds: list[str]
) -> None:
    """Whether of a pilot one file or both: once they can be it is as if they always could."""
    number = close(factory, lambda cluster: cluster % 3 == 0, *kinds)
    assert number > 3
    ledger = tmp_path / "ledger.sqlite"
    status, said, _ = unread(ledger, factory)
    assert (status, f"[unreadable]: {number}, such as" in said) == (0, True), said
    assert "is left for the next import" in said
    assert contents(f"sqlite:///{ledger}") != expected
    assert run(ledger, factory).returncode == 0
    assert contents(f"sqlite:///{ledger}") == expected
    again = run(ledger, factory)
    assert "nothing is new" in again.stdout
    assert contents(f"sqlite:///{ledger}") == expected


@pytest.mark.parametrize("commits", [2, 5])
def test_killed_while_a_part_cannot_be_read(
    factory: Path, expected: object, tmp_path: Path, commits: int
) -> None:
    """What is left to be read is stored with what was."""
    close(factory, lambda cluster: cluster % 3 == 0, "out", "err")
    ledger = tmp_path / "ledger.sqlite"
    status, _, why = unread(ledger, factory, python=("-c", _KILLED, str(commits)))
    assert status == -signal.SIGKILL, why
    assert unread(ledger, factory)[0] == 0
    assert run(ledger, factory).returncode == 0
    assert contents(f"sqlite:///{ledger}") == expected


def test_check_tries_files(tmp_path: Path) -> None:
    """A directory that can be listed, and whose files cannot be read, is not well."""
    good = next(pilot for pilot in simulated.pilots(SEED, NUMBER) if pilot.kind == "good")
    factory = tmp_path / "factory"
    entry = factory / "client" / good.directory
    entry.mkdir(parents=True)
    for name, content in generate.files(good).items():
        (entry / name).write_bytes(content)
    os.mkfifo(entry / "job.1.0.out")
    (tmp_path / "central").mkdir()
    log = tmp_path / "central" / "pilots.log"
    log.write_text("")
    config = Config.model_validate(
        {"factory": {"directories": [str(factory)], "central_logs": [str(log.parent)]}}
    )

    def found() -> list[str | None]:
        with unprivileged():
            return [place.problem for place in places.places(config)]

    assert found() == [None, None]
    (entry / f"{good.stem}.err").chmod(0)
    log.chmod(0)
    assert found() == ["unreadable", "unreadable"]
    with unprivileged():
        assert f"{good.stem}.err" in places.places(config)[0].detail
    (entry / f"{good.stem}.err").chmod(0o600)
    entry.chmod(0)
    assert found() == ["unreadable", "unreadable"]


def test_outputs_that_are_none(tmp_path: Path) -> None:
    """Each is counted once, by what is wrong with it, and one is named."""
    entry = tmp_path / "user_fe" / "glidein_i" / "entry_E"
    entry.mkdir(parents=True)
    for number in range(4):
        (entry / f"job.5{number}.0.out").write_bytes(os.urandom(5000))
    (entry / "job.56.0.out").write_bytes(b"x")
    (entry / "job.57.0.out").write_text("PID: 77\nRunning on node.example.org\nand more of it\n")
    for path in entry.iterdir():
        os.utime(path, (1, time.time() - 60))
    done = run(tmp_path / "ledger.sqlite", tmp_path / "user_fe")
    assert done.returncode == 0, done.stderr
    assert "6 outputs of pilots" in done.stdout
    assert f"[garbage]: 4, such as {entry}/job.5" in done.stdout
    assert f"[empty_output]: 1, such as {entry}/job.56.0.out" in done.stdout
    assert f"[untimed]: 1, such as {entry}/job.57.0.out" in done.stdout
    assert "records" not in done.stdout
    assert done.stdout.count("such as") == 3
    assert totals(tmp_path / "ledger.sqlite") == {}
