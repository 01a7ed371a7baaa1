"""Source: history files of startds on this machine, with records as ``startd_history`` reads them.

At its largest size a file is renamed to ``NAME.YYYYMMDDTHHMMSS`` and a new one begun, so a file is
known by its inode and its first bytes.  What follows the last banner waits.  A link that leads out
of the pattern's directory is not followed.

Invariants: a state is never ahead of the records returned with it; every call that is ``behind``
got further; each file's broken records are one problem with their number.
"""

from __future__ import annotations

import glob
import json
import os
import re
import stat
from collections import Counter
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from gwmond.model.facts import Gap, Problem
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.records import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.sources import tail
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor.histories import startd_history
from gwmond.sources.htcondor.histories.history_cursor import HistoryAnswer

if TYPE_CHECKING:
    from gwmond.sources.htcondor.histories.history_cursor import HistoryLimits

CALL_BYTES = 256 << 20
_HEAD_BYTES = 256
_ROTATED = re.compile(r"\.[0-9]{8}T[0-9]{6}$")


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


def fetch(pattern: str, cursor_state: str, limits: HistoryLimits, now: float) -> HistoryAnswer:
    """Read on in all files that match a pattern, and in those rotated from them, oldest first.

    In the first call files that were last written before ``limits.lookback_s`` count as read.
    A state that is not understood (``bad_state``) is taken as none.  Raises QueryError where the
    pattern's directory cannot be listed and nothing in it can be seen.
    """
    task = _FilesReading(pattern, limits, now)
    try:
        known = msgspec.convert(json.loads(cursor_state or "[]"), list[KnownFile])
    except ValueError as error:
        task.problems.append(Problem(pattern, ProblemName.BAD_STATE, str(error)))
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
        raise QueryError(ProblemName.UNREADABLE, f"{error.filename}: {error.strerror}") from None


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
        self.problems += [Problem(path, ProblemName.LINK_OUTSIDE, path) for path in outside]
        for path in files:
            before = None
            try:
                with tail.open_regular(path) as stream:
                    before = self._known(stream, left)
                    if before is not None:
                        left.remove(before)
                    read = self._file(path, stream, before, first=first)
            except OSError as error:
                self.problems.append(Problem(path, ProblemName.UNREADABLE, str(error)))
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
        for known_file in known:
            same = known_file.inode == status.st_ino and known_file.offset <= status.st_size
            if same and tail.head(stream, known_file.length) == (
                known_file.length,
                known_file.head,
            ):
                return known_file
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
        wrong: Counter[ProblemName] = Counter()
        newest = 0
        for record, end in startd_history.records(stream, offset) if not self.full else ():
            if isinstance(record, JobRecord):
                self.records.append(record)
                newest = max(newest, record.fact.written_us // SECOND_US)
            elif record is not None:
                wrong[record] += 1
            self.read += 1
            self._bytes += end - offset
            offset = end
            if self.read >= self._limits.records or self._bytes >= CALL_BYTES:
                self.full = True
                break
        for word, number in sorted(wrong.items()):
            self.problems.append(Problem(path, word, f"{number} records", number))
        length, head = tail.head(stream, _HEAD_BYTES)
        whole = offset == status.st_size
        return KnownFile(path, status.st_ino, length, head, offset, newest or time, whole)

    def _lost(self, file: KnownFile, detail: str) -> None:
        start = file.time * SECOND_US
        if self.gap is not None:
            start = min(start, self.gap.start_us or start)
            detail = f"{self.gap.detail}; {detail}"[:1000]
        now_us = int(self._now * SECOND_US)
        self.gap = Gap(self._pattern, startd_history.KIND, start, now_us, detail)
