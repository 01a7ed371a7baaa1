"""The socket on which a central log's lines arrive: a Unix datagram socket, one line a datagram.

A thread of its own only puts what it receives into a bounded buffer; the lines are taken and read
at the next poll.  While nobody takes them (the ledger cannot be written) the buffer fills, and
what does not fit is dropped and counted.  A datagram is a line: what else ends a line within it is
made a space.

The socket is made under another name and then renamed, so that whoever sends finds the old one or
the new one.  One that a killed daemon has left is replaced; one on which somebody listens is not.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import threading
from collections import deque
from typing import NamedTuple

from gwmond.config.settings import ConfigError

LINE_BYTES = 16 << 10
BUFFER_LINES = 50_000
TAKE_LINES = 10_000
BUFFER_BYTES = 16 << 20
MODE = 0o660
_RECEIVE_BYTES = 4 << 20
_WAKE_S = 0.5
_NEW = ".new"


class PlaceError(ConfigError):
    """A configured path cannot be used; says which key to change, and how."""


class PlaceTaken(PlaceError):
    """Somebody listens there already."""


class Received(NamedTuple):
    """Lines, and how many were dropped since the last time: there was no room, or too long."""

    lines: tuple[bytes, ...]
    overflow: int
    too_long: int


class LogSocket:
    """A bound socket and the thread that receives on it; ``close`` it when done."""

    def __init__(self, path: str) -> None:
        """Bind it; raises PlaceError."""
        self.path = path
        self._lock = threading.Lock()
        self._lines: deque[bytes] = deque()
        self._bytes = self._too_long = 0
        self.overflow = 0
        """How many lines found no room since the last were taken."""
        self._stopping = False
        self._failure = ""
        self._socket, self._inode = _bind(path)
        self._thread = threading.Thread(target=self._receive, name="log socket", daemon=True)
        self._thread.start()

    def take(self) -> Received:
        """Return what has arrived since the last time, up to TAKE_LINES; the rest waits."""
        with self._lock:
            lines = tuple(self._lines.popleft() for _ in range(min(TAKE_LINES, len(self._lines))))
            received = Received(lines, self.overflow, self._too_long)
            self._bytes -= sum(map(len, lines))
            self.overflow = self._too_long = 0
        return received

    @property
    def waiting(self) -> int:
        """How many lines wait to be taken."""
        with self._lock:
            return len(self._lines)

    @property
    def many(self) -> bool:
        """Whether so many lines wait that they cannot be taken at once."""
        return self.waiting > TAKE_LINES // 2

    @property
    def failure(self) -> str:
        """Why nothing can arrive; empty while it can."""
        if self._failure:
            return self._failure
        if _inode(self.path) != self._inode:
            return f"{self.path} was removed or replaced: restart gwmond, or reload it"
        return ""

    @classmethod
    def renewed(cls, current: LogSocket | None, path: str) -> LogSocket | None:
        """Return the current socket if it does for this path (empty: none), else a new one.

        Raises PlaceError.
        """
        if current is not None and current.path == path and not current.failure:
            return current
        return cls(path) if path else None

    def close(self) -> None:
        """Receive no more, and remove the socket, unless another one is there by now."""
        self._stopping = True
        self._thread.join(10 * _WAKE_S)
        self._socket.close()
        if _inode(self.path) == self._inode:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def _receive(self) -> None:
        try:
            while not self._stopping:
                try:
                    line, _, flags, _ = self._socket.recvmsg(LINE_BYTES)
                except TimeoutError:
                    continue
                self._add(line.strip(b"\r\n\0 "), bool(flags & socket.MSG_TRUNC))
        except OSError as error:
            self._failure = f"{self.path}: {error.strerror}"

    def _add(self, line: bytes, too_long: bool) -> None:
        with self._lock:
            if too_long:
                self._too_long += 1
            elif len(self._lines) >= BUFFER_LINES or self._bytes + len(line) > BUFFER_BYTES:
                self.overflow += bool(line)
            elif line:
                self._lines.append(line.replace(b"\n", b" "))
                self._bytes += len(line)


def check(path: str) -> None:
    """Raise PlaceError where ``LogSocket`` would, as far as that shows without making it."""
    directory = os.path.dirname(path) or "."
    try:
        _make_room(path)
        os.stat(os.path.join(directory, ""))
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "")
    except OSError as error:
        raise PlaceError(f"factory.log_socket: {_why(path, error)}") from None


def _bind(path: str) -> tuple[socket.socket, tuple[int, int] | None]:
    """Return a bound socket, and which file it is; raises PlaceError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    new = path + _NEW
    try:
        _make_room(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        with contextlib.suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        made.settimeout(_WAKE_S)
        made.bind(new)
        os.chmod(new, MODE)
        os.rename(new, path)
    except OSError as error:
        made.close()
        raise PlaceError(f"factory.log_socket: {_why(path, error)}") from None
    except PlaceError:
        made.close()
        raise
    return made, _inode(path)


def _make_room(path: str) -> None:
    """See to it that a new socket may take this place; raises PlaceError, OSError."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise PlaceError(f"factory.log_socket: {path} is there, and is no socket: {_MOVE}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return  # nobody listens any more
        except OSError as error:
            if error.errno == errno.EPROTOTYPE:
                raise PlaceError(
                    f"factory.log_socket: another program listens on {path}: {_MOVE}"
                ) from None
            raise
    raise PlaceTaken(
        f"factory.log_socket: {path} is in use by another process: stop that one or configure "
        "another path"
    )


_MOVE = "remove it, or configure another path"


def _why(path: str, error: OSError) -> str:
    directory = os.path.dirname(path) or "."
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return f"{directory} is no directory: make it, or configure another path"
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return (
            f"cannot write in {directory}: give gwmond's user the right to, or configure a path in "
            "a directory of its own (under systemd /run/gwmond)"
        )
    return f"{path} cannot be listened on: {error.strerror}: configure another path"


def _inode(path: str) -> tuple[int, int] | None:
    """Return which file there is by this name."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
