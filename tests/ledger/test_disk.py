"""Full disks and what may not be written to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gwmond.ledger.database.errors import LedgerFull, LedgerLocation, LedgerReadOnly
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Problem
from gwmond.model.poll.batch import Batch, TimedProblem
from gwmond.model.problem_names import ProblemName
from tests.ledger.batches import EPOCH, batch, killed_after, prove, tick
from tests.ledger.conftest import as_nobody
from tests.ledger.tmpfs import Tmpfs


def _commit_on(ledger: Ledger) -> None:
    for number in range(ledger.load().batches + 1, 1000):
        ledger.commit(batch(number))


@pytest.mark.parametrize("left_kib", [0, 4, 8, 12, 16, 24, 36, 48, 64])
def test_a_full_disk(small_disk: Tmpfs, left_kib: int) -> None:
    """A commit that finds no space stores nothing; with space again the same object goes on."""
    file = small_disk.path / "ledger.sqlite"
    with Ledger.open(str(file)) as ledger:
        ledger.commit(batch(1))
        small_disk.fill(left_kib)
        with pytest.raises(LedgerFull) as error:
            _commit_on(ledger)
        assert not error.value.reopen
        stored = prove(ledger)
        with pytest.raises(LedgerFull):
            ledger.commit(batch(stored + 1))
        small_disk.free()
        ledger.commit(batch(stored + 1))
        assert prove(ledger) == stored + 1
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == stored + 1


def test_a_disk_that_one_batch_fills(small_disk: Tmpfs) -> None:
    """A batch larger than the disk is rolled back whole, and a smaller one fits again."""
    problem = TimedProblem(EPOCH, Problem("s", ProblemName.FAILED, "x" * 4000))
    with Ledger.open(str(small_disk.path / "ledger.sqlite")) as ledger:
        ledger.commit(batch(1))
        with pytest.raises(LedgerFull):
            ledger.commit(batch(2)._replace(problems=(problem,) * 1000))
        assert prove(ledger) == 1
        ledger.commit(batch(2))
        assert prove(ledger) == 2


@pytest.mark.parametrize("left_kib", [0, 4, 16, 40, 64, 100])
def test_a_full_disk_at_the_start(small_disk: Tmpfs, left_kib: int) -> None:
    """A ledger that cannot be made for want of space leaves nothing, and is made when retried."""
    file = small_disk.path / "ledger.sqlite"
    small_disk.fill(left_kib)
    for _ in range(2):
        with pytest.raises(LedgerFull), Ledger.open(str(file)) as ledger:
            _commit_on(ledger)
        assert not file.with_name("ledger.sqlite.new").exists()
        if left_kib < 40:
            assert not file.exists()
    small_disk.free()
    with Ledger.open(str(file)) as ledger:
        stored = prove(ledger)
        ledger.commit(batch(stored + 1))
        assert prove(ledger) == stored + 1


def test_killed_on_a_full_disk(small_disk: Tmpfs) -> None:
    """A ledger whose daemon was killed when the disk was full is whole once there is space."""
    file = small_disk.path / "ledger.sqlite"
    killed_after(str(file), 10)
    small_disk.fill()
    try:
        with Ledger.open(str(file)) as ledger:
            assert prove(ledger) == 10
    except LedgerFull:
        pass
    small_disk.free()
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == 10


def test_a_read_only_file_system(small_disk: Tmpfs) -> None:
    """On a file system mounted read-only the error says who may not write, and a retry works."""
    file = small_disk.path / "ledger.sqlite"
    for made in (0, 1):
        small_disk.read_only()
        with pytest.raises(LedgerReadOnly) as error:
            Ledger.open(str(file))
        assert "write" in error.value.remedy
        small_disk.writable()
        with Ledger.open(str(file)) as ledger:
            ledger.commit(batch(made + 1))


def test_a_directory_of_somebody_else(small_disk: Tmpfs) -> None:
    """A directory or a file that another user owns is not written to, and the remedy says so."""
    file = small_disk.path / "ledger.sqlite"
    with as_nobody(), pytest.raises(LedgerReadOnly, match="Permission denied") as error:
        Ledger.open(str(file))
    assert "user of gwmond" in str(error.value)
    with Ledger.open(str(file)) as ledger:
        ledger.commit(batch(1))
    os.chmod(small_disk.path, 0o777)
    with as_nobody(), pytest.raises(LedgerReadOnly):
        Ledger.open(str(file))
    Path(f"{file}.lock").chmod(0o666)
    with as_nobody(), pytest.raises(LedgerReadOnly):
        Ledger.open(str(file))
    file.chmod(0o644)
    with as_nobody(), pytest.raises(LedgerReadOnly):
        Ledger.open(str(file))
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == 1


def test_a_user_who_may_only_read(small_disk: Tmpfs) -> None:
    """Who may read the file can report beside the daemon, though not write."""
    file = small_disk.path / "ledger.sqlite"
    with Ledger.open(str(file)) as ledger:
        for path in small_disk.path.iterdir():
            path.chmod(0o644)
        ledger.commit(batch(1))
        with as_nobody():
            reader = LedgerReader.open(str(file))
        ledger.commit(batch(2))
        with as_nobody(), reader:
            assert prove(reader) == 2


def test_a_missing_directory(tmp_path: Path) -> None:
    """A missing directory is not made (its owner and mode are the operator's); the remedy is."""
    file = tmp_path / "missing" / "ledger.sqlite"
    with pytest.raises(LedgerLocation, match="install -d"):
        Ledger.open(str(file))
    assert not file.parent.exists()
    file.parent.mkdir()
    Ledger.open(str(file)).close()
    with pytest.raises(LedgerLocation, match="is a directory"):
        Ledger.open(str(file.parent))


def test_a_reader_of_nothing(file: Path) -> None:
    """A reader does not make a ledger."""
    with pytest.raises(LedgerLocation, match="does not exist"):
        LedgerReader.open(str(file))
    assert not file.exists()


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_the_mode_of_the_files(file: Path, umask: int) -> None:
    """File, log and index are for the user to write and the group to read, whatever the umask."""
    before = os.umask(umask)
    try:
        with Ledger.open(str(file)) as ledger:
            ledger.commit(batch(1))
            for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
                assert stat.S_IMODE(path.stat().st_mode) == 0o640
            assert sorted(path.name for path in file.parent.iterdir()) == [
                "ledger.sqlite",
                "ledger.sqlite-shm",
                "ledger.sqlite-wal",
                "ledger.sqlite.lock",
            ]
    finally:
        os.umask(before)


def test_every_commit_is_durable(file: Path) -> None:
    """The connection has WAL, FULL, foreign keys and a busy timeout, as the module promises."""
    names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    with Ledger.open(str(file)) as ledger, ledger.transaction() as connection:
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }


def test_a_link_is_the_same_ledger(file: Path) -> None:
    """A symbolic link leads to the one ledger and its one lock."""
    link = file.with_name("link")
    link.symlink_to(file)
    with Ledger.open(str(link)) as ledger:
        ledger.commit(batch(1))
        assert Path(f"{file}.lock").exists()
        assert not Path(f"{link}.lock").exists()
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == 1


def test_tick_alone(file: Path) -> None:
    """A batch with nothing but its tick is stored, so that time goes on where nothing runs."""
    now = tick(1)
    assert now is not None
    with Ledger.open(str(file)) as ledger:
        ledger.commit(Batch(0, 0, tick=now))
        assert ledger.tick() == now
