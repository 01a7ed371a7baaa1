"""Proof that a write-ahead log lost committed transactions, which SQLite itself never reports.

SQLite takes the first damaged frame of ``<file>-wal`` for the end of the log, so that a truncated
or overwritten log silently takes commits back, and counters would go down.  Evidence of the loss:

* the wal-index ``<file>-shm``, which a killed process leaves behind, counts the committed frames;
* an unbroken chain of frames with two or more commits stands behind the damaged one.  One commit
  alone may be a transaction that failed or that a power cut interrupted: nobody knows of it.

Reads only, and before SQLite does (it would rebuild the index and the evidence were gone).
Formats: https://www.sqlite.org/fileformat2.html#the_write_ahead_log and walformat.html.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

_HEADER = 32
_FRAME_HEADER = 24
_MAGIC = 0x377F0682  # the lowest bit says that checksums are over big-endian words
_INDEX_HEADER = 48
_M = 0xFFFFFFFF


class _Index(NamedTuple):
    frames: int
    salt: bytes
    copied: int


def _checksum(words: str, data: bytes, s0: int, s1: int) -> tuple[int, int]:
    for a, b in struct.iter_unpack(words, data):
        s0 = (s0 + a + s1) & _M
        s1 = (s1 + b + s0) & _M
    return s0, s1


def _index(shm: Path) -> _Index | None:
    """Return what the wal-index says; ``None`` when absent or caught in the middle of an update."""
    try:
        with shm.open("rb") as file:
            data = file.read(2 * _INDEX_HEADER + 4)
    except FileNotFoundError:
        return None
    if len(data) < 2 * _INDEX_HEADER + 4 or not data[12]:
        return None
    if data[:_INDEX_HEADER] != data[_INDEX_HEADER : 2 * _INDEX_HEADER]:
        return None
    (frames,) = struct.unpack_from("=I", data, 16)
    (copied,) = struct.unpack_from("=I", data, 2 * _INDEX_HEADER)
    return _Index(frames, data[32:40], copied)


def _scan(data: bytes, size: int) -> tuple[int, int] | None:
    """Return the last commit frame that is sound, and the most commits in one chain behind it.

    ``None`` where the log's own header is damaged; it is on the disk before the first frame is.

    A frame's checksum continues from the one before.  A commit that failed leaves frames behind
    too, but the next one overwrites them from the start, so no chain but the first ever has two.
    """
    words = ">II" if data[3] & 1 else "<II"
    chain = _checksum(words, data[:24], 0, 0)
    if chain != struct.unpack_from(">II", data, 24):
        return None
    first, sound, behind, commits = True, 0, 0, 0
    step = _FRAME_HEADER + size
    for number in range(1, (len(data) - _HEADER) // step + 1):
        at = _HEADER + (number - 1) * step
        sums = _checksum(words, data[at : at + 8], *chain)
        sums = _checksum(words, data[at + _FRAME_HEADER : at + step], *sums)
        chain = struct.unpack_from(">II", data, at + 16)
        if sums != chain or data[at + 8 : at + 16] != data[16:24]:
            first, commits = False, 0
        elif data[at + 4 : at + 8] != b"\0\0\0\0":
            commits += 1
            if first:
                sound = number
            else:
                behind = max(behind, commits)
    return sound, behind


def lost(path: Path) -> str | None:
    """Return what the log of the database at ``path`` has lost, or ``None``."""
    wal = path.with_name(path.name + "-wal")
    index = _index(path.with_name(path.name + "-shm"))
    try:
        data = wal.read_bytes()
    except FileNotFoundError:
        data = b""
    if len(data) > _HEADER:
        return _damage(data, wal, index)
    if index and index.frames > index.copied and data[16:24] in {b"", index.salt}:
        return f"{wal} lost {index.frames - index.copied} committed pages: it is empty or gone"
    return None


def _damage(data: bytes, wal: Path, index: _Index | None) -> str | None:
    magic, _, size = struct.unpack_from(">III", data)
    if magic & ~1 != _MAGIC or not 512 <= size <= 65536:
        return f"{wal} is not a write-ahead log"
    counts = _scan(data, size)
    if counts is None:
        return f"{wal} has a damaged header, and transactions behind it"
    sound, behind = counts
    if index and index.salt == data[16:24] and sound < index.frames:
        return f"{wal} lost committed pages: {index.frames} were written, {sound} are sound"
    if behind > 1:
        return f"{wal} is damaged: {behind} transactions stand behind a broken one"
    return None
