"""Reads on in a factory's directories: what pilots returned, and the factory's own logs of them.

Directories are looked for and read now and then, not in each poll: a pilot's output comes once,
at its end.  Cursors (one a directory) are stored with what was read.  What is wrong with files is
counted once a look, and lasts until the next look does not find it (``problems.Looks``).
"""

from __future__ import annotations

import time
from collections import deque

from gwmond.config.settings import Config
from gwmond.model.cursor_kinds import FACTORY_FILES
from gwmond.model.facts import Problem
from gwmond.service.file_facts import daemon_limits, read_on, take, wanted
from gwmond.service.pilot_keeper import PilotKeeper
from gwmond.service.problems import Looks
from gwmond.sources import gwms_tasks
from gwmond.sources.gather import Gatherer
from gwmond.sources.gwms.zones import Judge

SOURCE, DIRECTORIES = "factory", "directories"


class FactoryFiles:
    """The configured directories, and which of them are still to be read this time."""

    def __init__(self, config: Config, gatherer: Gatherer, keeper: PilotKeeper) -> None:
        self._options = config.factory
        self._limits = daemon_limits(config)
        self._gatherer = gatherer
        self._keeper = keeper
        self._waiting: deque[str] = deque()
        self._again_at = 0.0
        self._zones = Judge(config.factory.timezone)
        self._looks = Looks(SOURCE)

    @property
    def behind(self) -> bool:
        """Whether some directories are still to be read."""
        return bool(self._waiting)

    def read(self, now: float) -> list[Problem]:
        """Read a bounded part; ``now`` is the time (epoch seconds)."""
        found: list[Problem] | None = []
        if not self._waiting:
            found = self._find() if time.monotonic() >= self._again_at else None
        problems = [] if found is None else [*found, *self._read(now)]
        return self._looks.told(problems)

    def _read(self, now: float) -> list[Problem]:
        answers = self._gatherer.run(
            *(SOURCE, FACTORY_FILES, gwms_tasks.read),
            *(wanted(self._keeper, self._waiting, self._options.timezone), self._limits, now),
            keep=False,
        )
        taken = take(self._keeper, answers or ())
        self._zones.add(taken.samples)
        read_on(self._waiting, answers or ())
        if answers is None:
            self._waiting.clear()  # it was said; again when the time comes
            self._looks.end(self._gatherer.failure(SOURCE, FACTORY_FILES))
        elif not self._waiting:
            self._looks.end()
        return [*taken.problems, *self._zones.problems()]

    def _find(self) -> list[Problem] | None:
        """Look which directories there are; None if that failed."""
        self._again_at = time.monotonic() + self._options.every
        self._looks.begin()
        trees = self._gatherer.run(
            *(SOURCE, DIRECTORIES, gwms_tasks.look, self._options.directories), keep=False
        )
        if trees is None:
            failure = self._gatherer.failure(SOURCE, DIRECTORIES)
            self._gatherer.down(SOURCE, FACTORY_FILES, failure.problem, failure.detail)
            self._looks.end(failure)
            return None
        # One root may be within another.
        self._waiting.extend(
            dict.fromkeys(directory for tree in trees for directory in tree.directories)
        )
        return [problem for tree in trees for problem in tree.problems]
