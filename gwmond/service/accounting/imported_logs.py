"""Central logs that an import is given: read after the outputs, each from where it was read to.

What a chunk of a log says is stored with the log's cursor in one transaction.  A line that is read
again changes nothing, so a log with lines that led to nothing is read again from the first of them,
once more has been imported: whether logs or outputs come first makes no difference.

Nothing waits in memory for what is read later: a line leads to something at once or is left.  Only
in a ledger that a daemon keeps does what was written lately wait, as the daemon's sources may know
more (``pilots.assumed_end``).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from gwmond.model.cursor_kinds import IMPORTED_LOG
from gwmond.model.facts import Cursor, Problem
from gwmond.model.problem_names import ProblemName
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.sources import gwms_tasks
from gwmond.sources.gwms.directory_cursor import FileAnswer, FileLimits
from gwmond.sources.gwms_tasks import Directory
from gwmond.sources.tail import PACKED

LIMITS = FileLimits(facts=2000, size=64 << 20)
"""How much is read at once: the pilots that so many lines mean are in memory together."""
_PACKED = LIMITS._replace(facts=20_000)
"""The same of a log that is packed, which is unpacked from its begin each time."""

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Is called with what is read, how much of it is, and how much there is, None: unknown."""
Read: TypeAlias = Callable[..., tuple[FileAnswer, int]]


class LogPlace(NamedTuple):
    """How far a log was read.

    - ``state``: the reading's own.
    - ``left_at``: the byte from which on there are lines that led to nothing; None: no such line.
    - ``evidence``: a hash of how far all else had been read by then.
    """

    state: str = ""
    left_at: int | None = None
    evidence: str = ""

    @classmethod
    def load(cls, text: str) -> LogPlace:
        """Return the place that a cursor's state says; if it is not understood, the begin."""
        try:
            place = msgspec.convert(json.loads(text), cls)
            offset = gwms_tasks.log_offset(place.state)
        except ValueError:
            return cls()
        return place if 0 <= (place.left_at or 0) <= offset else cls()

    def dump(self) -> str:
        """Return it as text."""
        return json.dumps(self, separators=(",", ":"))


class LogsRead(NamedTuple):
    """What was read: files of which something was, lines that are about a pilot or a run."""

    files: int
    lines: int


class ImportedLogs:
    """Reads central logs into a keeper; ``read`` runs a task in a child process.

    ``note`` is told what is wrong.
    """

    def __init__(
        self,
        keeper: LedgerKeeper,
        read: Read,
        settle: Callable[[], None],
        note: Callable[[Iterable[Problem]], None],
    ) -> None:
        self._keeper, self._central = keeper, keeper.accounting.central_log
        self._read, self._settle, self._note = read, settle, note

    def run(
        self, paths: Iterable[str], now: float, patience_us: int, progress: Progress
    ) -> LogsRead:
        """Read on in logs, and again in those that had lines left when more is known now.

        ``now``: the time (epoch seconds); ``patience_us``: see ``CentralLogEvents``.
        ``progress`` gets how many bytes of how many are read.  Raises QueryError, LedgerError.
        """
        self._central.patience_us = patience_us
        before = Counter(self._central.unused)
        evidence = self._evidence()
        logs = self._wanted(map(os.path.realpath, paths), evidence)
        total, done = sum(map(_size, logs)), 0
        files = lines = 0
        for path in logs:
            place = self._begin(path, evidence)
            some = 0
            behind = True
            while behind:
                limits = _PACKED if path.endswith(PACKED) else LIMITS
                answer, _ = self._read(
                    gwms_tasks.read_log, Directory(path, place.state, central=True), limits, now
                )
                place = self._take(path, place, answer)
                self._note(answer.problems)
                some += answer.size
                lines += len(answer.facts)
                behind = answer.behind
                progress("bytes of logs", min(done + some, total), total)
            files += some > 0
            done += _size(path)
        self._note(
            Problem("central logs", why, self._central.examples[why], number)
            for why, number in (self._central.unused - before).items()
        )
        return LogsRead(files, lines)

    def _wanted(self, named: Iterable[str], evidence: str) -> Sequence[str]:
        """Return the logs to read: those that are named, and earlier ones with lines left.

        In the order in which they were last written to.
        """
        logs = dict.fromkeys(named)
        for cursor in self._keeper.cursors:
            if cursor.kind != IMPORTED_LOG or cursor.source in logs:
                continue
            place = LogPlace.load(cursor.state)
            if place.left_at is None or place.evidence == evidence:
                continue
            if os.path.isfile(cursor.source):
                logs[cursor.source] = None
            else:
                why = "lines that were about nothing known then cannot be read again"
                self._note([Problem(cursor.source, ProblemName.LOG_GONE, why)])
        return sorted(logs, key=_written)

    def _begin(self, path: str, evidence: str) -> LogPlace:
        """Return from where to read: from the lines that are left, if more is known than then."""
        cursor = self._keeper.cursor(path, IMPORTED_LOG)
        place = LogPlace.load(cursor.state) if cursor is not None else LogPlace()
        if place.left_at is None or place.evidence == evidence:
            return place._replace(evidence=evidence)
        return LogPlace(gwms_tasks.log_from(place.state, place.left_at), None, evidence)

    def _take(self, path: str, place: LogPlace, answer: FileAnswer) -> LogPlace:
        """Take in a chunk, and store it with how far the log is read; return that."""
        unused = self._left()
        self._keeper.add_facts(answer.facts, None)
        left_at = place.left_at
        if left_at is None and self._left() > unused:
            left_at = gwms_tasks.log_offset(place.state)
        after = LogPlace(answer.state, left_at, place.evidence)
        self._keeper.add_facts((), Cursor(path, IMPORTED_LOG, after.dump(), None))
        self._settle()
        return after

    def _left(self) -> int:
        """Return how many lines have led to nothing, and may do so once more is known."""
        unused = self._central.unused
        return sum(number for why, number in unused.items() if why != ProblemName.BAD_TIME)

    def _evidence(self) -> str:
        """Return a hash of how far everything but these logs was read."""
        others = [
            (cursor.source, cursor.kind, cursor.state)
            for cursor in self._keeper.cursors
            if cursor.kind != IMPORTED_LOG
        ]
        return hashlib.sha256(json.dumps(others).encode()).hexdigest()[:16]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _written(path: str) -> tuple[float, str]:
    try:
        return os.path.getmtime(path), path
    except OSError:
        return 0.0, path
