"""One writer per SQLite ledger: a lock on ``<file>.lock`` which the kernel releases on any death.

A ``flock`` belongs to the open file, and a child made by ``fork`` shares it: a child that hangs in
a query would keep the lock of a killed daemon.  So every forked child closes its copy at once.

Root may lock in a directory of somebody else, who could put a link there to have another file
made or overwritten: no link is followed at the lock's name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import weakref
from contextlib import suppress
from pathlib import Path

from gwmond.ledger.database.errors import LedgerLocation, LedgerLocked

LOCK_MODE = 0o640
_ATTEMPTS = 100


class FileLock:
    """An exclusive lock, held from construction until ``release``.

    Raises ``LedgerLocked`` naming the holder, ``LedgerLocation`` when a symbolic link is there, or
    ``OSError`` when the file cannot be made.
    The file stays behind: to delete it would let two processes lock two files of one name.
    """

    _fd = -1

    def __init__(self, path: Path, where: str) -> None:
        self._path = path
        for _ in range(_ATTEMPTS):
            self._fd = _made(path, where)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(self._fd, 200, 0).decode(errors="replace").strip()
                self.release()
                raise LedgerLocked(
                    where,
                    f"in use by another gwmond ({holder or 'pid not known yet'})",
                    f"Stop that process, or give this one its own ledger; {path} names the holder.",
                ) from None
            except OSError:
                self.release()
                raise
            if self.held():
                break
            self.release()  # someone removed the file between open and lock
        else:
            raise _unsteady(path, where)
        _held.add(self)
        with suppress(OSError):  # a full disk: the lock holds, only its message is missing
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def held(self) -> bool:
        """Return whether the locked file is still the one at its path."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.lstat(self._path))
        except OSError:
            return False

    def release(self) -> None:
        """Give the lock up; harmless when repeated."""
        _held.discard(self)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.release()  # a ledger that was dropped unclosed must not lock its own process out


def _made(path: Path, where: str) -> int:
    """Open the file, making it if there is none."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_ATTEMPTS):
        try:
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, LOCK_MODE)
        except FileExistsError:
            with suppress(FileNotFoundError):  # removed since: make it
                return open_existing(path, flags, where)
        else:
            give(fd, path.parent)
            return fd
    raise _unsteady(path, where)


def open_existing(path: Path, flags: int, where: str) -> int:
    try:
        return os.open(path, flags)
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        what = f"its lock file {path} is a symbolic link, which is not followed"
        raise LedgerLocation(where, what, f"Find out who made it, then remove {path}.") from None


def _unsteady(path: Path, where: str) -> LedgerLocked:
    what = f"its lock file {path} is removed or replaced again and again"
    return LedgerLocked(where, what, "Find the program that does so and stop it.")


def give(fd: int, directory: Path) -> None:
    """Give a file that root has just made (exclusively) to the owner of its directory.

    So a daemon that is not root can use it.  A directory of everybody, as /tmp, is nobody's.
    """
    stat_result = os.stat(directory)
    if os.geteuid() == 0 and stat_result.st_uid != 0 and not stat_result.st_mode & stat.S_IWOTH:
        with suppress(OSError):  # no such user in this namespace: it stays root's
            os.fchown(fd, stat_result.st_uid, stat_result.st_gid)


def exposed(directory: Path) -> bool:
    """Return whether this is root, at work where others can put files and links."""
    stat_result = os.stat(directory)
    return os.geteuid() == 0 and bool(
        stat_result.st_uid or stat_result.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_in_child() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_close_in_child)
