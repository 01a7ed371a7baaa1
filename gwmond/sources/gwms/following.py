"""Logs of one directory, or one log, followed by offset (``tail``) as they grow and are renamed.

Invariants: those of ``factory_dir``.
"""

from __future__ import annotations

import io
import os
import time
from collections import Counter
from typing import IO, TYPE_CHECKING

from gwmond.model.facts import Problem
from gwmond.model.pilots.file_facts import FileFact
from gwmond.model.problem_names import ProblemName
from gwmond.sources import tail
from gwmond.sources.gwms import directory_cursor, layout, log_kinds
from gwmond.sources.gwms.directory_cursor import (
    DirectoryState,
    FileAnswer,
    FileLimits,
)
from gwmond.sources.gwms.rare import zones
from gwmond.sources.tail import FollowedLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from gwmond.model.pilots.file_facts import QueueEvent
    from gwmond.sources.gwms.layout import Found
    from gwmond.sources.gwms.log_kinds import LogKind
    from gwmond.sources.gwms.rare.zones import ZoneSample

MAX_LOGS = 2000


class Following:
    """One call of reading on, at first in the logs of a directory."""

    def __init__(
        self,
        directory: str,
        limits: FileLimits,
        now: float,
        problems: list[Problem],
        zone: tzinfo | None = None,
    ) -> None:
        self.facts: list[FileFact] = []
        self.samples: list[ZoneSample] = []
        self.size = 0
        self.full = False
        self.weight = 0
        self._began = time.process_time()
        self._directory, self._limits, self._now = directory, limits, now
        self._place = layout.place_of(os.path.realpath(directory))
        self._problems = problems
        self._zone = zone
        self._renamed: list[FollowedLog] = []

    def _took(self, size: int, facts: int) -> None:
        self.size += size
        self.weight += facts
        limits = self._limits
        late = time.process_time() - self._began >= limits.seconds
        self.full = self.full or late or self.size >= limits.size or self.weight >= limits.facts

    def _problem(
        self, path: str, word: ProblemName, detail: object, records: int | None = None
    ) -> None:
        self._problems.append(Problem(layout.shown(path), word, str(detail)[:300], records))

    def _failed(self, path: str, error: OSError) -> None:
        self._problems.append(layout.unreadable(path, error))

    def renamed(
        self, files: Iterable[Found], state: DirectoryState, kinds: tuple[LogKind, ...]
    ) -> list[tuple[Found, LogKind]]:
        """Return files that were followed under another name (rotation), with that name.

        One that may be such a file and cannot be read now goes on later from where it was.
        """
        before = {log.inode: log for log in state.logs}
        found = []
        for file in files:
            known = before.get(file.status.st_ino)
            kind = log_kinds.of(known.name, kinds) if known is not None else None
            if known is None or kind is None:
                continue
            try:
                with tail.open_regular(file.path) as stream:
                    same = tail.same(stream, known)
            except OSError as error:
                self._failed(file.path, error)
                self._renamed.append(known)
                continue
            if same:
                found.append((file._replace(name=known.name), kind))
        return found

    def follow(
        self, files: Sequence[tuple[Found, LogKind]], state: DirectoryState
    ) -> list[FollowedLog]:
        """Read on in each log, which has the name that it had first; return how far each is now.

        Also of logs that are there and cannot be read now, so that they go on from there, and
        those that are older than ``lookback_s`` at their end; a log that is gone is forgotten.
        """
        after: list[FollowedLog] = []
        left = {log.inode: log for log in state.logs}
        if len(files) > MAX_LOGS:
            self._problem(self._directory, ProblemName.TOO_MANY_LOGS, f"{len(files)}")
            cut = (left.pop(found.status.st_ino, None) for found, _ in files[:-MAX_LOGS])
            after += [known for known in cut if known is not None][-MAX_LOGS:]
            files = files[-MAX_LOGS:]
        for found, kind in files:
            known = left.pop(found.status.st_ino, None)
            try:
                with tail.open_log(found.path) as stream:
                    after.append(self._log(found, kind, stream, known, first=not state.begun))
            except OSError as error:
                self._failed(found.path, error)
                old = not state.begun and self._is_old(found)
                known = known or (_at_its_end(found) if old else None)
                after += [] if known is None else [known]
        failed = {
            problem.source
            for problem in self._problems
            if problem.problem in {ProblemName.VANISHED, ProblemName.UNREADABLE}
        }
        for known in left.values():
            path = layout.shown(os.path.join(self._directory, known.name))
            if known in self._renamed or path in failed:
                after.append(known)
        return after

    def _log(
        self,
        found: Found,
        kind: LogKind,
        stream: IO[bytes],
        known: FollowedLog | None,
        *,
        first: bool,
    ) -> FollowedLog:
        written = found.status.st_mtime
        offset, passing = (known.offset, known.passing) if known else (0, False)
        if known is not None and not tail.same(stream, known):
            self._problem(found.path, ProblemName.TRUNCATED_LOG, "read again from the begin")
            offset, passing = 0, False
        elif known is None and first and self._is_old(found):
            offset = found.status.st_size
        wrong: Counter[ProblemName] = Counter()
        length, head = tail.head(stream)
        shown = layout.shown(os.path.join(os.path.dirname(found.path), found.name))
        local: list[QueueEvent] = []
        try:
            for chunk in () if self.full else tail.chunks(stream, offset, passing, kind.end):
                parsed = kind.parse(shown, chunk.raw, self._place, written, self._zone)
                self.facts += parsed.facts
                wrong += parsed.wrong
                wrong[ProblemName.TOO_LONG] += chunk.too_long
                local += parsed.local[: zones.EVENTS - len(local)]
                self._took(chunk.offset - offset, len(parsed.facts))
                offset, passing = chunk.offset, chunk.passing
                if self.full:
                    break
        except OSError as error:  # what was read of it until then counts
            self._failed(found.path, error)
        for word, number in sorted((+wrong).items()):
            self._problem(found.path, word, f"{number} records", number)
        self.samples += zones.compare(self._directory, layout.shown(found.path), local)
        return FollowedLog(found.name, found.status.st_ino, length, head, offset, passing)

    def _is_old(self, found: Found) -> bool:
        return found.status.st_mtime < self._now - self._limits.lookback_s


def _at_its_end(found: Found) -> FollowedLog:
    """Return a log that was not read: what is added to it from now on is."""
    length, head = tail.head(io.BytesIO(), 0)
    return FollowedLog(found.name, found.status.st_ino, length, head, found.status.st_size, False)


def fetch_log(path: str, cursor_state: str, limits: FileLimits, now: float) -> FileAnswer:
    """Read on in one central log, as ``fetch`` does in a directory of them.

    Its ``complete_us`` is None, as other files may be of the same time.
    """
    problems: list[Problem] = []
    state = directory_cursor.read(cursor_state, layout.shown(path), problems)
    try:
        found = layout.Found(os.path.basename(path), path, os.stat(path))
    except OSError as error:
        unread = Problem(layout.shown(path), ProblemName.UNREADABLE, str(error)[:300])
        return FileAnswer((), cursor_state, None, False, 0, (unread,), 0)
    task = Following(os.path.dirname(path), limits, now, problems)
    known = task.follow([(found, log_kinds.CENTRAL[0])], state)
    return FileAnswer(
        facts=tuple(task.facts),
        state=DirectoryState((0, 0, 0), tuple(known)).dump(),
        complete_us=None,
        behind=task.full,
        left=0,
        problems=tuple(problems),
        size=task.size,
        weight=task.weight,
    )
