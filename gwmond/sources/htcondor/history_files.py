"""Source: history files of startds on this machine, which have what ``startd_history`` has.

A record is the lines of an ad in old syntax and then a banner, a line that begins with ``*** ``
(classad_log's and startd's AppendHistory).  At its largest size a file is renamed to
``NAME.YYYYMMDDTHHMMSS`` and a new one begun, so a file is known by its inode and its first bytes.

Read only and in bounded memory: line by line, of each record only the attributes that are needed;
a longer record than ``RECORD_BYTES`` is skipped.  What follows the last banner is not complete and
waits.  A link that leads out of the pattern's directory is not followed.

Invariants: a state is never ahead of the records returned with it; every call that is ``behind``
got further; each file's broken records are one problem with their number.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import stat
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from gwmond.model.facts import Gap, Problem
from gwmond.model.records import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import histories
from gwmond.sources.htcondor.history_cursor import HistoryAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gwmond.sources.htcondor.history_cursor import HistoryLimits

KIND = "startd_history"
RECORD_BYTES = 1 << 20
CALL_BYTES = 256 << 20
_LINE_BYTES = 1 << 16
_HEAD_BYTES = 256
_BANNER = b"*** "
_ROTATED = re.compile(r"\.[0-9]{8}T[0-9]{6}$")
_NEEDED = frozenset(name.lower().encode() for name in histories.query(KIND).projection)


class KnownFile(NamedTuple):
    """How far one file was read.

    ``head`` is a hash of its first ``length`` bytes; ``time`` (epoch seconds) is that of its newest
    record, or when it was first seen; ``whole``: when last read, nothing was left.
    """

    path: str
    inode: int
    length: int
    head: str
    offset: int
    time: int
    whole: bool


class _Record(NamedTuple):
    """One record: its needed lines, None if it is too long; where it ends in the file."""

    lines: list[bytes] | None
    end: int


def fetch(pattern: str, cursor_state: str, limits: HistoryLimits, now: float) -> HistoryAnswer:
    """Read on in all files that match a pattern, and in those rotated from them, oldest first.

    In the first call files that were last written before ``limits.lookback_s`` count as read.
    A state that is not understood (``bad_state``) is taken as none.  Raises QueryError where the
    pattern's directory cannot be listed and nothing in it can be seen.
    """
    task = _FilesReading(pattern, limits, now)
    try:
        known = _load(cursor_state)
    except (ValueError, TypeError) as error:
        task.problems.append(Problem(pattern, "bad_state", str(error)))
        known = []
    after = task.read_all(known, first=not cursor_state)
    return HistoryAnswer(
        records=tuple(task.records),
        state=json.dumps(after, separators=(",", ":")),
        complete_us=None if task.full else int(now * SECOND_US),
        behind=task.full,
        progress=None,
        gap=task.gap,
        problems=tuple(task.problems),
        read=task.read,
    )


def _load(text: str) -> list[KnownFile]:
    known = [KnownFile(*row) for row in json.loads(text)] if text else []
    for one in known:
        if list(map(type, one)) != [str, int, int, str, int, int, bool]:
            raise ValueError(f"not the state of a file: {one}")
    return known


def find(pattern: str) -> tuple[list[str], list[str]]:
    """Return regular files that match, oldest first, and paths that lead elsewhere."""
    base = os.path.realpath(os.path.dirname(glob.escape(_fixed(pattern))))
    files: dict[tuple[int, int], tuple[float, str]] = {}
    outside = []
    for path in sorted({*glob.glob(pattern), *glob.glob(pattern + ".[0-9]*T[0-9]*")}):
        real = os.path.realpath(path)
        if os.path.commonpath((base, real)) != base:
            outside.append(path)
            continue
        try:
            status = os.stat(real)
        except OSError:  # it has just gone
            continue
        if stat.S_ISREG(status.st_mode):
            files.setdefault((status.st_dev, status.st_ino), (status.st_mtime, real))
    return [path for _, path in sorted(files.values())], outside


def _fixed(pattern: str) -> str:
    """Return the pattern up to its first wildcard."""
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0]


def _list(pattern: str) -> None:
    """Raise QueryError if the directory before the first wildcard cannot be listed."""
    try:
        os.scandir(os.path.dirname(_fixed(pattern)) or ".").close()
    except OSError as error:
        raise QueryError("unreadable", f"{error.filename}: {error.strerror}") from None


def _open(path: str) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def _head(stream: IO[bytes], length: int) -> tuple[int, str]:
    """Return how many of the first bytes there are, and their hash."""
    stream.seek(0)
    first = stream.read(length)
    return len(first), hashlib.sha256(first).hexdigest()[:16]


def _records(stream: IO[bytes], offset: int) -> Iterator[_Record]:
    """Yield complete records from an offset on; memory does not depend on what is in the file."""
    stream.seek(offset)
    end, size = offset, 0
    lines: list[bytes] = []
    begins = True  # whether the next piece begins a line
    while piece := stream.readline(_LINE_BYTES):
        end += len(piece)
        size += len(piece)
        whole, begun = piece.endswith(b"\n"), begins
        begins = whole
        if begun and piece.startswith(_BANNER):
            while not whole and (piece := stream.readline(_LINE_BYTES)):
                end += len(piece)
                whole = piece.endswith(b"\n")
            if not whole:
                return
            yield _Record(lines if size <= RECORD_BYTES else None, end)
            lines, size, begins = [], 0, True
        elif size > RECORD_BYTES:
            lines = []
        elif begun and piece.partition(b"=")[0].strip().lower() in _NEEDED:
            lines.append(piece if whole else b"")
        elif begun and b"=" not in piece and piece.strip():
            lines.append(b"garbage")


def decoded(stream: IO[bytes]) -> Iterator[JobRecord | str | None]:
    """Yield each complete record of a history, decoded, from its begin on.

    A word says what is wrong with a record; None: its job never ran on a slot.
    """
    return (_decode(record) for record in _records(stream, 0))


class _FilesReading:
    """One call of ``fetch``."""

    def __init__(self, pattern: str, limits: HistoryLimits, now: float) -> None:
        self.records: list[JobRecord] = []
        self.problems: list[Problem] = []
        self.gap: Gap | None = None
        self.full = False
        self.read = 0
        self._bytes = 0
        self._pattern, self._limits, self._now = pattern, limits, now

    def read_all(self, known: list[KnownFile], *, first: bool) -> list[KnownFile]:
        """Read on in each file; return how far each is read now."""
        after: list[KnownFile] = []
        left = list(known)
        files, outside = find(self._pattern)
        if not files and not outside:
            _list(self._pattern)
        self.problems += [Problem(path, "link_outside", path) for path in outside]
        for path in files:
            before = None
            try:
                with _open(path) as stream:
                    before = self._known(stream, left)
                    if before is not None:
                        left.remove(before)
                    read = self._file(path, stream, before, first=first)
            except OSError as error:
                self.problems.append(Problem(path, "unreadable", str(error)))
                kept = [one for one in left if one.path == path] if before is None else [before]
                after += kept
                left = [one for one in left if one not in kept]
            else:
                after += [] if read is None else [read]
        for one in left:
            if not (one.whole and _ROTATED.search(one.path)):  # else it was due to go
                detail = f"{one.path}: removed or truncated; what came after is lost"
                self._lost(one, detail)
        return after

    def _known(self, stream: IO[bytes], known: list[KnownFile]) -> KnownFile | None:
        """Return what is known of an open file, whatever it is called now."""
        status = os.fstat(stream.fileno())
        for one in known:
            same = one.inode == status.st_ino and one.offset <= status.st_size
            if same and _head(stream, one.length) == (one.length, one.head):
                return one
        return None

    def _file(
        self, path: str, stream: IO[bytes], before: KnownFile | None, *, first: bool
    ) -> KnownFile | None:
        """Read on in one file; None if it is new and there is no room for it yet."""
        status = os.fstat(stream.fileno())
        if before is None and self.full:
            return None
        offset, time = (before.offset, before.time) if before else (0, int(self._now))
        if before is None and first and status.st_mtime < self._now - self._limits.lookback_s:
            offset = status.st_size
        wrong: Counter[str] = Counter()
        newest = 0
        for record in _records(stream, offset) if not self.full else ():
            one = _decode(record)
            if isinstance(one, JobRecord):
                self.records.append(one)
                newest = max(newest, one.fact.written_us // SECOND_US)
            elif one is not None:
                wrong[one] += 1
            self.read += 1
            self._bytes += record.end - offset
            offset = record.end
            if self.read >= self._limits.records or self._bytes >= CALL_BYTES:
                self.full = True
                break
        for word, number in sorted(wrong.items()):
            self.problems.append(Problem(path, word, f"{number} records", number))
        length, head = _head(stream, _HEAD_BYTES)
        whole = offset == status.st_size
        return KnownFile(path, status.st_ino, length, head, offset, newest or time, whole)

    def _lost(self, one: KnownFile, detail: str) -> None:
        start = one.time * SECOND_US
        if self.gap is not None:
            start = min(start, self.gap.start_us or start)
            detail = f"{self.gap.detail}; {detail}"[:1000]
        self.gap = Gap(self._pattern, KIND, start, int(self._now * SECOND_US), detail)


def _decode(record: _Record) -> JobRecord | str | None:
    """Turn the lines of a record into a job record; a word says what is wrong with them.

    Numbers such as 007 mean something else to classad2 before htcondor2 has set it up.
    """
    import classad2  # noqa: PLC0415 (only ever in a child)
    import htcondor2  # noqa: F401, PLC0415

    if record.lines is None:
        return "too_long"
    raw = b"".join(record.lines)
    if b"garbage" in record.lines or not raw:
        return "garbage"
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    try:
        ad: Any = classad2.parseNext(text, classad2.ParserType.Old)
    except Exception:  # ClassAdException, which has no base that could be named here
        return "garbage"
    return histories.decode(KIND, ad)
