"""Whose files a ledger's are, and what one is told who may not read them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gwmond.ledger.database import lock, migrate, sqlite
from gwmond.ledger.database.errors import (
    LedgerCorrupt,
    LedgerForeign,
    LedgerLocation,
    LedgerLocked,
    LedgerMoved,
    LedgerReadOnly,
)
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from tests.ledger.batches import batch
from tests.unprivileged import unprivileged

SOMEBODY = 12345


def owners(directory: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_uid, path.stat().st_gid) for path in directory.iterdir()}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory of a user who is not root."""
    found = tmp_path / "theirs"
    found.mkdir(0o750)
    os.chown(found, SOMEBODY, SOMEBODY)
    return found


def test_a_ledger_that_root_makes_is_its_directory_owners(theirs: Path) -> None:
    """So a daemon that is not root goes on with what root has imported."""
    with Ledger.open(f"{theirs}/ledger.sqlite") as ledger:
        ledger.commit(batch(1))
        found = owners(theirs)
    assert set(found) == {f"ledger.sqlite{of}" for of in ("", ".lock", "-wal", "-shm")}
    assert set(found.values()) == {(SOMEBODY, SOMEBODY)}
    with LedgerReader.open(f"{theirs}/ledger.sqlite") as reader:
        assert reader.load().batches == 1
        assert set(owners(theirs).values()) == {(SOMEBODY, SOMEBODY)}


def test_a_directory_of_everybody_is_nobodys(theirs: Path) -> None:
    """In it, what root makes stays root's; so does what was there before."""
    theirs.chmod(0o1777)
    Ledger.open(f"{theirs}/ledger.sqlite").close()
    theirs.chmod(0o750)
    Ledger.open(f"{theirs}/ledger.sqlite").close()
    assert set(owners(theirs).values()) == {(0, 0)}


def link(at: Path, to: Path) -> None:
    """Put a link of the directory's owner at a name, whatever was there."""
    at.unlink(missing_ok=True)
    at.symlink_to(to)
    os.chown(at, SOMEBODY, SOMEBODY, follow_symlinks=False)


@pytest.mark.parametrize("there", [False, True])
def test_a_link_at_the_locks_name_is_not_followed(
    theirs: Path, tmp_path: Path, there: bool
) -> None:
    """The directory's owner cannot have root make or overwrite another file."""
    other, name = tmp_path / "other", theirs / "ledger.sqlite.lock"
    if there:
        other.write_text("root's own")
    link(name, other)
    with pytest.raises(LedgerLocation, match=r"lock file .* is a symbolic link") as error:
        Ledger.open(f"{theirs}/ledger.sqlite")
    assert f"remove {name}" in error.value.remedy
    assert other.read_text() == "root's own" if there else not other.exists()
    assert list(theirs.iterdir()) == [name]
    name.unlink()
    Ledger.open(f"{theirs}/ledger.sqlite").close()


def test_a_link_to_the_lock_is_not_the_lock(theirs: Path) -> None:
    """A second writer would be refused at the link: the first one stops as well."""
    ledger = Ledger.open(f"{theirs}/ledger.sqlite")
    name = theirs / "ledger.sqlite.lock"
    name.rename(theirs / "aside")
    link(name, theirs / "aside")
    with pytest.raises(LedgerMoved, match="lock file"):
        ledger.commit(batch(1))
    ledger.close()


@pytest.mark.parametrize("times", [1, 1000])
def test_a_lock_file_removed_while_it_is_opened(
    theirs: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It is made anew, its directory owner's as well; not for ever."""
    (theirs / "ledger.sqlite.lock").touch()
    opened, left = lock.open_existing, times

    def removed(path: Path, flags: int, where: str) -> int:
        nonlocal left
        left -= 1
        path.unlink()
        try:
            return opened(path, flags, where)
        finally:
            if left:
                path.touch()

    monkeypatch.setattr(lock, "open_existing", removed)
    if times > 1:
        with pytest.raises(LedgerLocked, match="removed or replaced again and again"):
            Ledger.open(f"{theirs}/ledger.sqlite")
        assert left > 0
        return
    with Ledger.open(f"{theirs}/ledger.sqlite"):
        assert set(owners(theirs).values()) == {(SOMEBODY, SOMEBODY)}


@pytest.mark.parametrize(("uid", "mode"), [(SOMEBODY, 0o750), (0, 0o770), (0, 0o777), (0, 0o755)])
def test_where_a_new_ledger_is_made(
    theirs: Path, monkeypatch: pytest.MonkeyPatch, uid: int, mode: int
) -> None:
    """SQLite opens by name: nothing where others than root can put a link at that name."""
    os.chown(theirs, uid, -1)
    theirs.chmod(mode)
    ensure, seen = migrate.ensure, []

    def look(connection: Connection, where: str) -> None:
        seen.append(sorted(path.name for path in theirs.iterdir()))
        ensure(connection, where)

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "ensure", look)
        Ledger.open(f"{theirs}/ledger.sqlite").close()
    private = mode != 0o755
    assert seen[0] == ["ledger.sqlite.lock"] + ["ledger.sqlite.new"] * (not private)
    assert {path.name for path in theirs.iterdir()} == {"ledger.sqlite", "ledger.sqlite.lock"}


def test_what_is_put_in_place_of_a_new_ledger_is_not_written_to(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even at the moment in which the file becomes the directory owner's."""
    other, url = tmp_path / "other", f"{theirs}/ledger.sqlite"
    other.touch()

    def swapped(fd: int, directory: Path) -> None:
        lock.give(fd, directory)
        link(theirs / "ledger.sqlite.new", other)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "give", swapped)
        with pytest.raises(LedgerMoved, match=r"another file was put at .*sqlite.new"):
            Ledger.open(url)
    assert other.read_bytes() == b""
    assert other.stat().st_uid == 0
    assert set(owners(theirs)) == {"ledger.sqlite.lock"}
    link(theirs / "ledger.sqlite.new", other)
    Ledger.open(url).close()
    assert other.read_bytes() == b""
    assert set(owners(theirs).values()) == {(SOMEBODY, SOMEBODY)}
    assert not (theirs / "ledger.sqlite").is_symlink()


@pytest.mark.parametrize("opened", [Ledger, LedgerReader])
def test_a_link_that_is_put_in_place_of_a_ledger_is_not_followed(
    theirs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: type[Ledger] | type[LedgerReader],
) -> None:
    """At the last moment; another's log would be emptied, and removed, by SQLite."""
    ours, other = theirs / "ledger.sqlite", tmp_path / "other.sqlite"
    for path in (ours, other):
        Ledger.open(str(path)).close()
    log = tmp_path / "other.sqlite-wal"
    log.write_bytes(b"another's")
    connect = sqlite._connect

    def swapped(path: Path, mode: str, begin: str) -> Connection:
        link(ours, other)
        return connect(path, mode, begin)

    monkeypatch.setattr(sqlite, "_connect", swapped)
    with pytest.raises(LedgerLocation, match=r"a symbolic link to .*other.sqlite was put there"):
        opened.open(str(ours))
    assert log.read_bytes() == b"another's"


def test_who_may_not_read_is_told_to_be_another_user(tmp_path: Path) -> None:
    """A command that only reads asks nobody to let it write."""
    url = f"{tmp_path}/ledger.sqlite"
    Ledger.open(url).close()
    (tmp_path / "ledger.sqlite").chmod(0)
    with unprivileged(), pytest.raises(LedgerReadOnly) as error:
        LedgerReader.open(url)
    assert "run the command as root" in str(error.value)
    assert "write" not in str(error.value)
    with unprivileged(), pytest.raises(LedgerReadOnly, match="write to the file"):
        Ledger.open(url)


def database(at: Path, table: str) -> None:
    with closing(sqlite3.connect(at)) as db:
        db.execute(f"CREATE TABLE {table} (x)")


@pytest.mark.parametrize("other", ["passwd", "bookmarks", "directory"])
def test_no_lock_is_made_beside_what_is_no_ledger(tmp_path: Path, other: str) -> None:
    """Its name may be that of another program's lock, which root would keep from its work."""
    system = tmp_path / "etc"
    system.mkdir()
    if other == "passwd":
        (system / other).write_text("root:x:0:0:root:/root:/bin/sh\n")
    elif other == "bookmarks":
        database(system / other, "bookmarks")
    else:
        (system / other).mkdir()
    link_to_it = tmp_path / "ledger.sqlite"
    link_to_it.symlink_to(system / other)
    for path in (link_to_it, system / other):
        with pytest.raises((LedgerCorrupt, LedgerForeign, LedgerLocation)):
            Ledger.open(str(path))
    assert [path.name for path in tmp_path.rglob("*") if path.suffix] == ["ledger.sqlite"]


def test_a_lock_that_is_there_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """Nothing is written to another program's lock."""
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (tmp_path / "passwd.lock").write_text("4711")
    with pytest.raises(LedgerCorrupt, match="not a database"):
        Ledger.open(f"{tmp_path}/passwd")
    assert (tmp_path / "passwd.lock").read_text() == "4711"


def test_a_damaged_ledger_and_an_empty_database_are_locked(tmp_path: Path) -> None:
    """The one has to be proved damaged by its writer; the other may become a ledger."""
    database(tmp_path / "new.sqlite", "soon_gone")
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as db:
        db.execute("DROP TABLE soon_gone")
    Ledger.open(f"{tmp_path}/new.sqlite").close()
    data = (tmp_path / "new.sqlite").read_bytes()
    (tmp_path / "old.sqlite").write_bytes(data[:16] + bytes(len(data) - 16))
    with pytest.raises(LedgerCorrupt):
        Ledger.open(f"{tmp_path}/old.sqlite")
    assert (tmp_path / "old.sqlite.lock").exists()


@pytest.mark.parametrize("there", [False, True])
def test_root_follows_no_link_of_somebody_elses(theirs: Path, tmp_path: Path, there: bool) -> None:
    """Neither to a file that is there nor to one that would be made; a link of root's own is."""
    (tmp_path / "own").mkdir()
    target = tmp_path / "own" / "ledger.sqlite"
    if there:
        Ledger.open(str(target)).close()
    before = sorted(target.parent.iterdir())
    link(theirs / "ledger.sqlite", target)
    with pytest.raises(LedgerLocation, match="link of another user") as error:
        Ledger.open(f"{theirs}/ledger.sqlite")
    assert str(target) in error.value.remedy
    assert sorted(target.parent.iterdir()) == before
    os.chown(theirs / "ledger.sqlite", 0, 0, follow_symlinks=False)
    Ledger.open(f"{theirs}/ledger.sqlite").close()
    assert target.with_name("ledger.sqlite.lock").exists()
