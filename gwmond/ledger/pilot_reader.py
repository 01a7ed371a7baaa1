"""What the accounting of pilots goes on from, and looks up while it goes."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, func, literal_column, or_, select

from gwmond.ledger import tables
from gwmond.ledger.classify import KEEP
from gwmond.ledger.columns import Undecodable, clean, identity
from gwmond.ledger.errors import LedgerCorrupt
from gwmond.ledger.pilot_codec import (
    KIND_COLUMNS,
    PILOT_READ,
    RUN_COLUMNS,
    pilot_kind,
    pilot_row,
    run_row,
)
from gwmond.ledger.schema import pilots, runs
from gwmond.ledger.session import Session
from gwmond.model.experiments import Experiment
from gwmond.model.factory_jobs import AGE_US, QueueRecord
from gwmond.model.facts import AD_LIFETIME_S, Cursor
from gwmond.model.pilot_evidence import short_node
from gwmond.model.pilot_keys import PilotKeys, PilotRows
from gwmond.model.stored_pilots import PilotId, PilotIdentity, PilotKind, PilotRow, RunRow
from gwmond.model.times import SECOND_US

AT_ONCE = 500
_NAMES_AT_ONCE = 200
_ROWS_AT_ONCE = 5000

PILOT_ROWS = select(*(pilots.c[name] for name in PILOT_READ))
RUN = tuple(runs.c[name] for name in RUN_COLUMNS)
RUN_ROWS = select(*RUN)

_T = TypeVar("_T")


def chunks(values: Iterable[_T], size: int = AT_ONCE) -> Iterator[list[_T]]:
    """Divide values into lists that fit into one statement."""
    items = list(values)
    for first in range(0, len(items), size):
        yield items[first : first + size]


class PilotLookup(Session):
    """A ledger open to read what it holds of pilots."""

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A transaction in which a row that cannot be decoded is damage."""
        with self._transaction() as connection:
            try:
                yield connection
            except Undecodable as exc:
                raise LedgerCorrupt(self.where, f"a row cannot be read ({exc})", KEEP) from exc

    def fetch(self, keys: PilotKeys) -> PilotRows:
        """Return what is stored under some keys; nothing is asked where there are none."""
        guard_us = keys.guard_us
        late_us = guard_us + AD_LIFETIME_S * SECOND_US
        runs = list(_flat(self.find_runs(keys.jobs))) if keys.jobs else []
        numbers = keys.pilots | {run.pilot for run in runs}
        found: list[PilotRow] = []
        if keys.startds:
            found += _flat(self.find_pilots(keys.startds))
        if keys.factory_jobs:
            found += _flat(self.find_factory_jobs(keys.factory_jobs))
        if keys.factory_numbers:
            found += _flat(self.find_factory_numbers(keys.factory_numbers))
        if keys.bare_startds:
            found += self.find_startds(keys.bare_startds)
        if keys.on_nodes:
            found += self.find_on_nodes(keys.on_nodes, guard_us, late_us)
        if keys.nameless:
            found += self.find_nameless(keys.nameless, guard_us, AGE_US)
        if numbers:
            found += self.pilots_by_id(numbers).values()
        return PilotRows(
            keys,
            pilots=tuple({row.id: row for row in found}.values()),
            entries=self.pilots_of_entries(keys.entries) if keys.entries else {},
            places=self.find_places(keys.places) if keys.places else {},
            runs=runs,
            whole=self.runs_of(keys.whole) if keys.whole else {},
        )

    def experiments(self, since_us: int, until_us: int) -> tuple[Experiment, ...]:
        """Return how pilots that registered in a period checked the verdicts on their entries."""
        with self._reading() as connection:
            return tables.experiments_within(connection, since_us, until_us)

    def runs_of(self, ids: Collection[PilotId]) -> dict[PilotId, list[RunRow]]:
        """Return all runs of these pilots, in the order of their keys; none is no entry."""
        found: defaultdict[PilotId, list[RunRow]] = defaultdict(list)
        order = runs.c.pilot, runs.c.job, runs.c.number
        with self._reading() as connection:
            for chunk in chunks(sorted(set(ids))):
                query = RUN_ROWS.where(runs.c.pilot.in_(chunk)).order_by(*order)
                for row in map(run_row, connection.execute(query)):
                    found[row.pilot].append(row)
        return dict(found)

    def find_pilots(self, names: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return all pilots of these names, closed ones too, by start; none is no entry."""
        wanted = {identity(name): name for name in names}
        return self._find(pilots.c.name, wanted, lambda key: key.name)

    def find_factory_jobs(self, jobs: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return all pilots that ran as these jobs of a factory, by start; none is no entry."""
        wanted = {identity(job): job for job in jobs if job}
        return self._find(pilots.c.factory_job, wanted, lambda key: key.factory_job)

    def find_factory_numbers(self, numbers: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return all pilots that ran as ``cluster.proc`` of any schedd, by start."""
        wanted = {number: number for number in numbers}
        return self._find(pilots.c.factory_number, wanted, lambda key: key.factory_number)

    def _find(
        self,
        column: ColumnElement[str],
        wanted: Mapping[str, str],
        stored: Callable[[PilotIdentity], str],
    ) -> dict[str, list[PilotRow]]:
        """Return the pilots with these values of a column, by what was asked for, by start."""
        found: defaultdict[str, list[PilotRow]] = defaultdict(list)
        with self._reading() as connection:
            for some in chunks(sorted(wanted)):
                query = PILOT_ROWS.where(column.in_(some))
                query = query.order_by(pilots.c.start_us, pilots.c.id)
                for pilot in map(pilot_row, connection.execute(query)):
                    found[wanted[stored(pilot.identity)]].append(pilot)
        return dict(found)

    def find_startds(self, startds: Collection[str]) -> list[PilotRow]:
        """Return all pilots with one of these names up to the ``@``, closed ones too."""
        with self._reading() as connection:
            found = set(_of_startds(connection, startds))
        return list(self.pilots_by_id(found).values())

    def find_on_nodes(
        self, moments: Collection[tuple[str, int]], early_us: int, late_us: int
    ) -> list[PilotRow]:
        """Return pilots that ended and were on a node at some moment."""
        with self._reading() as connection:
            found = set(_on_nodes(connection, moments, early_us, late_us))
        return list(self.pilots_by_id(found).values())

    def find_nameless(
        self, moments: Collection[tuple[str, int]], early_us: int, age_us: int
    ) -> list[PilotRow]:
        """Return pilots without a startd's name that were on a node before."""
        with self._reading() as connection:
            found = set(_nameless(connection, moments, early_us, age_us))
        return list(self.pilots_by_id(found).values())

    def pilots_of_entries(self, entries: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return some of the latest pilots of these entries; none is no entry."""
        found: dict[str, list[PilotRow]] = {}
        with self._reading() as connection:
            for entry in sorted(set(entries)):
                latest = PILOT_ROWS.where(pilots.c.entry == clean(entry))
                latest = latest.order_by(pilots.c.start_us.desc(), pilots.c.id).limit(AT_ONCE)
                if rows := list(map(pilot_row, connection.execute(latest))):
                    found[entry] = rows
        return found

    def pilots_by_kind(self, entry: str) -> dict[PilotKind, list[PilotId]]:
        """Return an entry's pilots that can be posted anew, by what is known and assumed of them.

        Those known from records of jobs only are left out, and those without a size.
        """
        c = pilots.c
        query = select(*(c[name] for name in KIND_COLUMNS)).where(
            c.entry == clean(entry), c.origin != "jobs", c.runs_pruned == 0
        )
        found: defaultdict[PilotKind, list[PilotId]] = defaultdict(list)
        with self._reading() as connection:
            query = query.order_by(c.id).execution_options(yield_per=AT_ONCE)
            for row in connection.execute(query):
                if (kind := pilot_kind(row)) is not None:
                    found[kind].append(row.id)
        return dict(found)

    def find_places(self, names: Collection[str]) -> dict[str, QueueRecord]:
        """Return what is stored of these places (``entry#cluster.proc``); none is no entry."""
        with self._reading() as connection:
            return {
                place.name: place
                for chunk in chunks(sorted(set(names)))
                for place in tables.find_places(connection, chunk)
            }

    def find_runs(self, jobs: Collection[str]) -> dict[str, list[RunRow]]:
        """Return all runs of these jobs, on closed pilots too, by run; none is no entry."""
        wanted = {identity(job): job for job in jobs}
        found: defaultdict[str, list[RunRow]] = defaultdict(list)
        with self._reading() as connection:
            for chunk in chunks(sorted(wanted)):
                query = RUN_ROWS.where(runs.c.job.in_(chunk))
                for row in connection.execute(query.order_by(runs.c.number, runs.c.pilot)):
                    run = run_row(row)
                    found[wanted[run.key.job]].append(run)
        return dict(found)

    def pilots_by_id(self, ids: Collection[PilotId]) -> dict[PilotId, PilotRow]:
        """Return these pilots, closed ones too."""
        with self._reading() as connection:
            return {
                row.id: row
                for chunk in chunks(sorted(set(ids)))
                for row in map(
                    pilot_row, connection.execute(PILOT_ROWS.where(pilots.c.id.in_(chunk)))
                )
            }

    def cursors(self) -> dict[tuple[str, str], Cursor]:
        """Return how far each source's records have been taken."""
        with self._reading() as connection:
            return tables.stored_cursors(connection)


def open_pilots(connection: Connection) -> Iterator[PilotRow]:
    """Yield the pilots that are not closed, in the order of their numbers."""
    running = pilots.c.closed == literal_column("0")  # no parameter: the index is of it
    found = connection.execute(PILOT_ROWS.where(running).order_by(pilots.c.id))
    yield from map(pilot_row, found)


def _flat(rows: Mapping[str, Iterable[_T]]) -> Iterator[_T]:
    """Yield all rows that were found, whatever their names."""
    return chain.from_iterable(rows.values())


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


def _of_startds(connection: Connection, startds: Collection[str]) -> Iterator[PilotId]:
    """Yield pilots with one of these names up to the ``@``."""
    wanted = sorted(startds)
    for first in range(0, len(wanted), _NAMES_AT_ONCE):
        chunk = wanted[first : first + _NAMES_AT_ONCE]
        yield from connection.scalars(select(pilots.c.id).where(_named(connection, chunk)))


def _on_nodes(
    connection: Connection, moments: Collection[tuple[str, int]], early_us: int, late_us: int
) -> Iterator[PilotId]:
    """Yield pilots that were on a node at one of these moments.

    All pilots that ended since the first moment are looked through, some at a time.
    """
    c, times_us = pilots.c, [at_us for _, at_us in moments]
    query = select(c.id, c.node, c.start_us, c.end_us).where(
        c.end_us >= min(times_us) - late_us, c.start_us <= max(times_us) + early_us
    )
    rows = connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE))
    yield from _there(rows, moments, early_us, late_us)


def _nameless(
    connection: Connection, moments: Collection[tuple[str, int]], early_us: int, age_us: int
) -> Iterator[PilotId]:
    """Yield pilots that may have been on a node.

    All of them are looked through, some at a time; most pilots have a startd's name.
    """
    c, times_us = pilots.c, [at_us for _, at_us in moments]
    query = select(c.id, c.node, c.start_us, c.start_us).where(
        _without_startd(connection),
        c.end_us >= min(times_us) - age_us,
        c.node != "",
        c.start_us >= min(times_us) - age_us,
        c.start_us <= max(times_us) + early_us,
    )
    rows = connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE))
    yield from _there(rows, moments, early_us, age_us)


def _there(
    rows: Iterable[Sequence[Any]],
    moments: Collection[tuple[str, int]],
    early_us: int,
    late_us: int,
) -> Iterator[PilotId]:
    """Yield rows of number, node, and from when to when, that were on a node at some moment."""
    times: defaultdict[str, list[int]] = defaultdict(list)
    for node, at_us in sorted(moments):
        times[node].append(at_us)
    for number, node, start_us, end_us in rows:
        here = times.get(short_node(node), [])
        after = bisect_left(here, start_us - early_us)
        if after < len(here) and here[after] <= end_us + late_us:
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
