"""Readers of GlideinWMS's files: outputs of pilots and the factory's logs, and central logs.

Directories are read now and then, not in each poll, each on from its cursor, a bounded part at a
time.  One *scan* reads all of them once.  What was read goes to the keeper with its cursor, so that
both are stored in one transaction: facts are taken in once, whoever reads, the daemon or an import.
What is wrong with files is counted once a scan, and lasts until the next scan does not find it
(``problems.Scans``).
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gwmond.config.settings import Config
from gwmond.model.cursor_kinds import CENTRAL_LOG, FACTORY_FILES
from gwmond.model.facts import Cursor, Problem
from gwmond.model.pilots.file_facts import PilotOutput
from gwmond.model.problem_names import ProblemName
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.host.log_socket import LogSocket, PlaceError
from gwmond.service.host.problems import LASTS, Lasting, Scans
from gwmond.sources import gwms_tasks
from gwmond.sources.gather import Gatherer
from gwmond.sources.gwms.directory_cursor import FileAnswer, FileLimits
from gwmond.sources.gwms.zones import Judge, ZoneSample
from gwmond.sources.gwms_tasks import Directory

LIMITS = FileLimits(facts=4000, size=64 << 20)
"""How much is read at once, so that memory and the time of a transaction stay bounded."""

FACTORY = "factory"
"""The source that factories' directories are, in problems and statuses."""


class TakenFiles(NamedTuple):
    """What was taken in: outputs of pilots, facts of all kinds; what was wrong with files.

    ``samples``: by how much times without a zone differ from outputs.
    """

    outputs: int
    facts: int
    problems: tuple[Problem, ...]
    samples: tuple[ZoneSample, ...]


def directories(
    keeper: LedgerKeeper, kind: str, paths: Iterable[str], zone: str = ""
) -> list[Directory]:
    """Return directories to be read, each from its cursor of this kind.

    ``zone``: the factory's time zone by its name; empty: this host's.
    """
    cursors = ((path, keeper.cursor(path, kind)) for path in paths)
    central = kind == CENTRAL_LOG
    return [
        Directory(path, cursor.state if cursor is not None else "", central, zone)
        for path, cursor in cursors
    ]


def take(keeper: LedgerKeeper, kind: str, answers: Sequence[FileAnswer]) -> TakenFiles:
    """Give the keeper what was read, and how far; raises LedgerError."""
    outputs, facts, problems, samples = 0, 0, list[Problem](), list[ZoneSample]()
    read = [
        (answer.facts, Cursor(answer.path, kind, answer.state, answer.complete_us))
        for answer in answers
    ]
    # Which pilots lines of central logs may mean depends on those in memory: log by log.
    for some in [read] if kind == FACTORY_FILES else [[part] for part in read]:
        keeper.add_files(some)
    for answer in answers:
        problems += answer.problems
        samples += answer.samples
        facts += len(answer.facts)
        outputs += sum(isinstance(fact, PilotOutput) for fact in answer.facts)
    return TakenFiles(outputs, facts, tuple(problems), tuple(samples))


def read_on(waiting: deque[str], answers: Sequence[FileAnswer]) -> None:
    """Take directories that were read off a queue; unfinished ones stay first, in order.

    ``answers`` are of the first ones that wait.
    """
    for _ in answers:
        waiting.popleft()
    waiting.extendleft(answer.path for answer in reversed(answers) if answer.behind)


class DirectoryReader:
    """Directories of one ``source``, and which of them are still to be read in this scan.

    ``kind``: of their cursors; ``query``: under what reading them is shown.
    """

    def __init__(
        self,
        config: Config,
        gatherer: Gatherer,
        keeper: LedgerKeeper,
        names: tuple[str, str, str],
        zone: str = "",
    ) -> None:
        self._source, self._kind, self._query = names
        self._every_s = config.factory.every
        seconds = min(LIMITS.seconds, config.poll.deadline / 4)  # ends before its deadline
        self._limits = LIMITS._replace(
            lookback_s=config.histories.lookback, seconds=seconds, file_s=seconds
        )
        self._gatherer, self._keeper, self._zone = gatherer, keeper, zone
        self._waiting: deque[str] = deque()
        self._again_at = 0.0
        self._scans = Scans(self._source)

    @property
    def behind(self) -> bool:
        """Whether some directories are still to be read."""
        return bool(self._waiting)

    def _begins(self) -> bool:
        """Return whether a new scan begins now."""
        if self._waiting or time.monotonic() < self._again_at:
            return False
        self._again_at = time.monotonic() + self._every_s
        self._scans.begin()
        return True

    def _read(self, now: float, roots: Sequence[str] = ()) -> TakenFiles:
        """Read on in the directories that wait; of ``roots`` one has to be there.

        Raises LedgerError.
        """
        to_read = directories(self._keeper, self._kind, self._waiting, self._zone)
        answers = self._gatherer.run(
            *(self._source, self._query, gwms_tasks.read, to_read, self._limits, now, roots),
            keep=False,
        )
        taken = take(self._keeper, self._kind, answers or ())
        read_on(self._waiting, answers or ())
        if answers is None:
            self._waiting.clear()  # the failure is shown; again when the time comes
            self._scans.end(self._gatherer.failure(self._source, self._query))
        elif not self._waiting:
            self._scans.end()
        return taken


class FactoryFiles(DirectoryReader):
    """Below ``[factory] directories``: what pilots returned, and the factory's logs of them."""

    def __init__(self, config: Config, gatherer: Gatherer, keeper: LedgerKeeper) -> None:
        names = FACTORY, FACTORY_FILES, FACTORY_FILES
        super().__init__(config, gatherer, keeper, names, config.factory.timezone)
        self._roots = config.factory.directories
        self._zones = Judge(config.factory.timezone)

    def read(self, now: float) -> list[Problem]:
        """Read a bounded part; ``now`` is the time (epoch seconds).  Raises LedgerError."""
        problems = self._find() if self._begins() else [] if self._waiting else None
        if problems is None:
            return self._scans.problems(())
        taken = self._read(now)
        self._zones.add(taken.samples)
        return self._scans.problems([*problems, *taken.problems, *self._zones.problems()])

    def _find(self) -> list[Problem] | None:
        """Look which directories there are; None if that failed."""
        query = "directories"
        trees = self._gatherer.run(FACTORY, query, gwms_tasks.find, self._roots, True, keep=False)
        if trees is None:
            failure = self._gatherer.failure(FACTORY, query)
            self._gatherer.down(FACTORY, FACTORY_FILES, failure.problem, failure.detail)
            self._scans.end(failure)
            return None
        # One root may be within another.
        self._waiting.extend(
            dict.fromkeys(directory for tree in trees for directory in tree.directories)
        )
        return [problem for tree in trees for problem in tree.problems]


def listen(before: LogSocket | None, config: Config) -> LogSocket | None:
    """Return the socket that is configured, the one of before if it does; None: none is.

    Raises PlaceError, also where a directory is missing.
    """
    if config.replay.file:  # a recording has no logs
        return None
    for path in config.factory.central_logs:
        if not os.path.isdir(path):
            raise PlaceError(
                f"factory.central_logs: {path} is no directory, or cannot be seen: make it and "
                "let gwmond's user read it, or correct the path"
            )
    return LogSocket.renewed(before, config.factory.log_socket)


class CentralLogs(DirectoryReader):
    """``[factory] central_logs``, and the lines that have arrived on the socket, if there is one.

    Lines of the socket are taken in each poll; those that were received and not stored yet when
    gwmond ends are lost, for who sent them keeps none.  What is wrong with them lasts until none
    of that kind has come for a while (``problems.Lasting``).
    """

    def __init__(
        self, config: Config, gatherer: Gatherer, keeper: LedgerKeeper, socket: LogSocket | None
    ) -> None:
        super().__init__(config, gatherer, keeper, (CENTRAL_LOG, CENTRAL_LOG, "files"))
        self._roots = list(dict.fromkeys(config.factory.central_logs))
        self._socket = socket
        self._unused: Counter[ProblemName] = Counter()
        self._wrong: list[Problem] = []  # with lines that were received, not returned yet
        self._received = Lasting()

    @property
    def behind(self) -> bool:
        """Whether some directories, or lines of the socket, are still to be read."""
        return super().behind or (self._socket is not None and self._socket.many)

    def read(self, now: float) -> list[Problem]:
        """Take in a bounded part; ``now`` is the time (epoch seconds).  Raises LedgerError."""
        self._receive()
        begun = self._roots if self._begins() else []
        self._waiting.extend(begun)
        problems = self._read(now, begun).problems if self._waiting else ()
        at = time.monotonic()
        received, self._wrong = self._wrong, []
        lasting = self._received.problems(received, at, at - LASTS * self._every_s)
        return lasting + self._scans.problems(problems)

    def _receive(self) -> None:
        """Take in the lines that arrived on the socket, and note those that are bad."""
        socket = self._socket
        if socket is None:
            return
        received = socket.take()
        lines = self._gatherer.run(
            *(CENTRAL_LOG, "socket", gwms_tasks.central_lines),
            *(socket.path, received.lines, socket.failure),
            keep=False,
        )
        counts = {ProblemName.OVERFLOW: received.overflow, ProblemName.TOO_LONG: received.too_long}
        if lines is not None:
            counts |= lines.wrong
        elif received.lines:
            counts[ProblemName.UNREAD] = len(received.lines)
        self._wrong += [
            Problem(CENTRAL_LOG, name, f"{socket.path}: {number} lines", number)
            for name, number in counts.items()
            if number
        ]
        if lines is not None:
            self._keeper.add_facts(lines.facts, None)

    def unused(self) -> list[Problem]:
        """Return which lines said nothing of what is known, since this was asked last."""
        central = self._keeper.accounting.central_log
        new, self._unused = central.unused - self._unused, Counter(central.unused)
        return [
            Problem(CENTRAL_LOG, why, f"{number} lines: {central.examples[why]}", number)
            for why, number in new.items()
        ]
