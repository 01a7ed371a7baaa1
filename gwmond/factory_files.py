"""Reads on in a factory's directories: what pilots returned, and the factory's own logs of them.

Directories are looked for and read now and then, not in each poll: a pilot's output comes once,
at its end.  Cursors (one a directory) are stored with what was read.
"""

from __future__ import annotations

import time
from collections import deque

from gwmond.config import Config
from gwmond.facts import Problem
from gwmond.file_facts import KIND, LIMITS, read_on, take, wanted
from gwmond.pilot_keeper import PilotKeeper
from gwmond.sources import gwms_tasks
from gwmond.sources.gather import Gatherer
from gwmond.sources.gwms.zones import Judge

SOURCE = "factory"


class FactoryFiles:
    """The configured directories, and which of them are still to be read this time."""

    def __init__(self, config: Config, gatherer: Gatherer, keeper: PilotKeeper) -> None:
        self._options = config.factory
        self._lookback_s = config.histories.lookback
        self._gatherer = gatherer
        self._keeper = keeper
        self._waiting: deque[str] = deque()
        self._again_at = 0.0
        self._zones = Judge(config.factory.timezone)

    @property
    def behind(self) -> bool:
        """Whether some directories are still to be read."""
        return bool(self._waiting)

    def read(self, now: float) -> list[Problem]:
        """Read a bounded part; ``now`` is the time (epoch seconds)."""
        problems: list[Problem] = []
        if not self._waiting and time.monotonic() >= self._again_at:
            problems += self._find()
        if not self._waiting:
            return problems
        limits = LIMITS._replace(lookback_s=self._lookback_s)
        answers = self._gatherer.run(
            *(SOURCE, KIND, gwms_tasks.read),
            *(wanted(self._keeper, self._waiting, self._options.timezone), limits, now),
            keep=False,
        )
        taken = take(self._keeper, answers or ())
        self._zones.add(taken.samples)
        problems += [*taken.problems, *self._zones.problems()]
        read_on(self._waiting, answers or ())
        if answers is None:
            self._waiting.clear()  # it was said; again when the time comes
        return [Problem(SOURCE, of.problem, f"{of.source}: {of.detail}") for of in problems]

    def _find(self) -> list[Problem]:
        self._again_at = time.monotonic() + self._options.every
        trees = self._gatherer.run(
            *(SOURCE, "directories", gwms_tasks.find, self._options.directories), keep=False
        )
        problems: list[Problem] = []
        for tree in trees or ():
            problems += tree.problems
        # One root may be within another.
        self._waiting.extend(dict.fromkeys(of for tree in trees or () for of in tree.directories))
        return problems
