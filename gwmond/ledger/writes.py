"""The statements that change a ledger; each runs inside the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, bindparam, delete, func, literal, select, update

from gwmond.ledger.backend import upsert
from gwmond.ledger.schema import entries, peaks, problems, site_hours, site_seconds, ticks
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey
from gwmond.model.hours import from_columns, microseconds, split_hours, to_columns
from gwmond.model.totals import Batch, EntryState, Hour, Micros, Peak, SiteKey, TimedProblem
from gwmond.model.units import MICRO

PROBLEMS_KEPT = 10_000
NAME_CHARACTERS = 128  # five of them fit into an index of PostgreSQL (2704 bytes)
DETAIL_CHARACTERS = 4000
LONGEST_S = 366 * 86400
LARGEST_MICROS = 10**21

Row: TypeAlias = dict[str, Any]


class Rows(NamedTuple):
    """A batch's increments summed: per series, and per series and hour.  Both sum to the same."""

    totals: dict[SiteKey, Micros]
    created: dict[SiteKey, float]
    hours: dict[tuple[Hour, SiteKey], Micros]


def clean(text: str, limit: int = NAME_CHARACTERS) -> str:
    """Return ``text`` as every database can store it.

    Names come from ads that anybody's pilot may send: one NUL, broken UTF-8 or a novel for a site
    name must not stop the accounting of all sites.  Names that become equal share a series.
    """
    if len(text) <= limit and text.isascii() and "\0" not in text:
        return text
    text = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _clean_key(key: SiteKey) -> SiteKey:
    return SiteKey(key.resource, *(clean(text) for text in key[1:]))


def _whole(value: object, least: int = 0, most: int = LARGEST_MICROS) -> None:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} is not an exact integer of {least} or more, in range")


def check_batch(batch: Batch) -> None:
    """Raise ``ValueError`` for what no correct caller sends."""
    times = [*batch.tick[:3], *(batch.before[:3] if batch.before else ())]
    times += [time for time, _ in batch.problems]
    for state in batch.entries.values():
        times += [time for time in state[:2] if time is not None]
    if not all(map(isfinite, times)):
        raise ValueError("a time is not finite")
    if batch.before == batch.tick:
        raise ValueError("it ends at the tick that it starts from, so a replay could not be told")
    for increment in batch.increments:
        _whole(increment.micros)
        if not 0 <= increment.end - increment.start <= LONGEST_S:  # refuses NaN too
            raise ValueError(f"{increment} is not over 0 to {LONGEST_S} s")
    for state in batch.entries.values():
        for units in state.provisioned.values():
            _whole(units)
    for group in batch.peaks.values():
        for peak in group:
            _whole(peak.units)
            _whole(peak.hour)


def sum_rows(batch: Batch) -> Rows:
    """Sum the increments of a batch; a series with nothing but zeros still gets its row."""
    totals: dict[SiteKey, Micros] = defaultdict(int)
    created: dict[SiteKey, float] = {}
    hours: dict[tuple[Hour, SiteKey], Micros] = defaultdict(int)
    for increment in batch.increments:
        key = _clean_key(increment.key)
        totals[key] += increment.micros
        created[key] = min(increment.start, created.get(key, increment.start))
        span = microseconds(increment.start), microseconds(increment.end)
        for hour, micros in split_hours(increment.micros, *span):
            hours[hour, key] += micros
    return Rows(totals, created, hours)


def stored_tick(connection: Connection, *, lock: bool = False) -> tuple[Tick | None, int]:
    """Return the stored tick and the number of commits so far."""
    query = select(ticks)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        return None, 0
    return Tick(row.wall, row.mono, row.boot, row.boot_id), row.commits


def store_tick(connection: Connection, tick: Tick, commits: int) -> None:
    row = {**tick._asdict(), "commits": commits}
    statement = upsert(connection, ticks).values(id=1, **row)
    connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=row))


def add(connection: Connection, rows: Rows) -> None:
    """Add to the totals and the hours; a carry of micros moves into the whole seconds."""
    if not rows.totals:
        return
    statement = upsert(connection, site_seconds)
    new, old = statement.excluded, site_seconds.c
    carried = statement.on_conflict_do_update(
        index_elements=["site", "entry", "resource", "state", "reason"],
        set_={
            "whole": old.whole + new.whole + (old.micros + new.micros) // MICRO,
            "micros": (old.micros + new.micros) % MICRO,
        },
    )
    connection.execute(
        carried,
        [
            {**key._asdict(), **_columns(micros), "created": rows.created[key]}
            for key, micros in sorted(rows.totals.items())
        ],
    )
    if not rows.hours:
        return
    hourly = upsert(connection, site_hours)
    new, old = hourly.excluded, site_hours.c
    series = select(
        bindparam("hour", type_=old.hour.type),
        site_seconds.c.id,
        bindparam("whole", type_=old.whole.type),
        bindparam("micros", type_=old.micros.type),
    ).where(*(site_seconds.c[name] == bindparam(f"of_{name}") for name in SiteKey._fields))
    connection.execute(
        hourly.from_select(["hour", "series", "whole", "micros"], series).on_conflict_do_update(
            index_elements=["hour", "series"],
            set_={
                "whole": old.whole + new.whole + (old.micros + new.micros) // MICRO,
                "micros": (old.micros + new.micros) % MICRO,
            },
        ),
        [
            {
                "hour": hour,
                **_columns(micros),
                **{f"of_{name}": text for name, text in key._asdict().items()},
            }
            for (hour, key), micros in sorted(rows.hours.items())
        ],
    )


def _columns(micros: Micros, prefix: str = "") -> Row:
    whole, rest = to_columns(micros)
    return {f"{prefix}whole": whole, f"{prefix}micros": rest}


def store_entries(connection: Connection, changed: Mapping[EntryKey, EntryState]) -> None:
    if not changed:
        return
    statement = upsert(connection, entries)
    columns = ("first_seen", "last_accounted", "provisioned_cpu", "provisioned_gpu")
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["site", "entry"], set_={c: statement.excluded[c] for c in columns}
        ),
        [
            {
                "site": clean(key.site),
                "entry": clean(key.entry),
                "first_seen": state.first_seen,
                "last_accounted": state.last_accounted,
                "provisioned_cpu": state.provisioned.get("cpu"),
                "provisioned_gpu": state.provisioned.get("gpu"),
            }
            for key, state in sorted(changed.items(), key=lambda item: item[0])
        ],
    )


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


def store_problems(connection: Connection, seen: tuple[TimedProblem, ...]) -> None:
    """Add problems; the oldest beyond ``PROBLEMS_KEPT`` go."""
    if not seen:
        return
    rows = [
        {
            "time": time,
            "source": clean(problem.source),
            "problem": clean(problem.problem),
            "detail": clean(problem.detail, DETAIL_CHARACTERS),
        }
        for time, problem in seen[-PROBLEMS_KEPT:]
    ]
    connection.execute(problems.insert(), rows)
    newest = select(func.max(problems.c.id)).scalar_subquery()
    connection.execute(delete(problems).where(problems.c.id <= newest - PROBLEMS_KEPT))


def prune_hours(connection: Connection, before: Hour) -> int:
    """Move the amounts of all hours earlier than ``before`` into their series' carry."""
    hours, series = site_hours.c, site_seconds.c
    query = (
        select(
            hours.series,
            func.sum(hours.whole),
            func.sum(hours.micros),
            series.pruned_whole,
            series.pruned_micros,
        )
        .join_from(site_hours, site_seconds)
        .where(hours.hour < literal(before))
        .group_by(hours.series, series.pruned_whole, series.pruned_micros)
    )
    rows = [
        {
            "series_id": number,
            **_columns(from_columns(whole, micros) + from_columns(carried, rest), "pruned_"),
        }
        for number, whole, micros, carried, rest in connection.execute(query)
    ]
    if not rows:
        return 0
    connection.execute(update(site_seconds).where(series.id == bindparam("series_id")), rows)
    return connection.execute(delete(site_hours).where(hours.hour < before)).rowcount
