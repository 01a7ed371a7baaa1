"""What the accounting of pilots goes on from, and looks up while it goes."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, and_, func, literal_column, or_, select

from gwmond.ledger.database.backend import chunks
from gwmond.ledger.database.columns import clean, identity
from gwmond.ledger.database.schema import pilots, runs
from gwmond.ledger.database.session import Session
from gwmond.ledger.rows import tables
from gwmond.ledger.rows.pilot_codec import (
    KIND_COLUMNS,
    pilot_kind,
    pilot_row,
    run_row,
)
from gwmond.model.entries.experiments import Experiment
from gwmond.model.factory.jobs import AGE_US
from gwmond.model.facts import AD_LIFETIME_S, Cursor, Gap
from gwmond.model.pilots.file_facts import short_node
from gwmond.model.pilots.stored_pilots import PilotId, PilotKind, PilotRow, RunRow
from gwmond.model.poll.pilot_keys import PilotKeys, PilotRows
from gwmond.model.times import SECOND_US

AT_ONCE = 500
_NAMES_AT_ONCE = 200
_ROWS_AT_ONCE = 5000
_LATEST_GAPS = 1000

PILOT_ROWS, RUN_ROWS = select(pilots), select(runs)
RUN = tuple(runs.c)

_K = TypeVar("_K", int, str)


class PilotLookup(Session):
    """A ledger open to read what it holds of pilots."""

    def fetch(self, keys: PilotKeys) -> PilotRows:
        """Return what is stored under some keys; closed pilots, too."""
        c, guard_us = pilots.c, keys.guard_us
        late_us = guard_us + AD_LIFETIME_S * SECOND_US
        with self.reading() as connection:
            of_jobs = list(_runs(connection, runs.c.job, map(identity, keys.jobs)))
            nameless = _without_startd(connection), c.node != ""  # most have a startd's name
            numbers = {
                *keys.pilots,
                *(run.pilot for run in of_jobs),
                *_of_startds(connection, keys.bare_startds),
                *_there(connection, keys.on_nodes, c.end_us, guard_us, late_us),
                *_there(connection, keys.nameless, c.start_us, guard_us, AGE_US, *nameless),
            }
            rows = chain(
                _pilots(connection, c.name, map(identity, keys.startds)),
                _pilots(connection, c.factory_job, map(identity, filter(None, keys.factory_jobs))),
                _pilots(connection, c.factory_number, keys.factory_numbers),
                _pilots(connection, c.id, numbers),
            )
            return PilotRows(
                keys,
                pilots=tuple({row.id: row for row in rows}.values()),
                entries=_latest_of_entries(connection, keys.entries),
                places={
                    place.name: place
                    for some in chunks(sorted(keys.places))
                    for place in tables.find_places(connection, some)
                },
                runs=of_jobs,
                whole=_by(_runs(connection, runs.c.pilot, keys.whole), lambda run: run.pilot),
            )

    def experiments(self, since_us: int, until_us: int) -> tuple[Experiment, ...]:
        """Return how pilots that registered in a period checked the verdicts on their entries."""
        with self.reading() as connection:
            return tables.experiments_within(connection, since_us, until_us)

    def number_open(self) -> int:
        """Return how many pilots are not closed."""
        with self.reading() as connection:
            query = select(func.count()).select_from(pilots).where(_OPEN)
            return int(connection.execute(query).scalar_one())

    def runs_of(self, ids: Iterable[PilotId]) -> dict[PilotId, list[RunRow]]:
        """Return all runs of these pilots, in the order of their keys; none is no entry."""
        with self.reading() as connection:
            return _by(_runs(connection, runs.c.pilot, ids), lambda run: run.pilot)

    def find_runs(self, jobs: Iterable[str]) -> dict[str, list[RunRow]]:
        """Return all runs of these jobs, on closed pilots too, by run; none is no entry."""
        job_of = {identity(job): job for job in jobs}
        with self.reading() as connection:
            return _by(_runs(connection, runs.c.job, job_of), lambda run: job_of[run.key.job])

    def jobs_numbered(self, number: str, schedd: str, limit: int) -> list[str]:
        """Return jobs with this ``cluster.proc``, of a schedd or of any (all jobs are looked at).

        GlobalJobId is ``schedd#cluster.proc#time``.
        """
        job = runs.c.job
        query = select(job).distinct().order_by(job).limit(limit)
        first = f"{clean(schedd)}#{number}#"
        with self.reading() as connection:
            if not schedd:
                condition = job.contains(f"#{number}#", autoescape=True)
            elif connection.dialect.name == "sqlite":  # as bytes are in order, by the index
                condition = and_(job > first, job < f"{first}:")
            else:
                condition = job.startswith(first, autoescape=True)
            return list(connection.scalars(query.where(condition)))

    def pilots_by_id(self, ids: Iterable[PilotId]) -> dict[PilotId, PilotRow]:
        """Return these pilots, closed ones too."""
        with self.reading() as connection:
            return {row.id: row for row in _pilots(connection, pilots.c.id, ids)}

    def pilots_by_kind(self, entry: str) -> dict[PilotKind, list[PilotId]]:
        """Return an entry's pilots that can be posted anew, by what is known and assumed of them.

        Those known from records of jobs only are left out, and those without a size.
        """
        c = pilots.c
        query = select(*(c[name] for name in KIND_COLUMNS)).where(
            c.entry == clean(entry), c.origin != "jobs", c.runs_pruned == 0
        )
        ids: defaultdict[PilotKind, list[PilotId]] = defaultdict(list)
        with self.reading() as connection:
            query = query.order_by(c.id).execution_options(yield_per=AT_ONCE)
            for row in connection.execute(query):
                if (kind := pilot_kind(row)) is not None:
                    ids[kind].append(row.id)
        return dict(ids)

    def cursors(self) -> dict[tuple[str, str], Cursor]:
        """Return how far each source's records have been taken."""
        with self.reading() as connection:
            return tables.stored_cursors(connection)

    def gaps(self) -> list[Gap]:
        """Return the latest gaps in what was read of sources, newest first."""
        with self.reading() as connection:
            return tables.latest_gaps(connection, _LATEST_GAPS)


# No parameter: the index is of it.
_OPEN = pilots.c.closed == literal_column("0")


def open_pilots(connection: Connection) -> Iterator[PilotRow]:
    """Yield the pilots that are not closed, in the order of their numbers."""
    rows = connection.execute(PILOT_ROWS.where(_OPEN).order_by(pilots.c.id))
    yield from map(pilot_row, rows)


def _pilots(
    connection: Connection, column: ColumnElement[_K], values: Iterable[_K]
) -> Iterator[PilotRow]:
    """Yield the pilots with these values of a column, some at a time by start."""
    for some in chunks(sorted(set(values))):
        query = PILOT_ROWS.where(column.in_(some)).order_by(pilots.c.start_us, pilots.c.id)
        yield from map(pilot_row, connection.execute(query))


def _runs(
    connection: Connection, column: ColumnElement[_K], values: Iterable[_K]
) -> Iterator[RunRow]:
    """Yield the runs with these values of a column, in its order and that of their keys."""
    order = column, runs.c.job, runs.c.number, runs.c.pilot
    for some in chunks(sorted(set(values))):
        query = RUN_ROWS.where(column.in_(some)).order_by(*order)
        yield from map(run_row, connection.execute(query))


def _by(rows: Iterable[RunRow], key: Callable[[RunRow], _K]) -> dict[_K, list[RunRow]]:
    groups: defaultdict[_K, list[RunRow]] = defaultdict(list)
    for run in rows:
        groups[key(run)].append(run)
    return dict(groups)


def _latest_of_entries(connection: Connection, entries: Iterable[str]) -> dict[str, list[PilotRow]]:
    """Return some of the latest pilots of these entries; none is no entry."""
    by_entry = {}
    for entry in sorted(entries):
        latest = PILOT_ROWS.where(pilots.c.entry == clean(entry))
        latest = latest.order_by(pilots.c.start_us.desc(), pilots.c.id).limit(AT_ONCE)
        if rows := list(map(pilot_row, connection.execute(latest))):
            by_entry[entry] = rows
    return by_entry


def late_runs(connection: Connection, ids: list[PilotId]) -> Iterator[RunRow]:
    """Yield runs of these pilots that are open or end after the pilot's mark.

    Pilots are named by number: asked for all at once, a database may read all runs instead.
    """
    c = runs.c
    late = or_(c.open == 1, c.end_us.is_(None), c.end_us > pilots.c.settled_until_us)
    query = RUN_ROWS.join_from(runs, pilots, c.pilot == pilots.c.id).where(late)
    for some in chunks(ids):
        theirs = query.where(c.pilot.in_(some)).order_by(c.pilot, c.job, c.number)
        yield from map(run_row, connection.execute(theirs))


# --- Pilots by what lines of central logs call them ---------------------------------------------


def _of_startds(connection: Connection, startds: Iterable[str]) -> Iterator[PilotId]:
    """Yield pilots with one of these names up to the ``@``."""
    for some in chunks(sorted(startds), _NAMES_AT_ONCE):
        yield from connection.scalars(select(pilots.c.id).where(_named(connection, some)))


def _there(
    connection: Connection,
    moments: Collection[tuple[str, int]],
    last: ColumnElement[int],
    early_us: int,
    late_us: int,
    *which: ColumnElement[bool],
) -> Iterator[PilotId]:
    """Yield pilots that were on a node at one of these moments, from their start to ``last``.

    All of them that ended since the first moment are looked through, some at a time.
    """
    if not moments:
        return
    times: defaultdict[str, list[int]] = defaultdict(list)
    for node, at_us in sorted(moments):
        times[node].append(at_us)
    c, times_us = pilots.c, [at_us for _, at_us in moments]
    since_us = min(times_us) - late_us
    query = select(c.id, c.node, c.start_us, last).where(
        c.end_us >= since_us, c.start_us <= max(times_us) + early_us, last >= since_us, *which
    )
    rows = connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE))
    for number, node, start_us, last_us in rows:
        here = times.get(short_node(node), [])
        after = bisect_left(here, start_us - early_us)
        if after < len(here) and here[after] <= last_us + late_us:
            yield number


def _without_startd(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that a name begins with a digit, as own names do."""
    name = pilots.c.name
    if connection.dialect.name == "sqlite":
        return and_(name >= "0", name < ":")
    return name.regexp_match("^[0-9]")


def _named(connection: Connection, startds: list[str]) -> ColumnElement[bool]:
    """Return the condition; SQLite finds a range of names by the index, as bytes are in order."""
    name = pilots.c.name
    if connection.dialect.name == "sqlite":
        return or_(*(and_(name >= f"{startd}@", name < f"{startd}A") for startd in startds))
    return and_(name.contains("@"), func.split_part(name, "@", 1).in_(startds))
