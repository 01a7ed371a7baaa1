"""What central logs report of pilots and of the runs on them.

Units: times are microseconds since the epoch.

A line's pilot is found by the factory's job where it names one, else by its startd's name, else by
site and node if only one pilot was there then (see ``LogLines``).  Whose pilot is not known
waits for it, and what is reported of a run waits until its time is known: a bounded number, as long
as ``quiet``, also across restarts.

=================== ===========================================================================
pilot_end           the pilot ended then (``central_log``): better than when it was last seen, worse
                    than its own output and its factory's queue; it goes on if it was heard of
                    later.  Of several the last one counts
exit_unsent         the run that ended then, and whose end no history has, ended then; its
                    exit is lost (``Ending.unsent``)
container_failure   the run that had begun just before, and whose end no history has, failed
                    for that (``Ending.container_failed``)
=================== ===========================================================================

A line has no job, so a run is found by its pilot and by time: where several may be meant, none is.
Invariants: a line that is read again changes nothing; of ends the order does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gwmond.model.cursor_kinds import WAITING_LINES
from gwmond.model.facts import Cursor
from gwmond.model.pilots.file_facts import CentralEvent, CentralKind
from gwmond.model.pilots.pilot_facts import replace
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.pilots.life.merged_runs import tells_exit
from gwmond.pilots.life.rules import FAR_US, Rules, sane
from gwmond.pilots.memory.ad_times import PersistedState
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun
from gwmond.pilots.runs.matcher import RunMatcher
from gwmond.pilots.sources.log_lines import LogLines, line_keys

MAX_WAITING = 2000
MAX_CHARACTERS = 900_000
"""A cursor's state has at most a million; what is beyond waits in memory only."""
SOURCE = "central_log"


class LineWaits(NamedTuple):
    """Since when a line waits (None: not settled since), and for what, as far as that is known."""

    since_us: int | None
    why: ProblemName


class _MissingRunsError(Exception):
    """Runs that a line may be about are not in memory."""


class CentralLogEvents:
    """Takes lines in; ``unused`` counts those that led to nothing, with an ``example`` of each.

    ``patience_us``: a line that is older does not wait, but is unused at once; None: each waits.
    """

    def __init__(
        self,
        cache: PilotCache,
        matcher: RunMatcher,
        rules: Rules,
        cursors: Mapping[tuple[str, str], Cursor],
    ) -> None:
        self._cache, self._matcher, self._rules = cache, matcher, rules
        self._kept = PersistedState(SOURCE, WAITING_LINES, cursors)
        self._waiting = load(self._kept.text)
        self._inbox: list[CentralEvent] = []
        self._asked: set[CentralEvent] = set()  # lines whose stored pilots are in memory
        self._now_us = self._known_us = 0
        self.patience_us: int | None = None
        self.unused: Counter[ProblemName] = Counter()
        self.examples: dict[ProblemName, str] = {}

    def keys(self, events: Sequence[CentralEvent]) -> PilotKeys:
        """Return the keys of the pilots that lines may mean and that may be stored."""
        late = {event for event in events if self._is_late(event)}
        return line_keys(self._cache, events, self._rules, late)

    def take(self, events: Sequence[CentralEvent]) -> None:
        """Take lines in; those that wait for missing runs when this is called again."""
        inbox, self._inbox = [*self._inbox, *events], []
        if not inbox:
            return
        index = LogLines(inbox, self._cache, self._rules)
        for event in (event._replace(path="") for event in inbox):
            if not sane(event.at_us):
                self._leave(event, ProblemName.BAD_TIME)
                continue
            late = self._is_late(event)
            if event in self._waiting:
                continue
            try:
                why = self._told(event, index, last=late)
            except _MissingRunsError:
                self._inbox.append(event)
                continue
            if why is None:
                continue
            if late:
                self._leave(event, why)
            else:
                self._waiting[event] = LineWaits(None, why)
                if len(self._waiting) > MAX_WAITING:
                    first = next(iter(self._waiting))
                    self._leave(first, ProblemName.TOO_MANY_WAITING)
                    del self._waiting[first]

    def settle(self, now_us: int, known_us: int) -> None:
        """Try again what waits; ``known_us``: runs that began before are known."""
        self._now_us, self._known_us = now_us, max(self._known_us, known_us)
        if not self._waiting:
            return
        quiet_us = self._rules.quiet_us
        since = {
            event: now_us if waits.since_us is None else waits.since_us
            for event, waits in self._waiting.items()
        }
        last = {event for event, since_us in since.items() if now_us >= since_us + quiet_us}
        unasked = last - self._asked
        self._asked |= unasked
        keys = line_keys(self._cache, unasked, self._rules, unasked)
        self._cache.missing.update(keys)
        index = LogLines(self._waiting, self._cache, self._rules)
        for event, waits in list(self._waiting.items()):
            if keys and event in unasked:
                continue
            late = event in last
            in_memory = waits.since_us is not None and not late
            try:
                why = self._told(event, index, last=late, in_memory=in_memory)
            except _MissingRunsError:
                continue
            if why and event.at_us > now_us + quiet_us:
                why, late = ProblemName.BAD_TIME, True
            elif why == ProblemName.NO_PILOT and waits.why != ProblemName.NOT_YET:
                why = waits.why  # its pilot may have been forgotten meanwhile
            if why and not late:
                self._waiting[event] = LineWaits(since[event], why)
                continue
            del self._waiting[event]
            if why:
                self._leave(event, why)

    def cursors(self) -> tuple[Cursor, ...]:
        """Return what waits, if that is not what is stored."""
        return self._kept.offer(dump(self._waiting))

    def stored(self) -> None:
        """Say that the last cursor is in the ledger."""
        self._kept.stored()
        self._asked.clear()

    def _is_late(self, event: CentralEvent) -> bool:
        """Return whether a line is too old to wait."""
        return self.patience_us is not None and event.at_us + self.patience_us <= self._now_us

    def _leave(self, event: CentralEvent, why: ProblemName) -> None:
        name = event.name
        where = " ".join(part for part in (name.startd, name.site, name.node) if part)
        self.unused[why] += 1
        self.examples[why] = f"{event.kind.value} of {where or '?'}: {event.message}"

    def _told(
        self, event: CentralEvent, index: LogLines, *, last: bool, in_memory: bool = False
    ) -> ProblemName | None:
        """Apply a line; return why that cannot be done, None if it is.

        Raises _MissingRunsError where runs that may be meant are not in memory, and those that are
        ``in_memory`` are not enough.
        """
        known_us = event.at_us + self._rules.end_tolerance_us
        if event.at_us > self._now_us + self._rules.end_tolerance_us:
            return ProblemName.NOT_YET
        pilots = index.find(event, last=last)
        if len(pilots) != 1:
            return ProblemName.SEVERAL_PILOTS if pilots else ProblemName.NO_PILOT
        (pilot,) = pilots
        if event.kind is CentralKind.PILOT_END and not pilot.pruned:
            end(pilot, event.at_us)
        elif not pilot.pruned:
            if not last and self._known_us < known_us:
                return ProblemName.NOT_YET
            dropped = pilot.loaded_from_us > event.at_us - self._rules.end_tolerance_us
            if dropped and not in_memory and not self._cache.has_whole(pilot):
                raise _MissingRunsError
            return self._told_of_run(pilot, event)
        return None

    def _told_of_run(self, pilot: OpenPilot, event: CentralEvent) -> ProblemName | None:
        runs = self._runs(pilot, event)
        if len(runs) != 1:
            return ProblemName.SEVERAL_RUNS if runs else ProblemName.NO_RUN
        (run,) = runs
        over = run.merged.ending.over or run.gone or run.pilot.end_us is not None
        if not over and event.kind is not CentralKind.CONTAINER_FAILURE:
            return ProblemName.RUN_GOES_ON
        if not _has(run, event) and not _tells_exit(run):
            self._matcher.add(run.key.job, [_fact(run, event)])
        return None

    def _runs(self, pilot: OpenPilot, event: CentralEvent) -> list[OpenRun]:
        """Return the runs that a line may be about: the likeliest ones."""
        runs = list(pilot.runs.values())
        if same := [run for run in runs if _has(run, event)]:
            return same
        at_us, rules = event.at_us, self._rules
        guard = rules.start_guard_us
        there = [
            (run, end_us)
            for run in runs
            for end_us in (run.merged.end_us if run.merged.evidence == "measured" else None,)
            if run.start_us - guard <= at_us <= (FAR_US if end_us is None else end_us) + guard
            if end_us is not None or (run.last_shown_us or 0) <= at_us + guard
        ]
        if event.kind is CentralKind.CONTAINER_FAILURE:
            soon = at_us + rules.end_tolerance_us
            fitting = [
                run
                for run, end_us in there
                if at_us <= run.start_us + rules.early_us + guard and (end_us or at_us) <= soon
            ]
            return [run for run in fitting if not _tells_exit(run)] or fitting[:1]
        at_end = [run for run, end_us in there if end_us is not None and end_us <= at_us + guard]
        for group in (
            [run for run in at_end if not _tells_exit(run)],
            [run for run, end_us in there if end_us is None],
            [run for run, _ in there if not _tells_exit(run)],
            at_end,
        ):
            if group:
                return group
        return []


def dump(waiting: Mapping[CentralEvent, LineWaits]) -> str:
    """Return lines as text, empty if there is none; of more than ``MAX_CHARACTERS`` the first."""
    rows: list[str] = []
    left = MAX_CHARACTERS
    for row in waiting.items():
        rows.append(msgspec.json.encode(row).decode())
        left -= len(rows[-1]) + 1
        if left < 0:
            rows.pop()
            break
    return f"[{','.join(rows)}]" if rows else ""


def load(stored: str) -> dict[CentralEvent, LineWaits]:
    """Return the same lines."""
    return (
        dict(msgspec.json.decode(stored, type=list[tuple[CentralEvent, LineWaits]]))
        if stored
        else {}
    )


def end(pilot: OpenPilot, at_us: int) -> None:
    """Take in when a pilot ended by a central log; of several lines the last."""
    last_us = max(at_us, pilot.facts.central_log_us or 0)
    pilot.learn(replace(pilot.facts, central_log_us=last_us))


def _tells_exit(run: OpenRun) -> bool:
    return any(tells_exit(fact) for fact in run.facts)


def _has(run: OpenRun, event: CentralEvent) -> bool:
    """Return whether a run has a line already."""
    return any(
        fact.source is Source.CENTRAL_LOG
        and fact.written_us == event.at_us
        and bool(fact.ending.unsent) == (event.kind is CentralKind.EXIT_UNSENT)
        for fact in run.facts
    )


def _fact(run: OpenRun, event: CentralEvent) -> RunFact:
    unsent = event.kind is CentralKind.EXIT_UNSENT
    return RunFact(
        source=Source.CENTRAL_LOG,
        job=run.key.job,
        shadow_start=run.key.shadow_start,
        written_us=event.at_us,
        pilot=run.pilot.label,
        start_us=run.merged.start_us,
        end_us=max(event.at_us, run.start_us) if unsent else None,
        ending=Ending(over=True, began=True, unsent=True)
        if unsent
        else Ending(container_failed=True),
    )
