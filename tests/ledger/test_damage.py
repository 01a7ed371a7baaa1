"""Damaged files are distinguished, and left as they are."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from gwmond.ledger.database import sqlite
from gwmond.ledger.database.errors import LedgerClosed, LedgerCorrupt, LedgerForeign, LedgerMoved
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from tests.ledger.batches import SITE, batch, killed_after, prove

PAGE = 4096


def _closed(file: Path, commits: int = 40) -> bytes:
    """Make a ledger, close it, and return the bytes of its file."""
    with Ledger.open(str(file)) as ledger:
        for number in range(1, commits + 1):
            ledger.commit(batch(number))
    return file.read_bytes()


def _is_refused(file: Path, match: str = "ledger") -> None:
    """Opening says that the ledger is corrupt, again when repeated, and changes no byte."""
    before = {path: path.read_bytes() for path in (file, Path(f"{file}-wal")) if path.exists()}
    for _ in range(2):
        with pytest.raises(LedgerCorrupt, match=match) as error:
            Ledger.open(str(file))
        assert str(file) in str(error.value)
        assert error.value.remedy
    for path, data in before.items():
        assert path.read_bytes() == data


def _noise(length: int) -> bytes:
    return random.Random(length).randbytes(length)


FILE_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "header": lambda data: _noise(100) + data[100:],
    "all": lambda data: _noise(len(data)),
    "header fields": lambda data: data[:16] + _noise(84) + data[100:],
    "half": lambda data: data[: len(data) // 2],
    "half of the pages": lambda data: data[: len(data) // 2 // PAGE * PAGE],
    "one byte short": lambda data: data[:-1],
    "ten bytes": lambda data: data[:10],
    "empty": lambda data: data[:0],
}


@pytest.mark.parametrize("damage", FILE_DAMAGE.values(), ids=FILE_DAMAGE.keys())
def test_a_damaged_file(file: Path, damage: Callable[[bytes], bytes]) -> None:
    """A file that is not a database any more, or not all of one, is corrupt."""
    data = _closed(file)
    file.write_bytes(damage(data))
    _is_refused(file)
    file.write_bytes(data)
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == 40


def test_damage_in_the_middle(file: Path) -> None:
    """Noise in any page of the file is found when the ledger is opened."""
    data = _closed(file)
    noise = random.Random(2)
    for page in range(1, len(data) // PAGE):
        file.write_bytes(data[: page * PAGE] + noise.randbytes(PAGE) + data[(page + 1) * PAGE :])
        _is_refused(file)


def test_noise_never_passes_for_a_total(file: Path) -> None:
    """Half a kilobyte of noise anywhere is found at open or at load, or the proof shows it."""
    data = _closed(file)
    noise = random.Random(3)
    for _ in range(40):
        at = noise.randrange(len(data) - 512)
        file.write_bytes(data[:at] + noise.randbytes(512) + data[at + 512 :])
        try:
            with Ledger.open(str(file)) as ledger:
                state = ledger.load()
                residual = ledger.check()[SITE].micros
        except (LedgerCorrupt, LedgerForeign):
            continue
        assert residual or state.batches == 40


def test_a_text_file(file: Path) -> None:
    """A file that never was a database is refused and kept."""
    file.write_text("my only copy of the thesis\n" * 1000)
    _is_refused(file, "not a database")


@pytest.mark.parametrize("how", ["file", "log"])
def test_cut_while_open(file: Path, how: str) -> None:
    """A file or log cut under the open ledger fails the next commit, which asks to reopen."""
    _closed(file)
    ledger = Ledger.open(str(file))
    for number in range(41, 51):
        ledger.commit(batch(number))
    os.truncate(file if how == "file" else f"{file}-wal", 3 * PAGE)
    with pytest.raises(LedgerCorrupt, match="was cut") as error:
        ledger.commit(batch(51))
    assert error.value.reopen
    with pytest.raises(LedgerClosed, match="failed before"):
        ledger.load()
    ledger.close()
    _is_refused(file)


def test_noise_while_open(file: Path) -> None:
    """Noise that a reader meets in the open file is corruption, not a crash."""
    data = _closed(file)
    with LedgerReader.open(str(file)) as reader:
        noise = random.Random(4).randbytes(len(data) - PAGE)
        with file.open("r+b") as raw:
            raw.seek(PAGE)
            raw.write(noise)
        with pytest.raises(LedgerCorrupt):
            reader.hours(0, 10**7)


def test_noise_while_its_writer_has_it_open(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the writer does not read again is looked at now and then: to commit on is no success."""
    data = _closed(file)
    ledger = Ledger.open(str(file))
    ledger.commit(batch(41))
    with file.open("r+b") as raw:
        raw.seek(PAGE)
        raw.write(random.Random(4).randbytes(len(data) - PAGE))
    monkeypatch.setattr(sqlite, "LOOK_EVERY_S", 0.0)
    with pytest.raises(LedgerCorrupt):
        ledger.commit(batch(42))
    ledger.close()


def test_moved_while_open(file: Path) -> None:
    """A ledger that was moved or replaced under the daemon is not written to in the void."""
    _closed(file, 3)
    ledger = Ledger.open(str(file))
    file.rename(file.with_name("aside"))
    with pytest.raises(LedgerMoved, match="not there any more"):
        ledger.commit(batch(4))
    ledger.close()
    _closed(file, 2)
    ledger = Ledger.open(str(file))
    file.with_name("aside").replace(file)
    with pytest.raises(LedgerMoved, match="another file"):
        ledger.commit(batch(3))
    ledger.close()


def test_the_lock_file_removed(file: Path) -> None:
    """Without its lock file the ledger stops, for a second writer could not be told."""
    ledger = Ledger.open(str(file))
    Path(f"{file}.lock").unlink()
    with pytest.raises(LedgerMoved, match="lock file"):
        ledger.commit(batch(1))
    ledger.close()
    with Ledger.open(str(file)) as ledger:
        ledger.commit(batch(1))


def test_another_programs_database(file: Path) -> None:
    """A sound database of something else is refused, and nothing is added to it."""
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE bookmarks (x)")
    db.close()
    with pytest.raises(LedgerForeign, match="bookmarks"):
        Ledger.open(str(file))
    with pytest.raises(LedgerForeign, match="bookmarks"):
        LedgerReader.open(str(file))
    db = sqlite3.connect(file)
    assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]
    db.close()


# The write-ahead log, as a kill -9 leaves it.


FRAME = PAGE + 24


def _cut(length: Callable[[int], int]) -> Callable[[Path, int], None]:
    return lambda log, size: os.truncate(log, length(size))


def _flipped(start: Callable[[int], int], length: int) -> Callable[[Path, int], None]:
    def flip(log: Path, size: int) -> None:
        data = bytearray(log.read_bytes())
        part = slice(start(size), start(size) + length)
        data[part] = (byte ^ 0x5A for byte in data[part])
        log.write_bytes(data)

    return flip


FLIPPED = {
    "a byte in the middle": _flipped(lambda size: size // 2, 1),
    "a page in the middle": _flipped(lambda size: size // 2, PAGE),
    "a frame's header": _flipped(lambda _: 32 + 10 * FRAME, 24),
    "its header": _flipped(lambda _: 0, 32),
}
LOG_DAMAGE = {
    **FLIPPED,
    "its salt": _flipped(lambda _: 20, 1),
    "half": _cut(lambda size: size // 2),
    "half of the frames": _cut(lambda size: 32 + size // FRAME // 2 * FRAME),
    "a page short": _cut(lambda size: size - PAGE),
    "emptied": _cut(lambda _: 0),
    "only its header": _cut(lambda _: 32),
    "removed": lambda log, _: log.unlink(),
}


def _damage_log(file: Path, damage: Callable[[Path, int], None]) -> None:
    log = Path(f"{file}-wal")
    damage(log, log.stat().st_size)


@pytest.mark.parametrize("damage", LOG_DAMAGE.values(), ids=LOG_DAMAGE)
def test_a_log_that_lost_commits(file: Path, damage: Callable[[Path, int], None]) -> None:
    """A log that lost acknowledged commits is refused; SQLite alone would take them back.

    With the remedy in the message the ledger goes on from the last sound one.
    """
    killed_after(str(file), 20)
    _damage_log(file, damage)
    with pytest.raises(LedgerCorrupt):  # nor does a report wipe the evidence away
        LedgerReader.open(str(file))
    _is_refused(file, "-wal.*wal_checkpoint")
    db = sqlite3.connect(file)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) < 20


@pytest.mark.parametrize("damage", FLIPPED.values(), ids=FLIPPED)
def test_a_damaged_log_without_its_index(file: Path, damage: Callable[[Path, int], None]) -> None:
    """Also where only file and log were copied, transactions behind a broken one are the proof."""
    killed_after(str(file), 20)
    Path(f"{file}-shm").unlink()
    _damage_log(file, damage)
    _is_refused(file, "-wal")


def test_a_log_without_its_file(file: Path) -> None:
    """A new ledger is not begun beside the log of another, which SQLite would mix into it."""
    killed_after(str(file), 20)
    file.rename(file.with_name("aside"))
    _is_refused(file, "the file is gone")
    file.with_name("aside").rename(file)
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == 20


@pytest.mark.parametrize("index", ["kept", "lost"])
@pytest.mark.parametrize("tail", [b"", b"\0" * PAGE, b"torn" * 5000], ids=["none", "zeros", "torn"])
def test_a_log_after_a_kill_is_sound(file: Path, index: str, tail: bytes) -> None:
    """An unfinished last transaction, and a lost index, are no damage: all commits are there."""
    killed_after(str(file), 20)
    with Path(f"{file}-wal").open("ab") as log:
        log.write(tail)
    if index == "lost":
        Path(f"{file}-shm").unlink()
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == 20


def test_a_log_of_several_generations_is_sound(file: Path) -> None:
    """Frames of an earlier round of the log, behind those of this one, are no damage."""

    killed_after(str(file), 150)
    with LedgerReader.open(str(file)) as reader:
        assert prove(reader) == 150
    killed_after(str(file), 300)
    with Ledger.open(str(file)) as ledger:
        assert prove(ledger) == 300
