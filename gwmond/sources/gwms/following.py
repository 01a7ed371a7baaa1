"""Logs of one directory, or one log, followed by offset (``tail``) as they grow and are renamed.

Invariants: those of ``factory_dir``.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from gwmond.model.facts import Problem
from gwmond.model.pilots.file_facts import EVENT_LOG, FileFact
from gwmond.model.problem_names import ProblemName
from gwmond.sources import tail
from gwmond.sources.gwms import (
    central_log,
    completed_jobs,
    condor_events,
    directory_cursor,
    layout,
    zones,
)
from gwmond.sources.gwms.directory_cursor import (
    DirectoryState,
    FileAnswer,
    FileLimits,
)
from gwmond.sources.tail import FollowedLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from gwmond.model.pilots.file_facts import PilotName, QueueEvent
    from gwmond.sources.gwms.directory_cursor import ParsedLog
    from gwmond.sources.gwms.layout import FileSeen
    from gwmond.sources.gwms.zones import ZoneSample

MAX_LOGS = 2000


class LogKind(NamedTuple):
    """Logs with names like this: how a record ends, and what reads whole records.

    What reads them gets path, records, place, when the log was last written (epoch seconds) and
    the zone of times without one (None: this host's).
    """

    names: re.Pattern[str]
    end: bytes
    parse: Callable[[str, bytes, PilotName, float, tzinfo | None], ParsedLog[Any]]


def kind_of(name: str, kinds: Iterable[LogKind]) -> LogKind | None:
    """Return which kind of log has such a name."""
    return next((kind for kind in kinds if kind.names.fullmatch(name)), None)


FACTORY = (
    LogKind(layout.COMPLETED, b"\n", completed_jobs.parse),
    LogKind(EVENT_LOG, condor_events.END, condor_events.parse),
)
COMPRESSED = frozenset({".gz", ".xz", ".bz2", ".zst"})
CENTRAL = (LogKind(re.compile(r"(?!.*\.(?:gz|xz|bz2|zst)$).*", re.S), b"\n", central_log.parse),)
"""Every file of a directory of central logs, but those that are compressed."""


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
        self, files: Iterable[FileSeen], state: DirectoryState, kinds: tuple[LogKind, ...]
    ) -> list[tuple[FileSeen, LogKind]]:
        """Return files that were followed under another name (rotation), with that name.

        A file that may be one of these and cannot be read now goes on later from where it was.
        """
        before = {log.inode: log for log in state.logs}
        followed = []
        for file in files:
            log = before.get(file.status.st_ino)
            kind = kind_of(log.name, kinds) if log is not None else None
            if log is None or kind is None:
                continue
            try:
                with tail.open_regular(file.path) as stream:
                    same = tail.same(stream, log)
            except OSError as error:
                self._failed(file.path, error)
                self._renamed.append(log)
                continue
            if same:
                followed.append((file._replace(name=log.name), kind))
        return followed

    def follow(
        self, files: Sequence[tuple[FileSeen, LogKind]], state: DirectoryState
    ) -> list[FollowedLog]:
        """Read on in each log, which has the name that it had first; return how far each is now.

        Also of logs that are there and cannot be read now, so that they go on from there, and
        those that are older than ``lookback_s`` at their end; a log that is gone is forgotten.
        """
        after: list[FollowedLog] = []
        left = {log.inode: log for log in state.logs}
        if len(files) > MAX_LOGS:
            self._problem(self._directory, ProblemName.TOO_MANY_LOGS, f"{len(files)}")
            cut = (left.pop(file.status.st_ino, None) for file, _ in files[:-MAX_LOGS])
            after += [log for log in cut if log is not None][-MAX_LOGS:]
            files = files[-MAX_LOGS:]
        for file, kind in files:
            log = left.pop(file.status.st_ino, None)
            try:
                with tail.open_log(file.path) as stream:
                    after.append(self._log(file, kind, stream, log, first=not state.begun))
            except OSError as error:
                self._failed(file.path, error)
                old = not state.begun and self._is_old(file)
                log = log or (_at_its_end(file) if old else None)
                after += [] if log is None else [log]
        failed = {
            problem.source
            for problem in self._problems
            if problem.problem in {ProblemName.VANISHED, ProblemName.UNREADABLE}
        }
        for log in left.values():
            path = layout.shown(os.path.join(self._directory, log.name))
            if log in self._renamed or path in failed:
                after.append(log)
        return after

    def _log(
        self,
        file: FileSeen,
        kind: LogKind,
        stream: IO[bytes],
        log: FollowedLog | None,
        *,
        first: bool,
    ) -> FollowedLog:
        written = file.status.st_mtime
        offset, passing = (log.offset, log.passing) if log else (0, False)
        if log is not None and not tail.same(stream, log):
            self._problem(file.path, ProblemName.TRUNCATED_LOG, "read again from the begin")
            offset, passing = 0, False
        elif log is None and first and self._is_old(file):
            offset = file.status.st_size
        wrong: Counter[ProblemName] = Counter()
        length, head = tail.head(stream)
        shown = layout.shown(os.path.join(os.path.dirname(file.path), file.name))
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
            self._failed(file.path, error)
        for word, number in sorted((+wrong).items()):
            self._problem(file.path, word, f"{number} records", number)
        self.samples += zones.compare(self._directory, layout.shown(file.path), local)
        return FollowedLog(file.name, file.status.st_ino, length, head, offset, passing)

    def _is_old(self, file: FileSeen) -> bool:
        return file.status.st_mtime < self._now - self._limits.lookback_s


def _at_its_end(file: FileSeen) -> FollowedLog:
    """Return a log that was not read: what is added to it from now on is."""
    length, head = tail.head(io.BytesIO(), 0)
    return FollowedLog(file.name, file.status.st_ino, length, head, file.status.st_size, False)


def fetch_log(path: str, cursor_state: str, limits: FileLimits, now: float) -> FileAnswer:
    """Read on in one central log, as ``fetch`` does in a directory of them.

    Its ``complete_us`` is None, as other files may be of the same time.
    """
    problems: list[Problem] = []
    state = directory_cursor.read(cursor_state, layout.shown(path), problems)
    try:
        file = layout.FileSeen(os.path.basename(path), path, os.stat(path))
    except OSError as error:
        unread = Problem(layout.shown(path), ProblemName.UNREADABLE, str(error)[:300])
        return FileAnswer((), cursor_state, None, False, 0, (unread,), 0)
    task = Following(os.path.dirname(path), limits, now, problems)
    logs = task.follow([(file, CENTRAL[0])], state)
    return FileAnswer(
        facts=tuple(task.facts),
        state=DirectoryState((0, 0, 0), tuple(logs)).dump(),
        complete_us=None,
        behind=task.full,
        left=0,
        problems=tuple(problems),
        size=task.size,
        weight=task.weight,
    )
