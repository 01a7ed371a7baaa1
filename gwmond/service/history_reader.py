"""Reads records of job runs from all sources that keep them, a bounded number at a time.

A source is asked for what is new since its cursor.  What is left when the limit is reached is
asked for at once after what came was accounted, until the next poll is due (``behind``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from typing import NamedTuple, TypeAlias

import structlog

from gwmond.config.settings import Config
from gwmond.model.cursor_kinds import SCHEDD_KINDS
from gwmond.model.facts import Cursor
from gwmond.service.pilot_keeper import PilotKeeper
from gwmond.sources import tasks
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor.access import Access, Daemon
from gwmond.sources.htcondor.history_cursor import HistoryAnswer, HistoryLimits

log = structlog.get_logger()
FILE_KIND = "history_file"
NOT_KEPT_S = 3600.0  # how long a schedd that keeps no epoch history is not asked for it
SILENT_S = 600.0
_QUERIES, _LEAST_RECORDS, _HALVINGS = 4, 1000, 4


class HistoryBatch(NamedTuple):
    """Records that were read from a source, and where its cursor is then."""

    source: str
    kind: str
    answer: HistoryAnswer
    cursor: Cursor


_Task: TypeAlias = Callable[[str | None], HistoryBatch | None]
"""Fetches from one source, after a cursor's state; None: after the one that is stored."""


class HistoryReader:
    """Asks histories; use it from one thread."""

    def __init__(self, config: Config, gatherer: Gatherer, keeper: PilotKeeper) -> None:
        self._config = config
        self._gatherer = gatherer
        self._keeper = keeper
        self._behind: set[tuple[str, str]] = set()
        self._not_kept: dict[str, float] = {}
        self._answered: dict[str, float] = {}  # schedd: when it did, by the monotonic clock
        self._asked: dict[str, float] = {}
        self._smaller: dict[tuple[str, str], int] = {}  # by how many halves less is asked for

    @property
    def behind(self) -> bool:
        """Whether some source has more records than were fetched."""
        return bool(self._behind)

    def silent(self, schedds: Sequence[Daemon]) -> frozenset[str]:
        """Return schedds of which no history was read for a while."""
        now = time.monotonic()
        return frozenset(
            schedd.name
            for schedd in schedds
            if now - self._answered.get(schedd.name, self._asked.get(schedd.name, now)) > SILENT_S
        )

    def complete_us(self, schedds: Sequence[Daemon]) -> int | None:
        """Return up to when histories of all schedds that answer are known, 0 if one is not.

        None: there is none that would have to be waited for.
        """
        if not self._config.histories.schedds:
            return None
        silent = self.silent(schedds)
        times = []
        for schedd in schedds:
            if schedd.name in silent:
                continue
            kept = [
                kind
                for kind in SCHEDD_KINDS
                if kind != "epochs" or schedd.name not in self._not_kept
            ]
            cursors = [self._keeper.cursor(schedd.name, kind) for kind in kept]
            times.append(min(cursor.complete_us or 0 if cursor else 0 for cursor in cursors))
        return min(times, default=None)

    def ask(
        self, access: Access, schedds: Sequence[Daemon], now: float, *, only_behind: bool = False
    ) -> Iterator[HistoryBatch]:
        """Yield what each source has that is new, as it comes.

        Of a backlog (``only_behind``) a source's next records are fetched while those before are
        being accounted, as long as there is time.
        """
        tasks = self._tasks(access, schedds, now, only_behind=only_behind)
        with ThreadPoolExecutor(self._config.poll.parallel, "history") as pool:
            waiting = {pool.submit(_timed, task, None): task for task in tasks}
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    task = waiting.pop(future)
                    batch, took = future.result()
                    if batch is None:
                        continue
                    if only_behind and batch.answer.behind and self._gatherer.left_s > 3 * took:
                        waiting[pool.submit(_timed, task, batch.cursor.state)] = task
                    yield batch

    def _tasks(
        self, access: Access, schedds: Sequence[Daemon], now: float, *, only_behind: bool
    ) -> list[_Task]:
        options = self._config.histories
        wanted: list[tuple[Daemon, str]] = []
        if options.schedds:
            wanted = [(schedd, kind) for schedd in schedds for kind in self._kinds(schedd)]
        files = list(options.files)
        if only_behind:
            wanted = [daemon for daemon in wanted if (daemon[0].name, daemon[1]) in self._behind]
            files = [path for path in files if (path, FILE_KIND) in self._behind]
        many = min(self._config.poll.parallel, max(1, len(wanted) + len(files)))
        records = max(_LEAST_RECORDS, options.records // many)
        for schedd in schedds:
            self._asked.setdefault(schedd.name, time.monotonic())
        tasks: list[_Task] = [
            partial(self._ask_schedd, access, schedd, kind, records, now) for schedd, kind in wanted
        ]
        return tasks + [partial(self._read_files, path, records, now) for path in files]

    def _kinds(self, schedd: Daemon) -> list[str]:
        since = self._not_kept.get(schedd.name)
        kept = since is None or time.monotonic() - since > NOT_KEPT_S
        return [kind for kind in SCHEDD_KINDS if kept or kind != "epochs"]

    def _ask_schedd(
        self,
        access: Access,
        schedd: Daemon,
        kind: str,
        records: int,
        now: float,
        state: str | None,
    ) -> HistoryBatch | None:
        limits = self._limits(schedd.name, kind, records)
        answer = self._gatherer.run(
            *(schedd.name, kind, tasks.records, access, schedd, kind),
            *(self._state(schedd.name, kind) if state is None else state, limits, now),
            keep=False,
        )
        return self._note(schedd.name, kind, answer)

    def _state(self, source: str, kind: str) -> str:
        cursor = self._keeper.cursor(source, kind)
        return cursor.state if cursor is not None else ""

    def _limits(self, source: str, kind: str, records: int) -> HistoryLimits:
        """Return how much is asked for at once: less where the time did not suffice before."""
        less = self._smaller.get((source, kind), 0)
        return HistoryLimits(
            records=max(_LEAST_RECORDS, records >> less),
            queries=max(1, _QUERIES >> less),
            lookback_s=self._config.histories.lookback,
        )

    def _read_files(
        self, pattern: str, records: int, now: float, state: str | None
    ) -> HistoryBatch | None:
        limits = self._limits(pattern, FILE_KIND, records)
        answer = self._gatherer.run(
            *(pattern, FILE_KIND, tasks.file_records, pattern),
            *(self._state(pattern, FILE_KIND) if state is None else state, limits, now),
            keep=False,
        )
        return self._note(pattern, FILE_KIND, answer)

    def _note(self, source: str, kind: str, answer: HistoryAnswer | None) -> HistoryBatch | None:
        self._behind.discard((source, kind))
        less = self._smaller.get((source, kind), 0)
        if answer is None:
            self._smaller[source, kind] = min(less + 1, _HALVINGS)
            return None
        if less and not answer.behind:
            self._smaller[source, kind] = less - 1
        if not answer.kept:
            if source not in self._not_kept:
                log.warning(
                    "a schedd keeps no epoch history: of a job that ran several times only the "
                    "last run is known; set JOB_EPOCH_HISTORY there",
                    source=source,
                )
            self._not_kept[source] = time.monotonic()
            return None
        if kind == "epochs":
            self._not_kept.pop(source, None)
        if answer.behind:
            self._behind.add((source, kind))
        self._answered[source] = time.monotonic()
        complete_us = answer.complete_us
        if complete_us is None and answer.progress is not None:
            complete_us = answer.progress.done_us
        if complete_us is None and (before := self._keeper.cursor(source, kind)) is not None:
            complete_us = before.complete_us
        return HistoryBatch(source, kind, answer, Cursor(source, kind, answer.state, complete_us))


def _timed(task: _Task, state: str | None) -> tuple[HistoryBatch | None, float]:
    began = time.monotonic()
    return task(state), time.monotonic() - began
