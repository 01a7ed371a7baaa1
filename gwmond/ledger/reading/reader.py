"""Reading a ledger: what a daemon starts from, and what reports, pages and checks ask for.

Units: times are microseconds since the epoch, an hour is ``epoch // 3600`` (UTC).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    true,
    tuple_,
)

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.database.columns import clean
from gwmond.ledger.database.schema import corrections, pilots, problems, runs
from gwmond.ledger.reading import pilot_check
from gwmond.ledger.reading.pilot_check import Progress
from gwmond.ledger.reading.pilot_reader import (
    PILOT_ROWS,
    RUN_ROWS,
    PilotLookup,
    late_runs,
    open_pilots,
)
from gwmond.ledger.reading.sites_reader import SitesReader, state_of_sites
from gwmond.ledger.rows import backlog, counters, tables
from gwmond.ledger.rows.backlog import UnsentChunk, UnsentPosition
from gwmond.ledger.rows.counters import Kind
from gwmond.ledger.rows.pilot_codec import pilot_row, run_row
from gwmond.ledger.rows.stats import LedgerStats, stats
from gwmond.model.demand.idle_history import WaitInterval
from gwmond.model.elapsed import Tick
from gwmond.model.entries.changes import Value
from gwmond.model.factory.totals import FactoryKey
from gwmond.model.facts import ANYWHERE, Place, Problem
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.stored_pilots import (
    EVERY_PILOT,
    Doing,
    PilotCorrection,
    PilotFilter,
    PilotHour,
    PilotId,
    PilotIdentity,
    PilotResidual,
    PilotRow,
    RunFilter,
    RunRow,
)
from gwmond.model.poll.batch import LedgerState, TimedProblem
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import EARLY_US
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.model.times import ALWAYS, Period
from gwmond.model.totals import Hour, HourTotal
from gwmond.model.units import DEFAULT_MEMORY_MIB
from gwmond.pilots.early.comparison import MOST_TRIALS, Result, Trial

Order: TypeAlias = Literal["start", "end", "contact", "name", "id"]
_ORDERS = {"start": "start_us", "end": "end_us", "contact": "posted_last_heard_us"}
PILOTS_AT_ONCE = 200
MOST_OPEN = 10_000
FAILED = and_(pilots.c.validation == Validation.FAILED.value, pilots.c.ran_jobs == 0)
_STICKS_OUT_US = 86_400_000_000  # a run begins and ends within its pilot, give or take a day


_TRIALS = select(
    *(runs.c[name] for name in ("job", "number", "job_group", "user_name", "pilot")),
    *(pilots.c.node, pilots.c.entry, pilots.c.site),
    *(runs.c.start_us, runs.c.end_us, runs.c.result),
).join_from(runs, pilots, runs.c.pilot == pilots.c.id)


def _unsettled(connection: Connection) -> tuple[tuple[PilotRow, ...], tuple[RunRow, ...]]:
    rows = tuple(open_pilots(connection))
    return rows, tuple(late_runs(connection, [row.id for row in rows]))


class LedgerReader(PilotLookup, SitesReader):
    """A ledger open to read beside its writer."""

    def unsettled(self) -> tuple[tuple[PilotRow, ...], tuple[RunRow, ...]]:
        """Return the pilots that are not closed, and their runs that are not all settled."""
        with self.reading() as connection:
            return _unsettled(connection)

    def load(self) -> LedgerState:
        """Return all that the accounting goes on from."""
        with self.reading() as connection:
            rows, late = _unsettled(connection)
            return state_of_sites(connection)._replace(
                totals=counters.stored_totals(connection),
                pilots=rows,
                runs=late,
                cursors=tables.stored_cursors(connection),
                places=tables.open_places(connection),
                experiments=tables.open_experiments(connection),
                waits=tables.lasting_waits(connection),
                values=tables.stored_values(connection),
            )

    def tick(self) -> Tick | None:
        """Return up to when site time is accounted; None before the first poll."""
        with self.reading() as connection:
            return tables.stored_state(connection).tick

    def waits_of_group(self, schedd: str, group: str, since_us: int) -> tuple[WaitInterval, ...]:
        """Return for which reasons a group of idle jobs waited after a time, in their order."""
        with self.reading() as connection:
            return tables.waits_of_group(connection, schedd, group, since_us)

    def waits_by_wants(self, wants: Collection[str], since_us: int) -> tuple[WaitInterval, ...]:
        """Return the waits of jobs that have one of these wants."""
        with self.reading() as connection:
            return tables.waits_of_wants(connection, wants, since_us) if wants else ()

    def values(self, since_us: int) -> tuple[Value, ...]:
        """Return what changed at entries since, and before that the latest of each; by time."""
        with self.reading() as connection:
            return tables.stored_values(connection, since_us)

    def hours(self, first: Hour, last: Hour) -> list[HourTotal]:
        """Return what was spent in the hours first ... last, both included, oldest first."""
        with self.reading() as connection:
            return sorted(
                HourTotal(hour, counters.site_key(labels), micros)
                for hour, labels, micros in counters.hour_rows(connection, Kind.SITE, first, last)
            )

    def factory_hours(self, first: Hour, last: Hour) -> Mapping[FactoryKey, int]:
        """Return factories' numbers of the hours first ... last, both included.

        What is missing was not reported: no file of that time was read, or nothing happened.
        """
        with self.reading() as connection:
            return {
                FactoryKey(hour, *counters.factory_key(labels)): number
                for hour, labels, number in counters.hour_rows(
                    connection, Kind.FACTORY, first, last
                )
            }

    def problems(self, limit: int = 100) -> list[TimedProblem]:
        """Return the latest problems, newest first."""
        columns = (problems.c.time, problems.c.source, problems.c.problem, problems.c.detail)
        query = select(*columns).order_by(problems.c.id.desc()).limit(limit)
        with self.transaction() as connection:
            return [
                TimedProblem(time, Problem(source, ProblemName(problem), detail))
                for time, source, problem, detail in connection.execute(query)
            ]

    def pilot_rows(
        self,
        choice: PilotFilter = EVERY_PILOT,
        *,
        order: Order = "start",
        descending: bool = False,
        limit: int | None = None,
        after: tuple[int, PilotId] | None = None,
    ) -> list[PilotRow]:
        """Return the pilots of a choice, in the order asked for; a pilot that runs ends last.

        ``after``: only those that come after the one with that time and number.
        """
        column = pilots.c[_ORDERS.get(order, order)]
        keys: list[ColumnElement[Any]] = [column, pilots.c.id]
        if order == "end":
            keys.insert(0, column.is_(None))
        query = PILOT_ROWS.where(*of_pilots(choice)).limit(limit)
        if after is not None:
            here, there = tuple_(column, pilots.c.id), tuple_(*map(literal, after))
            query = query.where(here < there if descending else here > there)
        query = query.order_by(*(key.desc() if descending else key for key in keys))
        with self.reading() as connection:
            return [pilot_row(row) for row in connection.execute(query)]

    def run_rows(
        self, period: Period = ALWAYS, place: Place = ANYWHERE
    ) -> Iterator[tuple[RunRow, PilotIdentity]]:
        """Yield the runs on pilots of a place that overlap a period, by pilot and job.

        Some pilots at a time are read, each time in a transaction of its own, so that neither
        memory nor the writer waits for whoever takes them.
        """
        since_us, until_us = period.since_us - _STICKS_OUT_US, period.until_us + _STICKS_OUT_US
        around = tuple(of_pilots(PilotFilter(since_us, until_us, place=place)))
        within = tuple(_within(runs, *period))
        some, last = PILOT_ROWS.order_by(pilots.c.id).limit(PILOTS_AT_ONCE), -1
        while True:
            with self.reading() as connection:
                query = some.where(pilots.c.id > last, *around)
                rows = [pilot_row(row) for row in connection.execute(query)]
                identities = {row.id: row.identity for row in rows}
                of_chunk = RUN_ROWS.where(runs.c.pilot.in_(identities), *within)
                of_chunk = of_chunk.order_by(runs.c.pilot, runs.c.job, runs.c.number)
                run_rows = map(run_row, connection.execute(of_chunk))
                chunk = [(row, identities[row.pilot]) for row in run_rows]
            yield from chunk
            if len(rows) < PILOTS_AT_ONCE:
                return
            last = rows[-1].id

    def runs_begun(self, choice: RunFilter, limit: int | None) -> list[tuple[RunRow, PilotRow]]:
        """Return at most so many (None: all) of the runs of a choice, latest first, with pilots.

        Without those that stand for what is known from statistics only.
        """
        c, (since_us, until_us) = runs.c, choice.period
        query = RUN_ROWS.where(c.start_us >= since_us, c.start_us < until_us)
        query = query.where(func.coalesce(c.outcome, "") != SUMMARISED)
        if choice.user is not None:
            query = query.where(of_user(choice.user))
        if choice.job is not None:
            named = c.job.contains(f"#{choice.job}#", autoescape=True)
            query = query.where(c.job == choice.job if "#" in choice.job else named)
        if choice.category is not None:
            query = query.where(c.category == choice.category)
        if choice.outcome is not None:
            query = query.where(c.outcome == choice.outcome)
        if choice.longer_us is not None:
            query = query.where(c.end_us - c.start_us > choice.longer_us)
        query = query.order_by(c.start_us.desc(), c.job, c.number, c.pilot)
        on = PilotFilter(place=choice.place, node=choice.node)
        return self._with_pilots(query.limit(limit).offset(choice.skip), on)

    def open_runs(
        self,
        silent_before_us: int,
        place: Place = ANYWHERE,
        period: Period = ALWAYS,
    ) -> list[tuple[RunRow, PilotRow]]:
        """Return the runs that are not decided and do not go on, each with its pilot.

        Of pilots of a place; the latest ``MOST_OPEN``.  On a pilot that was heard of last before
        ``silent_before_us`` nothing goes on.  They overlap the period.
        """
        over = or_(
            runs.c.end_us.is_not(None),
            pilots.c.end_us.is_not(None),
            and_(pilots.c.posted_last_heard_us < silent_before_us, pilots.c.origin == "collector"),
        )
        last = func.coalesce(runs.c.end_us, pilots.c.end_us, pilots.c.posted_last_heard_us)
        within = last >= period.since_us, runs.c.start_us < period.until_us
        query = RUN_ROWS.where(runs.c.open == 1, over, *within)
        latest = query.order_by(runs.c.start_us.desc()).limit(MOST_OPEN)
        return self._with_pilots(latest, PilotFilter(place=place))

    def _with_pilots(self, query: Select[Any], on: PilotFilter) -> list[tuple[RunRow, PilotRow]]:
        """Return the runs of a query that were on these pilots, each with its pilot."""
        joined = query.join_from(runs, pilots, runs.c.pilot == pilots.c.id)
        with self.reading() as connection:
            selected = connection.execute(joined.where(*of_pilots(on)))
            rows = [run_row(row) for row in selected]
        pilot = self.pilots_by_id({row.pilot for row in rows})
        return [(row, pilot[row.pilot]) for row in rows if row.pilot in pilot]

    def pilot_hours(self, first: Hour, last: Hour) -> list[PilotHour]:
        """Return the hours first ... last, both included, oldest first."""
        with self.reading() as connection:
            return sorted(
                PilotHour(hour, counters.pilot_key(labels), micros)
                for hour, labels, micros in counters.hour_rows(connection, Kind.PILOT, first, last)
            )

    def trials(
        self,
        since_us: int,
        until_us: int,
        known_us: int,
        users: Collection[str] | None = None,
        limit: int = MOST_TRIALS,
    ) -> list[Trial]:
        """Return runs that began in an interval (both ends included) and say something.

        Of these users, or of all; not more than ``limit``: those nearest to the interval's middle.
        A run is returned as it was at ``known_us``: one that went on then, five minutes after its
        start, has not failed early.  ``Trial.pilot`` is the number of the pilot, as text.
        """
        c, trials = runs.c, list[Trial]()
        middle = (since_us + until_us) // 2
        later = c.start_us.between(middle, until_us), c.start_us
        earlier = c.start_us.between(since_us, middle - 1), c.start_us.desc()
        goes_on = or_(c.end_us.is_(None), c.end_us > known_us)
        begun = c.start_us < known_us - EARLY_US
        says = or_(and_(c.end_us <= known_us, c.result != ""), and_(goes_on, begun))
        groups = [None] if users is None else chunks(sorted({clean(user) for user in users}))
        with self.reading() as connection:
            for user_names in groups:
                of_users = true() if user_names is None else c.user_name.in_(user_names)
                for within, order in (later, earlier):
                    query = _TRIALS.where(within, says, of_users).order_by(order, c.job, c.number)
                    rows = connection.execute(query.limit(limit // 2))
                    trials += (_trial(row, known_us) for row in rows)
        trials.sort(key=lambda trial: (abs(trial.start_us - middle), trial.key))
        return trials[:limit]

    def unsent(self, after: UnsentPosition, most: int) -> UnsentChunk | None:
        """Return the next part to export as traces, after a position; None: there is none."""
        with self.reading() as connection:
            return backlog.first(connection, after, most)

    def unsent_before(self, time_us: int) -> tuple[UnsentPosition, int]:
        """Return up to where all of the backlog was stored before a time, and how much it is."""
        with self.reading() as connection:
            return backlog.before(connection, time_us)

    def corrections(self, since_us: int = 0, limit: int = 1000) -> list[PilotCorrection]:
        """Return the latest corrections that were made since, newest first."""
        c = corrections.c
        query = select(c.time_us, c.pilot, c.hour, c.series, c.micros, c.cause)
        query = query.where(c.time_us >= since_us).order_by(c.time_us.desc(), c.id.desc())
        with self.reading() as connection:
            series = {
                row.id: counters.pilot_key(row.labels)
                for row in counters.stored_series(connection, Kind.PILOT)
            }
            return [
                PilotCorrection(time, pilot, hour, series[number], micros, cause)
                for time, pilot, hour, number, micros, cause in connection.execute(
                    query.limit(limit)
                )
            ]

    def check(
        self, progress: Progress | None = None, memory_mib: int = DEFAULT_MEMORY_MIB
    ) -> tuple[PilotResidual, ...]:
        """Prove all that the ledger holds; see ``pilot_check``.

        ``progress`` is called with what is being checked, how much was done and how much there is.
        ``memory_mib`` is what belongs to a canonical unit.  Commits through this object wait.
        """
        with self.reading() as connection:
            return pilot_check.check(connection, progress or (lambda *_: None), memory_mib)

    def stats(self) -> LedgerStats:
        """Return how large the ledger is; reads all of an SQLite file."""
        with self.reading() as connection:
            return stats(connection)


def _trial(values: Sequence[Any], known_us: int) -> Trial:
    job, run, group, user, pilot, node, entry, site, start, end, result = values
    if end is None or end > known_us:
        end, result = known_us, Result.LASTED
    places = str(pilot), node, entry, site
    return Trial(job, run, group or user, *places, start, end, Result(result))


def _within(
    table: Table, since_us: int | None, until_us: int | None
) -> Iterator[ColumnElement[bool]]:
    """Yield what chooses the pilots, or runs, of a period."""
    if since_us is not None:
        yield table.c.end_us.is_(None) | (table.c.end_us >= since_us)
    if until_us is not None:
        yield table.c.start_us < until_us


def of_user(user: str) -> ColumnElement[bool]:
    """Return what runs of a user fulfil: of ``user@domain``, or of a user of any domain."""
    name = runs.c.user_name
    return (
        name == user
        if "@" in user
        else or_(name == user, name.startswith(f"{user}@", autoescape=True))
    )


def of_pilots(choice: PilotFilter) -> Iterator[ColumnElement[bool]]:
    c = pilots.c
    yield from _within(pilots, choice.since_us, choice.until_us)
    if choice.running is not None:
        yield c.end_us.is_(None) if choice.running else c.end_us.is_not(None)
    for column, name in zip((c.site, c.entry, c.group_name), choice.place, strict=True):
        if name:
            yield column == name
    if choice.id is not None:
        yield c.id == choice.id
    if choice.name is not None:
        yield func.lower(c.name).contains(choice.name.lower(), autoescape=True)
    if choice.user is not None:
        yield exists().where(runs.c.pilot == c.id, of_user(choice.user))
    if choice.ended is not None:
        yield c.end_us >= choice.ended.since_us
        yield c.end_us < choice.ended.until_us
    if choice.node is not None:
        pattern = re.sub(r"([%_|])", r"|\1", choice.node.lower()).replace("*", "%")
        yield func.lower(c.node).like(pattern, escape="|")
    if choice.failed is not None:
        yield FAILED if choice.failed else ~FAILED
    if choice.category is not None:  # settled is compact JSON, see pilot_codec
        yield c.settled.contains(f'"{choice.category}":{{', autoescape=True)
    if choice.doing is not None:
        yield from _doing(choice.doing)


def _doing(doing: Doing) -> Iterator[ColumnElement[bool]]:
    """The order is that of ``StoredPilot.state``: what is said first holds."""
    c = pilots.c
    runs_of = exists().where(runs.c.pilot == c.id)
    heard = c.posted_last_heard_us, c.last_heard_us
    silent = and_(*(at < doing.silent_before_us for at in heard), c.origin == "collector")
    retiring = and_(c.retire_us.is_not(None), c.retire_us <= doing.now_us)
    yield c.end_us.is_(None)
    yield or_(c.validation != Validation.FAILED.value, runs_of)
    yield silent if doing.state == "silent" else not_(silent)
    if doing.state == "silent":
        return
    yield retiring if doing.state == "retiring" else not_(retiring)
    if doing.state != "retiring":
        runs_now = runs_of.where(runs.c.end_us.is_(None))
        yield runs_now if doing.state == "running" else and_(~runs_now, c.origin != "files")
