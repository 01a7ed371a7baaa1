"""Reads the output that pilots left in directories into the ledger, chunk by chunk.

Each chunk is stored with its cursors in one transaction, so an import may be killed and repeated:
nothing counts twice.  While one chunk is accounted the next is being read by another process.

Central logs are read at the end, when all pilots are known (``imported_logs``).

At the end nothing waits for better than what was read.  What waits for the jobs' schedds (verdicts,
runs without an end) is decided then, too, unless a daemon keeps the ledger: there it goes on
with the real clock, as the daemon's sources may report more.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeAlias, TypeVar

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.cursor_kinds import FACTORY_FILES, IMPORTED_LOG
from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import ExpectedInput
from gwmond.service.accounting.file_readers import LIMITS, directories, take
from gwmond.service.accounting.imported_logs import ImportedLogs, LogsRead, Progress
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.accounting.pilot_steps import REVISED_AT_ONCE
from gwmond.service.host.problems import Counting
from gwmond.sources import child, gwms_tasks
from gwmond.sources.garbage import few_collections
from gwmond.sources.gwms.directory_cursor import FileAnswer
from gwmond.sources.gwms.layout import place_of
from gwmond.sources.gwms.zones import Judge

DEADLINE_S = 3600.0
_PILOTS = "pilots"  # of which progress is reported
_DIRECTORIES_A_CHUNK = 200
_JUST_COPIED_S = 3600.0
_NAMED = frozenset({ProblemName.BAD_TIME})  # which the reading of a file reports, too
_COLLECTED_AFTER = 1_000_000  # a chunk makes millions of objects

T = TypeVar("T")
_Answers: TypeAlias = tuple[FileAnswer, ...]


class Imported(NamedTuple):
    """What an import has read: directories, outputs of pilots, and what was wrong.

    ``logs``: central logs of which something was read; ``lines`` of these that are about pilots.
    ``facts``: all that outputs and the factory's logs have.
    """

    directories: int
    outputs: int
    facts: int
    logs: int
    lines: int
    problems: Counter[ProblemName]
    examples: tuple[Problem, ...]


class Importer:
    """Imports directories into an open ledger; ``processes`` read at once."""

    def __init__(self, config: Config, ledger: Ledger, processes: int = 2) -> None:
        self._memory_mib = config.poll.memory_limit_mib
        self._keeper = LedgerKeeper(config)
        self._keeper.use(ledger)
        self._kept = self._is_kept()
        self._processes = processes
        self._timezone = config.factory.timezone
        self._zones = Judge(self._timezone)
        self._now = time.time()
        self.stored = 0
        """Outputs of pilots that are in the ledger, of those that ``run`` has read by now."""
        self._outputs = 0
        self._facts = 0
        self._problems: Counter[ProblemName] = Counter()
        self._examples: dict[ProblemName, Problem] = {}
        self._counting = Counting()

    def run(
        self,
        roots: Sequence[str],
        logs: Sequence[str] = (),
        progress: Progress = lambda *_: None,
    ) -> Imported:
        """Import all below some roots, and central logs.

        ``progress`` is called with how many pilots of how many were gone through, also those that
        an earlier import has read (of the outputs that there were when directories were listed;
        None until then), and the same of bytes of logs.

        Raises QueryError, LedgerError.
        """
        with few_collections(_COLLECTED_AFTER):
            return self._run(roots, logs, progress)

    def _run(self, roots: Sequence[str], logs: Sequence[str], progress: Progress) -> Imported:
        if roots:
            progress(_PILOTS, 0, None)
        trees, _ = self._child(gwms_tasks.find, list(roots))
        for tree in trees:
            self._note(tree.problems)
        left = {
            path: pilots
            for tree in trees
            for path, pilots in zip(tree.directories, tree.pilots, strict=True)
        }
        paths, total = list(left), sum(left.values())
        if roots:
            progress(_PILOTS, 0, total)
        waiting = deque(paths)
        with ThreadPoolExecutor(self._processes, "import") as pool:
            under_way: deque[tuple[list[str], Future[tuple[_Answers, int]]]] = deque()

            def read_on() -> None:
                while waiting and len(under_way) < self._processes:
                    fair = -(-len(waiting) // self._processes)
                    directories = [
                        waiting.popleft() for _ in range(min(_DIRECTORIES_A_CHUNK, fair))
                    ]
                    under_way.append((directories, pool.submit(self._read, directories)))

            read_on()
            while under_way:
                some, future = under_way.popleft()
                answers, _ = future.result()
                self._take(answers)
                unfinished = [answer.path for answer in answers if answer.behind]
                unread = some[len(answers) :]
                waiting.extendleft(reversed([*unfinished, *unread]))
                read_on()  # while this is accounted
                self._settle()
                self.stored = self._outputs
                for answer in answers:
                    now_left = answer.left if answer.behind else 0
                    left[answer.path] = min(left[answer.path], now_left)
                progress(_PILOTS, total - sum(left.values()), total)
        self._note(self._zones.problems())
        self._finish()
        self._revise(paths)
        read = self._read_logs(logs, progress)
        self._settle(verdicts=True)
        self._note_left_out()
        return Imported(
            *(len(paths), self._outputs, self._facts, read.files, read.lines),
            *(self._problems, tuple(self._examples.values())),
        )

    @property
    def _now_us(self) -> int:
        return round(self._now * SECOND_US)

    def _read(self, paths: Sequence[str]) -> tuple[_Answers, int]:
        # What was copied a moment ago is not being written, unlike in a factory that runs.
        to_read = directories(self._keeper, FACTORY_FILES, paths, self._timezone)
        answers, number = self._child(gwms_tasks.read, to_read, LIMITS, self._now + _JUST_COPIED_S)
        until = self._now_us
        return tuple(
            answer._replace(complete_us=min(until, answer.complete_us))
            if answer.complete_us is not None
            else answer
            for answer in answers
        ), number

    def _child(self, task: Callable[..., tuple[T, int]], *args: object) -> tuple[T, int]:
        return child.run(task, *args, deadline_s=DEADLINE_S, memory_mib=self._memory_mib)[0]

    def _take(self, answers: Sequence[FileAnswer]) -> None:
        taken = take(self._keeper, FACTORY_FILES, answers)
        self._outputs += taken.outputs
        self._facts += taken.facts
        self._note(taken.problems)
        self._zones.add(taken.samples)

    def _is_kept(self) -> bool:
        """Return whether the ledger has something that waits and that no import has brought."""
        imported = {FACTORY_FILES, IMPORTED_LOG}
        return any(cursor.kind not in imported for cursor in self._keeper.cursors) or any(
            pilot.identity.origin == "collector" for pilot in self._keeper.accounting.pilots
        )

    def _finish(self) -> None:
        """Wait for no file, as all are read; and for nothing else, unless a daemon does."""
        settlement = self._keeper.accounting.settlement
        settlement.expected = ExpectedInput.NO_FILES if self._kept else ExpectedInput.NOTHING
        self._settle()

    def _read_logs(self, paths: Sequence[str], progress: Progress) -> LogsRead:
        patience_us = self._keeper.accounting.rules.quiet_us if self._kept else 0
        reader = ImportedLogs(self._keeper, self._child, self._settle, self._note)
        return reader.run(paths, self._now, patience_us, progress)

    def _revise(self, directories: Iterable[str]) -> None:
        """Revise what was assumed, also where an import that was killed has read all there is."""
        waiting = 0
        with self._keeper.steps() as steps:
            for number in steps.revise({place_of(directory).entry for directory in directories}):
                waiting += number
                if waiting >= REVISED_AT_ONCE:
                    self._settle()
                    waiting = 0
        self._settle()

    def _settle(self, *, verdicts: bool = False) -> None:
        now_us = self._now_us
        self._keeper.settle(now_us, now_us, (), verdicts=verdicts)

    def _note_left_out(self) -> None:
        """Note what could be read and not be accounted, unless it was noted with its file."""
        accounting = self._keeper.accounting
        for reason, number in accounting.left_out.items():
            if number and not (reason in _NAMED and self._problems[reason]):
                detail = accounting.files.shown(reason, number)
                self._note([Problem("records", reason, detail, number)])
        for entry in sorted(accounting.below_one_unit):
            self._note([Problem("entries", ProblemName.BELOW_ONE_UNIT, entry, 1)])

    def _note(self, problems: Iterable[Problem]) -> None:
        """Count problems, and keep an example of each.

        A directory is listed again with each of its chunks, and then says the same again.
        """
        for problem in problems:
            self._problems[problem.problem] += self._counting.new(problem)
            self._examples.setdefault(problem.problem, problem)
