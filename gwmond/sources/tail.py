"""Following a log that grows: whole records from where reading stopped, in bounded memory.

A file is known by its inode and its first bytes, so that it may be renamed; one that is shorter
than what was read, or begins in another way, is another one.  A record longer than
``RECORD_BYTES`` is passed over without being held, also if it takes several calls.

Offsets in one that is compressed (``PACKED``) are those of what comes out of it.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import stat
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 1 << 20
RECORD_BYTES = 1 << 18
HEAD_BYTES = 64
PACKED = ".gz"


class FollowedLog(NamedTuple):
    """How far one log was read; ``passing``: the offset is within a record that is too long."""

    name: str
    inode: int
    length: int
    head: str
    offset: int
    passing: bool


class Chunk(NamedTuple):
    """Whole records, and where they end; ``too_long``: one more was passed over."""

    raw: bytes
    offset: int
    passing: bool
    too_long: bool


def open_regular(path: str) -> IO[bytes]:
    """Open a regular file to read; neither a link is followed nor a pipe waited for.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(22, "not a regular file", path)
    return os.fdopen(descriptor, "rb", buffering=0)


class _Unpacking(gzip.GzipFile):
    """Damage is an OSError, as it is of gzip's own header; all before it is read."""

    def read(self, size: int | None = -1) -> bytes:
        left, pieces = CHUNK_BYTES if size is None or size < 0 else size, list[bytes]()
        try:
            with _damage():
                while left and (piece := super().read1(left)):
                    left -= len(piece)
                    pieces.append(piece)
        except OSError:
            if not pieces:
                raise
        return b"".join(pieces)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _damage():
            return super().seek(offset, whence)


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error) as error:
        raise OSError(errno.EIO, f"damaged: {error}") from error


@contextlib.contextmanager
def open_log(path: str) -> Iterator[IO[bytes]]:
    """Open a log to read, as ``open_regular``; a compressed one is unpacked as it is read.

    Raises OSError, and so does reading it.
    """
    with open_regular(path) as stream:
        if not path.endswith(PACKED):
            yield stream
            return
        with _Unpacking(fileobj=stream, mode="rb") as unpacked:
            yield cast("IO[bytes]", unpacked)


def head(stream: IO[bytes], length: int = HEAD_BYTES) -> tuple[int, str]:
    """Return how many of the first bytes there are, and their hash."""
    stream.seek(0)
    first = stream.read(length)
    return len(first), hashlib.sha256(first).hexdigest()[:16]


def same(stream: IO[bytes], log: FollowedLog) -> bool:
    """Return whether an open file is one that was read before, and has what was read."""
    status = os.fstat(stream.fileno())
    packed = isinstance(stream, _Unpacking)
    if log.inode != status.st_ino or (log.offset > status.st_size and not packed):
        return False
    return head(stream, log.length) == (log.length, log.head)


def chunks(stream: IO[bytes], offset: int, passing: bool, end: bytes) -> Iterator[Chunk]:
    """Yield whole records from an offset on, each ending with ``end``; what follows waits."""
    stream.seek(offset)
    held = b""
    while piece := stream.read(CHUNK_BYTES):
        held += piece
        too_long = False
        if passing:
            at = held.find(end)
            if at < 0:
                left = len(held) - min(len(held), len(end) - 1)
                offset, held = offset + left, held[left:]
                yield Chunk(b"", offset, True, False)
                continue
            offset, held, passing = offset + at + len(end), held[at + len(end) :], False
        at = held.rfind(end) + len(end)
        whole = held[:at] if at >= len(end) else b""
        offset, held = offset + len(whole), held[len(whole) :]
        if len(held) > RECORD_BYTES:
            left = len(held) - (len(end) - 1)
            offset, held, passing, too_long = offset + left, held[left:], True, True
        if whole or too_long:
            yield Chunk(whole, offset, passing, too_long)
