"""The rows of all tables but pilots, runs and series: stored, read and forgotten.

Each function runs in the caller's transaction; ``row`` and ``*_values`` raise ``ValueError`` for
what cannot be stored, ``*_row`` raises ``Undecodable`` for what was not written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Double,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
)

from gwmond.ledger.database.backend import Upsert, chunks, upsert
from gwmond.ledger.database.columns import (
    DETAIL_CHARACTERS,
    LATEST_US,
    Undecodable,
    clean,
    identity,
    maybe_time,
    time_s,
    time_us,
    whole,
)
from gwmond.ledger.database.schema import (
    changes,
    cursors,
    entries,
    factory_jobs,
    gaps,
    ledger_state,
    peaks,
    polls,
    problems,
    unsent,
    verdict_checks,
    waits,
)
from gwmond.model.cursor_kinds import BEGIN_KINDS, SCHEDD_KINDS
from gwmond.model.demand.idle_history import WaitInterval
from gwmond.model.elapsed import Tick
from gwmond.model.entries.changes import Value, ValueKey
from gwmond.model.entries.experiments import Experiment, PilotResult, SiteVerdict
from gwmond.model.factory.jobs import Output, QueueRecord
from gwmond.model.facts import Cursor, EntryKey, Gap
from gwmond.model.pilots.file_facts import CompletedPilot, PilotName, QueueEvent, QueueState
from gwmond.model.pilots.stored_pilots import PilotId
from gwmond.model.poll.batch import EntryState, Peak, TimedProblem
from gwmond.model.states import State
from gwmond.model.totals import Hour
from gwmond.model.units import MICRO, RESOURCES

STATE_CHARACTERS = 1_000_000
PLACES_AT_ONCE = 10_000

Row: TypeAlias = dict[str, Any]


def _unchanged(state: str) -> str:
    """Return a text that comes back as it is; any other is refused."""
    if clean(state, STATE_CHARACTERS) != state:
        raise ValueError(f"a text of {len(state)} characters cannot be stored as it is")
    return state


def _detail(text: str) -> str:
    return clean(text, DETAIL_CHARACTERS)


_STORABLE: dict[ColumnElement[Any], Callable[[Any], Any]] = {
    changes.c.value: _detail,
    cursors.c.source: identity,
    cursors.c.state: _unchanged,
    factory_jobs.c.name: identity,
    gaps.c.detail: _detail,
    polls.c.found: bytes,
    problems.c.detail: _detail,
    unsent.c.job: identity,
    waits.c.schedd: identity,
}
"""What makes a value storable, where the column's name and type do not say it."""


@cache
def _storable(column: Column[Any]) -> Callable[[Any], Any]:
    if column in _STORABLE:
        return _STORABLE[column]
    if column.name.endswith("_us"):
        return time_us
    kinds: dict[type, Callable[[Any], Any]] = {Text: clean, Double: time_s}
    return next((make for kind, make in kinds.items() if isinstance(column.type, kind)), whole)


def row(table: Table, values: Mapping[str, Any]) -> Row:
    """Return columns with values that every database can hold; None only where it may be."""
    columns = {name: table.c[name] for name in values}
    return {
        name: None if value is None and columns[name].nullable else _storable(columns[name])(value)
        for name, value in values.items()
    }


def put(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Put whole rows in the place of those with their keys."""
    if not rows:
        return
    connection.execute(_replacement(connection.dialect.name, table, tuple(rows[0])), list(rows))


@cache
def _replacement(dialect: str, table: Table, columns: tuple[str, ...]) -> Upsert:
    """Return the statement of ``put``, which takes longer to make than to run."""
    statement = upsert(dialect, table)
    key = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in columns if name not in key}
    return statement.on_conflict_do_update(index_elements=key, set_=changed)


def append(connection: Connection, table: Table, rows: Sequence[Row], most: int) -> None:
    """Add rows; the oldest beyond ``most`` go."""
    if rows:
        connection.execute(table.insert(), list(rows[-most:]))
        newest = select(func.max(table.c.id)).scalar_subquery()
        connection.execute(delete(table).where(table.c.id <= newest - most))


# --- The state of the ledger -------------------------------------------------------------------


class Stored(NamedTuple):
    """The one row of ``ledger_state``."""

    batches: int = 0
    next_id: PilotId = 1
    pruned_before: Hour = 0
    pilots_pruned_us: int = 0
    runs_pruned_us: int = 0
    wall: float | None = None
    mono: float | None = None
    boot: float | None = None
    boot_id: str | None = None

    @property
    def tick(self) -> Tick | None:
        """Up to when site time is accounted, None before the first poll."""
        if self.wall is None or self.mono is None or self.boot is None or self.boot_id is None:
            return None
        return Tick(self.wall, self.mono, self.boot, self.boot_id)


_STATE = select(*(ledger_state.c[name] for name in Stored._fields))
_LOCKED_STATE = _STATE.with_for_update()


def stored_state(connection: Connection, *, lock: bool = False) -> Stored:
    """Return the row, or what stands for it in a new ledger."""
    row = connection.execute(_LOCKED_STATE if lock else _STATE).one_or_none()
    return Stored() if row is None else Stored(*row)


def store_state(connection: Connection, stored: Stored) -> None:
    put(connection, ledger_state, [{"id": 1, **stored._asdict()}])


# --- Entries, problems, cursors and gaps -------------------------------------------------------


def entry_values(key: EntryKey, state: EntryState) -> Row:
    units = {f"provisioned_{r}": state.provisioned.get(r) for r in RESOURCES}
    times = {"first_seen": state.first_seen, "last_accounted": state.last_accounted}
    return row(entries, {**key._asdict(), **times, **units})


def stored_entries(connection: Connection) -> dict[EntryKey, EntryState]:
    states = {}
    for row in connection.execute(select(entries)):
        units = {"cpu": row.provisioned_cpu, "gpu": row.provisioned_gpu}
        provisioned = {r: units[r] for r in RESOURCES if units[r] is not None}
        state = EntryState(row.first_seen, row.last_accounted, provisioned)
        states[EntryKey(row.site, row.entry)] = state
    return states


def stored_peaks(connection: Connection) -> dict[EntryKey, tuple[Peak, ...]]:
    groups: dict[EntryKey, list[Peak]] = defaultdict(list)
    query = select(peaks).order_by(peaks.c.site, peaks.c.entry, peaks.c.resource, peaks.c.hour)
    for row in connection.execute(query):
        groups[EntryKey(row.site, row.entry)].append(Peak(row.resource, row.hour, row.units))
    return {key: tuple(group) for key, group in groups.items()}


def store_peaks(connection: Connection, changed: Mapping[EntryKey, tuple[Peak, ...]]) -> None:
    """Replace the peaks of each entry named; those that are as stored are not written again."""
    if not changed:
        return
    stored = stored_peaks(connection)
    cleaned: dict[EntryKey, tuple[Peak, ...]] = {
        EntryKey(clean(key.site), clean(key.entry)): tuple(sorted(group))
        for key, group in changed.items()
    }
    different = {k: v for k, v in cleaned.items() if v != stored.get(k, ())}
    if different:
        gone = delete(peaks).where(
            peaks.c.site == bindparam("of_site"), peaks.c.entry == bindparam("of_entry")
        )
        connection.execute(gone, [{"of_site": k.site, "of_entry": k.entry} for k in different])
    rows = [{**k._asdict(), **peak._asdict()} for k, group in different.items() for peak in group]
    if rows:
        connection.execute(peaks.insert(), rows)


def problem_values(timed: TimedProblem) -> Row:
    source, problem, detail, _ = timed.problem
    return row(
        problems,
        {"time": timed.time, "source": source, "problem": problem.value, "detail": detail},
    )


def prune_problems(connection: Connection, before_us: int) -> dict[str, int]:
    old = delete(problems).where(problems.c.time < before_us / MICRO)
    return {"problems": connection.execute(old).rowcount}


def prune_cursors(connection: Connection, before_us: int) -> dict[str, int]:
    """Take out those of schedds' histories that were last known to the end before."""
    c = cursors.c
    kinds = (*SCHEDD_KINDS, *BEGIN_KINDS.values())
    old = delete(cursors).where(c.kind.in_(kinds), c.complete_us < before_us)
    return {"cursors": connection.execute(old).rowcount}


def stored_cursors(connection: Connection) -> dict[tuple[str, str], Cursor]:
    c = cursors.c
    query = select(*(c[name] for name in Cursor._fields)).order_by(c.source, c.kind)
    return {(row.source, row.kind): Cursor(*row) for row in connection.execute(query)}


def latest_gaps(connection: Connection, limit: int) -> list[Gap]:
    """Return the latest gaps, newest first."""
    query = select(*(gaps.c[name] for name in Gap._fields)).order_by(gaps.c.id.desc())
    return [Gap(*row) for row in connection.execute(query.limit(limit))]


# --- What a factory's queue and summary report of its jobs ---------------------------------------

PLACE = tuple(factory_jobs.c[name] for name in ("entry", "number", "open", "facts"))
PLACE_ROWS = select(*PLACE)


class _StoredRecords(msgspec.Struct, array_like=True):
    """The records of a place: who a pilot is (instance, user, frontend), then their own fields."""

    events: tuple[tuple[str, str, str, QueueState, int], ...]
    lines: tuple[tuple[Any, ...], ...]
    checked: tuple[str, ...]
    outputs: tuple[Output, ...] = ()


_RECORDS = msgspec.json.Decoder(_StoredRecords)


def place_values(place: QueueRecord) -> Row:
    records = _StoredRecords(
        events=tuple(
            (*_who(event.name), event.state, time_us(event.at_us)) for event in place.events
        ),
        lines=tuple(
            (*_who(line.name), maybe_time(line.written_us), *line[3:]) for line in place.lines
        ),
        checked=place.checked,
        outputs=tuple((maybe_time(start), time_us(at)) for start, at in place.outputs),
    )
    values: Row = {"name": place.name, "entry": place.entry, "number": place.number}
    values |= {"open": int(place.open), "last_us": place.last_us}
    return {**row(factory_jobs, values), "facts": msgspec.json.encode(records).decode()}


def _who(name: PilotName) -> tuple[str, str, str]:
    return clean(name.instance), clean(name.user), clean(name.frontend)


def place_row(values: Sequence[Any]) -> QueueRecord:
    """Return the place of the columns ``PLACE``."""
    entry, number, is_open, facts = values
    try:
        records = _RECORDS.decode(facts)
        return QueueRecord(
            entry=entry,
            number=number,
            events=tuple(
                QueueEvent("", _name(parts), state, at) for *parts, state, at in records.events
            ),
            lines=tuple(CompletedPilot("", _name(line[:3]), *line[3:]) for line in records.lines),
            checked=records.checked,
            open=bool(is_open),
            outputs=records.outputs,
        )
    except (ValueError, TypeError, msgspec.MsgspecError) as exc:
        raise Undecodable(f"factory job {entry} {number}: {exc!r}") from exc


def _name(parts: Sequence[Any]) -> PilotName:
    instance, user, client = parts
    return PilotName(instance=instance, user=user, frontend=client)


def open_places(connection: Connection) -> tuple[QueueRecord, ...]:
    """Return the places of which more may follow."""
    waiting = factory_jobs.c.open == literal_column("1")  # no parameter: the index is of it
    query = PLACE_ROWS.where(waiting).order_by(factory_jobs.c.name)
    return tuple(map(place_row, connection.execute(query)))


def find_places(connection: Connection, names: Collection[str]) -> Iterable[QueueRecord]:
    identities = sorted(map(identity, names))
    rows = connection.execute(PLACE_ROWS.where(factory_jobs.c.name.in_(identities)))
    return map(place_row, rows)


def prune_places(connection: Connection, before_us: int) -> dict[str, int]:
    """Take out some of which nothing was reported since; none are left when it is 0."""
    old = select(factory_jobs.c.name).where(factory_jobs.c.last_us < before_us)
    names = list(connection.scalars(old.limit(PLACES_AT_ONCE)))
    for some in chunks(names):
        connection.execute(delete(factory_jobs).where(factory_jobs.c.name.in_(some)))
    return {"places": len(names)}


def undecodable_places(connection: Connection) -> tuple[int, list[str]]:
    """Return how many there are, and the names of those whose facts cannot be read or differ."""
    number = connection.scalar(select(func.count()).select_from(factory_jobs)) or 0
    wrong = []
    query = select(factory_jobs.c.name, factory_jobs.c.last_us, *PLACE)
    for name, last_us, *values in connection.execute(query.execution_options(yield_per=2000)):
        place = place_row(values)
        if (identity(place.name), place.last_us) != (name, last_us):
            wrong.append(name)
    return number, wrong


# --- Verdicts that pilots check ----------------------------------------------------------------

_CHECK = tuple(verdict_checks.c)


def experiment_values(experiment: Experiment) -> Row:
    pilot, place, group, verdict, verdict_us, registered_us, result = experiment
    names = {**place._asdict(), "group_name": group, "state": verdict.state.value}
    times = {"registered_us": registered_us, "verdict_us": verdict_us}
    words = {"reason": verdict.reason, "evidence": verdict.evidence, "result": result.value}
    return row(verdict_checks, {"pilot": pilot, **names, **words, **times})


def experiment_row(values: Sequence[Any]) -> Experiment:
    pilot, site, entry, group, state, reason, evidence, registered_us, result, verdict_us = values
    try:
        verdict = SiteVerdict(State(state), reason, evidence)
        return Experiment(
            *(pilot, EntryKey(site, entry), group, verdict, verdict_us, registered_us),
            PilotResult(result),
        )
    except ValueError as exc:
        raise Undecodable(f"verdict check of pilot {pilot}: {exc!r}") from exc


def open_experiments(connection: Connection) -> tuple[Experiment, ...]:
    waiting = verdict_checks.c.result == literal_column("''")  # no parameter: the index is of it
    query = select(*_CHECK).where(waiting).order_by(verdict_checks.c.pilot)
    return tuple(map(experiment_row, connection.execute(query)))


def experiments_within(
    connection: Connection, since_us: int, until_us: int
) -> tuple[Experiment, ...]:
    """Return those of pilots that registered in a period, in the order of their numbers."""
    at_us = verdict_checks.c.registered_us
    query = select(*_CHECK).where(at_us >= since_us, at_us < until_us)
    return tuple(map(experiment_row, connection.execute(query.order_by(verdict_checks.c.pilot))))


def latest_checks(connection: Connection, most: int) -> tuple[Experiment, ...]:
    """Return the latest experiments that have checked a verdict, the last one first."""
    c = verdict_checks.c
    done = c.result.in_((PilotResult.RAN.value, PilotResult.IDLE.value))
    query = select(*_CHECK).where(done).order_by(c.registered_us.desc()).limit(most)
    return tuple(map(experiment_row, connection.execute(query)))


def prune_experiments(connection: Connection, before_us: int) -> dict[str, int]:
    """Forget those with a result whose pilots registered before; what they counted stays."""
    c = verdict_checks.c
    old = delete(verdict_checks).where(
        c.registered_us < before_us, c.result != PilotResult.OPEN.value
    )
    return {"experiments": connection.execute(old).rowcount}


# --- What polls found ---------------------------------------------------------------------------


def poll_before(connection: Connection, until_us: int) -> tuple[int, bytes] | None:
    """Return when the last poll was until then, and what it found; None: none is kept."""
    last = select(polls).where(polls.c.time_us <= until_us).order_by(polls.c.time_us.desc())
    row = connection.execute(last.limit(1)).one_or_none()
    return None if row is None else (row.time_us, row.found)


def polls_between(
    connection: Connection, since_us: int, until_us: int, step_us: int
) -> Iterator[tuple[int, bytes]]:
    """Yield the last poll of each step of a time, and what it found, in their order."""
    within = polls.c.time_us > since_us, polls.c.time_us <= until_us
    last = select(func.max(polls.c.time_us)).where(*within).group_by(polls.c.time_us // step_us)
    query = select(polls).where(polls.c.time_us.in_(last)).order_by(polls.c.time_us)
    for row in connection.execute(query):
        yield row.time_us, row.found


def prune_polls(connection: Connection, before_us: int) -> dict[str, int]:
    return {"polls": connection.execute(delete(polls).where(polls.c.time_us < before_us)).rowcount}


# --- What is set at entries, and when it changed ------------------------------------------------

_VALUE = tuple(changes.c[name] for name in ("site", "entry", "group_name", "name"))


def change_values(changed: Value) -> Row:
    site, entry, group, name = changed.key
    key = {"site": site, "entry": entry, "group_name": group, "name": str(name)}
    return row(changes, {**key, "time_us": changed.time_us, "value": changed.value})


def stored_values(connection: Connection, since_us: int = LATEST_US) -> tuple[Value, ...]:
    """Return what changed since, and before that the latest of each; by time."""
    c = changes.c
    before = select(*_VALUE, func.max(c.time_us).label("time_us")).where(c.time_us < since_us)
    last = before.group_by(*_VALUE).subquery()
    same = and_(*(c[column.name] == last.c[column.name] for column in (*_VALUE, c.time_us)))
    latest = select(*_VALUE, c.time_us, c.value).join_from(changes, last, same)
    later = select(*_VALUE, c.time_us, c.value).where(c.time_us >= since_us)
    rows = [tuple(one) for query in (latest, later) for one in connection.execute(query)]
    found = [Value(ValueKey(*key), time, value) for *key, time, value in rows]
    return tuple(sorted(found, key=lambda one: (one.time_us, one.key)))


def prune_values(connection: Connection, before_us: int) -> dict[str, int]:
    """Forget what was changed again before."""
    c, later = changes.c, changes.alias()
    same = (later.c[column.name] == column for column in _VALUE)
    again = exists().where(*same, later.c.time_us > c.time_us, later.c.time_us < before_us)
    return {"values": connection.execute(delete(changes).where(again)).rowcount}


# --- For which reasons groups of idle jobs wait ------------------------------------------------

_WAIT = tuple(waits.c[name] for name in WaitInterval._fields)


def lasting_waits(connection: Connection) -> tuple[WaitInterval, ...]:
    """Return the intervals that have not ended."""
    return _waits(connection, waits.c.until_us.is_(None))


def waits_of_group(
    connection: Connection, schedd: str, group: str, since_us: int
) -> tuple[WaitInterval, ...]:
    """Return the intervals of a group that lasted after a time, in their order."""
    of_group = waits.c.schedd == identity(schedd), waits.c.identity == clean(group)
    return _waits(connection, *of_group, _after(since_us))


def waits_of_wants(
    connection: Connection, texts: Iterable[str], since_us: int
) -> tuple[WaitInterval, ...]:
    """Return the intervals of groups by ``wants`` that lasted after a time, in their order."""
    names, intervals = sorted({clean(wants) for wants in texts if wants}), list[WaitInterval]()
    for some in chunks(names):
        intervals += _waits(connection, waits.c.wants.in_(some), _after(since_us))
    return tuple(intervals)


def prune_waits(connection: Connection, before_us: int) -> dict[str, int]:
    """Forget the intervals that ended before."""
    return {"waits": connection.execute(delete(waits).where(waits.c.until_us < before_us)).rowcount}


def _after(since_us: int) -> ColumnElement[bool]:
    return waits.c.until_us.is_(None) | (waits.c.until_us > since_us)


def _waits(connection: Connection, *where: ColumnElement[bool]) -> tuple[WaitInterval, ...]:
    order = waits.c.schedd, waits.c.identity, waits.c.since_us
    query = select(*_WAIT).where(*where).order_by(*order)
    return tuple(WaitInterval(*row) for row in connection.execute(query))
