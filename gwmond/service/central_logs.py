"""Reads central logs: files of configured directories, and what has arrived on the socket.

Directories are read on now and then, with a cursor each, so that every line counts once.  Lines of
the socket are taken in each poll; those that were received and not stored yet when gwmond ends are
lost, for who sent them keeps none.  What is wrong with files lasts until the next look at them,
with lines of the socket until none of that kind has come for a while (``problems.Lasting``).
"""

from __future__ import annotations

import os
import time
from collections import deque

from gwmond.config.settings import Config
from gwmond.model.facts import Cursor, Problem
from gwmond.service.file_facts import daemon_limits, read_on
from gwmond.service.log_socket import LogSocket, PlaceError
from gwmond.service.pilot_keeper import PilotKeeper
from gwmond.service.problems import LASTS, Lasting, Looks
from gwmond.sources import gwms_tasks
from gwmond.sources.gather import Gatherer
from gwmond.sources.gwms_tasks import Directory

SOURCE = "central_log"
FILES, SOCKET = "files", "socket"


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


class CentralLogs:
    """The configured directories and the socket, if there is one."""

    def __init__(
        self, config: Config, gatherer: Gatherer, keeper: PilotKeeper, socket: LogSocket | None
    ) -> None:
        self._options = config.factory
        self._limits = daemon_limits(config)
        self._gatherer = gatherer
        self._keeper = keeper
        self._socket = socket
        self._waiting: deque[str] = deque()
        self._again_at = 0.0
        self._unused: dict[str, int] = {}
        self._looks = Looks(SOURCE)
        self._wrong: list[Problem] = []  # with lines that were received, not told yet
        self._found: list[Problem] = []  # the same, of files
        self._received = Lasting()

    @property
    def behind(self) -> bool:
        """Whether some directories, or lines of the socket, are still to be read."""
        return bool(self._waiting) or (self._socket is not None and self._socket.many)

    def read(self, now: float) -> list[Problem]:
        """Take in a bounded part; ``now`` is the time (epoch seconds).  Raises LedgerError."""
        self._receive()
        roots: list[str] = []
        if not self._waiting and time.monotonic() >= self._again_at:
            self._again_at = time.monotonic() + self._options.every
            self._looks.begin()
            roots = list(dict.fromkeys(self._options.central_logs))
            self._waiting.extend(roots)
        if self._waiting:
            self._files(roots, now)
        received, self._wrong = self._wrong, []
        found, self._found = self._found, []
        at = time.monotonic()
        lasting = self._received.told(received, at, at - LASTS * self._options.every)
        return lasting + self._looks.told(found)

    def _files(self, roots: list[str], now: float) -> None:
        """Read on; ``roots`` are the directories of a look that begins."""
        wanted = []
        for path in self._waiting:
            cursor = self._keeper.cursor(path, SOURCE)
            wanted.append(Directory(path, cursor.state if cursor else "", central=True))
        answers = self._gatherer.run(
            *(SOURCE, FILES, gwms_tasks.read_central, roots, wanted, self._limits, now), keep=False
        )
        for path, answer in answers or ():
            self._keeper.report(
                answer.facts, Cursor(path, SOURCE, answer.state, answer.complete_us)
            )
            self._found += answer.problems
        read_on(self._waiting, answers or ())
        if answers is None:
            self._waiting.clear()  # it was said; again when the time comes
            self._looks.end(self._gatherer.failure(SOURCE, FILES))
        elif not self._waiting:
            self._looks.end()

    def _receive(self) -> None:
        """Take in what has arrived on the socket, and note what is wrong with it."""
        socket = self._socket
        if socket is None:
            return
        taken = socket.take()
        lines = self._gatherer.run(
            *(SOURCE, SOCKET, gwms_tasks.central_lines, socket.path, taken.lines, socket.failure),
            keep=False,
        )
        counts = {"overflow": taken.overflow, "too_long": taken.too_long}
        if lines is not None:
            counts |= lines.wrong
        elif taken.lines:
            counts["unread"] = len(taken.lines)
        self._wrong += [
            Problem(SOURCE, word, f"{socket.path}: {n} lines", n) for word, n in counts.items() if n
        ]
        if lines is not None:
            self._keeper.report(lines.events, None)

    def unused(self) -> list[Problem]:
        """Say which lines told of nothing that is known, since this was asked last."""
        book = self._keeper.book
        if book is None:
            return []
        now, before = dict(book.witnesses.unused), self._unused
        self._unused = now
        new = {why: n - before.get(why, 0) for why, n in now.items()}
        examples = book.witnesses.examples
        return [
            Problem(SOURCE, why, f"{n} lines: {examples[why]}", n)
            for why, n in new.items()
            if n > 0
        ]
