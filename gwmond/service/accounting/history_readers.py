"""Readers of histories: records of job runs, of schedds and of startds.

Each history is asked for what is new since its cursor, a bounded number of records at a time, in a
child process each.  One that fails is asked for less (a schedd's) or later (a startd's).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias, TypeVar

import structlog

from gwmond.config.settings import Config
from gwmond.model.cursor_kinds import SCHEDD_KINDS, TRANSFERS
from gwmond.model.facts import Cursor, Problem
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import JobRecord, Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.early.comparison import Result
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.reports.render.periods import span
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.sources import child, tasks
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor.access import Access, Daemon
from gwmond.sources.htcondor.histories.histories import has_transfers
from gwmond.sources.htcondor.histories.history_cursor import (
    HistoryAnswer,
    HistoryLimits,
    Progress,
    is_backlog,
)
from gwmond.sources.htcondor.histories.startd_history import KIND

T = TypeVar("T")
log = structlog.get_logger()
NOT_KEPT_S = 3600.0  # how long a schedd that keeps no epoch history is not asked for it
SILENT_S = 600.0
_QUERIES, _LEAST_RECORDS, _HALVINGS = 4, 1000, 4
_BACKLOGS = 4  # read at once: with fewer and larger queries a schedd searches its files less often
_SAY_EVERY_S = 10.0
_DOUBLINGS = 10

STARTDS = "startds"
NEAR_END_US = 180 * SECOND_US
FIRST_WAIT_S = 60.0
CLOSED_AFTER = 3
LONGEST_WAIT_S = 3600.0
_STARTD_LIMITS = HistoryLimits(records=2000, lookback_s=30 * 86400.0)


@dataclass(slots=True)
class _History:
    """How asking one history went; times are seconds of the monotonic clock.

    - ``answered_at``: when it answered last, else when it was asked first; ``took_s``: how long it
      took; ``asked_at``: when it was asked last.
    - ``is_read``: its last query was answered, and what it said was taken in.
    - ``failures``: how many there were lately; ``again_at``: it is not asked before.
    - ``state``: of its cursor, where no ledger keeps that.
    - ``holes``: how many runs had an unknown end when it was asked.
    - ``empty``: how many answers in a row had nothing new.
    """

    answered_at: float = 0.0
    failures: int = 0
    again_at: float = 0.0
    behind: bool = False
    kept: bool = True
    state: str = ""
    holes: int = 0
    empty: int = 0
    took_s: float = 0.0
    asked_at: float = 0.0
    is_read: bool = False


class HistoryBatch(NamedTuple):
    """What was read of one history and reported to the keeper; ``behind``: there is more."""

    cursor: Cursor
    records: int
    behind: bool
    problems: tuple[Problem, ...] = ()


_Ask: TypeAlias = Callable[..., tuple[HistoryAnswer, int]]
"""Asks one source in a child: after a cursor's state, within limits, at a time."""

_Task: TypeAlias = Callable[[str | None], tuple[HistoryAnswer, Cursor] | None]
"""Fetches from one source, after a cursor's state; None: after the one that is stored."""


class _Backlog(NamedTuple):
    """The next query of a history that is behind.

    ``order``: whether queries of it have failed lately, then up to when it is read, or when it was
    asked last.  ``number`` only makes the order total.  ``state``: of the cursor, None: as stored.
    """

    order: tuple[bool, float]
    number: int
    query: tuple[str, str]
    task: _Task
    state: str | None = None


class _Asked(NamedTuple):
    """Histories that are being asked, in threads of a pool; None stands for one without a backlog.

    ``later``: a heap of backlogs that are not asked yet.
    """

    pool: ThreadPoolExecutor
    waiting: dict[Future[tuple[HistoryAnswer, Cursor] | None], _Backlog | None]
    later: list[_Backlog]
    only_behind: bool

    def begin(self, backlog: _Backlog) -> None:
        """Ask for the next records of a backlog."""
        self.waiting[self.pool.submit(backlog.task, backlog.state)] = backlog


class HistoryReader:
    """Reads histories of schedds; use it from one thread.

    What is left of a history when the limit is reached is asked for at once after what came was
    accounted, until the next poll is due (``behind``).

    Records of transfers are of runs that the epochs have, so these are read first.  Where a schedd
    has no new ones, its helper reads through all that was written since the last: so it is asked
    less and less often, every ``SILENT_S`` at least.
    """

    def __init__(self, config: Config, gatherer: Gatherer, keeper: LedgerKeeper) -> None:
        self._config, self._gatherer, self._keeper = config, gatherer, keeper
        self._known: dict[tuple[str, str], _History] = {}
        self._begun: dict[tuple[str, str], int] = {}  # from when on what was never read is read
        self._asked: _Asked | None = None
        self._records = 0
        self._said_at = 0.0

    @property
    def behind(self) -> bool:
        """Whether some source has more records than were fetched."""
        return any(history.behind for history in self._known.values())

    def silent(self, schedds: Sequence[Daemon]) -> frozenset[str]:
        """Return schedds of which no history was read for a while."""
        now = time.monotonic()
        silent = []
        for schedd in schedds:
            asked = [self._known.get((schedd.name, kind)) for kind in SCHEDD_KINDS]
            past = [history for history in asked if history is not None]
            answered_at = max((history.answered_at for history in past), default=now)
            waits = any(history.asked_at > answered_at for history in past)
            if waits and now - answered_at > SILENT_S:
                silent.append(schedd.name)
        return frozenset(silent)

    def complete_us(self, schedds: Sequence[Daemon]) -> int | None:
        """Return up to when histories of all schedds that answer are known, 0 if any is not.

        None: there is no schedd that would have to be waited for.
        """
        if not self._config.histories.schedds:
            return None
        cursors = [self._keeper.cursor(*query) for query in self._histories(schedds)]
        return min((cursor.complete_us or 0 if cursor else 0 for cursor in cursors), default=None)

    def unread(self, schedds: Sequence[Daemon]) -> dict[str, int]:
        """Return the schedds that answer and have records that were not read, with up to when.

        What is not known yet, as a query failed or was not made, may be a backlog.
        """
        unread: dict[str, int] = {}
        for query in self._histories(schedds) if self._config.histories.schedds else ():
            history = self._known.get(query)
            if history is None or not history.is_read or self._is_behind(query):
                read_us, schedd = self._read_to_us(query), query[0]
                unread[schedd] = min(read_us, unread.get(schedd, read_us))
        return unread

    def _histories(self, schedds: Sequence[Daemon]) -> Iterator[tuple[str, str]]:
        """Yield the histories in which schedds that answer keep runs, each with its kind."""
        silent = self.silent(schedds)
        for schedd in schedds:
            epochs = self._known.get((schedd.name, "epochs"))
            for kind in () if schedd.name in silent else SCHEDD_KINDS:
                if kind != "epochs" or epochs is None or epochs.kept:
                    yield schedd.name, kind

    def begin(self, access: Access, schedds: Sequence[Daemon], now: float) -> None:
        """Begin to ask for what is ``read`` next: sources answer while something else is done.

        What was begun before and not read is asked for anew.
        """
        if self._asked is not None:
            self._asked.pool.shutdown(cancel_futures=True)
            self._asked = None
        if self._keeper.ready:
            self._asked = self._ask(access, schedds, now, SCHEDD_KINDS, only_behind=False)

    def read(
        self, access: Access, schedds: Sequence[Daemon], now: float, *, only_behind: bool = False
    ) -> Iterator[HistoryBatch]:
        """Report what each source has that is new to the keeper, and yield each, as it comes.

        Of a backlog (``only_behind``) the next records are fetched while those before are
        being accounted, as long as there is time; of the source that is furthest behind, as
        nothing is settled before all have been read up to then.  Raises LedgerError.
        """
        asked, self._asked = self._asked, None
        ask = partial(self._ask, access, schedds, now, only_behind=only_behind)
        yield from self._taken(asked or ask(SCHEDD_KINDS))
        yield from self._taken(ask((TRANSFERS,)))

    def _taken(self, asked: _Asked) -> Iterator[HistoryBatch]:
        waiting = asked.waiting
        with asked.pool:
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    backlog = waiting.pop(future)
                    fetched = future.result()
                    if backlog is not None:
                        if fetched is not None and fetched[0].behind and asked.only_behind:
                            order, state = (False, fetched[1].complete_us or 0), fetched[1].state
                            heappush(asked.later, backlog._replace(order=order, state=state))
                        self._go_on(asked)
                    if fetched is not None:
                        yield self._report(*fetched)

    def _go_on(self, asked: _Asked) -> None:
        """Ask for more of a backlog: of the first for which there is time."""
        while asked.later:
            backlog = heappop(asked.later)
            if self._gatherer.left_s > 3 * self._known[backlog.query].took_s:
                asked.begin(backlog)
                return

    def _report(self, answer: HistoryAnswer, cursor: Cursor) -> HistoryBatch:
        history = self._known[cursor.source, cursor.kind]
        history.behind, history.is_read = answer.behind, True
        since_us = self._begun.pop((cursor.source, cursor.kind), None)
        if since_us is not None and cursor.kind in SCHEDD_KINDS:
            self._keeper.note_begin(cursor.source, cursor.kind, since_us)
        self._keeper.add_records(answer.records, cursor, answer.gap)
        self._records += len(answer.records)
        problems = []
        if answer.gap is not None:
            problems.append(Problem(cursor.source, ProblemName.HISTORY_GAP, answer.gap.detail))
        if answer.behind:
            self._say(cursor, answer.progress)
        return HistoryBatch(cursor, len(answer.records), answer.behind, tuple(problems))

    def _say(self, cursor: Cursor, progress: Progress | None) -> None:
        """Say now and then how far a backlog is."""
        now = time.monotonic()
        if now - self._said_at >= _SAY_EVERY_S:
            self._said_at = now
            log.info(
                "reading a backlog of job records",
                source=cursor.source,
                kind=cursor.kind,
                records=self._records,
                **_shown(progress),
            )

    def _ask(
        self,
        access: Access,
        schedds: Sequence[Daemon],
        now: float,
        kinds: Sequence[str],
        *,
        only_behind: bool,
    ) -> _Asked:
        due = self._tasks(access, schedds, kinds, now, only_behind=only_behind)
        pool = ThreadPoolExecutor(self._config.poll.parallel, "history")
        asked = _Asked(pool, {}, [], only_behind)
        for number, (query, task) in enumerate(due.items()):
            if self._is_behind(query):
                order = self._order(query, only_behind=only_behind)
                heappush(asked.later, _Backlog(order, number, query, task))
            else:
                asked.waiting[pool.submit(task, None)] = None
        for _ in range(min(_BACKLOGS, len(asked.later))):
            asked.begin(heappop(asked.later))
        return asked

    def _tasks(
        self,
        access: Access,
        schedds: Sequence[Daemon],
        kinds: Sequence[str],
        now: float,
        *,
        only_behind: bool,
    ) -> dict[tuple[str, str], _Task]:
        options = self._config.histories
        asks: dict[tuple[str, str], _Ask] = {
            (schedd.name, kind): partial(tasks.records, access, schedd, kind)
            for schedd in schedds
            for kind in kinds
            if kind != TRANSFERS or self._may_have_transfers(schedd)
        }
        moment, names = time.monotonic(), {schedd.name for schedd in schedds}
        others = {q: x for q, x in self._known.items() if q[1] not in kinds and q[0] in names}
        self._known = others | {
            query: self._known.get(query) or _History(answered_at=moment) for query in asks
        }
        due = {
            query: ask
            for query, ask in (asks if options.schedds else {}).items()
            if (history := self._known[query]).again_at <= moment
            and (history.behind or not only_behind)
        }
        many = min(self._config.poll.parallel, max(1, len(due)))
        new, records = (
            max(_LEAST_RECORDS, options.records // most) for most in (many, min(many, _BACKLOGS))
        )
        return {q: partial(self._fetch, *q, ask, new, records, now) for q, ask in due.items()}

    def _is_behind(self, query: tuple[str, str]) -> bool:
        """Return whether a history has a backlog, by its last answer or by what is stored."""
        history, cursor = self._known.get(query), self._keeper.cursor(*query)
        if history is not None and history.behind:
            return True
        return cursor is not None and is_backlog(cursor.state)

    def _order(self, query: tuple[str, str], *, only_behind: bool) -> tuple[bool, float]:
        """Return which backlog comes first: in a poll that which was not asked for longest."""
        history = self._known[query]
        first = self._read_to_us(query) if only_behind else history.asked_at
        return history.failures > 0, first

    def _read_to_us(self, query: tuple[str, str]) -> int:
        cursor = self._keeper.cursor(*query)
        return 0 if cursor is None else cursor.complete_us or 0

    def _may_have_transfers(self, schedd: Daemon) -> bool:
        """Return whether it writes such records, and all of its epochs are read."""
        epochs = self._known.get((schedd.name, "epochs"))
        if epochs is None or not (epochs.kept and epochs.is_read) or epochs.failures:
            return False
        return not self._is_behind((schedd.name, "epochs")) and has_transfers(schedd.version)

    def _fetch(
        self,
        source: str,
        kind: str,
        ask: _Ask,
        new: int,
        records: int,
        now: float,
        state: str | None,
    ) -> tuple[HistoryAnswer, Cursor] | None:
        history, before = self._known[source, kind], self._keeper.cursor(source, kind)
        if state is None:
            state = before.state if before is not None else ""
        less = history.failures  # less is asked for at once where the time did not suffice before
        limits = HistoryLimits(
            records=max(_LEAST_RECORDS, records >> less),
            new=max(_LEAST_RECORDS, new >> less),
            queries=max(1, _QUERIES >> less),
            lookback_s=self._config.histories.lookback,
            environment=self._config.traces.read_environment,
        )
        history.asked_at, history.is_read = time.monotonic(), False
        answer = self._gatherer.run(source, kind, ask, state, limits, now, keep=False)
        history.took_s = time.monotonic() - history.asked_at
        if answer is None:
            history.behind = False
            history.failures = min(less + 1, _HALVINGS)
            return None
        if less and not answer.behind:
            history.failures = less - 1
        if not answer.kept:
            self._note_not_kept(source, history)
            return None
        history.kept, history.answered_at = True, time.monotonic()
        if kind == TRANSFERS:
            history.empty = 0 if answer.read else history.empty + 1
            pause_s = self._config.poll.interval * (2.0 ** min(history.empty, _DOUBLINGS) - 1)
            history.again_at = history.answered_at + min(SILENT_S, pause_s)
        complete_us = answer.complete_us
        if complete_us is None:  # up to where a backlog was read, or to what was known before
            done_us = answer.progress.done_us if answer.progress is not None else 0
            before_us = (before.complete_us or 0) if before is not None else 0
            complete_us = max(done_us, min(before_us, round(now * SECOND_US))) or None
        if not state:
            self._begun[source, kind] = round((now - limits.lookback_s) * SECOND_US)
        return answer, Cursor(source, kind, answer.state, complete_us)

    def _note_not_kept(self, schedd: str, history: _History) -> None:
        if history.kept:
            log.warning(
                "a schedd keeps no epoch history: of a job that ran several times only the "
                "last run is known; set JOB_EPOCH_HISTORY there",
                source=schedd,
            )
        history.kept, history.again_at = False, time.monotonic() + NOT_KEPT_S


def _shown(progress: Progress | None) -> dict[str, str]:
    """Return from when to when a backlog is, and how far it was read."""
    if progress is None:
        return {}
    times = {"since": progress.from_us, "read_to": progress.done_us, "until": progress.target_us}
    return {
        name: datetime.fromtimestamp(time_us / SECOND_US, UTC).isoformat(timespec="seconds")
        for name, time_us in times.items()
    }


class StartdHistoryReader:
    """Chooses startds and asks them for their history where that pays, at a bounded rate.

    A startd knows best how a run ended on it, but there are many, behind firewalls, and they take
    their history with them.  So a startd is asked

    - where the schedds' records leave a hole: a run whose end, or its cause, is not known;
    - near the pilot's retirement and its end.

    If it cannot be reached it is asked again after a minute, then two, four, up to an hour.

    GlideinWMS's pilots let nobody read: their HTCondor requires a token, and has no key by which
    one could be verified (creation/web_base/condor_config: SEC_PASSWORD_DIRECTORY is empty).  Where
    ``CLOSED_AFTER`` startds have denied and none has answered, one startd an hour is asked, and
    that is one lasting problem.
    """

    def __init__(self, config: Config, hosts: Iterable[str]) -> None:
        self._options = config.histories
        self._parallel = config.poll.parallel
        self._memory_mib = config.poll.memory_limit_mib
        self._hosts = tuple(hosts)
        self._known: dict[str, _History] = {}
        self._denied: set[str] = set()
        self._closed_until: float | None = None

    def ask(
        self, access: Access, pilots: Iterable[OpenPilot], now: float
    ) -> tuple[list[JobRecord], list[Problem]]:
        """Return startds' records; ``now`` is the time by the pool's clock (epoch seconds)."""
        many = self._options.startds_per_poll
        if not many or not self._options.startds:
            return [], []
        chosen = self._choose(pilots, round(now * SECOND_US))
        if self._closed_until is not None:
            if time.monotonic() < self._closed_until:
                return [], [self._closed()]
            many = 1
        names = dict(chosen[:many])
        records: list[JobRecord] = []
        problems: list[Problem] = []
        located: dict[str, Daemon] = {}
        for host in self._hosts if names else ():
            reply = self._run(tasks.locate_startds, access, host, list(names))
            if isinstance(reply, child.QueryError):
                problems.append(Problem(STARTDS, reply.problem, f"{host}: {reply.detail}"))
            else:
                located |= {daemon.name: daemon for daemon in reply if daemon.name in names}
        with ThreadPoolExecutor(self._parallel, "startd") as pool:
            answers = pool.map(
                lambda startd: (startd.name, self._one(access, startd, now)), located.values()
            )
            for name, answer in answers:
                if isinstance(answer, child.QueryError) and self._deny(name, answer):
                    self._note(name, names[name], failed=True)
                elif isinstance(answer, child.QueryError):
                    wait_s = self._note(name, names[name], failed=True)
                    again = f"asked again in {span(round(wait_s * SECOND_US))} at the earliest"
                    detail = f"{name}: {answer.detail}; {again}"
                    problems.append(Problem(STARTDS, answer.problem, detail))
                else:
                    self._denied, self._closed_until = set(), None
                    records += answer.records
                    problems += [problem._replace(source=STARTDS) for problem in answer.problems]
                    self._note(name, names[name], failed=False, state=answer.state)
        for name in set(names) - set(located):
            self._note(name, names[name], failed=True)
        return records, problems + ([self._closed()] if self._denied else [])

    def _deny(self, name: str, answer: child.QueryError) -> bool:
        """Take in that a startd denied, if it did."""
        if answer.problem is not ProblemName.DENIED:
            return False
        if len(self._denied) < CLOSED_AFTER:
            self._denied.add(name)
        if len(self._denied) >= CLOSED_AFTER:
            self._closed_until = time.monotonic() + LONGEST_WAIT_S
        return True

    def _closed(self) -> Problem:
        """Return the problem, the same in each poll while it lasts."""
        return Problem(STARTDS, ProblemName.STARTDS_CLOSED, "no startd that was asked let us read")

    def _choose(self, pilots: Iterable[OpenPilot], now_us: int) -> list[tuple[str, int]]:
        """Return names of startds that may be asked, most urgent first, with their holes."""
        moment = time.monotonic()
        chosen: list[tuple[int, int, str]] = []
        alive: set[str] = set()
        for pilot in pilots:
            if pilot.end_us is not None or pilot.known_from_jobs_only:
                continue
            name = pilot.identity.name
            alive.add(name)
            near = any(
                at_us is not None and at_us - NEAR_END_US <= now_us
                for at_us in (pilot.retire_us, pilot.die_us)
            )
            holes = _holes(pilot)
            if not (holes or (near and pilot.runs)):
                continue
            before = self._known.get(name)
            waits = before is not None and moment < before.again_at
            if before is not None and waits and (before.failures or holes <= before.holes):
                continue
            if any(
                fnmatchcase(pilot.identity.key.entry, startd) for startd in self._options.startds
            ):
                chosen.append((-holes, pilot.die_us or 0, name))
        for name in set(self._known) - alive:
            del self._known[name]
        return [(name, -holes) for holes, _, name in sorted(chosen)]

    def _one(self, access: Access, daemon: Daemon, now: float) -> HistoryAnswer | child.QueryError:
        state = self._known[daemon.name].state if daemon.name in self._known else ""
        return self._run(tasks.records, access, daemon, KIND, state, _STARTD_LIMITS, now)

    def _run(self, task: Callable[..., tuple[T, int]], *args: object) -> T | child.QueryError:
        try:
            (answer, _), _ = child.run(
                task,
                *args,
                deadline_s=self._options.startd_deadline,
                memory_mib=self._memory_mib,
            )
        except child.QueryError as error:
            return error
        return answer

    def _note(self, name: str, holes: int, *, failed: bool, state: str = "") -> float:
        """Note how it went; return after how many seconds the startd may be asked again."""
        history = self._known.setdefault(name, _History())
        history.failures = history.failures + 1 if failed else 0
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** max(0, history.failures - 1))
        history.again_at = time.monotonic() + wait_s
        history.state, history.holes = state or history.state, holes
        return wait_s


def _holes(pilot: OpenPilot) -> int:
    """Return how many runs have ended on a pilot in a way that is not known."""
    return sum(
        1
        for run in pilot.runs.values()
        if run.outcome is None
        and (run.merged.ending.over or run.gone)
        and run.result != Result.FAILED_EARLY
        and Source.STARTD_HISTORY not in run.merged.sources
    )
