"""Reads the output that pilots left in directories into the ledger, chunk by chunk.

Each chunk is stored with its cursors in one transaction, so an import may be killed and repeated:
nothing counts twice.  While one chunk is accounted the next is being read by another process.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeAlias, TypeVar

from gwmond.accounting.pilot_evidence import PilotOutput
from gwmond.book.rules import SECOND_US
from gwmond.config import Config
from gwmond.facts import Cursor, Problem
from gwmond.ledger.store import Ledger
from gwmond.pilot_keeper import PilotKeeper
from gwmond.sources import child, gwms_tasks
from gwmond.sources.gwms.directory_cursor import FileLimits
from gwmond.sources.gwms_tasks import Directory, DirectoryAnswer

KIND = "factory_files"
DEADLINE_S = 3600.0
_CHUNK = FileLimits(facts=4000, size=64 << 20)
_DIRECTORIES_A_CHUNK = 200
_JUST_COPIED_S = 3600.0
_LATER_US = 7 * 86400 * SECOND_US  # by then everything that waits is decided

Progress: TypeAlias = Callable[[int, int], None]
T = TypeVar("T")
_Answers: TypeAlias = tuple[DirectoryAnswer, ...]


class Imported(NamedTuple):
    """What an import has read: directories, outputs of pilots, and what was wrong."""

    directories: int
    outputs: int
    problems: Counter[str]
    examples: tuple[Problem, ...]


class Importer:
    """Imports directories into an open ledger; ``processes`` read at once."""

    def __init__(self, config: Config, ledger: Ledger, processes: int = 2) -> None:
        self._memory_mib = config.poll.memory_limit_mib
        self._keeper = PilotKeeper(config)
        self._keeper.attach(ledger)
        self._processes = processes
        self._now = time.time()
        self._outputs = 0
        self._problems: Counter[str] = Counter()
        self._examples: dict[str, Problem] = {}

    def run(self, roots: Sequence[str], progress: Progress = lambda *_: None) -> Imported:
        """Import all below some roots; ``progress`` is told how many pilots of how many are read.

        Raises QueryError, LedgerError.
        """
        trees, _ = self._child(gwms_tasks.find, list(roots))
        for tree in trees:
            self._note(tree.problems)
        found = list(dict.fromkeys(path for tree in trees for path in tree.directories))
        waiting = deque(found)
        left = 0
        with ThreadPoolExecutor(self._processes, "import") as pool:
            under_way: deque[tuple[list[str], Future[tuple[_Answers, int]]]] = deque()
            while waiting or under_way:
                while waiting and len(under_way) < self._processes:
                    some = [
                        waiting.popleft() for _ in range(min(_DIRECTORIES_A_CHUNK, len(waiting)))
                    ]
                    under_way.append((some, pool.submit(self._read, some)))
                some, future = under_way.popleft()
                answers, _ = future.result()
                self._store(answers)
                unfinished = [of.path for of in answers if of.answer.behind]
                unread = some[len(answers) :]
                waiting.extendleft(reversed([*unfinished, *unread]))
                left = sum(of.answer.progress.left for of in answers)
                progress(self._outputs, self._outputs + left)
        self._settle(self._now_us + _LATER_US)
        return Imported(len(found), self._outputs, self._problems, tuple(self._examples.values()))

    @property
    def _now_us(self) -> int:
        return round(self._now * SECOND_US)

    def _read(self, paths: Sequence[str]) -> tuple[_Answers, int]:
        cursors = [(path, self._keeper.cursor(path, KIND)) for path in paths]
        wanted = [Directory(path, of.state if of is not None else "") for path, of in cursors]
        # What was copied a moment ago is not being written, unlike in a factory that runs.
        return self._child(gwms_tasks.read, wanted, _CHUNK, self._now + _JUST_COPIED_S)

    def _child(self, task: Callable[..., tuple[T, int]], *args: object) -> tuple[T, int]:
        return child.run(task, *args, deadline_s=DEADLINE_S, memory_mib=self._memory_mib)[0]

    def _store(self, answers: Iterable[DirectoryAnswer]) -> None:
        for path, answer in answers:
            outputs = [fact for fact in answer.facts if isinstance(fact, PilotOutput)]
            self._outputs += len(outputs)
            cursor = Cursor(path, KIND, answer.state, answer.complete_us)
            self._keeper.report(outputs, cursor)
            self._note(answer.problems)
            for output in outputs:
                self._note(output.problems)
        self._settle(self._now_us)

    def _settle(self, now_us: int) -> None:
        self._keeper.settle(now_us, self._now_us, ())

    def _note(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self._problems[problem.problem] += 1
            self._examples.setdefault(problem.problem, problem)
