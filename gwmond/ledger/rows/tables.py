"""The rows of all tables but pilots, runs and series: stored, read and forgotten.

Each function runs in the caller's transaction; ``*_values`` raises ``ValueError`` for what cannot
be stored, ``*_row`` raises ``Undecodable`` for what was not written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import Connection, Table, bindparam, delete, func, literal_column, select

from gwmond.ledger.database.backend import Upsert, chunks, upsert
from gwmond.ledger.database.columns import (
    DETAIL_CHARACTERS,
    Undecodable,
    clean,
    identity,
    maybe_time,
    time_s,
    time_us,
    whole,
)
from gwmond.ledger.database.schema import (
    cursors,
    entries,
    factory_jobs,
    gaps,
    ledger_state,
    peaks,
    problems,
    verdict_checks,
)
from gwmond.model.cursor_kinds import BEGIN_KINDS, SCHEDD_KINDS
from gwmond.model.elapsed import Tick
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


def append(connection: Connection, table: Table, rows: Sequence[Row], kept: int) -> None:
    """Add rows; the oldest beyond ``kept`` go."""
    if rows:
        connection.execute(table.insert(), list(rows[-kept:]))
        newest = select(func.max(table.c.id)).scalar_subquery()
        connection.execute(delete(table).where(table.c.id <= newest - kept))


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
    last = state.last_accounted
    return {
        "site": clean(key.site),
        "entry": clean(key.entry),
        "first_seen": time_s(state.first_seen),
        "last_accounted": None if last is None else time_s(last),
        **{
            f"provisioned_{resource}": None if units is None else whole(units)
            for resource in RESOURCES
            for units in (state.provisioned.get(resource),)
        },
    }


def stored_entries(connection: Connection) -> dict[EntryKey, EntryState]:
    found = {}
    for row in connection.execute(select(entries)):
        units = {"cpu": row.provisioned_cpu, "gpu": row.provisioned_gpu}
        provisioned = {r: units[r] for r in RESOURCES if units[r] is not None}
        state = EntryState(row.first_seen, row.last_accounted, provisioned)
        found[EntryKey(row.site, row.entry)] = state
    return found


def stored_peaks(connection: Connection) -> dict[EntryKey, tuple[Peak, ...]]:
    found: dict[EntryKey, list[Peak]] = defaultdict(list)
    query = select(peaks).order_by(peaks.c.site, peaks.c.entry, peaks.c.resource, peaks.c.hour)
    for row in connection.execute(query):
        found[EntryKey(row.site, row.entry)].append(Peak(row.resource, row.hour, row.units))
    return {key: tuple(group) for key, group in found.items()}


def store_peaks(connection: Connection, changed: Mapping[EntryKey, tuple[Peak, ...]]) -> None:
    """Replace the peaks of each entry named; those that are as stored are not written again."""
    if not changed:
        return
    stored = stored_peaks(connection)
    wanted: dict[EntryKey, tuple[Peak, ...]] = {
        EntryKey(clean(key.site), clean(key.entry)): tuple(sorted(group))
        for key, group in changed.items()
    }
    different = {k: v for k, v in wanted.items() if v != stored.get(k, ())}
    if different:
        gone = delete(peaks).where(
            peaks.c.site == bindparam("of_site"), peaks.c.entry == bindparam("of_entry")
        )
        connection.execute(gone, [{"of_site": k.site, "of_entry": k.entry} for k in different])
    rows = [{**k._asdict(), **peak._asdict()} for k, group in different.items() for peak in group]
    if rows:
        connection.execute(peaks.insert(), rows)


def problem_values(seen: TimedProblem) -> Row:
    time, problem = seen
    return {
        "time": time_s(time),
        "source": clean(problem.source),
        "problem": problem.problem.value,
        "detail": clean(problem.detail, DETAIL_CHARACTERS),
    }


def prune_problems(connection: Connection, before_us: int) -> dict[str, int]:
    old = delete(problems).where(problems.c.time < before_us / MICRO)
    return {"problems": connection.execute(old).rowcount}


def cursor_values(cursor: Cursor) -> Row:
    """Return the columns of a cursor; one that would not come back as it is is refused."""
    if clean(cursor.state, STATE_CHARACTERS) != cursor.state:
        raise ValueError(f"the state of cursor {cursor.source} {cursor.kind} cannot be stored")
    return {
        "source": identity(cursor.source),
        "kind": clean(cursor.kind),
        "state": cursor.state,
        "complete_us": maybe_time(cursor.complete_us),
    }


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


def gap_values(gap: Gap) -> Row:
    return {
        "source": clean(gap.source),
        "kind": clean(gap.kind),
        "start_us": maybe_time(gap.start_us),
        "end_us": time_us(gap.end_us),
        "detail": clean(gap.detail, DETAIL_CHARACTERS),
    }


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
    return {
        "name": identity(place.name),
        "entry": clean(place.entry),
        "number": clean(place.number),
        "open": int(place.open),
        "last_us": time_us(place.last_us),
        "facts": msgspec.json.encode(records).decode(),
    }


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
                QueueEvent("", _name(who), state, at) for *who, state, at in records.events
            ),
            lines=tuple(CompletedPilot("", _name(line[:3]), *line[3:]) for line in records.lines),
            checked=records.checked,
            open=bool(is_open),
            outputs=records.outputs,
        )
    except (ValueError, TypeError, msgspec.MsgspecError) as exc:
        raise Undecodable(f"factory job {entry} {number}: {exc!r}") from exc


def _name(who: Sequence[Any]) -> PilotName:
    instance, user, client = who
    return PilotName(instance=instance, user=user, frontend=client)


def open_places(connection: Connection) -> tuple[QueueRecord, ...]:
    """Return the places of which more may follow."""
    waiting = factory_jobs.c.open == literal_column("1")  # no parameter: the index is of it
    query = PLACE_ROWS.where(waiting).order_by(factory_jobs.c.name)
    return tuple(map(place_row, connection.execute(query)))


def find_places(connection: Connection, names: Collection[str]) -> Iterable[QueueRecord]:
    wanted = sorted(map(identity, names))
    found = connection.execute(PLACE_ROWS.where(factory_jobs.c.name.in_(wanted)))
    return map(place_row, found)


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
    return {
        "pilot": whole(experiment.pilot),
        "site": clean(experiment.entry.site),
        "entry": clean(experiment.entry.entry),
        "group_name": clean(experiment.group),
        "state": experiment.verdict.state.value,
        "reason": clean(experiment.verdict.reason),
        "evidence": experiment.verdict.evidence,
        "registered_us": time_us(experiment.registered_us),
        "result": experiment.result.value,
        "verdict_us": time_us(experiment.verdict_us),
    }


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


def prune_experiments(connection: Connection, before_us: int) -> dict[str, int]:
    """Forget those with a result whose pilots registered before; what they counted stays."""
    c = verdict_checks.c
    old = delete(verdict_checks).where(
        c.registered_us < before_us, c.result != PilotResult.OPEN.value
    )
    return {"experiments": connection.execute(old).rowcount}
