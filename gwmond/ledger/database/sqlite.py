"""A ledger in an SQLite file, on a local disk (WAL needs shared memory: not NFS).

* ``journal_mode=WAL``: readers never wait for the writer, and a commit is one append.
* ``synchronous=FULL``: each commit is on the disk when it returns.  With NORMAL a power cut takes
  the last commits back; Prometheus has scraped them, would see a counter go down, take that for a
  restart and count everything twice.
* ``busy_timeout``: a ``sqlite3`` shell with an open transaction delays us, and does not fail us.
* ``foreign_keys``: SQLite checks none unless told.

A new ledger is written whole to ``<file>.new``, without a log, and renamed.  So an empty ledger
file is never a new one but a lost one, and is not quietly started again from zero.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from gwmond.ledger.database import migrate, wal
from gwmond.ledger.database.classify import KEEP, translate
from gwmond.ledger.database.errors import (
    NOT_THERE,
    LedgerCorrupt,
    LedgerLocation,
    LedgerMoved,
    LedgerReadOnly,
)
from gwmond.ledger.database.lock import FileLock, exposed, give
from gwmond.ledger.database.schema import VERSION_TABLE

FILE_MODE = 0o640
_MAGIC = b"SQLite format 3\0"
BUSY_S = 5.0
QUICK_CHECK_S = 10.0
LOOK_EVERY_S = 3600.0
"""So often an open ledger is looked at, page by page, for ``QUICK_CHECK_S`` at most."""
_STEPS = 10_000  # of SQLite, some tenths of a millisecond, between two looks at the clock

# Files that this process has open.  To close any descriptor of <file>-shm drops all locks that
# SQLite holds on it (POSIX), so the log is not inspected while a reader here is open.
_open: Counter[tuple[int, int]] = Counter()


def _connect(path: Path, mode: str, begin: str, journal: str = "wal") -> Connection:
    """Connect with the PRAGMAs above; every transaction starts with ``begin``."""
    return _engine(path, mode, begin, journal).connect()


@lru_cache(8)
def _engine(path: Path, mode: str, begin: str, journal: str) -> Engine:
    """Return who makes these connections.  It has none, but keeps the statements that it compiled.

    Without that, each page of the daemon left some 1,000 objects that refer to each other.
    """

    def connect() -> sqlite3.Connection:
        uri = f"file:{quote(str(path))}?mode={mode}"
        # Any thread, one at a time: the Ledger has a lock.  Transactions are begun by us, because
        # the module would begin one late, at the first write, and commit before some statements.
        db = sqlite3.connect(
            uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            # SQLite follows a link of that moment; what it opened it says before it reads any.
            opened = db.execute("PRAGMA database_list").fetchone()[2]
            if opened != str(path):
                what = f"a symbolic link to {opened} was put there while it was opened"
                raise LedgerLocation(str(path), what, "Find out who did so; then start again.")
            if mode != "ro":
                answer = db.execute(f"PRAGMA journal_mode={journal}").fetchone()
                if answer != (journal,):
                    raise sqlite3.OperationalError("this file system cannot hold a WAL database")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA foreign_keys=ON")
            db.execute("PRAGMA journal_size_limit=16777216")
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _log_size(path: Path) -> int:
    """Return the size of the write-ahead log, 0 where there is none."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


def quick_check(connection: Connection, path: Path) -> bool:
    """Raise ``LedgerCorrupt`` when a page is damaged; ``False`` if time ran out before the end."""
    where = str(path)
    db = connection.connection.dbapi_connection
    assert isinstance(db, sqlite3.Connection)
    page = db.execute("PRAGMA page_size").fetchone()[0]
    size = path.stat().st_size
    if size % page and not _log_size(path):  # (with a log it may be a copy cut short by a crash)
        raise LedgerCorrupt(where, f"its {size} bytes are not whole pages of {page}", KEEP)
    timer = threading.Timer(QUICK_CHECK_S, db.interrupt)
    timer.daemon = True
    timer.start()
    try:
        lines = [str(row[0]) for row in db.execute("PRAGMA quick_check(3)")]
    except sqlite3.OperationalError as exc:
        if exc.sqlite_errorname == "SQLITE_INTERRUPT":
            return False
        raise
    finally:
        timer.cancel()
    if lines != ["ok"]:
        raise LedgerCorrupt(where, " ".join("; ".join(lines).split()), KEEP)
    return True


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _blank(at: Path, where: str) -> bytes:
    """Return an empty ledger's bytes, which say WAL at once (SQLite's file format, 1.3.3)."""
    try:
        connection = _connect(at, "rwc", "BEGIN IMMEDIATE", journal="delete")
        try:
            migrate.ensure(connection, where)
        finally:
            connection.close()
        made = at.read_bytes()
        return made[:18] + b"\2\2" + made[20:]
    finally:
        _remove(at)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        _beside(path, suffix).unlink(missing_ok=True)


def _create(path: Path) -> None:
    """Make an empty ledger at ``path``, whole or not at all.

    SQLite opens by name, and where root works in a directory of others they can put a link there
    at any time.  So it makes it in a private directory then, and what it made is written to a file
    that is held open from its exclusive making until it is given away and renamed.
    (The owner of a directory can always put another file in the place of the finished ledger.)
    """
    if _log_size(path):
        what = f"the file is gone but its log {path}-wal is here, with the last transactions"
        raise LedgerCorrupt(str(path), what, "Put the file back, or move the log away as well.")
    new = _beside(path, ".new")
    _remove(new)  # our own, of a run that was killed
    if exposed(path.parent):
        with tempfile.TemporaryDirectory(prefix="gwmond-") as private:
            blank = _blank(Path(private, path.name), str(path))
    else:
        blank = _blank(new, str(path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(new, flags, FILE_MODE), "wb") as file:
        try:
            file.write(blank)
            file.flush()
            os.fchmod(file.fileno(), FILE_MODE)
            give(file.fileno(), path.parent)
            os.fsync(file.fileno())
            if not os.path.samestat(os.fstat(file.fileno()), os.lstat(new)):
                what = f"another file was put at {new} while the ledger was made"
                raise LedgerMoved(str(path), what, "Find out who did so; then start again.")
            new.rename(path)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


class SqliteBackend:
    """An open file; made by ``open_writer`` or ``open_reader``."""

    def __init__(self, path: Path, connection: Connection, lock: FileLock | None) -> None:
        self.where = str(path)
        self.path, self.connection, self._lock = path, connection, lock
        self._identity, self._sizes = self._now()
        _open[self._identity] += 1
        self._closed = False
        self._looked = time.monotonic()

    def _now(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return what identifies the file, and the sizes of the file and its log."""
        file = self.path.stat()
        return (file.st_dev, file.st_ino), (file.st_size, _log_size(self.path))

    def verify(self) -> None:
        """Raise when the files were moved, replaced or cut: SQLite would work on in its cache.

        Only its writer ever makes them shorter (somebody's VACUUM does too, and then opening the
        ledger again is all that is needed).
        """
        try:
            identity, sizes = self._now()
        except FileNotFoundError:
            raise LedgerMoved(self.where, "the open file is not there any more", _MOVED) from None
        if identity != self._identity:
            raise LedgerMoved(self.where, "another file was put in its place", _MOVED)
        if self._lock is None:
            return
        if not self._lock.held():
            raise LedgerMoved(self.where, "its lock file was removed", _MOVED)
        if any(now < before for now, before in zip(sizes, self._sizes, strict=True)):
            what = f"the file or its log was cut from {self._sizes} to {sizes} bytes while open"
            raise LedgerCorrupt(self.where, what, KEEP)
        if time.monotonic() - self._looked >= LOOK_EVERY_S:
            self._look()

    def _look(self) -> None:
        """Raise when pages were overwritten, which our connection may never read again."""
        self._looked = time.monotonic()
        try:
            with closing(_connect(self.path, "ro", "BEGIN")) as connection:
                quick_check(connection, self.path)
        except (SQLAlchemyError, sqlite3.Error) as exc:
            raise translate(exc, self.where, self.path) from exc

    def note(self) -> None:
        with suppress(OSError):  # the batch is stored; what is wrong now, the next verify shows
            self._sizes = self._now()[1]

    def vacuum(self) -> None:
        db = self.connection.connection.dbapi_connection
        assert isinstance(db, sqlite3.Connection)
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # as far as readers allow

    def end_within(self, seconds: float) -> None:
        db = self.connection.connection.dbapi_connection
        assert isinstance(db, sqlite3.Connection)
        end = time.monotonic() + seconds
        db.set_progress_handler(lambda: time.monotonic() > end, _STEPS)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with suppress(SQLAlchemyError, sqlite3.Error, OSError):
            self.connection.close()
        _open[self._identity] -= 1
        if self._lock is not None:
            self._lock.release()


_SALVAGE = (
    "Nothing was moved or deleted. Stop gwmond and copy the file and its -wal and -shm aside. Then "
    "restore a backup, or go on from the last sound transaction: "
    "sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'"
)
_READ = (
    "To read needs no change of the file's mode: run the command as root, or as gwmond's own user."
)
_MOVED = "Stop gwmond before the file is moved or restored; open the ledger again to go on."


def _inspect(path: Path, shown: str) -> None:
    """Raise ``LedgerCorrupt`` for what SQLite would take in silence; before it opens the file."""
    stat = path.stat()
    if not stat.st_size:
        what = "the file is empty, and gwmond never leaves a ledger empty"
        raise LedgerCorrupt(shown, what, "Restore a backup, or remove it to start from zero.")
    loss = None if _open[stat.st_dev, stat.st_ino] else wal.lost(path)
    if loss:
        raise LedgerCorrupt(shown, loss, _SALVAGE)


def _refuse_others(path: Path, shown: str) -> None:
    """Raise ``LedgerForeign`` or ``LedgerCorrupt`` for what is a sound file of something else.

    Beside it no lock is made: ``/etc/passwd.lock`` would keep others from changing passwords.  The
    file is only read, without its log, which nothing here depends on.
    """
    stat = path.stat()
    if _open[stat.st_dev, stat.st_ino]:
        return  # it is known, and to close it here would drop SQLite's own locks
    with path.open("rb") as file:
        begin = file.read(len(_MAGIC))
    if not begin:
        return  # of an empty file more is said later
    if begin != _MAGIC:
        raise LedgerCorrupt(shown, "the file is not a database of SQLite", KEEP)
    without_locks = f"file:{quote(str(path))}?mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(without_locks, uri=True)) as db:
        names = {str(row[0]) for row in db.execute("SELECT name FROM sqlite_master")}
        if names and VERSION_TABLE not in names:
            raise migrate.foreign(names, shown)


def _followed(path: Path, shown: str) -> Path:
    """Return where a path leads; root follows no link that somebody else may have put there."""
    if path.is_symlink() and exposed(path.parent) and path.lstat().st_uid != 0:
        what = "is a symbolic link of another user, which root does not follow"
        raise LedgerLocation(shown, what, f"Name the file itself: {path.resolve()}")
    return path.resolve()  # one lock whatever link leads here


def open_writer(path: Path) -> SqliteBackend:
    """Lock, create or prove sound, migrate and open the ledger at ``path``."""
    shown = str(path)
    lock: FileLock | None = None
    connection: Connection | None = None
    try:
        path = _followed(path, shown)
        if not path.parent.is_dir():
            what = f"the directory {path.parent} does not exist"
            remedy = f"Create it: install -d -m 0750 -o USER_OF_GWMOND {path.parent}"
            raise LedgerLocation(shown, what, remedy)
        if path.is_dir():
            raise LedgerLocation(shown, "is a directory", "Name a file in a directory.")
        if path.exists():
            _refuse_others(path, shown)
        lock = FileLock(_beside(path, ".lock"), shown)
        if not path.exists():
            _create(path)
        _inspect(path, shown)
        # Read-only first: to close a connection that may write would copy the log into the file.
        connection = _connect(path, "ro", "BEGIN")
        quick_check(connection, path)
        connection.close()
        connection = _connect(path, "rw", "BEGIN IMMEDIATE")
        migrate.ensure(connection, shown)
        return SqliteBackend(path, connection, lock)
    except BaseException as exc:
        if connection is not None:
            connection.close()
        if lock is not None:
            lock.release()
        if isinstance(exc, Exception):
            raise translate(exc, shown, path) from exc
        raise


def open_reader(path: Path) -> SqliteBackend:
    """Open the ledger at ``path`` to read beside its writer."""
    shown = str(path)
    connection: Connection | None = None
    try:
        path = path.resolve()
        if not path.exists():
            remedy = (
                "Start the daemon once: it creates it; or gwmond import, or correct --ledger or "
                "[ledger] url."
            )
            raise LedgerLocation(shown, NOT_THERE, remedy)
        if path.is_dir():
            raise LedgerLocation(shown, "is a directory", "Name a file in a directory.")
        _inspect(path, shown)
        connection = _connect(path, "ro", "BEGIN")
        with connection.begin():
            migrate.check_known(connection, shown, upgradable=False)
        return SqliteBackend(path, connection, None)
    except BaseException as exc:
        if connection is not None:
            connection.close()
        if isinstance(exc, Exception):
            error = translate(exc, shown, path)
            if isinstance(error, LedgerReadOnly):
                error = LedgerReadOnly(shown, error.what, _READ)
            raise error from exc
        raise
