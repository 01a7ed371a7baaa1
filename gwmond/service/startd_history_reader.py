"""Asks startds for their history where that pays, at a bounded rate.

A startd knows best how a run ended on it, but there are many, behind firewalls, and they take
their history with them.  So one is asked

- where the schedds' records leave a hole: a run whose end, or its cause, is not known;
- near the pilot's retirement and its end.

One that cannot be reached is asked again after a minute, then two, four, up to an hour.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from typing import NamedTuple

from gwmond.config.settings import Config
from gwmond.model.attempts import Source
from gwmond.model.facts import Problem
from gwmond.model.records import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.pilots.early_failure import Result
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.reports.periods import span
from gwmond.sources import child, tasks
from gwmond.sources.htcondor.access import Access, Daemon
from gwmond.sources.htcondor.history_cursor import HistoryAnswer, HistoryLimits

SOURCE = "startds"
KIND = "startd_history"
NEAR_END_US = 180 * SECOND_US
FIRST_WAIT_S = 60.0
LONGEST_WAIT_S = 3600.0
_RECORDS = 2000


class _Asked(NamedTuple):
    """When a startd may be asked again, after how many failures, and how far it was read."""

    again_at: float
    failures: int
    state: str
    holes: int


class StartdHistoryReader:
    """Chooses startds and asks them."""

    def __init__(self, config: Config, hosts: Iterable[str]) -> None:
        self._options = config.histories
        self._parallel = config.poll.parallel
        self._memory_mib = config.poll.memory_limit_mib
        self._hosts = tuple(hosts)
        self._known: dict[str, _Asked] = {}

    def ask(
        self, access: Access, pilots: Iterable[OpenPilot], now: float
    ) -> tuple[list[JobRecord], list[Problem]]:
        """Return startds' records; ``now`` is the time by the pool's clock (epoch seconds)."""
        many = self._options.startds_per_poll
        if not many or not self._options.startds:
            return [], []
        wanted = self._choose(pilots, round(now * SECOND_US))[:many]
        if not wanted:
            return [], []
        records: list[JobRecord] = []
        problems: list[Problem] = []
        names = dict(wanted)
        located: dict[str, Daemon] = {}
        for host in self._hosts:
            try:
                (found, _), _ = child.run(
                    *(tasks.locate_startds, access, host, list(names)),
                    deadline_s=self._options.startd_deadline,
                )
            except child.QueryError as error:
                problems.append(Problem(SOURCE, error.problem, f"{host}: {error.detail}"))
            else:
                located |= {daemon.name: daemon for daemon in found}
        with ThreadPoolExecutor(self._parallel, "startd") as pool:
            answers = pool.map(
                lambda startd: (startd.name, self._one(access, startd, now)), located.values()
            )
            for name, answer in answers:
                if isinstance(answer, child.QueryError):
                    wait_s = self._note(name, answer.problem, names[name])
                    again = f"asked again in {span(round(wait_s * SECOND_US))} at the earliest"
                    detail = f"{name}: {answer.detail}; {again}"
                    problems.append(Problem(SOURCE, answer.problem, detail))
                else:
                    records += answer.records
                    problems += [problem._replace(source=SOURCE) for problem in answer.problems]
                    self._note(name, "", names[name], answer.state)
        for name in set(names) - set(located):
            self._note(name, "not_found", names[name])
        return records, problems

    def _choose(self, pilots: Iterable[OpenPilot], now_us: int) -> list[tuple[str, int]]:
        """Return names of startds that may be asked, most urgent first, with their holes."""
        moment = time.monotonic()
        found: list[tuple[int, int, str]] = []
        alive: set[str] = set()
        for pilot in pilots:
            if pilot.end_us is not None or pilot.implied:
                continue
            name = pilot.identity.name
            alive.add(name)
            near = any(
                at_us is not None and at_us - NEAR_END_US <= now_us
                for at_us in (pilot.retire_us, pilot.die_us)
            )
            holes = _holes(pilot)
            if not (holes or (near and pilot.attempts)):
                continue
            before = self._known.get(name)
            waits = before is not None and moment < before.again_at
            if before is not None and waits and (before.failures or holes <= before.holes):
                continue
            if any(
                fnmatchcase(pilot.identity.key.entry, startd) for startd in self._options.startds
            ):
                found.append((-holes, pilot.die_us or 0, name))
        for name in set(self._known) - alive:
            del self._known[name]
        return [(name, -holes) for holes, _, name in sorted(found)]

    def _one(self, access: Access, daemon: Daemon, now: float) -> HistoryAnswer | child.QueryError:
        before = self._known.get(daemon.name)
        state = before.state if before is not None else ""
        limits = HistoryLimits(records=_RECORDS, lookback_s=30 * 86400.0)
        try:
            (answer, _), _ = child.run(
                *(tasks.records, access, daemon, KIND, state, limits, now),
                deadline_s=self._options.startd_deadline,
                memory_mib=self._memory_mib,
            )
        except child.QueryError as error:
            return error
        return answer

    def _note(self, name: str, problem: str, holes: int, state: str = "") -> float:
        """Note how it went; return after how many seconds the startd may be asked again."""
        before = self._known.get(name, _Asked(0.0, 0, "", 0))
        failures = before.failures + 1 if problem else 0
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** max(0, failures - 1))
        again_at = time.monotonic() + wait
        self._known[name] = _Asked(again_at, failures, state or before.state, holes)
        return wait


def _holes(pilot: OpenPilot) -> int:
    """Return how many runs have ended on a pilot in a way that is not known."""
    return sum(
        1
        for attempt in pilot.attempts.values()
        if attempt.outcome is None
        and (attempt.merged.ending.over or attempt.gone)
        and attempt.result != Result.FAILED_EARLY
        and Source.STARTD_HISTORY not in attempt.merged.sources
    )
