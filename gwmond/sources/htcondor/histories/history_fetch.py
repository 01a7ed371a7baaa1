"""Taking the records of a history since a cursor, in answers of bounded size.

``fetch`` asks for all records newer than the cursor.  If there are no more than the limit, that is
all; else it plans how the backlog is drained, and later calls do that (``history_cursor``).

Invariants, for any sequence of calls that each get the state which the one before returned:

1. every record that the daemon keeps is returned at least once, unless it was written before the
   first call's ``lookback_s``; or a gap says that some were lost, and between which times;
2. a call returns at most 1.5 times ``records`` of its limits, and holds no more than twice that;
3. as long as ``behind``, each call gets further; a call that is not complete is ``behind``.

Source for what a query does: condor_tools/history.cpp (newest first over all rotated files; since
is looked at before the constraint; match counts what satisfies the constraint).  The helper stops
without a word after HISTORY_HELPER_MAX_HISTORY records looked at (50,000; measured): what is
older cannot be had from there.  If the cursor is among that, the anchor does not come back, and it
is a gap; the first call just begins later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gwmond.model.facts import Gap, Problem
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.sources.htcondor.histories import histories, history_cursor
from gwmond.sources.htcondor.histories.history_cursor import (
    MAX_PARTS,
    Drain,
    HistoryAnswer,
    HistoryLimits,
    HistoryState,
    Identity,
    Pair,
    Progress,
)

if TYPE_CHECKING:
    import classad2

    from gwmond.sources.htcondor.access import Access, Daemon

QUERY_RECORDS = 10_000
"""A query never asks for more, whatever the limit, for the sake of memory."""

PLANNED_RECORDS = 200_000
"""So many of the newest records are looked at to plan a backlog's windows, by their times alone."""


def fetch(
    access: Access,
    daemon: Daemon,
    kind: str,
    cursor_state: str,
    limits: HistoryLimits,
    now: float,
) -> HistoryAnswer:
    """Take records of one history; ``now`` is the time (epoch seconds) just before.

    Raises QueryError.  A state that is not understood (``bad_state``) is taken as none.
    """
    task = _Fetch(access, daemon, kind, now, limits)
    floor = int(now - limits.lookback_s)
    try:
        state = history_cursor.load(cursor_state, floor)
    except ValueError as error:
        state = history_cursor.load("", floor)
        task.problems.append(Problem(daemon.name, ProblemName.BAD_STATE, str(error)))
    complete = False
    while not complete and task.goes_on:
        state = task.probe(state) if state.drain is None else task.step(state, state.drain)
        complete = task.complete
    drain = state.drain
    return HistoryAnswer(
        records=tuple(task.records),
        state=state.dump(),
        complete_us=int(now * SECOND_US) if complete else None,
        behind=not complete,
        progress=None if drain is None else _progress(drain),
        gap=task.gap,
        problems=tuple(task.problems),
        read=task.read,
    )


def _progress(drain: Drain) -> Progress:
    done = min(max(drain.start, drain.done), drain.end)
    return Progress(drain.start * SECOND_US, done * SECOND_US, drain.end * SECOND_US)


class _Fetch:
    """One call of ``fetch``: what it has asked and found so far."""

    def __init__(
        self, access: Access, daemon: Daemon, kind: str, now: float, limits: HistoryLimits
    ) -> None:
        self.records: list[JobRecord] = []
        self.problems: list[Problem] = []
        self.gap: Gap | None = None
        self.read = 0
        self.complete = False
        self._access, self._daemon, self._kind = access, daemon, kind
        self._now, self._limits = now, limits
        self._limit = min(limits.records, QUERY_RECORDS)
        self._new = min(limits.new, self._limit)
        self._queries = 0
        self._planned = False

    @property
    def goes_on(self) -> bool:
        """Whether another query may be made."""
        few = self.read < max(1, self._limits.records // 2)
        room = few or self.read + self._limit <= self._limits.records
        planned = self._planned and self._new < self._limit  # windows are larger than this call's
        return room and not planned and self._queries < self._limits.queries

    def probe(self, state: HistoryState) -> HistoryState:
        """Ask for all that is newer than the cursor."""
        newest, older = state.taken
        constraint = "" if newest else f"({histories.KINDS[self._kind].time} ?: 0) >= {state.floor}"
        ads = self._ask(constraint, self._new + 1, older)
        identities = [history_cursor.identity(self._kind, ad) for ad in ads]
        target = history_cursor.newest_two(identities, state.taken)
        if newest in identities and newest is not None:
            last = len(identities) - 1 - identities[::-1].index(newest)
            return self._all(state, ads[:last], target)
        if len(ads) <= self._new:
            if newest is None:
                return self._all(state, ads, self._second(state.floor, identities, target))
            if not self._exists(newest):
                lost = state._replace(lost_from=newest.time, floor=newest.time)
                return self._all(lost, ads, history_cursor.newest_two(identities, Pair()))
            # A record like the older one was written since, or the answer was cut off.
            latest = self._ask("", 3, None)
            seen = [history_cursor.identity(self._kind, ad) for ad in latest]
            target = history_cursor.newest_two(seen, state.taken)
            drain = self._drain(latest, target, newest, newest.time - self._limits.disorder_s)
            return state._replace(drain=drain)
        if newest is None:
            return state._replace(drain=self._drain(ads, target, None, state.floor))
        drain = self._drain(ads, target, newest, newest.time)
        edges = max(1, newest.time), *drain.edges
        drain = drain._replace(since=older is not None, done=0, edges=edges)
        return state._replace(drain=drain)

    def step(self, state: HistoryState, drain: Drain) -> HistoryState:
        """Ask for one window of the backlog."""
        limit, anchor = self._limit, drain.anchor
        since = state.taken.older if drain.since else None
        more = 1 if anchor is None else 2
        ads = self._ask(history_cursor.window(self._kind, drain), limit + more, since)
        identities = [history_cursor.identity(self._kind, ad) for ad in ads]
        fresh = [
            ad
            for ad, identity in zip(ads, identities, strict=True)
            if identity is None or identity != anchor
        ]
        if len(fresh) > limit:
            if drain.parts < MAX_PARTS:
                return state._replace(drain=drain.narrower())
            detail = f"more than {limit} records that nothing distinguishes"
            self.problems.append(Problem(self._daemon.name, ProblemName.TOO_MANY_AT_ONCE, detail))
        if anchor is not None and anchor not in identities and len(fresh) <= limit:
            return self._missing(state, drain, anchor, len(fresh))
        state = self._take(state, fresh)
        named = [identity for identity in identities if identity is not None]
        latest = max(named, key=lambda identity: identity.time, default=None)
        after = drain.further(latest, self._limits.disorder_s)
        if after is not None:
            return state._replace(drain=after)
        return self._told(state._replace(taken=drain.target, drain=None))

    def _all(self, state: HistoryState, ads: list[classad2.ClassAd], taken: Pair) -> HistoryState:
        """Take all that there is."""
        self.complete = True
        return self._told(self._take(state, ads)._replace(taken=taken))

    def _second(self, floor: int, identities: list[Identity | None], target: Pair) -> Pair:
        """Look for the newest two also before the first call's lookback."""
        if target.older is not None:
            return target
        ads = self._ask("", 3, None)
        seen = [history_cursor.identity(self._kind, ad) for ad in ads]
        if any(
            identity is not None and identity.time >= floor and identity not in identities
            for identity in seen
        ):
            return Pair()  # written between the two queries: it comes next time
        return history_cursor.newest_two(seen, target)

    def _drain(
        self, ads: list[classad2.ClassAd], target: Pair, anchor: Identity | None, start: int
    ) -> Drain:
        times = (histories.written(self._kind, ad) for ad in ads)
        done, end = max(0, start), max(int(self._now), *times, start)
        return Drain(False, anchor, done, done, end, target, self._edges(start))

    def _edges(self, start: int) -> tuple[int, ...]:
        """Plan the windows by the times alone of what the daemon has."""
        kind = histories.KINDS[self._kind]
        query = histories.query(self._kind, f"({kind.time} ?: 0) >= {start}")
        query = query._replace(projection=(kind.time,))
        self._queries += 1
        self._planned = True
        ads = self._access.history(self._daemon, self._kind, query, PLANNED_RECORDS, "")
        times = (histories.written(self._kind, ad) for ad in ads)
        return history_cursor.edges(times, self._limit)

    def _missing(
        self, state: HistoryState, drain: Drain, anchor: Identity, number: int
    ) -> HistoryState:
        """Find out why a record did not come back, and ask for the window again."""
        if not self._exists(anchor):
            again = drain._replace(since=False, anchor=None, candidate=None)
            return state._replace(drain=again, lost_from=max(anchor.time, drain.done))
        if drain.since:  # a record like the older one was written since, or the answer was cut off
            done = max(drain.done, anchor.time - self._limits.disorder_s)
            return state._replace(drain=drain._replace(since=False, done=done))
        if number > 1 and drain.parts < MAX_PARTS:  # the answer was cut off
            return state._replace(drain=drain.narrower())
        return state._replace(drain=drain._replace(anchor=None))

    def _exists(self, identity: Identity) -> bool:
        return bool(self._ask(history_cursor.expression(self._kind, identity), 1, None))

    def _ask(self, constraint: str, match: int, since: Identity | None) -> list[classad2.ClassAd]:
        self._queries += 1
        query = histories.query(self._kind, constraint, environment=self._limits.environment)
        stop = "" if since is None else history_cursor.expression(self._kind, since)
        return list(self._access.history(self._daemon, self._kind, query, match, stop))

    def _take(self, state: HistoryState, ads: list[classad2.ClassAd]) -> HistoryState:
        """Decode; the first records after a loss show how far it goes."""
        self.read += len(ads)
        for ad in ads:
            record = histories.decode(self._kind, ad, environment=self._limits.environment)
            if isinstance(record, JobRecord):
                self.records.append(record)
            elif record is not None:
                detail = str(history_cursor.identity(self._kind, ad))
                self.problems.append(Problem(self._daemon.name, record, detail))
        times = [time for ad in ads if (time := histories.written(self._kind, ad))]
        if state.lost_from is None or not times:
            return state
        return self._gap(state, state.lost_from, min(times))

    def _told(self, state: HistoryState) -> HistoryState:
        """Tell of a loss after which there is nothing."""
        if state.lost_from is None:
            return state
        return self._gap(state, state.lost_from, int(self._now))

    def _gap(self, state: HistoryState, start: int, end: int) -> HistoryState:
        detail = "records were rotated away or removed before they were read"
        self.gap = Gap(
            self._daemon.name,
            self._kind,
            (start if self.gap is None else min(start, (self.gap.start_us or 0) // SECOND_US))
            * SECOND_US,
            max(start, end) * SECOND_US,
            detail,
        )
        return state._replace(lost_from=None)
